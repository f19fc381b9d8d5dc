"""Pages of sites, read into reviews by the catalog's rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser
from splitter.catalog.rules import PageRules

from tasks.domain.address import authority_of, joined, sendable
from tasks.domain.crawl import ErrorClass, FetchError, PageRead, Review
from tasks.reading.dates import read_date
from tasks.reading.maintext import read_main_text
from tasks.reading.markup import Field, field_of, first, page_text, parse, text_of
from tasks.reading.records import Records
from tasks.reading.refusals import raise_if_blocked

LONGEST_ID = 200
"""Characters of a record's id: what is longer is none, and no database takes it."""
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
    if rules.main_text:
        return read_main_text(text, url, rules, now)
    tree = parse(text)
    records = Records(tree, rules.review)
    reviews = _reviews(records, _compiled(rules), now)
    if not reviews:
        shown = page_text(tree)
        raise_if_blocked(shown, url, rules.blocked)
        raise FetchError(
            ErrorClass.BAD_RULE,
            f"review {rules.review!r} matches {len(records.nodes)}, body {rules.body!r} is filled in none of them; "
            f"the page says: {shown[:120]}",
        )
    title = first(tree, rules.page_title) if rules.page_title else None
    return PageRead(text_of(title) if title is not None else "", reviews, _next_url(tree, url, rules.next))


def _next_url(tree: LexborHTMLParser, url: str, css: str) -> str:
    """Where the review list goes on; empty where nothing says so, or what does leads back here or elsewhere."""
    link = first(tree, css) if css else None
    reference = (link.attrs.get("href") or "").strip() if link is not None else ""
    if not reference or reference.startswith("#"):
        return ""
    try:
        here, following = sendable(url), joined(url, reference)
    except FetchError:  # javascript:, an address that can't be asked
        return ""
    same_host = authority_of(following) == authority_of(here)
    return following if same_host and following != here else ""


def _reviews(records: Records, rules: _Compiled, now: datetime) -> tuple[Review, ...]:
    values = records.values
    bodies = values(rules.body)
    if not any(bodies):
        return ()
    columns = [values(field) for field in (rules.id, rules.title, rules.author, rules.date, rules.rating)]
    reviews: dict[str, Review] = {}
    for place, (body, key, title, author, date, rating) in enumerate(zip(bodies, *columns, strict=True)):
        if not body:
            continue
        if not key or key in reviews or len(key) > LONGEST_ID:
            key = f"#{place}"
        reviews[key] = Review(key, title, body, author, date, read_date(date, now), rating_of(rating))
    return tuple(reviews.values())


@lru_cache(maxsize=1024)
def rating_of(text: str) -> float | None:
    """The first number in a rating's text; None where there is none."""
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
