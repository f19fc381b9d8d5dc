"""`reviewloop product`: manage the products whose reviews are collected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any

import click
from rich.text import Text

from app.actions import product_actions
from app.actions.product_actions import Added, AddedProduct
from app.actions.products import MOST_PAGES, new_products, period
from app.cli.command import App, command
from app.cli.options import (
    ReadBy,
    alias_option,
    chosen_sites,
    database_hint,
    group_option,
    keyword_list,
    keywords_option,
    period_options,
    site_option,
    store_to_fill,
)
from app.cli.output import say
from app.cli.products.import_options import (
    FileNotes,
    ImportFile,
    import_command,
    note_file,
    say_columns,
    store_or_none,
)
from app.cli.products.product_changes import edit, remove
from app.cli.products.product_views import ProductsView, ProductView, get_products_view
from app.cli.render import Part, table, text
from app.importing.product_files import FIELDS, open_product_file
from app.importing.product_rows import ProductRows
from app.insight.periods import USUAL, PeriodChoice
from app.reports.product_choice import FIELDS as CHOICE_FIELDS
from app.reports.product_choice import parse_conditions
from app.reports.product_list import ListOrder, ProductGrouping, ProductSort
from app.views.doubts import describe_doubt
from app.views.fields import extend_row
from app.views.words import name_text, plural, translate
from splitter.catalog.names import Category
from splitter.errors import InputError, list_names
from splitter.lexicon import is_brand
from tasks.store.content.numbered_imports import ImportKind

_FIELDS = (
    "name counted_as category complaints complaints_before change share trend keywords aliases priority "
    "recrawl_every_s recrawl_cron is_paused pages reviews coverage found_by fewer_words id"
)
_GROUP_FIELDS = "name products complaints complaints_before change share trend"
_LEAST = "id fewer_words found_by aliases recrawl_every_s recrawl_cron priority pages"
_MOST_LINES = 20
_MOST_DOUBTFUL = 200
"""Maximum number of listed doubtful products in an import of more than `_MOST_LINES` lines."""
_NAMED = 5


@dataclass(kw_only=True)
class ImportedProducts(Added, FileNotes):
    """The result of an import of products, and how its file was read."""


@click.group()
def product() -> None:
    """Add, import, change, remove and list the products to collect reviews of.

    \b
    Examples:
      reviewloop product add 光明高钙牛奶 特仑苏
      reviewloop product import products.csv
      reviewloop product list
    """


product.add_command(edit)
product.add_command(remove)


@command(product, "add", sites=True)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@keywords_option
@alias_option
@click.option("--priority", type=int, default=0, show_default=True, help="A higher number goes first.")
@click.option(
    "--pages",
    type=click.IntRange(1, MOST_PAGES),
    help="Result pages of each site. Default: the site's own number.",
)
@click.option(
    "--recrawl",
    type=ReadBy("period", period),
    metavar="7d|12h",
    help="Crawl again at this interval. Default: crawl once.",
)
@group_option
@site_option
def add(
    app: App,
    names: tuple[str, ...],
    keywords: str | None,
    aliases: tuple[str, ...],
    groups: tuple[str, ...],
    sites_named: tuple[str, ...],
    **options: Any,
) -> Added:
    """Add products; a runner starts to crawl them as soon as it sees them.

    A NAME without words to search for is refused, and the reason is shown. The others are added; the exit status is 2.

    \b
    Examples:
      reviewloop product add 光明高钙牛奶 特仑苏
      reviewloop product add 雀巢怡养 --keywords 雀巢,怡养 --alias 雀巢中老年奶粉 --priority 5 --recrawl 7d
      reviewloop product add 特仑苏 --group complaints --site zhihu.com
    """
    words = keyword_list(keywords, aliases, names)
    chosen = chosen_sites(app.settings.catalog(), groups, sites_named) if groups or sites_named else None
    given = new_products(names, keywords=words, aliases=aliases, sites=chosen, **options)
    with store_to_fill(app.settings) as store:
        return _finish(app, product_actions.add(store, given, app.who))


@import_command(product, ImportKind.PRODUCTS, FIELDS, sites=True)
@click.option(
    "--column",
    metavar="NAME",
    help="The column of the names if it is not recognised, by its header or its letter. The same as --map name=NAME.",
)
@click.option(
    "--category",
    type=click.Choice([str(one) for one in Category]),
    help="Category of products whose line gives none. Default: by the name.",
)
@click.option("--as-list", is_flag=True, help="Take each line as a name, whatever it looks like.")
def import_(
    app: App, file: ImportFile, column: str | None, category: str | None, as_list: bool
) -> ImportedProducts:
    """Add the products of FILE (- for standard input): CSV, xlsx, or one name a line.

    A table needs a column name (or 商品名称, 产品, product ...) and may have keywords, aliases, priority, pages,
    recrawl, category, sites. Its sheet and its header are found by these words, also below titles.
    Commas, semicolons or tabs separate columns. Within a cell, any of , ， 、 ; ； | separates keywords,
    aliases and sites; without one of these, blanks separate keywords. UTF-8, UTF-16 and GB18030 (GBK) are
    read. Numbers and bullets before names are dropped. Settings, code, logs, markup and prose are refused
    as a whole. Every import gets a number. --undo N removes what import N added.

    A line is refused only because of its name; refused lines are listed with the reason. Any other cell that
    is not understood is left empty and counted. If all sites of a line are unknown, its product is added
    paused and listed as doubtful.

    \b
    Example, products.csv:
      name,keywords,aliases,priority,recrawl
      光明高钙牛奶,,光明高钙奶,5,7d
      雀巢怡养,雀巢|怡养,,,
    """
    columns = file.columns
    if column is not None:
        columns = replace(columns, mapping={**columns.mapping, "name": column})
    found, lines = open_product_file(file.data, file.origin, file.choice, columns, as_list=as_list)
    found.check()
    if found.columns:
        say_columns(file.origin, found, found.columns)
    rows = ProductRows(found.columns, app.settings.catalog().sites, category)
    given = starmap(rows.read, lines)
    with store_or_none(app.settings, dry_run=file.dry_run) as store:
        if file.dry_run or store is None:
            result = product_actions.preview(store, given)
        else:
            result = product_actions.add(store, given, app.who, file.origin)
    if not (result.added or result.known or result.refused):
        raise InputError(
            "{origin} holds no product: write one name a line (in a table: into the column name)",
            origin=file.origin,
        )
    notes = note_file(found, found.columns, found.unused, rows.ignored.list_columns())
    return extend_row(ImportedProducts, _finish(app, result), **vars(notes))


@command(product, "list")
@period_options(USUAL)
@click.option(
    "--where",
    "conditions",
    metavar="FIELD=VALUE",
    multiple=True,
    help=f"Only products that have this. Repeatable: all must hold. Fields: {', '.join(CHOICE_FIELDS)}.",
)
@click.option(
    "--sort",
    type=click.Choice([str(one) for one in ProductSort]),
    default=str(ProductSort.COMPLAINTS),
    show_default=True,
    help="Order: by name, or the greatest first.",
)
@click.option("--reverse", "is_reversed", is_flag=True, help="The other way round.")
@click.option(
    "--by",
    type=click.Choice([str(one) for one in ProductGrouping]),
    help="Show sums of products, not products.",
)
def list_(
    app: App,
    period: PeriodChoice,
    conditions: tuple[str, ...],
    sort: str,
    by: str | None,
    *,
    is_reversed: bool,
) -> ProductsView:
    """List products with their complaints, their keywords and what is stored of them.

    Complaints: those written in the period, counted as on the page of a product, and those of the period before.
    Change: at sites with reviews in both periods. Share: complaints / buyers' reviews, at sites that also publish
    praise. Trend: the last 26 weeks.

    Coverage: the share of the hits that is stored. Of a search, at most as many hits count as its engine ever lists.
    The number of tasks behind it is given by the source of the hit count: reported by the engine, counted to the last
    page, capped ("at least"), unknown. Fewer words: searches that had no hit for all keywords, and the words that
    gave hits.

    \b
    Examples:
      reviewloop product list --days 30 --sort change
      reviewloop product list --where category=food --by brand
      reviewloop product list --json
    """
    grouping = None if by is None else ProductGrouping(by)
    order = ListOrder(sort=ProductSort(sort), is_reversed=is_reversed, by=grouping)
    choice = parse_conditions(conditions)
    with app.store.read() as tx:
        return get_products_view(tx, choice, order, period, app.settings.catalog())


@text.register
def _(view: ProductsView) -> Iterator[Part]:
    days = (view.since or "…", view.until or "…")
    if view.groups:
        title = translate("Complaints from {first} to {last}", first=days[0], last=days[1])
        yield table(view.groups, _GROUP_FIELDS, title=title, least="trend")
        return
    title = translate(
        "Products: {n}. Complaints from {first} to {last}", n=len(view.products), first=days[0], last=days[1]
    )
    yield table(map(_hide_shared, view.products), _FIELDS, title=title, least=_LEAST)


def _hide_shared(row: ProductView) -> ProductView:
    """Return a row to show to people.

    If the product's complaints are counted under another product's name, the row has no figures.
    """
    nothing: Any = None
    if row.counted_as is None:
        return row
    return replace(row, complaints=nothing, complaints_before=nothing, trend=())


def say_notes(result: Added) -> None:
    """Print on standard error which products were refused and why, and notes about accepted ones."""
    for one in result.refused:
        if one.line:
            say(translate("refused: line {line}: {why}", line=one.line, why=one.why), "red")
        else:
            say(translate("refused: {why}", why=one.why), "red")
    more = translate("For more: reviewloop product edit NAME --all-sites (or --group, --site)")
    for name in result.kept_out[:_NAMED]:
        known = translate(
            "{name} is there already, and is only crawled at the sites that it was added with.", name=name
        )
        say(known, "yellow")
    if result.kept_out:
        say(more, "yellow")
    if result.doubtful:
        names = list_names([one.name for one in result.doubtful], _NAMED)
        doubtful = translate(
            "doubtful, added paused as no site or page of theirs is known: {names}", names=names
        )
        say(doubtful, "yellow")
        say(more, "yellow")
    for new in result.added[:_MOST_LINES]:
        if all(map(is_brand, new.keywords)):
            brand = translate(
                "{name}: only a brand or a platform, so all about it is found; add a line or a service to narrow it.",
                name=new.name,
            )
            say(brand)


def _finish(app: App, result: Added) -> Added:
    say_notes(result)
    if result.refused:
        app.exit_status = 2
    return result


@text.register
def _(view: Added) -> Iterator[Part]:
    doubtful = [one for one in view.added if one.doubts]
    listed = view.added if len(view.added) <= _MOST_LINES else doubtful[:_MOST_DOUBTFUL]
    for one in listed:
        yield Text(_describe_added(one, view.dry_run), style="yellow" if one.doubts else "")
    if len(listed) < len(view.added):
        yield plural(
            "{n:,} of the {all:,} is doubtful. --json lists all",
            "{n:,} of the {all:,} are doubtful. --json lists all",
            len(doubtful),
            all=len(view.added),
        )
    for name in view.already[:_MOST_LINES]:
        yield translate("there already: {name}", name=name)
    if len(view.already) > _MOST_LINES:
        yield translate("... and {n} more", n=len(view.already) - _MOST_LINES)
    yield translate(
        "{added:,} would be added, {known:,} there already, {refused:,} refused"
        if view.dry_run
        else "{added:,} added, {known:,} there already, {refused:,} refused",
        added=len(view.added),
        known=len(view.known),
        refused=len(view.refused),
    )
    if view.number is not None and view.added:
        undo = f"reviewloop product import --undo {view.number}{database_hint()}"
        yield Text(translate("import {n}; undo it: {command}", n=view.number, command=undo), style="dim")


def _describe_added(one: AddedProduct, dry_run: bool) -> str:
    line = translate(
        "would be added: {name} -> {keywords} ({category})"
        if dry_run
        else "added: {name} -> {keywords} ({category})",
        name=one.name,
        keywords="&".join(one.keywords),
        category=translate(one.category or "category unknown"),
    )
    doubts = translate("; ").join(map(describe_doubt, one.doubts))
    return name_text(line, doubts) if doubts else line
