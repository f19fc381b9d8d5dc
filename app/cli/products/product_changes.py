"""The commands `reviewloop product remove` and `edit`: change stored products."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from app.actions import product_actions
from app.actions.product_actions import (
    BulkEdit,
    BulkEdited,
    ChangedProduct,
    RemovedProduct,
    period_or_never,
)
from app.actions.products import MOST_PAGES
from app.actions.review_actions import judge_links
from app.cli.command import App, command
from app.cli.options import ReadBy, chosen_sites, group_option, keyword_list, site_option
from app.cli.output import say
from app.cli.render import Part, text
from app.reports.product_choice import FIELDS as CHOICE_FIELDS
from app.reports.product_choice import list_chosen, parse_conditions
from app.views.words import describe, join_words, name_text, translate
from splitter.catalog.names import Category
from splitter.errors import InputError, Message
from tasks.store.content import products
from tasks.store.content.products import ProductEdit

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog

_MOST_LINES = 20


@dataclass(frozen=True, slots=True)
class RemovedView:
    """Products that were removed; in a dry run, products that would be removed.

    Attributes:
        delete_reviews: True if the reviews of these products are deleted as well.
    """

    removed: Sequence[RemovedProduct]
    dry_run: bool
    delete_reviews: bool


@command(None, "remove", sites=True)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--delete-reviews",
    is_flag=True,
    help="Also delete what was collected of them, after a question; pages that another product has stay.",
)
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing.")
def remove(app: App, names: tuple[str, ...], delete_reviews: bool, yes: bool, dry_run: bool) -> RemovedView:
    """Stop collecting products. Stored reviews stay and can be exported as before.

    Their subtasks are cancelled. `product add NAME` starts to collect one again. If a NAME is unknown, none
    is removed. Products that are counted as a NAME (`product edit --counted-as`) are counted on their own again.

    --delete-reviews deletes their reviews for good: texts, authors, titles of pages. The log of the work
    (addresses, times, counts) and pages that another product has stay. If a run is crawling the products,
    pages that it has already requested still arrive: end the run first, or repeat the command.

    \b
    Examples:
      reviewloop product remove 特仑苏 蒙牛早餐奶 --dry-run
      reviewloop product remove 特仑苏
      reviewloop product remove 特仑苏 --delete-reviews --yes
    """
    catalog = app.settings.catalog() if delete_reviews else None
    if delete_reviews and not dry_run:
        _ask(product_actions.remove(app.store, names, app.who, dry_run=True), yes)
    done = product_actions.remove(app.store, names, app.who, delete_reviews=delete_reviews, dry_run=dry_run)
    if catalog is not None and not dry_run:
        judge_links(app.store, catalog)
    return RemovedView(done, dry_run, delete_reviews)


@text.register
def _(view: RemovedView) -> Iterator[Part]:
    for one in view.removed:
        outcome = translate("{name}: was removed before", name=one.name)
        if one.was_looked_for:
            outcome = translate(
                "{name}: would be removed; subtasks that would be cancelled: {n:,}"
                if view.dry_run
                else "{name}: removed; subtasks cancelled: {n:,}",
                name=one.name,
                n=one.cancelled,
            )
        reviews = _describe_reviews(one, view.delete_reviews)
        yield translate("{outcome}; {reviews}", outcome=outcome, reviews=reviews)
        if one.counted_with:
            yield translate("counted on their own again: {products}", products=join_words(one.counted_with))


def _describe_reviews(one: RemovedProduct, delete_reviews: bool) -> str:
    if one.deleted is not None and one.deleted < one.reviews:
        return translate(
            "reviews deleted: {n:,}; they stay with other products: {kept:,}",
            n=one.deleted,
            kept=one.reviews - one.deleted,
        )
    if one.deleted is not None:
        return translate("reviews deleted: {n:,}", n=one.deleted)
    if delete_reviews:
        return translate("reviews that would be deleted, less those of other products: {n:,}", n=one.reviews)
    return translate("reviews that stay: {n:,}", n=one.reviews)


def _ask(found: Sequence[RemovedProduct], yes: bool) -> None:
    """Ask the person to confirm that reviews will be deleted, unless `yes`.

    Raises:
        InputError: there is no terminal to ask on.
        Abort: the answer is no.
    """
    if yes:
        return
    n = sum(one.reviews for one in found)
    question = Message(
        "Delete all reviews of {products} ({n:,}) for good?",
        n=n,
        products=tuple(one.name for one in found),
    )
    if not sys.stdin.isatty():
        raise InputError(
            "{question} Say so with --yes; --dry-run tells what would be done", question=question
        )
    click.confirm(describe(question), abort=True, err=True)


@command(None, "edit", sites=True)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--where",
    "conditions",
    metavar="FIELD=VALUE",
    multiple=True,
    help=f"Change all products that have this, instead of NAME. Repeatable: all must hold. Fields: "
    f"{', '.join(CHOICE_FIELDS)}.",
)
@click.option(
    "--name", "new_name", metavar="NAME", help="New name; everything collected stays with the product."
)
@click.option(
    "--category",
    type=click.Choice([one.value for one in Category]),
    help="Its kind of sites.",
)
@click.option("--keywords", metavar="W,W", help="AND keywords instead of the present ones.")
@click.option("--add-keyword", "added", metavar="W", multiple=True, help="Add this keyword; repeatable.")
@click.option("--drop-keyword", "dropped", metavar="W", multiple=True, help="Drop this keyword; repeatable.")
@click.option(
    "--alias", "aliases", metavar="NAME", multiple=True, help="Other names, instead of the present ones."
)
@click.option(
    "--exclude-words",
    metavar="W,W",
    help="A review with one of these words does not count for the product; '' for none. They replace the present ones.",
)
@click.option(
    "--counted-as",
    metavar="PRODUCT",
    help="Count its reviews as those of this other product, equal texts once; '' for a count of its own.",
)
@click.option("--priority", type=int, help="A higher number goes first.")
@click.option("--pages", type=click.IntRange(1, MOST_PAGES), help="Result pages of each site.")
@group_option
@site_option
@click.option("--all-sites", is_flag=True, help="Use all sites of the catalog again.")
@click.option(
    "--recrawl",
    type=ReadBy("period", period_or_never),
    metavar="7d|12h|never",
    help="Crawl again at this interval, counted from the last time.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done; nothing is changed.")
def edit(
    app: App, names: tuple[str, ...], conditions: tuple[str, ...], dry_run: bool, **options: Any
) -> ChangedProduct | BulkEdited:
    """Change products. Options that are not given leave them as they are; --group and --site replace their sites.

    If keywords, aliases, sites, pages or the category change, a product is crawled again and its subtasks are
    cancelled; collected pages stay. With --where, products that already have the new values are not changed.

    --counted-as is for products that should count as one: two sizes, or two names of one product. They are crawled as
    before. Lists, pages, reports, rises and alerts count them under the name of the other product.

    \b
    Examples:
      reviewloop product edit 雀巢怡养 --keywords 雀巢,怡养 --alias 雀巢中老年奶粉
      reviewloop product edit 特仑苏 --priority 5 --recrawl never
      reviewloop product edit 光明牛奶 --exclude-words 奶粉,罐
      reviewloop product edit 特仑苏250ml 特仑苏1L --counted-as 特仑苏
      reviewloop product edit 海底捞 --name 海底捞火锅 --category restaurant
      reviewloop product edit 特仑苏 --group complaints --site zhihu.com --pages 3
      reviewloop product edit --where category=unknown --category appliance --dry-run
      reviewloop product edit --where import=3 --where doubt=many_keywords --drop-keyword 2024款
    """
    if bool(names) == bool(conditions):
        raise InputError("name the products to change, or choose them with --where FIELD=VALUE; not both")
    choice = parse_conditions(conditions)
    catalog = app.settings.catalog()
    wanted = BulkEdit(
        change=_read_change(catalog, names, options),
        add_keywords=options["added"],
        drop_keywords=options["dropped"],
    )
    if wanted == BulkEdit():
        raise InputError(
            "say what to change: --name, --category, --keywords, --add-keyword, --drop-keyword, --alias, "
            "--exclude-words, --counted-as, --priority, --pages, --group, --site, --all-sites or --recrawl"
        )
    if len(names) == 1 and not dry_run and wanted == BulkEdit(change=wanted.change):
        return product_actions.edit(app.store, names[0], wanted.change, app.who)
    with app.store.read() as tx:
        chosen = [products.find(tx, name).name for name in names]
        if conditions:
            chosen = [one.name for one in list_chosen(tx, choice, catalog)]
    done = product_actions.edit_each(app.store, chosen, wanted, app.who, dry_run=dry_run)
    for one in done.refused:
        app.exit_status = 2
        say(name_text(one.name, one.why), "red")
    return done


@text.register
def _(view: ChangedProduct) -> Iterator[Part]:
    if view.begins_again:
        yield translate(
            "{name}: changed; subtasks cancelled: {n:,}. It is crawled again from the start.",
            name=view.name,
            n=view.cancelled,
        )
    else:
        yield translate("{name}: changed", name=view.name)
    if view.counted_as is not None:
        yield translate("{name} is counted as {product}.", name=view.name, product=view.counted_as)


@text.register
def _(view: BulkEdited) -> Iterator[Part]:
    for one in view.changed[:_MOST_LINES]:
        yield translate("would be changed: {name}" if view.dry_run else "changed: {name}", name=one.name)
    if len(view.changed) > _MOST_LINES:
        yield translate("... and {n} more; --json lists them", n=len(view.changed) - _MOST_LINES)
    yield translate(
        "{changed:,} would be changed, {same:,} are so already, {refused:,} refused; subtasks that would be cancelled: "
        "{cancelled:,}"
        if view.dry_run
        else "{changed:,} changed, {same:,} are so already, {refused:,} refused; subtasks cancelled: {cancelled:,}",
        changed=len(view.changed),
        same=len(view.unchanged),
        refused=len(view.refused),
        cancelled=view.cancelled,
    )


def _read_change(catalog: Catalog, names: Sequence[str], options: Mapping[str, Any]) -> ProductEdit:
    """Return the change that the options describe. Raises InputError if options contradict each other."""
    is_chosen = bool(options["groups"] or options["sites_named"])
    if is_chosen and options["all_sites"]:
        raise InputError("--all-sites can't be used with --group or --site")
    if options["keywords"] is not None and (options["added"] or options["dropped"]):
        raise InputError("--keywords can't be used with --add-keyword or --drop-keyword")
    if options["new_name"] is not None and len(names) != 1:
        raise InputError("--name belongs to one product: name it, without --where")
    words = keyword_list(options["keywords"], options["aliases"], names)
    sites = chosen_sites(catalog, options["groups"], options["sites_named"]) if is_chosen else None
    return ProductEdit(
        name=options["new_name"],
        category=options["category"],
        keywords=words or None,
        aliases=options["aliases"] or None,
        priority=options["priority"],
        recrawl_every=options["recrawl"],
        pages=options["pages"],
        sites=sites,
        all_sites=options["all_sites"],
        excluded_words=_read_excluded(options["exclude_words"]),
        counted_as=None if options["counted_as"] is None else options["counted_as"].strip(),
    )


def _read_excluded(text: str | None) -> tuple[str, ...] | None:
    """Return the words of `--exclude-words`; `None` if it is not given."""
    from splitter.normalize import split_list  # loads the lexicon, which few commands need

    return None if text is None else split_list(text)
