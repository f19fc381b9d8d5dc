"""Result pages of search engines, read by the catalog's rules.

Empty, blocked and broken are three answers: an engine that says it has nothing gives an empty ResultPage, one
that refuses gives the refusal's error, and a page in which the rules find nothing gives BAD_RULE.
"""

from __future__ import annotations

import re
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.catalog.model import ResultRules

from tasks.crawl.address import joined
from tasks.crawl.classify import raise_if_blocked
from tasks.crawl.markup import Field, field_of, first, page_text, parse, select
from tasks.crawl.model import ErrorClass, FetchError, Hit, ResultPage

_MAX_FOUND_DIGITS = 15


def read_results(text: str, url: str, rules: ResultRules) -> ResultPage:
    """Read a result page.

    A page with hits is a result page, whatever their texts say; the engine's marker for "nothing", then the
    patterns of a refusal, are looked for where there is none.

    Args:
        text: of the answer, decoded.
        url: its final address, which hits are resolved against.

    Raises:
        FetchError: the refusal's class, or BAD_RULE telling what the selectors matched.
    """
    tree = parse(text)
    records = select(tree, rules.hit)
    hits = _hits(records, url, rules)
    shown = page_text(tree)
    if hits:
        more = bool(rules.next) and first(tree, rules.next) is not None
        return ResultPage(_found(shown, rules.found), hits, empty=False, more=more)
    if any(_regex(pattern).search(shown) for pattern in rules.empty):
        return ResultPage(found=0, hits=(), empty=True, more=False)
    raise_if_blocked(shown, url, rules.blocked)
    raise _bad_rule(tree, records, rules, shown)


def _hits(records: list[LexborNode], url: str, rules: ResultRules) -> tuple[Hit, ...]:
    link, title, abstract = field_of(rules.link), field_of(rules.title), field_of(rules.abstract)
    hits: dict[str, Hit] = {}
    for record in records:
        address = _address(record, link, url)
        if address and address not in hits:
            hits[address] = Hit(
                address,
                title.read(record) if title else "",
                abstract.read(record) if abstract else "",
            )
    return tuple(hits.values())


def _address(record: LexborNode, link: Field | None, url: str) -> str:
    """The absolute address of a hit; empty where it has none that leads to another page."""
    reference = link.read(record) if link else ""
    if not reference or reference.startswith("#"):
        return ""
    try:
        return joined(url, reference)
    except FetchError:  # javascript:, mailto:, an address that can't be asked
        return ""


def _found(shown: str, pattern: str) -> int | None:
    match = _regex(pattern).search(shown) if pattern else None
    digits = re.sub(r"[,，\s]", "", match[1] or "") if match else ""
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_FOUND_DIGITS else None


def _bad_rule(
    tree: LexborHTMLParser, records: list[LexborNode], rules: ResultRules, shown: str
) -> FetchError:
    link = field_of(rules.link)
    filled = sum(bool(link.read(record)) for record in records) if link else 0
    links = len(tree.css("a[href]"))
    return FetchError(
        ErrorClass.BAD_RULE,
        f"hit {rules.hit!r} matches {len(records)}, link {rules.link!r} is filled in {filled} of them, "
        f"none usable; no mark of an empty answer; the page has {links} links and says: {shown[:120]}",
    )


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
