"""`reviewloop insight`: themes of complaints, rises, and new phrases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import click
from rich.text import Text

from app.cli.command import App, command
from app.cli.options import period_options
from app.cli.render import Done, Part, table, text
from app.files.harmless import shown
from app.insight.periods import ALL, USUAL, PeriodChoice
from app.insight.rows import NewPhrasesView, QuoteRow, RiseRow, RisesView, ThemesView
from app.views.moments import local_time
from app.views.theme_names import find_theme, name_theme
from app.views.words import join_words, name_text, plural, translate
from splitter.errors import InputError

if TYPE_CHECKING:
    from app.insight.weekly import Groups
    from tasks.store.sql.transaction import Transaction

_LONGEST_QUOTE = 40
_MOST_SITES = 4
_CATEGORIES = ("goods", "car", "restaurant")


@click.group()
def insight() -> None:
    """Show what buyers complain about, since when, and what rises.

    \b
    Examples:
      reviewloop insight themes 特仑苏 --days 90
      reviewloop insight rising
      reviewloop insight new 特仑苏
      reviewloop insight archive 特仑苏 service
    """


@command(insight, "themes", sites=True)
@click.argument("names", metavar="[PRODUCT]...", nargs=-1)
@period_options(ALL)
def list_themes(app: App, names: tuple[str, ...], period: PeriodChoice) -> ThemesView:
    """List the themes of complaints of products, with quotes.

    For each theme: complaints, their share of buyers' reviews, the first and the last day, the state, and the
    complaints of each of the last 26 weeks. Equal texts count once. Shares use only sites that publish praise as
    well. Reviews without a date count only if no period is given; their number is shown.

    \b
    Examples:
      reviewloop insight themes
      reviewloop insight themes 特仑苏 --from 2026-09-01 --to 2026-11-30 --json
    """
    from app.insight import themes  # it brings numpy

    app.settings.use_themes()
    with app.store.read() as tx:
        products = _find_products(tx, names)
        today = local_time(tx.now).date()
        return themes.list_themes(tx, products, period.find(today), today, _groups(app))


@command(insight, "rising", sites=True)
def list_rising(app: App) -> RisesView:
    """List the themes that rise significantly, and the products whose complaints in all rise.

    Each theme of each product is judged at the end of the last whole week. It rises if its complaints significantly
    exceed the number expected from its last three years and the week's other reviews, corrected for the number of
    watched themes.
    All complaints together are watched only at sites that also publish praise: if a site has complaints only, a
    general rise can't be distinguished from more coverage. A rise is listed until its numbers have been usual for 4
    weeks; p is the lowest p of its weeks.

    \b
    Example:
      reviewloop insight rising --json
    """
    from app.insight import themes  # it brings numpy

    app.settings.use_themes()
    with app.store.read() as tx:
        return themes.list_rises(tx, local_time(tx.now).date(), _groups(app))


@command(insight, "new")
@click.argument("names", metavar="[PRODUCT]...", nargs=-1)
@period_options(USUAL)
def list_new(app: App, names: tuple[str, ...], period: PeriodChoice) -> NewPhrasesView:
    """List phrases in the complaints of a period that are significantly more frequent than before.

    Only clauses that mention no theme are read. They are compared with the complaints of the three years before the
    period, site by site. A phrase is listed if at least 3 people wrote it, on at least 2 pages. A person counts once
    per phrase, nearly equal texts count once. If there are more than 1,000 complaints in the period, or 2,000 before
    it, only a sample is read. Without PRODUCT, the 50 products with the most complaints in the period are read.
    `insight adopt` adds a phrase to the themes file.

    \b
    Examples:
      reviewloop insight new 特仑苏
      reviewloop insight new --from 2026-09-01 --to 2026-11-30 --json
    """
    from app.reports.phrases import list_new_phrases  # it brings numpy

    app.settings.use_themes()
    with app.store.read() as tx:
        return list_new_phrases(tx, names, period.find(local_time(tx.now).date()))


@command(insight, "adopt")
@click.argument("phrase")
@click.option(
    "--theme", metavar="NAME", help="Theme that gets the phrase as a term: its id or one of its names."
)
@click.option("--new-theme", metavar="ID", help="Add a theme with this id, such as pet_hair.")
@click.option("--zh", metavar="NAME", help="Chinese name of the new theme.")
@click.option("--en", metavar="NAME", help="English name of the new theme.")
@click.option("--category", type=click.Choice(_CATEGORIES), default=_CATEGORIES[0], show_default=True)
def adopt(
    app: App,
    phrase: str,
    theme: str | None,
    new_theme: str | None,
    zh: str | None,
    en: str | None,
    category: str,
) -> Done:
    """Add PHRASE to the themes file as a term of a theme.

    PHRASE is plain text, or A..B: B follows A within 8 characters of one clause. The file is the one that
    REVIEWLOOP_THEMES names, else ./themes.yaml; if that is not there, it is made as a copy of the project's own.
    Comments stay. A file that would be wrong is not written. New reviews are read with the term at once,
    `reviewloop judge` reads the stored ones.

    \b
    Examples:
      reviewloop insight adopt 黑色颗粒 --theme foreign_matter
      reviewloop insight adopt 科技与狠活 --new-theme additives --zh 添加剂 --en Additives
    """
    from app.actions import theme_actions  # it brings the reading

    if (theme is None) == (new_theme is None):
        raise InputError("give --theme NAME, or --new-theme ID with --zh and --en")
    new = theme_actions.NewTheme.read(zh, en) if new_theme is not None else None
    path = app.settings.themes_file
    app.settings.use_themes()
    adopted = new_theme or find_theme(theme or "")
    done = theme_actions.adopt_term(app.store, path, category, adopted, phrase.strip(), app.who, new)
    return Done(asdict(done), shown(done.sentence))


@command(insight, "archive")
@click.argument("product")
@click.argument("theme")
@click.option("--undo", is_flag=True, help="Take the theme out of the archive.")
def archive(app: App, product: str, theme: str, undo: bool) -> Done:
    """Archive THEME of PRODUCT until it rises: pages and lists fold it away.

    THEME is its id or its name. A rise that began before it was archived does not bring it back, the next one does.

    \b
    Examples:
      reviewloop insight archive 特仑苏 service
      reviewloop insight archive 特仑苏 包装破损 --undo
    """
    from app.actions.theme_archive import archive_theme

    done = archive_theme(app.store, product, theme, app.who, undo=undo)
    return Done(asdict(done), shown(done.sentence))


def _groups(app: App) -> Groups:
    return {name: site.group for name, site in app.settings.catalog().sites.items()}


def _find_products(tx: Transaction, names: Sequence[str]) -> dict[int, str]:
    """Return names of products by number: of the named products, or of all with reviews. Raises InputError."""
    from tasks.store.content import products
    from tasks.store.queries import themes

    if names:
        found = [products.find_counted(tx, name) for name in names]
        return {one.id: one.name for one in found}
    return themes.get_product_names(tx, themes.list_products_with_reviews(tx))


_THEME_FIELDS = "theme complaints share trend first_day last_day state"


@text.register
def _(view: ThemesView) -> Iterator[Part]:
    """Yield the themes of each product as a table, with the newest quote of each."""
    if not view.themes:
        yield translate("No complaint about a theme in this period.")
    for rise in view.rises_of_all:
        yield from _describe_rise(rise)
    for product, rows in groupby(view.themes, attrgetter("product")):
        of_product = list(rows)
        found = [row for row in of_product if not row.archived]
        lines = [replace(row, theme=name_theme(row.theme)) for row in found]
        yield table(lines, _THEME_FIELDS, title=shown(product), least="first_day trend")
        for row in found:
            if row.quotes:
                yield _quote_line(row.theme, row.quotes[0])
        if archived := [name_theme(row.theme) for row in of_product if row.archived]:
            yield translate("Archived until they rise: {themes}", themes=join_words(archived))
        if days := view.incomplete_days[product]:
            yield plural("The newest day is incomplete.", "The newest {n} days are incomplete.", days)
    if view.undated:
        yield plural(
            "{n} review has no date: it counts if the period is open, and in no trend.",
            "{n} reviews have no date: they count if the period is open, and in no trend.",
            view.undated,
        )
    if view.unread:
        yield plural(
            "{n} review was not read for themes: only Chinese ones about goods, cars and restaurants are.",
            "{n} reviews were not read for themes: only Chinese ones about goods, cars and restaurants are.",
            view.unread,
        )
    if view.sites_without_share:
        sites = _name_sites(view.sites_without_share)
        yield translate("Not in shares, as they publish no praise: {sites}", sites=sites)
    if view.themes and not view.all_judged:
        yield translate(
            "What rises is judged by the products shown alone so far, and strictly; a run judges all within 15 minutes."
        )
    yield from _note_uncounted(view.counted)


_PHRASE_FIELDS = "product phrase complaints expected before p_value"


@text.register
def _(view: NewPhrasesView) -> Iterator[Part]:
    """Yield the new phrases as a table, and a quote of each below it."""
    if view.phrases:
        yield table(view.phrases, _PHRASE_FIELDS, least="before p_value")
    else:
        yield translate("No phrase is significantly more frequent than before.")
    for row in view.phrases:
        for quote in row.quotes[:1]:
            yield _quote_line(shown(row.phrase), quote)
    yield translate(
        "Read: {read} of {complaints} complaints from {since} on, {read_before} of {complaints_before} from before.",
        read=view.read,
        complaints=view.complaints,
        since=view.since,
        read_before=view.read_before,
        complaints_before=view.complaints_before,
    )
    if view.sites_left_out:
        sites = _name_sites(view.sites_left_out)
        yield translate("Not compared, without complaints in both periods: {sites}", sites=sites)


@text.register
def _(view: RisesView) -> Iterator[Part]:
    """Yield the rises, each with its newest quote."""
    if not view.rises:
        yield translate("No theme rises; judged up to {day}.", day=view.until)
    for row in view.rises:
        yield from _describe_rise(row)
    yield from _note_uncounted(view.counted)


def _describe_rise(row: RiseRow) -> Iterator[Part]:
    """Yield the sentence about a rise, and its newest quote."""
    from app.insight.findings import describe_rise  # it brings numpy

    line = translate(
        "{product}: {finding} Newest week: {newest}. Surest in the week of {day} (p {p:.2g}).",
        product=shown(row.product),
        finding=str(describe_rise(row.theme, row)),
        newest=row.newest,
        day=row.surest,
        p=row.p_value,
    )
    yield Text(line, style="bold")
    for quote in row.quotes[:1]:
        yield _quote_line(row.theme, quote)


def _name_sites(sites: Sequence[str]) -> str:
    some = join_words(map(shown, sites[:_MOST_SITES]))
    rest = len(sites) - _MOST_SITES
    return some + (translate(" and {n} more", n=rest) if rest > 0 else "")


def _quote_line(theme: str, quote: QuoteRow) -> Text:
    """Return a quote with its day, site and URL as one line."""
    words = shown(quote.text)
    if len(words) > _LONGEST_QUOTE:
        words = f"{words[:_LONGEST_QUOTE]}…"
    where = " ".join(filter(None, (_day_text(quote.day), shown(quote.site), shown(quote.url))))
    return Text(f"  {name_text(name_theme(theme), f'“{words}” {where}')}", style="dim")


def _day_text(day: date | None) -> str:
    return "" if day is None else day.isoformat()


def _note_uncounted(share: float) -> Iterator[Part]:
    if share < 1:
        sentence = translate(
            "Only {n} % of the reviews from before the upgrade are counted so far; `run` and `judge` continue.",
            n=math.floor(share * 100),
        )
        yield Text(sentence, style="yellow")
