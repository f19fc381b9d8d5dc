"""The result of a request: the response, and the result page with hits or the page with reviews read from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from tasks.domain.themes import Theme
from tasks.domain.voices import VoiceJudgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """A whole answer.

    Attributes:
        url: the final address, after redirects.
        status: HTTP status.
        headers: lower-case names.
        body: decompressed.
        elapsed_s: from sending to the last byte.
        first_byte_s: response time of the last request: from when it was sent, over a connection that stood, to the
                first byte of the answer; 0 if that is not known.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_s: float
    first_byte_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry of a result page: an absolute address, its title and abstract.

    Attributes:
        time: when it was published, aware; None if the result page gives no date, or none that can be read.
        post: the whole post, if the engine's result pages hold posts.
    """

    url: str
    title: str
    abstract: str = ""
    time: datetime | None = None
    post: Review | None = None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """A result page as read. No hits and not `empty` never reaches here: that is a FetchError(BAD_RULE).

    Attributes:
        found: number of hits the search reports; None if it reports none.
        hits: in their order, absolute addresses, without repeats.
        empty: the engine reports that it has no hits (a proven empty answer).
        more: there is a next page.
    """

    found: int | None
    hits: tuple[Hit, ...]
    empty: bool
    more: bool


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page that lists others (a sitemap, a category), as read.

    Attributes:
        hits: its entries, whatever they are about.
        further: addresses of lists that it names, newest first.
        more: there is a next page of it.
    """

    hits: tuple[Hit, ...] = ()
    further: tuple[str, ...] = ()
    more: bool = False


class Review(NamedTuple):
    """One review as read from a page. A tuple: pages bring tens of them, and it is made in a third of the time.

    Attributes:
        key: the record's id on its page, or ``#n`` (its place, from 0) if it has none.
        date_text: the date as written.
        date: aware, if it could be read (sites of the catalog are read as UTC+8).
        rating: as written, as a number, if there is one.
        variant: which one of the product it is of, as written: an app's version, a car's model, a colour; empty where
            it does not say.
        voice: whose it is, as a model judged it; None: not judged.
        themes: subjects of the text; `None`: it was judged, but not read for themes (`tasks.reading.judge.reviews`).
    """

    key: str
    title: str
    body: str
    author: str
    date_text: str
    date: datetime | None
    rating: float | None
    variant: str = ""
    voice: VoiceJudgement | None = None
    themes: tuple[Theme, ...] | None = ()


@dataclass(frozen=True, slots=True)
class PageRead:
    """A page as read: title and reviews (none is possible: a page without a review).

    Attributes:
        next_url: where its review list goes on: a sendable address on the same host; empty if it ends here.
        no_review: why a page without a review has none ("list": a list of other pages; "goods": a shop's
                page of one product); empty if it has some.
        confidence: how surely the reviews are those of the page, or it has none: 0 to 1; 1 by rules.
    """

    title: str
    reviews: tuple[Review, ...] = field(default=())
    next_url: str = ""
    no_review: str = ""
    confidence: float = 1.0
