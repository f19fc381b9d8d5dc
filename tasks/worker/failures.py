"""What went wrong in an attempt, and what it says about hosts: which are left alone, and for how long they rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tasks.domain.breaker import rest_s
from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.pace import AnswerSample
from tasks.reading.decode import decode
from tasks.store.hosts import Rest
from tasks.worker.fetcher import Dependencies


class Failures:
    """Errors of one attempt.

    Attributes:
        result_error: why the last unreadable result page could not be read; None: all were read.
        hit_errors: errors of hits, by class.
        rests: hosts that refused the node's address.
        gave: hosts that gave it a page.
        last: the last unusable answer, for `failed show`.
    """

    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self._stopped: set[str] = set()
        self._unanswered: Counter[str] = Counter()
        self.result_error: ErrorClass | None = None
        self.hit_errors: Counter[ErrorClass] = Counter()
        self.rests: dict[str, Rest] = {}
        self.gave: set[str] = set()
        self.last: dict[str, object] | None = None

    @property
    def any(self) -> bool:
        """Whether there was any."""
        return self.result_error is not None or bool(self.hit_errors)

    def stopped(self, url: str) -> bool:
        """Whether its host is not to be asked by this attempt any more."""
        return bool(self._stopped) and self._deps.hosts.name(url) in self._stopped

    def answered(self, url: str) -> None:
        """Its host gave a page: it is not out of reach, nor does it refuse any more."""
        host = self._deps.hosts.name(url)
        self.gave.add(host)
        self._unanswered.pop(host, None)

    async def met(self, url: str, error: FetchError) -> None:
        """Remember an error, and what it says about its host."""
        kind = error.error
        deps = self._deps
        self.last = _last_response(url, error)
        host = deps.hosts.name(url)
        if kind.blocks:
            rest = Rest(host, kind, self._rest_s(kind, error.retry_after_s))
            self._stopped.add(host)
            self.rests[host] = rest
            # Other attempts of this node at that host find out here; other decisions, and how many refusals in a row
            # there have been, from the store.
            await deps.permits.push_back(host, deps.address, rest.seconds(1))
            if kind is ErrorClass.RATE_LIMITED and error.response is None:
                # "Too often", said by a page with status 200: to the downloader it was an answer like any other.
                limits = deps.hosts.limits(host)
                await deps.permits.observe(host, deps.address, limits, AnswerSample(0.0, kind))
        elif kind in (ErrorClass.CONNECT, ErrorClass.TIMEOUT):
            self._unanswered[host] += 1
            if self._unanswered[host] >= deps.settings.unreachable_after:
                self._stopped.add(host)
        else:
            self._unanswered.pop(host, None)

    def _rest_s(self, cause: ErrorClass, retry_after_s: float | None) -> Callable[[int], float]:
        settings, rng = self._deps.settings, self._deps.rng
        return lambda times: rest_s(cause, times, retry_after_s, rng) * settings.rest_factor


def _last_response(url: str, error: FetchError) -> dict[str, object]:
    last: dict[str, object] = {"url": url, "error": error.error.value, "detail": error.detail[:500]}
    if error.response is not None:
        text = decode(error.response.body[:4000], error.response.headers).text
        last |= {"status": error.response.status, "url": error.response.url, "head": text[:1000]}
    return last
