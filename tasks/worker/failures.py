"""Failures within an attempt: which hosts rest or are left alone, and whether the attempt failed, with its reason.

It succeeded if it ended by itself with a page stored, with nothing left to store, or with a proven empty answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection

from splitter.errors import Message

from tasks.domain.breaker import Rest, rest_s, unreachable_rest_s
from tasks.domain.failures import ErrorClass, FailureReason, FetchError
from tasks.domain.host_wait import UNREACHABLE
from tasks.fetching.pace import AnswerSample
from tasks.reading.decode import decode
from tasks.worker.fetcher import Dependencies, NotAsked, RefusedRedirect

_UNREACHABLE_AFTER = 3
"""Requests in a row without an answer after which a host counts as unreachable. One is enough if it refused the
connection, or did not answer for its robots.txt, and has answered this attempt nothing before."""

_UNREADABLE_AFTER = 3
"""Unreadable pages in a row after which a host rests: each takes seconds of the reader that all hosts share."""


class Failures:
    """Errors of one attempt, and what follows from them for hosts.

    Attributes:
        result_error: why the last unreadable result page could not be read; None: all were read.
        hit_errors: classes of the errors that hits ended in.
        rests: hosts that refused the node's address, or did not answer it.
        page_hosts: hosts that answered it with a page.
        last_response: the last unusable answer, for `failed show`.
    """

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._stopped: set[str] = set()
        self._unanswered: Counter[str] = Counter()
        self._unreadable: Counter[str] = Counter()
        self._answered: set[str] = set()
        self._failed_at: set[str] = set()
        self.result_error: ErrorClass | None = None
        self.hit_errors: set[ErrorClass] = set()
        self.rests: dict[str, Rest] = {}
        self.page_hosts: set[str] = set()
        self.last_response: dict[str, object] | None = None

    @property
    def any(self) -> bool:
        """Return True if a result page or a hit ended in an error."""
        return self.result_error is not None or bool(self.hit_errors)

    @property
    def unreachable(self) -> str | None:
        """Return a host that did not answer, if the attempt failed for no other reason; else None."""
        hosts = [host for host, rest in self.rests.items() if rest.cause == UNREACHABLE]
        return hosts[0] if hosts and self._failed_at <= set(hosts) else None

    def avoids(self, url: str) -> bool:
        """Return True if this attempt sends no more requests to the host of `url`."""
        return bool(self._stopped) and self._deps.hosts.name(url) in self._stopped

    def note_page(self, url: str) -> None:
        """Record that the host of `url` gave a page: it is reachable, and does not refuse the address."""
        host = self._deps.hosts.name(url)
        self.page_hosts.add(host)
        self._unreadable.pop(host, None)
        self._note_answer(host)

    async def note_error(self, url: str, error: FetchError) -> None:
        """Record an error, and stop or rest its host if the error calls for that."""
        kind = error.error
        deps = self._deps
        self.last_response = _describe(url, error)
        host = deps.hosts.name(url)
        self._failed_at.add(host)
        unreadable = kind is ErrorClass.UNREADABLE
        self._unreadable[host] += unreadable
        if kind.facts.blocks or (unreadable and self._unreadable[host] >= _UNREADABLE_AFTER):
            rest = Rest(host, kind, self._rest_s(kind, error.retry_after_s))
            self._stopped.add(host)
            self.rests[host] = rest
            # Other attempts of this node wait at once; the store counts the refusals in a row, and decides for all.
            await deps.permits.push_back(host, deps.address, rest.seconds(1))
            observed = error.response is not None or isinstance(error, RefusedRedirect)
            if kind.facts.is_of_frequency and not observed:
                # A refusal by a page with status 200: the fetcher counted it as an answer like any other.
                limits = deps.hosts.limits(host)
                await deps.permits.observe(host, deps.address, limits, AnswerSample(0.0, kind))
        elif kind.facts.is_unanswered:
            self._unanswered[host] += 1
            if self._unreachable(host, error):
                await self._rest_unreachable(host)
        elif kind is not ErrorClass.ROBOTS:
            self._note_answer(host)

    def _unreachable(self, host: str, error: FetchError) -> bool:
        """Whether this error, the last at its host, shows that the host does not answer."""
        if self._unanswered[host] >= _UNREACHABLE_AFTER or isinstance(error, NotAsked):
            return True
        return error.error is ErrorClass.CONNECT and host not in self._answered

    async def _rest_unreachable(self, host: str) -> None:
        self._stopped.add(host)
        if host not in self.rests:
            factor, rng = self._deps.settings.rest_factor, self._deps.rng
            rest = Rest(host, UNREACHABLE, lambda times: unreachable_rest_s(times, rng) * factor)
            self.rests[host] = rest
            await self._deps.permits.push_back(host, self._deps.address, rest.seconds(1))

    def _note_answer(self, host: str) -> None:
        """Record that the host answered. Errors of requests that were under way are dropped."""
        self._answered.add(host)
        self._unanswered.pop(host, None)
        rest = self.rests.get(host)
        if rest is not None and rest.cause == UNREACHABLE:
            del self.rests[host]
            self._stopped.discard(host)

    def _rest_s(self, cause: ErrorClass, retry_after_s: float | None) -> Callable[[int], float]:
        factor, rng = self._deps.settings.rest_factor, self._deps.rng
        return lambda times: rest_s(cause, times, retry_after_s, rng) * factor


def failure_reason(
    *, collected: int, left: int, result_error: ErrorClass | None, hit_errors: Collection[ErrorClass]
) -> FailureReason | None:
    """Return the reason why an attempt failed, or None if it succeeded.

    Args:
        collected: pages stored.
        left: targets that are still to do.
        result_error, hit_errors: as in `Failures`.
    """
    if collected or not left:
        return None
    if result_error is not None:
        return result_error.facts.search_reason
    if any(error.facts.blocks for error in hit_errors):
        return FailureReason.BLOCKED
    if ErrorClass.CONNECT in hit_errors:
        return FailureReason.HOST_UNREACHABLE
    if hit_errors and set(hit_errors) <= {ErrorClass.BAD_RULE}:
        return FailureReason.BAD_RULE
    return FailureReason.NOTHING_STORED


def _describe(url: str, error: FetchError) -> dict[str, object]:
    """An error and its response, as stored with the attempt."""
    described: dict[str, object] = {"url": url, "error": error.error.value, "detail": error.detail[:500]}
    if isinstance(error.problem, Message):
        described["problem"] = error.problem.as_document()
    if error.response is not None:
        text = decode(error.response.body[:4000], error.response.headers).text
        described |= {"status": error.response.status, "url": error.response.url, "head": text[:1000]}
    return described
