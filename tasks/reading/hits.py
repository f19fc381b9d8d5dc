"""What result pages of every format have in common: addresses, counts, times and posts of their hits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from tasks.domain.address import joined
from tasks.domain.crawl import FetchError, Hit, Review
from tasks.reading.dates import read_date
from tasks.reading.extract import LONGEST_ID, rating_of

_MAX_FOUND_DIGITS = 15
# What stands at the end of a long post to show it whole, or short again; the letter is an icon's.
_FULL_TEXT = re.compile(r"[\s\u200b]*(?:(?:展开|收起)全文\s*[a-z]?|(?:展开c|收起d))\s*$")


@dataclass(frozen=True, slots=True)
class PostFields:
    """A post's fields, as texts."""

    id: str
    body: str
    author: str
    date: str
    rating: str


@dataclass(frozen=True, slots=True)
class HitFields:
    """A hit's fields, as texts.

    Attributes:
        post: of an engine whose hits are whole posts.
    """

    link: str
    title: str
    abstract: str
    time: str
    post: PostFields | None = None


def hits_of(rows: Iterable[HitFields], url: str, now: datetime | None) -> tuple[Hit, ...]:
    """The hits of a result page, each address once; what leads nowhere, and a post without a text, is none.

    Args:
        url: of the result page, which links are resolved against.
        now: aware; what relative times count from; None: times are not read.
    """
    hits: dict[str, Hit] = {}
    for row in rows:
        address = _address(row.link, url)
        if not address or address in hits or (row.post is not None and not row.post.body):
            continue
        post = _review(row.post, row.title, now) if row.post is not None else None
        hits[address] = Hit(address, row.title, row.abstract, _time(row.time, now), post)
    return tuple(hits.values())


def number_of(text: str) -> int | None:
    """A number of hits as a page writes it, without its commas; None for what is none."""
    digits = re.sub(r"[,，\s]", "", text)
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_FOUND_DIGITS else None


def _address(reference: str, url: str) -> str:
    """The absolute address of a hit; empty where it has none that leads to another page."""
    if not reference or reference.startswith("#"):
        return ""
    try:
        return joined(url, reference)
    except FetchError:  # javascript:, mailto:, an address that can't be asked
        return ""


def _time(text: str, now: datetime | None) -> datetime | None:
    return read_date(text, now) if now is not None else None


def _review(post: PostFields, title: str, now: datetime | None) -> Review:
    key = post.id if post.id and len(post.id) <= LONGEST_ID else "#0"
    body = _FULL_TEXT.sub("", post.body) or post.body
    return Review(key, title, body, post.author, post.date, _time(post.date, now), rating_of(post.rating))
