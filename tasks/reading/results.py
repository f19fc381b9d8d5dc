"""Result pages of search engines, read by the catalog's rules.

Empty, blocked and broken are three answers: an engine that says it has nothing gives an empty ResultPage, one
that refuses gives the refusal's error, and a page in which the rules find nothing gives BAD_RULE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser
from splitter.catalog.rules import PostRules, ResultRules

from tasks.domain.crawl import ErrorClass, FetchError, ResultPage
from tasks.reading.hits import HitFields, PostFields, hits_of, number_of
from tasks.reading.json_results import read_json_results
from tasks.reading.markup import field_of, first, page_text, parse
from tasks.reading.records import Records
from tasks.reading.refusals import raise_if_blocked


def read_results(text: str, url: str, rules: ResultRules, *, now: datetime | None = None) -> ResultPage:
    """Read a result page.

    A page with hits is a result page, whatever their texts say; the engine's marker for "nothing", then the
    patterns of a refusal, are looked for where there is none.

    Args:
        text: of the answer, decoded.
        url: its final address, which hits are resolved against.
        now: aware; what relative times (3小时前) count from; None: no times are read.

    Raises:
        FetchError: the refusal's class; BAD_RULE telling what the selectors matched; of JSON, BAD_CONTENT for
            what broke off, TOO_LARGE for what is made to choke a parser.
    """
    if rules.format == "json":
        return read_json_results(text, url, rules, now)
    tree = parse(text, hidden=rules.post is not None)
    records = Records(tree, rules.hit)
    hits = hits_of(_rows(records, rules), url, now)
    if hits:
        more = bool(rules.next) and first(tree, rules.next) is not None
        return ResultPage(_found(tree, records, rules.found), hits, empty=False, more=more)
    shown = page_text(tree)
    if any(_regex(pattern).search(shown) for pattern in rules.empty):
        return ResultPage(found=0, hits=(), empty=True, more=False)
    raise_if_blocked(shown, url, rules.blocked)
    raise _bad_rule(tree, records, rules, shown)


def _rows(records: Records, rules: ResultRules) -> Iterator[HitFields]:
    columns = [
        records.values(field_of(field)) for field in (rules.link, rules.title, rules.abstract, rules.time)
    ]
    posts: list[PostFields | None] = [None] * len(records.nodes)
    if rules.post is not None:
        posts = _posts(records, rules.post)
    for link, title, abstract, time, post in zip(*columns, posts, strict=True):
        yield HitFields(link, title, abstract, time, post)


def _posts(records: Records, rules: PostRules) -> list[PostFields | None]:
    fields = (rules.id, rules.body, rules.author, rules.date, rules.rating)
    columns = [records.values(field_of(field)) for field in fields]
    return [PostFields(*values) for values in zip(*columns, strict=True)]


def _found(tree: LexborHTMLParser, records: Records, pattern: str) -> int | None:
    """The number of hits the page reports: before its first hit, where engines print it, or else anywhere.

    A page with hits that says 0 counts none.
    """
    if not pattern:
        return None
    search = _regex(pattern).search
    match = search(page_text(tree, before=records.nodes[0])) or search(page_text(tree))
    return (number_of(match[1] or "") or None) if match else None


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
