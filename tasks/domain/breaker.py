"""Breakers of (host, node address): how long a host rests for an address that it refused, or did not answer.

A breaker (Nygard, Release It!, 2007) is closed until the host refuses the address or does not answer it. It is then
open for a rest, when nothing is sent, and half-open after it: one attempt probes the host. A page closes it,
another refusal opens it again, for longer. Refusals in a row are counted in the store, so that all of it outlives a
restart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from random import Random

from tasks.domain.backoff import backoff_s
from tasks.domain.failures import ErrorClass
from tasks.domain.host_wait import UNREACHABLE

LONGEST_REST_S = 6 * 3600.0
"""Maximum rest of a host that refuses, in seconds."""

FIRST_UNREACHABLE_S = 3.0
"""The rest of a host that did not answer; each further one in a row doubles it."""

LONGEST_UNREACHABLE_S = 900.0
"""Maximum rest of a host that does not answer, in seconds."""

JITTER = 0.1
"""A rest is prolonged by up to this share, so that nodes don't come back at the same moment."""

LONGEST_ASKED_S = 24 * 3600.0
"""Maximum wait accepted from a Retry-After, in seconds; more is taken for a mistake."""


class BreakerState(StrEnum):
    """The state of a breaker that is not closed. Comments list what may be sent to the host from the address."""

    OPEN = "open"  # nothing
    HALF_OPEN = "half_open"  # one attempt at a time


@dataclass(frozen=True, slots=True)
class Rest:
    """A host that refuses a node's address, or does not answer it.

    Attributes:
        cause: the refusal's error class, or `UNREACHABLE`.
        seconds: how long to rest, by the refusals in a row, this one included.
    """

    host: str
    cause: str
    seconds: Callable[[int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A breaker that is not closed.

    Attributes:
        cause: error class of the last refusal that counted, or `UNREACHABLE`.
        state: at the time of the transaction; a half-open pair gets one attempt at a time.
        until: when its rest ends, or ended.
        times: refusals in a row.
    """

    host: str
    node: str
    cause: str
    state: BreakerState
    until: datetime
    times: int

    @property
    def unanswered(self) -> int:
        """Attempts in a row that the host did not answer; 0 if it refused the last one."""
        return self.times if self.cause == UNREACHABLE else 0


def rest_s(cause: ErrorClass, times: int, retry_after_s: float | None, rng: Random) -> float:
    """Return how long a host rests for an address it refused.

    Args:
        cause: class of an error that has a `first_rest_s`.
        times: refusals in a row, this one included.
        retry_after_s: seconds that the host asked to wait; the rest is never shorter.
        rng: for the jitter.

    Raises:
        ValueError: the cause is none of a rest.
    """
    first_s = cause.facts.first_rest_s
    if first_s <= 0.0:
        raise ValueError(f"{cause.value} is no cause of a rest")
    rest = backoff_s(first_s, times, LONGEST_REST_S)
    if retry_after_s is not None:
        rest = max(rest, min(retry_after_s, LONGEST_ASKED_S))
    return rest * (1.0 + JITTER * rng.random())


def unreachable_rest_s(times: int, rng: Random) -> float:
    """Return the seconds that a host rests for an address that it did not answer.

    Args:
        times: rests in a row, this one included.
        rng: for the jitter.
    """
    return backoff_s(FIRST_UNREACHABLE_S, times, LONGEST_UNREACHABLE_S) * (1.0 + JITTER * rng.random())
