"""What passes between the parts of a crawl: requests, responses, typed outcomes, hits, reviews."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple


class ErrorClass(StrEnum):
    """Why a request did not give a page. One class an error, everywhere: control, CLI, events."""

    NOT_FOUND = "not_found"  # 404, 410: the target is gone
    SERVER_ERROR = "server_error"  # 5xx
    RATE_LIMITED = "rate_limited"  # 429, or a page that says so
    FORBIDDEN = "forbidden"  # 401, 403, 432 and the like
    CAPTCHA = "captcha"  # a captcha page, whatever its status
    LOGIN_WALL = "login_wall"  # a page that asks to sign in, whatever its status
    TIMEOUT = "timeout"  # no (whole) answer within the time of one request
    CONNECT = "connect"  # refused, unreachable, name not resolved
    CUT_OFF = "cut_off"  # reset, or a body shorter than announced
    TOO_LARGE = "too_large"  # body or headers over the limit
    REDIRECTS = "redirects"  # too many, or a loop
    BAD_CONTENT = "bad_content"  # not text, or not decodable
    SCHEME_REFUSED = "scheme_refused"  # neither http nor https
    ADDRESS_REFUSED = "address_refused"  # private, loopback, link-local ... address
    ROBOTS = "robots"  # robots.txt refuses the URL
    BAD_RULE = "bad_rule"  # a page was answered, but its rules find nothing in it
    OTHER_STATUS = "other_status"  # any other 4xx

    @property
    def about_host(self) -> bool:
        """True where the error is about (host, node address), not about the target: it does not count as a try."""
        return self in _ABOUT_HOST

    @property
    def blocks(self) -> bool:
        """True where the host refuses this node address: it should rest (blocked, as told from broken and empty)."""
        return self in _BLOCKS

    @property
    def final(self) -> bool:
        """True where asking again, from any node, would not help: the target is refused at once."""
        return self in _FINAL


_BLOCKS = frozenset(
    {ErrorClass.RATE_LIMITED, ErrorClass.FORBIDDEN, ErrorClass.CAPTCHA, ErrorClass.LOGIN_WALL}
)
_ABOUT_HOST = _BLOCKS | {ErrorClass.CONNECT}
_FINAL = frozenset(
    {
        ErrorClass.NOT_FOUND,
        ErrorClass.SCHEME_REFUSED,
        ErrorClass.ADDRESS_REFUSED,
        ErrorClass.ROBOTS,
        ErrorClass.TOO_LARGE,
        ErrorClass.REDIRECTS,
        ErrorClass.OTHER_STATUS,
    }
)


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer.

    Attributes:
        url: the final address, after redirects.
        status: HTTP status.
        headers: lower-case names.
        body: decompressed.
        elapsed_s: from sending to the last byte.
        first_byte_s: response time of the last request: from when it was sent, over a connection that stood, to the
            first byte of the answer; 0 where that is not known.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    elapsed_s: float
    first_byte_s: float = 0.0


class FetchError(Exception):
    """A request that gave no usable page.

    Attributes:
        error: its class.
        detail: one line for people: what came instead.
        retry_after_s: what the host asked to wait, if it did.
        response: the answer, where there was a whole one (for `failed show`).
    """

    def __init__(
        self,
        error: ErrorClass,
        detail: str,
        *,
        retry_after_s: float | None = None,
        response: Response | None = None,
    ) -> None:
        super().__init__(f"{error.value}: {detail}")
        self.error = error
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.response = response


class Provenance(StrEnum):
    """Where the number of hits found comes from."""

    REPORTED = "reported"  # the engine printed it
    COUNTED = "counted"  # counted up to the last page
    CAPPED = "capped"  # the engine lists no more than this
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Hit:
    """One entry of a result page: an absolute address, its title and abstract.

    Attributes:
        time: when it was published, aware; None where the result page does not tell, or not so that it can be read.
        post: the whole post it is, where the engine's result pages hold posts.
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
        found: number of hits the search reports; None where it reports none.
        hits: in their order, absolute addresses, without repeats.
        empty: the engine says it has nothing (a proven empty answer).
        more: there is a next page.
    """

    found: int | None
    hits: tuple[Hit, ...]
    empty: bool
    more: bool


class Review(NamedTuple):
    """One review as read from a page. A tuple: pages bring tens of them, and it is made in a third of the time.

    Attributes:
        key: the record's id on its page, or ``#n`` (its place, from 0) where it has none.
        date_text: the date as written.
        date: aware, where it could be read (sites of the catalog are read as UTC+8).
        rating: as written, as a number, where there is one.
    """

    key: str
    title: str
    body: str
    author: str
    date_text: str
    date: datetime | None
    rating: float | None


@dataclass(frozen=True, slots=True)
class PageRead:
    """A page as read: title and reviews (none is possible: a page without a review).

    Attributes:
        next_url: where its review list goes on: a sendable address on the same host; empty where it ends here.
        no_review: why a page without a review has none ("list": a list of other pages); empty where it has some.
    """

    title: str
    reviews: tuple[Review, ...] = field(default=())
    next_url: str = ""
    no_review: str = ""
