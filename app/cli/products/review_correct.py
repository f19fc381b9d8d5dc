"""`reviewloop review correct`: correct the judgement of a stored review."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from app.actions import review_corrections
from app.actions.review_corrections import CorrectableView, view_correctable
from app.cli.command import App, command
from app.cli.render import Done
from app.views.words import plural, translate
from splitter.errors import InputError
from tasks.domain.voices import Voice, voices_of
from tasks.store.content.corrections import Correction


@command(None, "correct")
@click.argument("number", metavar="REVIEW", type=int)
@click.option("--voice", metavar="VOICE", help=f"Who speaks: {', '.join(Voice)}.")
@click.option(
    "--theme",
    "themes",
    metavar="THEME,...",
    help="All themes that it complains about, by id or name; none: it complains about nothing.",
)
@click.option(
    "--not-product", metavar="NAME", multiple=True, help="It is not about this product. Repeatable."
)
@click.option("--hide", is_flag=True, help="It counts for no product, and lists leave it out.")
@click.option("--undo", is_flag=True, help="Take back what was corrected.")
@click.option("--because", metavar="TEXT", default="", help="Why; at most 500 characters.")
@click.option("--yes", is_flag=True, help="Don't ask about linked copies.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing.")
def correct(
    app: App,
    number: int,
    voice: str | None,
    themes: str | None,
    not_product: tuple[str, ...],
    hide: bool,
    undo: bool,
    because: str,
    yes: bool,
    dry_run: bool,
) -> Done:
    """Correct the stored REVIEW, by its number (column review of exports): its voice, themes or products.

    A correction wins over the models, also after `judge`, another crawl or import. It also applies to all linked
    copies, which have the same or nearly the same text; if there are any, you are asked first. Options that are not
    given leave earlier corrections unchanged. The audit log and exports show who corrected what.

    \b
    Examples:
      reviewloop review correct 4711 --voice praise
      reviewloop review correct 4711 --theme packaging,spoiled --because "leaked, and smelled"
      reviewloop review correct 4711 --not-product 光明牛奶
      reviewloop review correct 4711 --undo
    """
    from splitter.normalize import split_list  # loads the lexicon

    app.settings.use_themes()
    with app.store.read() as tx:
        view = view_correctable(tx, number)
    wanted = view.correction
    if voice is not None:
        wanted = replace(wanted, voice=voices_of([voice])[0])
    if themes is not None:
        wanted = replace(wanted, themes=view.find_themes(split_list(themes)))
    if hide:
        wanted = replace(wanted, hidden=True)
    wrong = _find_products(view, not_product)
    wanted = replace(wanted, not_products=tuple(dict.fromkeys((*wanted.not_products, *wrong))))
    is_given = hide or bool(not_product) or voice is not None or themes is not None
    if undo == is_given:
        raise InputError("say what is wrong: --voice, --theme, --not-product or --hide; or --undo, alone")
    if undo:
        wanted = Correction()
    if not dry_run:
        _ask(view.copies, is_sure=yes)
        view = review_corrections.correct(app.store, number, wanted, app.who, because, copies=view.copies)
    return _tell(view, wanted, dry_run=dry_run)


def _find_products(view: CorrectableView, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the numbers of the named products of a review, and of those in its earlier correction.

    Raises InputError.
    """
    known = {name: number for number, name in view.review.products}
    for name in names:
        if name not in known:
            problem = InputError(
                "review {review} is not counted for a product {name!r}; its products: {known}",
                review=view.review.review,
                name=name,
                known=", ".join(known) or "-",
            )
            raise problem.suggest(name, known) or problem
    return tuple(known[name] for name in names)


def _ask(copies: int, *, is_sure: bool) -> None:
    """Ask the person to confirm that linked copies of a review will be changed, unless `is_sure`.

    Raises:
        InputError: there is no terminal to ask on.
        Abort: the answer is no.
    """
    if is_sure or not copies:
        return
    question = plural(
        "This also holds for {n} linked copy. Go on?", "This also holds for {n} linked copies. Go on?", copies
    )
    if not sys.stdin.isatty():
        raise InputError(
            "{question} Say so with --yes; --dry-run tells what would be done", question=question
        )
    click.confirm(question, abort=True, err=True)


def _tell(view: CorrectableView, wanted: Correction, *, dry_run: bool) -> Done:
    told = translate("Review {number}", number=view.review.review)
    if view.copies:
        copies = plural("{n} linked copy", "{n} linked copies", view.copies)
        told = translate("{review} and {copies}", review=told, copies=copies)
    message = translate(
        "{reviews} would be: {correction}" if dry_run else "{reviews}: {correction}",
        reviews=told,
        correction=view.describe(wanted),
    )
    document = {
        "review": view.review.review,
        "copies": view.copies,
        "correction": wanted,
        "dry_run": dry_run,
    }
    return Done(document, message)
