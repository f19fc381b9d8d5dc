"""Decide how the lab answers a request, from its profile and from the requests counted before.

Random choices depend on a hash of (seed, host, URL, number of the request for this URL), but on neither time nor
client. Only the shares in the profile and the counters of limits and blocks differ between clients and over time.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from app.lab import chance
from app.lab.answers import LabAnswer
from app.lab.profile import Block, Conduct, RateLimit


@dataclass(frozen=True, slots=True)
class LabRequest:
    """A request to the lab.

    Attributes:
        client: Source address.
        host: Host name in lower case without port.
        path: Path with query string.
        t: Seconds of the lab's time.
    """

    client: str
    host: str
    path: str
    t: float


@dataclass(frozen=True, slots=True)
class LabDecision:
    """How a request will be answered.

    Attributes:
        latency_s: Time to wait before the answer.
        tried: Number of this request among those for its URL, from 1.
        retry_after_s: Value of Retry-After. `None` sends no such header.
        hang_s: Longest duration of a hang.
    """

    answer: LabAnswer
    latency_s: float
    tried: int
    retry_after_s: float | None = None
    hang_s: float = 0.0


@dataclass(slots=True)
class _Visits:
    """The recent requests of one client to one host, and the end of its block."""

    limited: deque[float] = field(default_factory=deque)
    watched: deque[float] = field(default_factory=deque)
    blocked_until: float = 0.0
    blocked_with: LabAnswer = LabAnswer.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Memory:
    """Counters that decisions depend on. Their size grows with the number of URLs.

    Attributes:
        requests: Number of requests by (host, target).
        visits: Recent requests by (client, host).
    """

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    visits: defaultdict[tuple[str, str], _Visits] = field(default_factory=lambda: defaultdict(_Visits))


def decide(conduct: Conduct, seed: int, request: LabRequest, memory: Memory) -> LabDecision:
    """Decide how a request is answered, and count it in `memory`.

    Rules about the client are applied first (dead host, block, rate limit), then rules about the URL (moved, lost),
    then random faults.
    """
    url = request.host, request.path
    memory.requests[url] += 1
    tried = memory.requests[url]
    if conduct.dead:
        return LabDecision(LabAnswer.DEAD, 0.0, tried)
    low, high = conduct.latency_ms
    draw = chance.share(seed, "latency", *url, tried) if high > low else 0.0
    latency_s = (low + (high - low) * draw) / 1000
    visits = memory.visits[request.client, request.host]
    if _is_blocked(conduct.block, visits, request.t):
        return LabDecision(visits.blocked_with, latency_s, tried)
    limit = conduct.rate_limit
    if limit and _is_over(limit, visits, request.t):
        retry_after_s = limit.retry_after_s if limit.answer is LabAnswer.RATE_LIMITED else None
        return LabDecision(limit.answer, latency_s, tried, retry_after_s)
    answer = _lasting_answer(conduct, seed, url) or _fault(conduct, seed, url, tried) or LabAnswer.PAGE
    # A rate limit drawn by chance has no wait in the profile, so use the smallest Retry-After.
    retry_after_s = 1.0 if answer is LabAnswer.RATE_LIMITED else None
    return LabDecision(answer, latency_s, tried, retry_after_s, conduct.hang_s)


def _is_blocked(block: Block | None, visits: _Visits, t: float) -> bool:
    if t < visits.blocked_until:
        return True
    if block is None:
        return False
    if _count_recent(visits.watched, block.window_s, t) >= block.requests:
        visits.watched.clear()
        visits.blocked_until, visits.blocked_with = t + block.for_s, block.answer
        return True
    visits.watched.append(t)
    return False


def _is_over(limit: RateLimit, visits: _Visits, t: float) -> bool:
    # Refused requests are not counted, so a client that continues gets exactly its rate.
    if _count_recent(visits.limited, limit.window_s, t) >= limit.requests:
        return True
    visits.limited.append(t)
    return False


def _count_recent(moments: deque[float], window_s: float, t: float) -> int:
    while moments and moments[0] <= t - window_s:
        moments.popleft()
    return len(moments)


def _lasting_answer(conduct: Conduct, seed: int, url: tuple[str, str]) -> LabAnswer | None:
    """Return the answer that every request for this URL gets, if it was moved or lost; else `None`."""
    if not url[0].startswith("www.") and chance.share(seed, "moved", *url) < conduct.moved:
        return LabAnswer.MOVED
    return _draw(conduct.lost.items(), chance.share(seed, "lost", *url))


def _fault(conduct: Conduct, seed: int, url: tuple[str, str], tried: int) -> LabAnswer | None:
    if not conduct.faults:
        return None
    if conduct.fault_tries == 0:
        return _draw(conduct.faults.items(), chance.share(seed, "fault", *url, tried))
    if tried > 1 + chance.number(seed, "lasts", *url) % conduct.fault_tries:
        return None
    return _draw(conduct.faults.items(), chance.share(seed, "fault", *url))


def _draw(shares: Iterable[tuple[LabAnswer, float]], share: float) -> LabAnswer | None:
    for answer, width in shares:
        if share < width:
            return answer
        share -= width
    return None
