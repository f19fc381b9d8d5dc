"""Breakers of (host, node address), and waits before another try: pure policies over what has been refused.

A breaker (Nygard, Release It!, 2007) is closed until the host refuses the address. It is then open for a rest, in which
nothing is asked, and half-open after it: one attempt probes the host. A page closes it, a refusal opens it again, for
longer. Refusals in a row are counted in the store, so that all of it outlives a restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from random import Random
from types import MappingProxyType

from tasks.domain.failures import ErrorClass

_FIRST_S: Mapping[ErrorClass, float] = MappingProxyType(
    {
        ErrorClass.RATE_LIMITED: 60.0,
        ErrorClass.FORBIDDEN: 300.0,
        ErrorClass.CAPTCHA: 600.0,
        ErrorClass.LOGIN_WALL: 900.0,
    }
)
LONGEST_ASKED_S = 24 * 3600.0
"""The most that a Retry-After is believed; nobody means more."""

# Beyond it a doubled time would only grow past what a float holds.
_MOST_DOUBLINGS = 32


class BreakerState(StrEnum):
    """What may be asked of a host from an address where its breaker is not closed."""

    OPEN = "open"  # nothing
    HALF_OPEN = "half_open"  # one attempt at a time


@dataclass(frozen=True, slots=True)
class RestSettings:
    """How long a host rests for an address; in seconds.

    Attributes:
        first_s: after one refusal, by its cause; each further one in a row doubles it.
        longest_s: the most a rest grows to.
        jitter: a rest is prolonged by up to this share, so that nodes don't come back together.
    """

    first_s: Mapping[ErrorClass, float] = field(default_factory=lambda: _FIRST_S)
    longest_s: float = 6 * 3600.0
    jitter: float = 0.1


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """Waits before another try of what failed without a refusal (5xx, timeouts, resets); in seconds.

    Attributes:
        base_s: the most to wait after the first failure; each further one doubles it.
        cap_s: the most it grows to.
    """

    base_s: float = 2.0
    cap_s: float = 300.0


def rest_s(
    cause: ErrorClass, times: int, retry_after_s: float | None, settings: RestSettings, rng: Random
) -> float:
    """How long a host rests for an address it refused.

    Args:
        cause: of the refusal; one that `blocks`.
        times: refusals in a row, this one included.
        retry_after_s: what the host asked for; the rest is never shorter.
        settings: of rests.
        rng: for the jitter.

    Raises:
        KeyError: the cause is no refusal.
    """
    rest = min(settings.longest_s, _doubled(settings.first_s[cause], times))
    if retry_after_s is not None:
        rest = max(rest, min(retry_after_s, LONGEST_ASKED_S))
    return rest * (1.0 + settings.jitter * rng.random())


def backoff_s(tries: int, settings: BackoffSettings, rng: Random) -> float:
    """How long to wait before the next try: exponential with full jitter.

    Uniform from 0 to min(cap, base x 2^(tries - 1)) (Brooker, Exponential backoff and jitter, AWS Architecture Blog,
    2015), so that what failed together does not come back together.

    Args:
        tries: made so far, at least 1.
        settings: of waits.
        rng: for the jitter.
    """
    return rng.uniform(0.0, min(settings.cap_s, _doubled(settings.base_s, tries)))


def state_of(until: datetime, now: datetime) -> BreakerState:
    """The state of a breaker on record whose rest ends, or ended, at ``until``; without a record it is closed."""
    return BreakerState.OPEN if until > now else BreakerState.HALF_OPEN


def _doubled(first_s: float, times: int) -> float:
    return first_s * 2.0 ** min(max(0, times - 1), _MOST_DOUBLINGS)
