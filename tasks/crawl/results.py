"""Result pages of search engines, read by the catalog's rules.

Empty, blocked and broken are three answers: an engine that says it has nothing gives an empty ResultPage, one
that refuses gives the refusal's error, and a page in which the rules find nothing gives BAD_RULE.
"""

from __future__ import annotations

import re
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser
from splitter.catalog.model import ResultRules

from tasks.crawl.address import joined
from tasks.crawl.classify import raise_if_blocked
from tasks.crawl.markup import field_of, first, page_text, parse
from tasks.crawl.model import ErrorClass, FetchError, Hit, ResultPage
from tasks.crawl.records import Records

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
    records = Records(tree, rules.hit)
    hits = _hits(records, url, rules)
    if hits:
        more = bool(rules.next) and first(tree, rules.next) is not None
        return ResultPage(_found(tree, records, rules.found), hits, empty=False, more=more)
    shown = page_text(tree)
    if any(_regex(pattern).search(shown) for pattern in rules.empty):
        return ResultPage(found=0, hits=(), empty=True, more=False)
    raise_if_blocked(shown, url, rules.blocked)
    raise _bad_rule(tree, records, rules, shown)


def _hits(records: Records, url: str, rules: ResultRules) -> tuple[Hit, ...]:
    links, titles, abstracts = (
        records.values(field_of(field)) for field in (rules.link, rules.title, rules.abstract)
    )
    hits: dict[str, Hit] = {}
    for link, title, abstract in zip(links, titles, abstracts, strict=True):
        address = _address(link, url)
        if address and address not in hits:
            hits[address] = Hit(address, title, abstract)
    return tuple(hits.values())


def _address(reference: str, url: str) -> str:
    """The absolute address of a hit; empty where it has none that leads to another page."""
    if not reference or reference.startswith("#"):
        return ""
    try:
        return joined(url, reference)
    except FetchError:  # javascript:, mailto:, an address that can't be asked
        return ""


def _found(tree: LexborHTMLParser, records: Records, pattern: str) -> int | None:
    """The number of hits the page reports: before its first hit, where engines print it, or else anywhere."""
    if not pattern:
        return None
    search = _regex(pattern).search
    match = search(page_text(tree, before=records.nodes[0])) or search(page_text(tree))
    digits = re.sub(r"[,，\s]", "", match[1] or "") if match else ""
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_FOUND_DIGITS else None


def _bad_rule(tree: LexborHTMLParser, records: Records, rules: ResultRules, shown: str) -> FetchError:
    filled = sum(map(bool, records.values(field_of(rules.link))))
    links = len(tree.css("a[href]"))
    return FetchError(
        ErrorClass.BAD_RULE,
        f"hit {rules.hit!r} matches {len(records.nodes)}, link {rules.link!r} is filled in {filled} of them, "
        f"none usable; no mark of an empty answer; the page has {links} links and says: {shown[:120]}",
    )


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
