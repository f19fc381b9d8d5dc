"""Typed causes of failure: why a request gave no page (`ErrorClass`), and why an attempt failed (`FailureReason`)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tasks.domain.pages import Response


class ErrorClass(StrEnum):
    """Why a request did not give a page. One class an error, everywhere: statistics, CLI, events."""

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
    UNREADABLE = "unreadable"  # it can't be read in the time and memory of one page
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
        """True where the host refuses this node address: it should rest (blocked is not broken, and not empty)."""
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


class FailureReason(StrEnum):
    """Why an attempt failed."""

    NOT_STARTED = "not_started"  # the lease ran out before the node began
    SILENT = "silent"  # begun, then no progress until the lease ran out
    HOST_UNREACHABLE = "host_unreachable"  # nobody answers there
    BLOCKED = "blocked"  # captcha, 403, 429, login wall: the host refuses this node address
    NOTHING_STORED = "nothing_stored"  # the host answers, but every page tried was broken
    RESULT_PAGE_BROKEN = "result_page_broken"  # no result page could be read: 5xx, timeouts, cut off
    BAD_RULE = "bad_rule"  # pages are answered, the catalog's rules find nothing in them
    ROBOTS = "robots"  # robots.txt refuses the search
    BAD_URL = "bad_url"  # scheme or address refused, or 404 for the search itself
    NODE_ERROR = "node_error"  # the node itself failed (a defect, out of disk, ...)
    UNKNOWN_SITE = "unknown_site"  # the catalog has no such site any more
    UNREADABLE = "unreadable"  # only in stores of 0.10.0 and older: its row in the database could not be read

    @property
    def curable(self) -> bool:
        """True where another node may succeed; the others go to MANUAL at once."""
        return self not in _INCURABLE


_INCURABLE = frozenset(
    {
        FailureReason.BAD_RULE,
        FailureReason.ROBOTS,
        FailureReason.BAD_URL,
        FailureReason.UNKNOWN_SITE,
        FailureReason.UNREADABLE,
    }
)


SUGGESTIONS: Mapping[str, str] = {
    FailureReason.NOT_STARTED: "see `nodes list`: are the nodes alive, do their workers take work? Then retry",
    FailureReason.SILENT: "see what the nodes waited for (`failed show`), restart a node that hangs, then retry",
    FailureReason.HOST_UNREACHABLE: "check that the site still exists under this name; "
    "correct sites.yaml and retry, or abandon",
    FailureReason.BLOCKED: "lower the host's limits in sites.yaml, or give a node another address or a sign-in; "
    "wait, then retry",
    FailureReason.NOTHING_STORED: "fetch a page again (`failed show --refetch`) and compare it with a browser; "
    "if the site is broken, retry later",
    FailureReason.RESULT_PAGE_BROKEN: "open the search URL in a browser: the engine may be down (retry later) "
    "or have moved (correct its url in sites.yaml)",
    FailureReason.BAD_RULE: "compare the answer (`failed show --refetch`) with the rules in sites.yaml by "
    "`sites try`, correct them, then retry all with this cause",
    FailureReason.ROBOTS: "the host's robots.txt refuses this search: take the site out of sites.yaml, abandon",
    FailureReason.BAD_URL: "correct the engine's url and params in sites.yaml, then retry",
    FailureReason.UNKNOWN_SITE: "put the site, its engine and its rules back into sites.yaml, restart what runs, "
    "then retry; or abandon",
    FailureReason.UNREADABLE: "see what its row holds (`failed show`): a newer version or a hand wrote it; correct it "
    "or update, then retry, or abandon",
    FailureReason.NODE_ERROR: "read the node's log (a defect, or its disk is full), repair the node, then retry",
}
"""Advice for a person, by reason."""
