"""Pages of sites, read into reviews by the catalog's rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from selectolax.lexbor import LexborNode
from splitter.catalog.model import PageRules

from tasks.crawl.classify import raise_if_blocked
from tasks.crawl.dates import read_date
from tasks.crawl.markup import Field, field_of, first, page_text, parse, select, text_of
from tasks.crawl.model import ErrorClass, FetchError, PageRead, Review

_NUMBER = re.compile(r"\d{1,6}(?:\.\d{1,6})?")


@dataclass(frozen=True, slots=True)
class _Compiled:
    id: Field | None
    title: Field | None
    body: Field
    author: Field | None
    date: Field | None
    rating: Field | None


def read_page(text: str, url: str, rules: PageRules, *, now: datetime) -> PageRead:
    """Read a page into its reviews; records without a body are dropped.

    A page with reviews is a page, whatever they say; the patterns of a refusal are looked for where there is
    none.

    Args:
        text: of the answer, decoded.
        url: its final address.
        now: aware; what relative dates (3小时前) count from.

    Raises:
        FetchError: the refusal's class; BAD_RULE, with what the selectors matched, where no review is found.
    """
    tree = parse(text)
    records = select(tree, rules.review)
    reviews = _reviews(records, _compiled(rules), now)
    if not reviews:
        shown = page_text(tree)
        raise_if_blocked(shown, url, rules.blocked)
        raise FetchError(
            ErrorClass.BAD_RULE,
            f"review {rules.review!r} matches {len(records)}, body {rules.body!r} is filled in none of them; "
            f"the page says: {shown[:120]}",
        )
    title = first(tree, rules.page_title) if rules.page_title else None
    return PageRead(text_of(title) if title is not None else "", reviews)


def _reviews(records: list[LexborNode], fields: _Compiled, now: datetime) -> tuple[Review, ...]:
    reviews: dict[str, Review] = {}
    for place, record in enumerate(records):
        body = fields.body.read(record)
        if not body:
            continue
        key = fields.id.read(record) if fields.id else ""
        if not key or key in reviews:
            key = f"#{place}"
        reviews[key] = _review(key, body, record, fields, now)
    return tuple(reviews.values())


def _review(key: str, body: str, record: LexborNode, fields: _Compiled, now: datetime) -> Review:
    date_text = fields.date.read(record) if fields.date else ""
    return Review(
        key=key,
        title=fields.title.read(record) if fields.title else "",
        body=body,
        author=fields.author.read(record) if fields.author else "",
        date_text=date_text,
        date=read_date(date_text, now),
        rating=_rating(fields.rating.read(record)) if fields.rating else None,
    )


def _rating(text: str) -> float | None:
    match = _NUMBER.search(text)
    return float(match.group()) if match else None


@lru_cache(maxsize=256)
def _compiled(rules: PageRules) -> _Compiled:
    body = field_of(rules.body)
    if body is None:
        raise FetchError(ErrorClass.BAD_RULE, "the rules name no body")
    return _Compiled(
        id=field_of(rules.id),
        title=field_of(rules.title),
        body=body,
        author=field_of(rules.author),
        date=field_of(rules.date),
        rating=field_of(rules.rating),
    )
