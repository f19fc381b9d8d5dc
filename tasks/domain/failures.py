"""Typed causes of failure: why a request gave no page (`ErrorClass`), and why an attempt failed (`FailureReason`).

`FACTS` is the only table by class: a new class takes a member of `ErrorClass` and a row there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from splitter.errors import Message

from tasks.domain.pages import Response


class ErrorClass(StrEnum):
    """Why a request did not give a page. One class an error, everywhere: statistics, CLI, events."""

    NOT_FOUND = "not_found"  # the target is gone
    SERVER_ERROR = "server_error"  # any status of 500 or more
    RATE_LIMITED = "rate_limited"  # 429, or a page that reports it
    FORBIDDEN = "forbidden"  # a refusal for no cause that is known
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
    OTHER_STATUS = "other_status"  # any other status that is no success

    @property
    def facts(self) -> ErrorFacts:
        """Return the row of this class."""
        return FACTS[self]


class FailureReason(StrEnum):
    """Why an attempt failed."""

    NOT_STARTED = "not_started"  # the lease ran out before the node began
    SILENT = "silent"  # begun, then no progress until the lease ran out
    HOST_UNREACHABLE = "host_unreachable"  # no answer from the host
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
        """Return True if another node may succeed; other failures go to MANUAL at once."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFacts:
    """Consequences of an error of one class, and how it is recognised.

    Attributes:
        statuses: HTTP statuses that mean it.
        wording: matches the text of refusals of this class; None if no words are known.
        search_reason: why an attempt failed whose result page ended in it.
        blocks: the host refuses this node address: it should rest (blocked is not broken, and not empty).
        about_host: it is about (host, node address), not about the target: it does not count as a try.
        final: asking again, from any node, would not help: the target is refused at once.
        first_rest_s: how long the host rests after one refusal, or after unreadable pages in a row. Each further one
            doubles it. 0: it is no cause of a rest.
        is_signed_out: a new sign-in may cure it.
        is_of_frequency: it speaks of frequency, if the host gave answers before.
        is_evidence_of_pace: it shows what pace the host bears. If not, a breaker opens, or no request was made.
        is_fault: the host is in trouble, or the way to it: enough of them slow the pace.
        is_lost: no whole answer came. The next request may fare better.
        is_unanswered: no answer came. Some in a row make the host unreachable.
        is_refused_here: this node refuses the address by itself.
        is_quick_answer: it is no page, but an answer as fast as one.
    """

    statuses: tuple[int, ...] = ()
    wording: re.Pattern[str] | None = None
    search_reason: FailureReason = FailureReason.RESULT_PAGE_BROKEN
    blocks: bool = False
    about_host: bool = False
    final: bool = False
    first_rest_s: float = 0.0
    is_signed_out: bool = False
    is_of_frequency: bool = False
    is_evidence_of_pace: bool = True
    is_fault: bool = False
    is_lost: bool = False
    is_unanswered: bool = False
    is_refused_here: bool = False
    is_quick_answer: bool = False

    @property
    def is_fault_of_pair(self) -> bool:
        """True if it is a fault that a target or a (site, node) may be the cause of."""
        return self.is_fault and not self.about_host


_REFUSAL = ErrorFacts(search_reason=FailureReason.BLOCKED, blocks=True, about_host=True)
_NOT_ASKED = ErrorFacts(
    search_reason=FailureReason.BAD_URL, final=True, is_evidence_of_pace=False, is_refused_here=True
)

FACTS: Mapping[ErrorClass, ErrorFacts] = MappingProxyType(
    {
        ErrorClass.CAPTCHA: replace(
            _REFUSAL,
            wording=re.compile(r"(?i)验证码|安全验证|人机验证|captcha|verify"),
            first_rest_s=600.0,
            is_of_frequency=True,
            is_evidence_of_pace=False,
        ),
        ErrorClass.LOGIN_WALL: replace(
            _REFUSAL,
            wording=re.compile(r"(?i)登录|登陆|visitor system|log-?\s?in|sign-?\s?in|passport"),
            first_rest_s=900.0,
            is_signed_out=True,
            is_evidence_of_pace=False,
        ),
        ErrorClass.RATE_LIMITED: replace(
            _REFUSAL,
            statuses=(429,),
            wording=re.compile(r"(?i)频繁|频率|too many|unusual traffic"),
            first_rest_s=60.0,
            is_of_frequency=True,
        ),
        ErrorClass.FORBIDDEN: replace(
            _REFUSAL,
            # 412: what bot guards of Chinese sites answer to a client they do not know.
            # 432: Weibo's, to visitors without a cookie.
            statuses=(401, 403, 412, 432),
            first_rest_s=300.0,
            is_signed_out=True,
            is_of_frequency=True,
            is_evidence_of_pace=False,
        ),
        ErrorClass.CONNECT: ErrorFacts(
            search_reason=FailureReason.HOST_UNREACHABLE,
            about_host=True,
            is_fault=True,
            is_lost=True,
            is_unanswered=True,
        ),
        ErrorClass.TIMEOUT: ErrorFacts(is_fault=True, is_lost=True, is_unanswered=True),
        ErrorClass.CUT_OFF: ErrorFacts(is_fault=True, is_lost=True),
        ErrorClass.SERVER_ERROR: ErrorFacts(is_fault=True),
        ErrorClass.NOT_FOUND: ErrorFacts(
            statuses=(404, 410), search_reason=FailureReason.BAD_URL, final=True, is_quick_answer=True
        ),
        ErrorClass.OTHER_STATUS: ErrorFacts(
            search_reason=FailureReason.BAD_URL, final=True, is_quick_answer=True
        ),
        ErrorClass.REDIRECTS: ErrorFacts(search_reason=FailureReason.BAD_URL, final=True),
        ErrorClass.SCHEME_REFUSED: _NOT_ASKED,
        ErrorClass.ADDRESS_REFUSED: _NOT_ASKED,
        ErrorClass.ROBOTS: replace(_NOT_ASKED, search_reason=FailureReason.ROBOTS),
        ErrorClass.BAD_RULE: ErrorFacts(search_reason=FailureReason.BAD_RULE),
        ErrorClass.TOO_LARGE: ErrorFacts(final=True),
        ErrorClass.BAD_CONTENT: ErrorFacts(),
        ErrorClass.UNREADABLE: ErrorFacts(first_rest_s=600.0),
    }
)
"""Consequences of each class of errors. If the wording of several classes fits a refusal, the first class counts."""

_BY_STATUS = {status: error for error, facts in FACTS.items() for status in facts.statuses}


def error_class(status: int) -> ErrorClass:
    """Return the class of an answer whose HTTP status is no success."""
    return _BY_STATUS.get(status, ErrorClass.SERVER_ERROR if status >= 500 else ErrorClass.OTHER_STATUS)


class FetchError(Message, Exception):
    """A request that gave no usable page.

    Attributes:
        error: its class.
        problem: the content that came instead.
        detail: the same in English, in one line.
        retry_after_s: seconds that the host asked to wait, if it did.
        response: the answer, if it came whole (for `failed show`).
    """

    def __init__(
        self,
        error: ErrorClass,
        problem: Message | str,
        *,
        retry_after_s: float | None = None,
        response: Response | None = None,
    ) -> None:
        super().__init__("{error}: {text}", error=error, text=problem)
        self.error = error
        self.problem = problem
        self.detail = str(problem)
        self.retry_after_s = retry_after_s
        self.response = response

    @property
    def message(self) -> Message:
        """The error's message, to be kept without the frames of the error."""
        return Message(self.template, **self.parameters)
