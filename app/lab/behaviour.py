"""Decides how a request is answered: pure, from the profile and the requests counted so far.

Chance is a hash of (seed, host, URL, number of the request for this URL). It depends on neither time nor client; only
the profile's shares and the counters of limits and blocks differ between clients and over time.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.lab import chance
from app.lab.answers import Answer
from app.lab.profile import Block, Conduct, RateLimit


@dataclass(frozen=True, slots=True)
class LabRequest:
    """A request as the lab sees it.

    Attributes:
        client: source address.
        host: lower case, no port.
        target: path with query string.
        t: seconds of lab time.
    """

    client: str
    host: str
    target: str
    t: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer to give.

    Attributes:
        latency_s: how long to wait before.
        tried: number of this request among those for its URL, from 1.
        retry_after_s: what to put into Retry-After; None: no such header.
        hang_s: how long a hang lasts.
    """

    answer: Answer
    latency_s: float
    tried: int
    retry_after_s: float | None = None
    hang_s: float = 0.0


@dataclass(slots=True)
class _Visits:
    """Requests of one client to one host: when they were answered, until when it is blocked, and how."""

    limited: deque[float] = field(default_factory=deque)
    watched: deque[float] = field(default_factory=deque)
    blocked_until: float = 0.0
    blocked_with: Answer = Answer.FORBIDDEN


@dataclass(frozen=True, slots=True)
class Memory:
    """The counters a decision depends on. They grow with the URLs requested.

    Attributes:
        asked: requests by (host, target).
        visits: of each (client, host).
    """

    asked: Counter[tuple[str, str]] = field(default_factory=Counter)
    visits: defaultdict[tuple[str, str], _Visits] = field(default_factory=lambda: defaultdict(_Visits))


def decide(conduct: Conduct, seed: int, asked: LabRequest, memory: Memory) -> Decision:
    """Decide what a request is answered, and count it in the memory.

    First the client (dead host, block, rate limit), then the URL (moved, lost), then chance (faults).
    """
    memory.asked[asked.host, asked.target] += 1
    tried = memory.asked[asked.host, asked.target]
    low, high = conduct.latency_ms
    drawn = chance.share(seed, "latency", asked.host, asked.target, tried) if high > low else 0.0
    latency_s = (low + (high - low) * drawn) / 1000
    if conduct.dead:
        return Decision(Answer.DEAD, 0.0, tried)
    visits = memory.visits[asked.client, asked.host]
    if _is_blocked(conduct.block, visits, asked.t):
        return Decision(visits.blocked_with, latency_s, tried)
    if conduct.rate_limit and _is_over(conduct.rate_limit, visits, asked.t):
        limit = conduct.rate_limit
        retry_after_s = limit.retry_after_s if limit.answer is Answer.RATE_LIMITED else None
        return Decision(limit.answer, latency_s, tried, retry_after_s)
    answer = _of_url(conduct, seed, asked) or _by_chance(conduct, seed, asked, tried) or Answer.PAGE
    # Drawn by chance, not from a limit with a wait of its own: the smallest Retry-After there is.
    retry_after_s = 1.0 if answer is Answer.RATE_LIMITED else None
    return Decision(answer, latency_s, tried, retry_after_s, conduct.hang_s)


def _is_blocked(block: Block | None, visits: _Visits, t: float) -> bool:
    if t < visits.blocked_until:
        return True
    if block is None:
        return False
    if _recent(visits.watched, block.window_s, t) >= block.requests:
        visits.watched.clear()
        visits.blocked_until, visits.blocked_with = t + block.for_s, block.answer
        return True
    visits.watched.append(t)
    return False


def _is_over(limit: RateLimit, visits: _Visits, t: float) -> bool:
    """Refused requests are not counted: a client that goes on gets its rate, no more and no less."""
    if _recent(visits.limited, limit.window_s, t) >= limit.requests:
        return True
    visits.limited.append(t)
    return False


def _recent(moments: deque[float], window_s: float, t: float) -> int:
    while moments and moments[0] <= t - window_s:
        moments.popleft()
    return len(moments)


def _of_url(conduct: Conduct, seed: int, asked: LabRequest) -> Answer | None:
    """The lasting fate of a URL, the same at every request."""
    if (
        not asked.host.startswith("www.")
        and chance.share(seed, "moved", asked.host, asked.target) < conduct.moved
    ):
        return Answer.MOVED
    return _drawn(conduct.lost, chance.share(seed, "lost", asked.host, asked.target))


def _by_chance(conduct: Conduct, seed: int, asked: LabRequest, tried: int) -> Answer | None:
    if not conduct.faults:
        return None
    if conduct.fault_tries == 0:
        return _drawn(conduct.faults, chance.share(seed, "fault", asked.host, asked.target, tried))
    if tried > 1 + chance.number(seed, "lasts", asked.host, asked.target) % conduct.fault_tries:
        return None
    return _drawn(conduct.faults, chance.share(seed, "fault", asked.host, asked.target))


def _drawn(shares: Mapping[Answer, float], draw: float) -> Answer | None:
    for answer, share in shares.items():
        if draw < share:
            return answer
        draw -= share
    return None
