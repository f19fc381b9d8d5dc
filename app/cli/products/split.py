"""`reviewloop split`: show a product's keywords and search URLs. It stores and fetches nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, BinaryIO

import click

from app.cli.command import App, command
from app.cli.options import (
    ReadableFile,
    alias_option,
    group_option,
    keyword_list,
    keywords_option,
    list_in_groups,
)
from app.cli.output import say
from app.cli.render import LinesView, Part, table, text
from app.files.text_files import open_text, read_lines, rereadable
from app.views.words import name_text, plural, translate
from splitter.catalog.names import Category
from splitter.errors import InputError, ProductNameError, list_names
from splitter.explain import WordChoice, explain
from splitter.keywords import ProductQuery, product_query
from splitter.split import SearchScope, SearchUrl, urls_of
from tasks.reading.file_encoding import encoding_of

_MOST_LISTED = 12
"""Maximum number of search URLs of a name that are all printed."""
_SITES_NAMED = 6


@dataclass(frozen=True, slots=True)
class SplitView(LinesView):
    """A product name with its search URLs."""

    query: ProductQuery
    lines: Sequence[SearchUrl]


@dataclass(frozen=True, slots=True)
class ExplainedView:
    """A product name with the role of each of its words."""

    product: str
    category: Category | None
    keywords: Sequence[str]
    later_queries: Sequence[Sequence[str]]
    words: Sequence[WordChoice]


@command(None, "split", db=False, sites=True)
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--file", "source", type=ReadableFile(), help="Read names from FILE, one a line.")
@keywords_option
@alias_option
@click.option(
    "--category",
    type=click.Choice([one.value for one in Category]),
    help="Search the sites of this category instead of the one that each name suggests.",
)
@click.option(
    "--pages",
    type=click.IntRange(1, 1000),
    help="Result pages of each site (default: the site's own number).",
)
@click.option(
    "--site", "only", metavar="NAME", multiple=True, help="Only this site of the catalog. Repeatable."
)
@group_option
@click.option("--no-site", is_flag=True, help="Search each engine once, without restriction to a site.")
@click.option("--no-paging", is_flag=True, help="Leave out the parameters of paging.")
@click.option(
    "--explain",
    "explained",
    is_flag=True,
    help="Show what became of each word of the names instead of the URLs.",
)
def split(
    app: App,
    names: tuple[str, ...],
    source: BinaryIO | None,
    keywords: str | None,
    aliases: tuple[str, ...],
    category: str | None,
    explained: bool,
    **scope: Any,
) -> Iterator[SplitView | ExplainedView]:
    """Show the keywords and search URLs of product names.

    NAME is a product as people write it; - reads names from standard input, one a line. A name that gives no
    query is refused on standard error, the others continue, and the exit status is then 2. A name is
    searched at the sites of its category, or at general sites if its category is unknown. --site and
    --group choose sites instead. If there are many search URLs, the first of each engine is shown; --json
    prints one object a line for each of them.

    \b
    Examples:
      reviewloop split 光明高钙牛奶
      reviewloop split 特仑苏 --site cca.org.cn --pages 3
      reviewloop split 特仑苏 --group complaints
      reviewloop split --no-site --no-paging 蒙牛早餐奶
      reviewloop split --keywords 雀巢,奶粉 雀巢怡养
      reviewloop split --category app 无名氏
      reviewloop split --json --file products.txt
      reviewloop split --explain 吉利汽车帝豪
    """
    search = _choose_sites(app, **scope)
    given = list(_names(names, source))
    words = keyword_list(keywords, aliases, given)
    if explained and (words or aliases):
        raise InputError("--explain shows how keywords are found: leave out --keywords and --alias")
    for name in given:
        try:
            query = product_query(name, keywords=words, aliases=aliases)
        except ProductNameError as error:
            app.exit_status = 2
            say(translate("refused: {why}", why=error))
            continue
        if category:
            query = replace(query, category=Category(category))
        yield _explain(query) if explained else SplitView(query, list(urls_of(search, query)))


def _choose_sites(
    app: App,
    *,
    only: tuple[str, ...],
    groups: tuple[str, ...],
    pages: int | None,
    no_site: bool,
    no_paging: bool,
) -> SearchScope:
    catalog = app.settings.catalog()
    chosen = (*only, *list_in_groups(catalog, groups)) if groups else only
    return SearchScope(catalog, chosen, pages, no_site, no_paging)


def _names(names: Sequence[str], source: BinaryIO | None) -> Iterator[str]:
    for name in names:
        yield from _lines(sys.stdin.buffer, translate("standard input")) if name == "-" else [name]
    if source is not None:
        yield from _lines(source, source.name)
    if not names and source is None:
        raise InputError(
            "no product name; write reviewloop split NAME, or - to read names from standard input"
        )


def _lines(source: BinaryIO, origin: str) -> Iterator[str]:
    """Yield the product names in a file, one per line. Blank lines are skipped."""
    with rereadable(source) as file:
        encoding = encoding_of(file, origin)
        with open_text(file, encoding) as text:
            for number, line, too_long in read_lines(text):
                why = too_long or encoding.find_fault(line)
                if why:
                    raise InputError("{origin}, line {n}: {why}", origin=origin, n=number, why=why)
                name = line.strip()
                if name:
                    yield name


def _explain(query: ProductQuery) -> ExplainedView:
    first, *later = query.keyword_sets
    return ExplainedView(query.product, query.category, first, later, explain(query.product))


@text.register
def _(view: SplitView) -> Iterator[Part]:
    if not view.lines:
        yield from _list_queries(view.query.product, view.query.category, view.query.keyword_sets)
        note = translate("no site of the catalog is for its category; --category and --site choose others")
        yield f"  {note}"
    elif len(view.lines) > _MOST_LISTED:
        yield from _list_engines(view)
    else:
        for keywords, searches in groupby(view.lines, key=lambda url: url.keywords):
            yield from _list_queries(view.query.product, view.query.category, [keywords])
            yield from (f"  {name_text(_place(url), url.url)}" for url in searches)


@text.register
def _(view: ExplainedView) -> Iterator[Part]:
    yield from _list_queries(view.product, view.category, [view.keywords, *view.later_queries])
    words = [replace(one, role=_translate_role(one.role)) for one in view.words]
    yield table(words, "word role score kept why>")


def _list_engines(view: SplitView) -> Iterator[str]:
    """Yield lines with the queries of a name, and for each engine its sites and the first search URL."""
    yield from _list_queries(view.query.product, view.query.category, view.query.keyword_sets)
    by_engine: dict[str, list[SearchUrl]] = {}
    for url in view.lines:
        by_engine.setdefault(url.engine, []).append(url)
    for engine, searches in by_engine.items():
        sites = list(dict.fromkeys(url.site for url in searches if url.site))
        many = plural("{n} search URL", "{n} search URLs", len(searches))
        yield f"  {engine} · {many}{_describe_sites(sites)}"
        yield f"    {name_text(_place(searches[0]), searches[0].url)}"
    note = translate(
        "{n} search URLs; --json prints each of them, --site NAME those of a site", n=len(view.lines)
    )
    yield f"  {note}"


def _describe_sites(sites: Sequence[str]) -> str:
    if not sites:
        return ""
    names = list_names(sites, _SITES_NAMED)
    return plural(" at {n} site: {names}", " at {n} sites: {names}", len(sites), names=names)


def _list_queries(
    product: str, category: Category | None, keyword_sets: Sequence[Sequence[str]]
) -> Iterator[str]:
    first, *others = keyword_sets
    kind = translate(category) if category else translate("category unknown: general sites")
    yield translate("{name} ({why})", name=f"{product} -> {'&'.join(first)}", why=kind)
    for number, keywords in enumerate(others, 2):
        yield f"  {translate('query {n}:', n=number)} {'&'.join(keywords)}"


def _place(url: SearchUrl) -> str:
    page = "" if url.page is None else translate(" page {n}", n=url.page)
    return f"{url.site or f'({url.engine})'}{page}"


def _translate_role(role: str) -> str:
    """Return the role of a word in the reader's language. The question mark of an uncertain role stays."""
    known = role.removesuffix("?")
    return f"{translate(known)}{role.removeprefix(known)}"
