"""What a site's rules take from a page: for `sites try`, by the crawl's own readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from bs4 import BeautifulSoup
from selectolax.lexbor import LexborHTMLParser

from splitter.catalog.model import Catalog, PageRules, ResultRules
from tasks.crawl.decode import decode
from tasks.crawl.extract import read_page
from tasks.crawl.hosts import HostBook
from tasks.crawl.markup import field_of, parse, select
from tasks.crawl.model import ErrorClass, FetchError
from tasks.crawl.results import read_results

_RECORD_FIELDS = ("link", "title", "abstract", "id", "body", "author", "date", "rating")
_REFUSALS = (401, 403, 429, 432)
_OUTLINE_HEADINGS = 5
_OUTLINE_REPEATED = 12


@dataclass(frozen=True, slots=True)
class RuleUse:
    """A rule and how far it fits.

    Attributes:
        matches: records that it matches (`hit`, `review`), or in which it is filled (their fields).
        example: its first value.
    """

    name: str
    rule: str
    matches: int
    example: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What the rules take from a page.

    Attributes:
        read_as: "page" or "result".
        verdict: "records", "empty", "blocked" or "broken".
        why: of a page without records: what it is instead.
        found, more: of a result page: hits it reports, whether there is a next page.
        records: every record as the crawl would take it.
        outline: where nothing was found, what the page looks like, to write rules by.
    """

    read_as: str
    verdict: str
    why: str
    encoding: str
    title: str
    found: int | None
    more: bool | None
    rules: tuple[RuleUse, ...]
    records: tuple[Any, ...]
    outline: tuple[str, ...]


def is_result_page(catalog: Catalog, site: str, url: str) -> bool:
    """Whether a URL is a search of the site's engine."""
    engine, asked = urlsplit(catalog.engine_of(site).url), urlsplit(url)
    book = HostBook(catalog)
    same_host = book.name(url) == book.of_engine(catalog.sites[site].engine)
    return same_host and asked.path == engine.path and bool(asked.query)


def try_rules(
    catalog: Catalog,
    site: str,
    body: bytes,
    headers: Mapping[str, str],
    url: str,
    *,
    result: bool,
    now: datetime,
    status: int = 200,
) -> Trial:
    """Read a page by a site's rules.

    Args:
        headers: of the answer, lower-case names.
        url: of the page, which its links are resolved against.
        result: by the rules of the engine's result pages, otherwise by those of the site's pages.
        now: what relative dates count from.
        status: of the answer; one that is no 2xx is no page, whatever its body.
    """
    read_as = "result" if result else "page"
    rules: ResultRules | PageRules = catalog.engine_of(site).results if result else catalog.rules_of(site)
    text, encoding, title = "", "", ""
    found: int | None = None
    more: bool | None = None
    records: tuple[Any, ...] = ()
    use: tuple[RuleUse, ...] = ()
    try:
        text, encoding = decode(body, headers)
        _check_status(status, url)
        use = _use(parse(text), rules)
        if isinstance(rules, ResultRules):
            page = read_results(text, url, rules)
            found, more, records = page.found, page.more, page.hits
        else:
            read = read_page(text, url, rules, now=now)
            title, records = read.title, read.reviews
        verdict, why = ("records", "") if records else ("empty", "the engine says that it has nothing")
    except FetchError as error:
        verdict, why = ("blocked" if error.error.blocks else "broken"), str(error)
        records = ()
    outline = _outline(text) if verdict == "broken" and text else ()
    return Trial(read_as, verdict, why, encoding, title, found, more, use, records, outline)


def _check_status(status: int, url: str) -> None:
    if not 200 <= status < 300:
        error = ErrorClass.FORBIDDEN if status in _REFUSALS else ErrorClass.OTHER_STATUS
        raise FetchError(error, f"{url} answers with status {status}")


def _use(tree: LexborHTMLParser, rules: ResultRules | PageRules) -> tuple[RuleUse, ...]:
    record_rule = "hit" if isinstance(rules, ResultRules) else "review"
    selector = getattr(rules, record_rule)
    records = select(tree, selector)
    use = [RuleUse(record_rule, selector, len(records), "")]
    for name in _RECORD_FIELDS:
        field = field_of(getattr(rules, name, ""))
        if field is not None:
            values = [value for record in records if (value := field.read(record))]
            use.append(RuleUse(name, getattr(rules, name), len(values), values[0] if values else ""))
    return tuple(use)


def _outline(text: str) -> tuple[str, ...]:
    """Title, headings, and elements that come again and again: candidates for a record's selector."""
    soup = BeautifulSoup(text, "html.parser")
    for hidden in soup(["script", "style", "noscript", "template"]):
        hidden.decompose()
    lines = [f"title: {_text(soup.title)}"] if soup.title else []
    lines += [f"{tag.name}: {_text(tag)}" for tag in soup(["h1", "h2", "h3"])[:_OUTLINE_HEADINGS]]
    repeated = Counter(_selector(tag.name, tag.get("class")) for tag in soup.find_all(class_=True))
    for selector, n in repeated.most_common(_OUTLINE_REPEATED):
        if n > 1:
            first = soup.select_one(selector)
            lines.append(f"{selector} × {n}: {_text(first)}")
    if len(lines) <= 1:
        lines.append(f"text: {_text(soup)}")
    return tuple(lines)


def _selector(tag: str, classes: Any) -> str:
    names: Sequence[str] = [classes] if isinstance(classes, str) else list(classes or ())
    plain = [
        name for name in names if name.replace("-", "").replace("_", "").isalnum() and not name[0].isdigit()
    ]
    return ".".join([tag, *plain])


def _text(tag: Any) -> str:
    return " ".join(tag.get_text(" ").split())[:80] if tag is not None else ""
