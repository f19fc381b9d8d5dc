"""`reviewloop product`: the products whose reviews are collected."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from itertools import starmap
from typing import Any, BinaryIO

import click

from app.actions import product_actions
from app.actions.product_actions import Added
from app.actions.products import MOST_PAGES, named_products, period
from app.cli.command import App, command
from app.cli.options import (
    ReadBy,
    chosen_sites,
    database_hint,
    db_option,
    group_option,
    json_option,
    keyword_list,
    person,
    settings_of,
    site_option,
    sites_option,
    store_to_fill,
)
from app.cli.output import print_json, printed, say
from app.cli.products.import_options import (
    column_options,
    print_ignored,
    rereadable,
    say_columns,
    store_or_none,
    table_document,
    table_options,
)
from app.cli.products.import_undo import undo_option
from app.cli.products.product_changes import edit, remove
from app.cli.render import Part, table, text
from app.importing.columns import ColumnChoice, list_names
from app.importing.product_files import FIELDS, open_product_file
from app.importing.product_rows import ProductRows
from app.importing.sheets import TableChoice
from app.views.doubts import describe_doubt, list_doubts
from app.views.products import PRODUCT_FIELDS, ProductsView, get_products_view
from app.views.words import describe, translate
from splitter.catalog.names import Category
from splitter.errors import InputError
from splitter.lexicon import is_brand
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.content.products import NewProduct

_LEAST = "fewer_words found_by aliases recrawl_every_s recrawl_cron priority pages"
_MOST_LINES = 20
_MOST_DOUBTFUL = 200
"""Doubtful products that are listed, of an import of more than `_MOST_LINES`."""
_NAMED = 5


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


@product.command("add")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--keywords", metavar="W,W", help="AND keywords instead of those found in the name (only with one NAME)."
)
@click.option(
    "--alias",
    "aliases",
    metavar="NAME",
    multiple=True,
    help="Another name, searched too (only with one NAME).",
)
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
@sites_option
@db_option
@json_option
def add(
    names: tuple[str, ...],
    keywords: str | None,
    aliases: tuple[str, ...],
    groups: tuple[str, ...],
    sites_named: tuple[str, ...],
    sites: str | None,
    db: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Add products; a runner starts to crawl them as soon as it sees them.

    A NAME that gives no query is refused with its reason; the others are added, and the exit status is 2.

    \b
    Examples:
      reviewloop product add 光明高钙牛奶 特仑苏
      reviewloop product add 雀巢怡养 --keywords 雀巢,怡养 --alias 雀巢中老年奶粉 --priority 5 --recrawl 7d
      reviewloop product add 特仑苏 --group complaints --site zhihu.com
    """
    words = keyword_list(keywords, aliases, names)
    settings = settings_of(db, sites)
    chosen = chosen_sites(settings.catalog(), groups, sites_named) if groups or sites_named else None
    given = named_products(names, keywords=words, aliases=aliases, sites=chosen, **options)
    with store_to_fill(settings) as store:
        _finish(product_actions.add(store, given, person()), as_json)


@product.command("import")
@click.argument("file", type=click.File("rb"), required=False)
@table_options
@column_options(FIELDS)
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
@undo_option(ImportKind.PRODUCTS)
@click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing.")
@sites_option
@db_option
@json_option
def import_(
    file: BinaryIO,
    choice: TableChoice,
    columns: ColumnChoice,
    column: str | None,
    category: str | None,
    as_list: bool,
    dry_run: bool,
    sites: str | None,
    db: str | None,
    as_json: bool,
) -> None:
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
    origin = str(getattr(file, "name", "standard input"))
    settings = settings_of(db, sites)
    if column is not None:
        columns = replace(columns, mapping={**columns.mapping, "name": column})
    with rereadable(file) as data:
        found, lines = open_product_file(data, origin, choice, columns, as_list=as_list)
        found.check()
        if found.columns:
            say_columns(origin, found, found.columns)
        rows = ProductRows(found.columns, settings.catalog().sites, category)
        given = starmap(rows.read, lines)
        with store_or_none(settings, dry_run=dry_run) as store:
            if dry_run or store is None:
                result = product_actions.preview(store, given)
            else:
                result = product_actions.add(store, given, person(), origin)
    if not (result.added or result.known or result.refused):
        raise InputError(
            "{origin} holds no product: write one name a line (in a table: into the column name)",
            origin=origin,
        )
    ignored = print_ignored(rows.ignored.list_columns())
    more = table_document(found, found.unused) | {
        "columns": found.columns,
        "ignored": ignored,
        "dry_run": dry_run,
    }
    _finish(result, as_json, more)


@command(product, "list")
def list_(app: App) -> ProductsView:
    """List products with their keywords and what is stored of them.

    Coverage is the share of the hits that is stored (a search counts with at most what its engine
    ever lists). It names the number of tasks behind it: reported by the engine, counted to the last page,
    capped ("at least"), unknown. Fewer words: searches without a hit for all keywords, and the words that
    gave hits.

    \b
    Example:
      reviewloop product list --json
    """
    with app.store.read() as tx:
        return get_products_view(tx, app.settings.catalog().most_hits)


@text.register
def _(view: ProductsView) -> Iterator[Part]:
    title = translate("Products: {n}", n=len(view.products))
    yield table(view.products, PRODUCT_FIELDS, title=title, least=_LEAST)


def say_notes(result: Added) -> None:
    """Say on standard error which products were refused and why, and what should be known of others."""
    for one in result.refused:
        place = f"line {one.line}: " if one.line else ""
        say(f"refused: {place}{describe(one.why)}", "red")
    for name in result.kept_out[:_NAMED]:
        say(f"{name} is there already, and looked for at the sites it was first given only.", "yellow")
        say("For more: reviewloop product edit NAME --all-sites (or --group, --site)", "yellow")
    if result.doubtful:
        names = list_names([one.name for one in result.doubtful], _NAMED)
        say(f"doubtful, added paused as no site or page of theirs is known: {names}", "yellow")
        say("To collect one: reviewloop product edit NAME --all-sites (or --group, --site)", "yellow")
    for new in result.added[:_MOST_LINES]:
        if all(map(is_brand, new.keywords)):
            say(
                f"{new.name}: only a brand or a platform, so all about it is found; a line or service narrows it."
            )


def _finish(result: Added, as_json: bool, more: Mapping[str, object] | None = None) -> None:
    say_notes(result)
    if as_json:
        print_json(
            {
                "number": result.number,
                "added": [
                    _document(one)
                    | {"aliases": one.aliases, "priority": one.priority, "category": one.category}
                    | {"doubts": list_doubts(one)}
                    for one in result.added
                ],
                "known": list(map(_document, result.known)),
                "already": [one.name for one in result.known],
                "doubtful": [_document(one) for one in result.doubtful],
                "refused": [asdict(one) | {"keywords": []} for one in result.refused],
                **(more or {}),
            }
        )
    else:
        _print(result, "would be " if more and more["dry_run"] else "")
    if result.refused:
        sys.exit(2)


def _document(one: NewProduct) -> dict[str, object]:
    return {"line": one.line, "name": one.name, "keywords": one.keywords}


def _print(result: Added, would: str) -> None:
    out = printed()
    doubtful = [one for one in result.added if list_doubts(one)]
    shown = result.added if len(result.added) <= _MOST_LINES else doubtful[:_MOST_DOUBTFUL]
    for one in shown:
        line = f"{would}added: {one.name} -> {'&'.join(one.keywords)} ({one.category or 'category unknown'})"
        doubts = "; ".join(map(describe_doubt, list_doubts(one)))
        out.print(f"{line}: {doubts}" if doubts else line, style="yellow" if doubts else None)
    if len(shown) < len(result.added):
        out.print(
            translate(
                "{n} more {would}added; {doubtful} of the {all} are doubtful. --json lists all",
                n=f"{len(result.added) - len(shown):,}",
                would=would,
                doubtful=f"{len(doubtful):,}",
                all=f"{len(result.added):,}",
            )
        )
    known = [f"there already: {one.name}" for one in result.known]
    for line in known[:_MOST_LINES]:
        out.print(line)
    if len(known) > _MOST_LINES:
        out.print(f"       ... and {len(known) - _MOST_LINES} more")
    out.print(
        f"{len(result.added)} {would}added, {len(result.known)} there already, {len(result.refused)} refused"
    )
    if result.number is not None and result.added:
        undo = f"reviewloop product import --undo {result.number}{database_hint()}"
        out.print(f"import {result.number}; undo it: {undo}", style="dim")
