"""`reviewloop split`: a product's keywords and search URLs, without storing or fetching anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TextIO

import click

from app.cli.options import group_option, in_groups, json_option, keyword_list, sites_option
from app.cli.output import printed, table
from app.config import from_environment
from splitter.errors import InputError, ProductNameError
from splitter.explain import explain
from splitter.keywords import keywords_of
from splitter.split import RefusedName, SearchScope, SearchUrl
from splitter.split import split as search_urls


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1)
@click.option(
    "--file", "source", type=click.File("r", encoding="utf-8"), help="Read names from FILE, one a line."
)
@click.option("--keywords", metavar="W,W", help="AND keywords to use instead of those found (with one NAME).")
@click.option(
    "--alias", "aliases", metavar="NAME", multiple=True, help="Another name of the product (with one NAME)."
)
@sites_option
@click.option(
    "--pages", type=click.IntRange(1, 1000), help="Result pages of each site (default: the site's own)."
)
@click.option(
    "--site", "only", metavar="NAME", multiple=True, help="Only this site of the catalog; repeatable."
)
@group_option
@click.option("--no-site", is_flag=True, help="Ask each engine once, without restriction to a site.")
@click.option("--no-paging", is_flag=True, help="Leave out the parameters of paging.")
@click.option(
    "--explain", "explained", is_flag=True, help="Show what became of each word of the names instead of URLs."
)
@json_option
def split(
    names: tuple[str, ...],
    source: TextIO | None,
    keywords: str | None,
    aliases: tuple[str, ...],
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
    query is refused on standard error, the others go on, and the exit status is then 2. --json prints one object a
    line for each search URL.

    \b
    Examples:
      reviewloop split 光明高钙牛奶
      reviewloop split 特仑苏 --site cca.org.cn --pages 3
      reviewloop split 特仑苏 --group complaints
      reviewloop split --no-site --no-paging 蒙牛早餐奶
      reviewloop split --keywords 雀巢,奶粉 雀巢怡养
      reviewloop split --json --file products.txt
      reviewloop split --explain 吉利汽车帝豪
    """
    catalog = from_environment(sites=sites).catalog()
    chosen = (*only, *in_groups(catalog, groups)) if groups else only
    scope = SearchScope(catalog, chosen, pages, no_site, no_paging)
    given = list(_names(names, source))
    words = keyword_list(keywords, aliases, given)
    if not explained:
        refused = _print_urls(search_urls(scope, given, keywords=words, aliases=aliases), as_json)
    elif words or aliases:
        raise InputError("--explain shows how keywords are found: leave --keywords and --alias out")
    else:
        refused = _print_explained(given, as_json)
    if refused:
        sys.exit(2)


def _names(names: Sequence[str], source: TextIO | None) -> Iterator[str]:
    for name in names:
        yield from _lines(sys.stdin) if name == "-" else [name]
    if source is not None:
        yield from _lines(source)
    if not names and source is None:
        raise InputError(
            "no product name; write reviewloop split NAME, or - to read names from standard input"
        )


def _lines(source: TextIO) -> Iterator[str]:
    """The names in a text; blank lines hold none."""
    try:
        for line in source:
            if name := line.removeprefix("\ufeff").strip():
                yield name
    except UnicodeDecodeError as error:
        raise InputError(f"{source.name}: not UTF-8; save the file as UTF-8") from error


def _print_urls(results: Iterable[SearchUrl | RefusedName], as_json: bool) -> int:
    """Print search URLs, for people under their product and keywords; returns how many names were refused."""
    refused = 0
    heading = ""
    for result in results:
        if isinstance(result, RefusedName):
            refused += 1
            heading = ""
            _print_refused(result)
        elif as_json:
            click.echo(json.dumps(asdict(result), ensure_ascii=False))
        else:
            above = f"{result.product} -> {'&'.join(result.keywords)}"
            if above != heading:
                click.echo(above)
                heading = above
            place = result.site or f"({result.engine})"
            page = "" if result.page is None else f" page {result.page}"
            click.echo(f"  {place}{page}: {result.url}")
    return refused


def _print_explained(names: Iterable[str], as_json: bool) -> int:
    """Print each word of each name with its role and score; returns how many names were refused."""
    refused = 0
    for name in names:
        try:
            keywords, words = keywords_of(name), explain(name)
        except ProductNameError as error:
            refused += 1
            _print_refused(RefusedName(name, str(error)))
            continue
        if as_json:
            line = {"product": name, "keywords": keywords, "words": [asdict(word) for word in words]}
            click.echo(json.dumps(line, ensure_ascii=False))
            continue
        click.echo(f"{name} -> {'&'.join(keywords)}")
        rows = ((word.word, word.role, word.score, "yes" if word.kept else "no", word.why) for word in words)
        printed().print(table(("word", "role", "score", "kept", "why"), rows))
    return refused


def _print_refused(refused: RefusedName) -> None:
    click.echo(f"refused: {refused.message}", err=True)
