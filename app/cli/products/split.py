"""`reviewloop split`: a product's keywords and search URLs, without storing or fetching anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import BinaryIO

import click

from app.cli.options import group_option, in_groups, json_option, keyword_list, sites_option
from app.cli.output import printed
from app.cli.products.import_options import rereadable
from app.files.text_files import opened_text, read_lines
from app.run.settings import load_settings
from app.views.words import plural, translate
from splitter.catalog.names import Category
from splitter.errors import InputError, ProductNameError
from splitter.explain import explain
from splitter.keywords import ProductQuery, product_query
from splitter.split import SearchScope, SearchUrl, urls_of
from tasks.reading.file_encoding import encoding_of

_MOST_LISTED = 12
"""Search URLs of a name up to which each is printed."""


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option("--file", "source", type=click.File("rb"), help="Read names from FILE, one a line.")
@click.option(
    "--keywords", metavar="W,W", help="AND keywords instead of those found in the name (only with one NAME)."
)
@click.option(
    "--alias",
    "aliases",
    metavar="NAME",
    multiple=True,
    help="Another name of the product (only with one NAME).",
)
@click.option(
    "--category",
    type=click.Choice([one.value for one in Category]),
    help="Search the sites of this category instead of the one that each name suggests.",
)
@sites_option
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
@json_option
def split(
    names: tuple[str, ...],
    source: BinaryIO | None,
    keywords: str | None,
    aliases: tuple[str, ...],
    category: str | None,
    sites: str | None,
    pages: int | None,
    only: tuple[str, ...],
    groups: tuple[str, ...],
    no_site: bool,
    no_paging: bool,
    explained: bool,
    as_json: bool,
) -> None:
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
    catalog = load_settings(sites=sites).catalog()
    chosen = (*only, *in_groups(catalog, groups)) if groups else only
    scope = SearchScope(catalog, chosen, pages, no_site, no_paging)
    given = list(_names(names, source))
    words = keyword_list(keywords, aliases, given)
    if explained and (words or aliases):
        raise InputError("--explain shows how keywords are found: leave out --keywords and --alias")
    refused = False
    for name in given:
        try:
            query = product_query(name, keywords=words, aliases=aliases)
        except ProductNameError as error:
            refused = True
            click.echo(translate("refused: {why}", why=error), err=True)
            continue
        if category:
            query = replace(query, category=Category(category))
        if explained:
            _print_explained(query, as_json)
        else:
            _print_urls(query, list(urls_of(scope, query)), as_json)
    if refused:
        sys.exit(2)


def _names(names: Sequence[str], source: BinaryIO | None) -> Iterator[str]:
    for name in names:
        yield from _lines(sys.stdin.buffer, "standard input") if name == "-" else [name]
    if source is not None:
        yield from _lines(source, source.name)
    if not names and source is None:
        raise InputError(
            "no product name; write reviewloop split NAME, or - to read names from standard input"
        )


def _lines(source: BinaryIO, origin: str) -> Iterator[str]:
    """Yield the names in a text; blank lines hold none."""
    with rereadable(source) as file:
        encoding = encoding_of(file, origin)
        with opened_text(file, encoding) as text:
            for number, line, too_long in read_lines(text):
                why = too_long or encoding.find_fault(line)
                if why:
                    raise InputError("{origin}, line {n}: {why}", origin=origin, n=number, why=why)
                name = line.strip()
                if name:
                    yield name


def _print_urls(query: ProductQuery, urls: Sequence[SearchUrl], as_json: bool) -> None:
    """Print the search URLs of a name, for people under its keywords."""
    if as_json:
        for url in urls:
            click.echo(json.dumps(asdict(url), ensure_ascii=False))
    elif not urls:
        _print_queries(query)
        note = translate("no site of the catalog is for its category; --category and --site choose others")
        click.echo(f"  {note}")
    elif len(urls) > _MOST_LISTED:
        _print_by_engine(query, urls)
    else:
        _print_each(query, urls)


def _print_each(query: ProductQuery, urls: Sequence[SearchUrl]) -> None:
    for keywords, searches in groupby(urls, key=lambda url: url.keywords):
        click.echo(f"{query.product} -> {'&'.join(keywords)}{_category(query)}")
        for url in searches:
            click.echo(f"  {_place(url)}: {url.url}")


def _print_by_engine(query: ProductQuery, urls: Sequence[SearchUrl]) -> None:
    """Print the queries of a name, and of each engine its sites and its first search URL."""
    _print_queries(query)
    by_engine: dict[str, list[SearchUrl]] = {}
    for url in urls:
        by_engine.setdefault(url.engine, []).append(url)
    for engine, searches in by_engine.items():
        sites = list(dict.fromkeys(url.site for url in searches if url.site))
        many = plural("{n} search URL", "{n} search URLs", len(searches))
        click.echo(f"  {engine}, {many}{_describe_sites(sites)}")
        click.echo(f"    {_place(searches[0])}: {searches[0].url}")
    note = translate("{n} search URLs; --json prints each of them, --site NAME those of a site", n=len(urls))
    click.echo(f"  {note}")


def _describe_sites(sites: Sequence[str]) -> str:
    if not sites:
        return ""
    return plural(" at {n} site: {names}", " at {n} sites: {names}", len(sites), names=", ".join(sites))


def _print_queries(query: ProductQuery) -> None:
    first, *others = query.keyword_sets
    click.echo(f"{query.product} -> {'&'.join(first)}{_category(query)}")
    for number, keywords in enumerate(others, 2):
        click.echo(f"  {translate('query {n}:', n=number)} {'&'.join(keywords)}")


def _category(query: ProductQuery) -> str:
    if query.category:
        return f" ({translate(query.category)})"
    return f" ({translate('category unknown: general sites')})"


def _place(url: SearchUrl) -> str:
    page = "" if url.page is None else translate(" page {n}", n=url.page)
    return f"{url.site or f'({url.engine})'}{page}"


def _print_explained(query: ProductQuery, as_json: bool) -> None:
    """Print each word of a name with its role and score."""
    words = explain(query.product)
    if as_json:
        line = {
            "product": query.product,
            "category": query.category,
            "keywords": query.keyword_sets[0],
            "later_queries": query.keyword_sets[1:],
            "words": [asdict(word) for word in words],
        }
        click.echo(json.dumps(line, ensure_ascii=False))
        return
    from app.cli.render import print_parts, table

    _print_queries(query)
    print_parts(printed(), [table(words, "word role score kept why>")])
