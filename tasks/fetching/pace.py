"""How fast a host may be asked just now: a share of its configured limits that falls with trouble and grows back.

Two shares, multiplied: one per (host, node address), which falls when the host refuses this address's rate (429,
Retry-After), grows slower, or leaves it without an answer; one of the host as a whole, which falls when it answers
mostly with server errors (5xx): that concerns every node.

The law, once a round (the time the answers to a changed pace need): additive increase by `step` up to 1, which is the
configured limit; multiplicative decrease by `cut` (AIMD: Chiu and Jain, Analysis of the increase and decrease
algorithms for congestion avoidance, 1989). For growing response times the decrease is the gradient, allowed over
smoothed time, in the way of delay-based congestion control (TCP Vegas: Brakmo and Peterson, 1995); the smoothed time
is the exponential average of RFC 6298 (gain 1/8), the fast baseline an average that follows what is faster five times
as readily as what is slower. The 2014 coroutine paper asks for such a control per server; its table is not legible.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from tasks.domain.failures import ErrorClass, FetchError

_NO_ANSWER = frozenset({ErrorClass.TIMEOUT, ErrorClass.CUT_OFF, ErrorClass.CONNECT})
# Say nothing of the pace: a breaker opens, or no request was made at all.
_SILENT = frozenset(
    {
        ErrorClass.FORBIDDEN,
        ErrorClass.CAPTCHA,
        ErrorClass.LOGIN_WALL,
        ErrorClass.ROBOTS,
        ErrorClass.SCHEME_REFUSED,
        ErrorClass.ADDRESS_REFUSED,
    }
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came to, as far as the pace minds.

    Attributes:
        elapsed_s: from sending to the last byte, or to the error.
        error: None = a page.
        retry_after_s: what the host asked to wait, if it did.
    """

    elapsed_s: float
    error: ErrorClass | None = None
    retry_after_s: float | None = None

    @classmethod
    def failed(cls, error: FetchError, elapsed_s: float) -> Answer:
        """The answer that a FetchError tells of."""
        return cls(elapsed_s, error.error, error.retry_after_s)


@dataclass(frozen=True, slots=True)
class PaceSettings:
    """The control law's numbers.

    Attributes:
        step: of an increase, as a share of the limit.
        cut: what a decrease leaves of the share.
        floor: the least share.
        round_s, round_requests: a round lasts at least so long, and as long as so many requests take.
        gain: of the averages over answers.
        memory_s: time constant of the baseline towards slower answers: what a host that stays slow, however seldom
            it is asked, needs to count as slow by nature.
        downward: so many times as readily it follows faster ones.
        mildest: what the mildest decrease leaves of the share.
        tolerance, slack_s: an answer may take tolerance x baseline + slack before a host counts as slow.
        learn: answers before a host can count as slow.
        outlier: an answer counts as no longer than so many times (average + slack): one hang is no slow host.
        troubled: share of answers that are errors from which on they lead to a decrease.
    """

    step: float = 0.05
    cut: float = 0.5
    mildest: float = 0.9
    floor: float = 0.05
    round_s: float = 2.0
    round_requests: float = 4.0
    gain: float = 0.125
    memory_s: float = 300.0
    downward: float = 5.0
    tolerance: float = 2.5
    slack_s: float = 0.2
    learn: int = 8
    outlier: float = 3.0
    troubled: float = 0.5


DEFAULT = PaceSettings()


@dataclass(frozen=True, slots=True)
class Pace:
    """A share of the limits, and what it rests on. Times are those of the caller's clock, in seconds.

    Attributes:
        share: of the configured rate, from `PaceSettings.floor` to 1.
        trouble: smoothed share of errors among the answers, 0 to 1.
        cut_at, raised_at: when it last fell, and grew.
    """

    share: float = 1.0
    trouble: float = 0.0
    cut_at: float = -inf
    raised_at: float = -inf

    @property
    def untroubled(self) -> bool:
        """True where a good answer changes nothing."""
        return self.share == 1.0 and self.trouble == 0.0


FULL = Pace()


class Latency(NamedTuple):
    """How long a host takes to answer one address, in seconds.

    A tuple, because there is a new one for every answer: it is made in a quarter of a frozen dataclass' time.

    Attributes:
        answers: seen so far, up to `PaceSettings.learn`.
        smooth_s: exponential average.
        fast_s: its fast baseline.
        at: when the last answer came.
    """

    answers: int = 0
    smooth_s: float = 0.0
    fast_s: float = 0.0
    at: float = 0.0


def learned(latency: Latency, elapsed_s: float, now: float, settings: PaceSettings = DEFAULT) -> Latency:
    """The latency with one more answer at ``now``; the first few weigh as much as each other."""
    answers, smooth_s, fast_s, at = latency
    drift = (now - at) / settings.memory_s
    if elapsed_s < fast_s:
        drift *= settings.downward
    if drift > settings.gain:
        drift = settings.gain
    gain = settings.gain
    if answers < settings.learn:
        answers += 1
        gain = drift = max(gain, 1.0 / answers)
    elif elapsed_s > (longest_s := settings.outlier * (smooth_s + settings.slack_s)):
        elapsed_s = longest_s
    return Latency(
        answers, smooth_s + gain * (elapsed_s - smooth_s), fast_s + drift * (elapsed_s - fast_s), now
    )


def gradient(latency: Latency, settings: PaceSettings = DEFAULT) -> float:
    """1 where a host answers as fast as it does when all is well; below, what growing times leave of the share."""
    if latency.answers < settings.learn:
        return 1.0
    allowed_s = settings.tolerance * latency.fast_s + settings.slack_s
    if latency.smooth_s <= allowed_s:
        return 1.0
    return min(settings.mildest, max(settings.cut, allowed_s / latency.smooth_s))


class Known(NamedTuple):
    """What is known of a host from one address."""

    pace: Pace = FULL
    latency: Latency = Latency()


UNKNOWN = Known()


def of_address(
    known: Known, answer: Answer, now: float, spacing_s: float, settings: PaceSettings = DEFAULT
) -> Known:
    """What is known after an answer that an address got.

    Args:
        known: before.
        answer: what the request came to.
        now: of the caller's clock.
        spacing_s: between two requests of the address at the configured rate.
        settings: of the law.
    """
    pace, latency = known
    error = answer.error
    if error is None:
        latency = learned(latency, answer.elapsed_s, now, settings)
    usual = error is None and pace.untroubled and answer.retry_after_s is None
    if usual and gradient(latency, settings) == 1.0:
        return Known(pace, latency)  # kept cheap
    round_s = round_of(pace.share, spacing_s, settings)
    if error is ErrorClass.RATE_LIMITED or answer.retry_after_s is not None:
        return Known(moved(pace, settings.cut, now, round_s, settings), latency)
    if error in _SILENT or error is ErrorClass.SERVER_ERROR:
        return Known(pace, latency)
    pace = _noted(pace, error in _NO_ANSWER, settings)
    if error in _NO_ANSWER:
        factor = settings.cut if pace.trouble > settings.troubled else None
    else:
        factor = gradient(latency, settings)
    return Known(moved(pace, factor, now, round_s, settings), latency)


def of_host(
    pace: Pace, answer: Answer, now: float, spacing_s: float, settings: PaceSettings = DEFAULT
) -> Pace:
    """The pace of a host as a whole after any answer of it.

    Args:
        pace: before.
        answer: what the request came to.
        now: of the caller's clock.
        spacing_s: between two requests to the host at the configured rate.
        settings: of the law.
    """
    error = answer.error
    if error in _NO_ANSWER or error in _SILENT or error is ErrorClass.RATE_LIMITED:
        return pace
    overloaded = error is ErrorClass.SERVER_ERROR
    pace = _noted(pace, overloaded, settings)
    if not overloaded:
        factor: float | None = 1.0
    elif answer.retry_after_s is not None or pace.trouble > settings.troubled:
        factor = settings.cut
    else:
        factor = None
    return moved(pace, factor, now, round_of(pace.share, spacing_s, settings), settings)


def moved(
    pace: Pace, factor: float | None, now: float, round_s: float, settings: PaceSettings = DEFAULT
) -> Pace:
    """One step of the law, where a round has passed since the last one.

    Args:
        pace: before.
        factor: 1 = the share grows by a step; below 1 = it falls to so much of itself; None = it stays.
        now: of the caller's clock.
        round_s: how long a round is.
        settings: of the law.
    """
    if factor is None or (factor >= 1.0 and pace.share >= 1.0):
        return pace
    if factor < 1.0:
        if now - pace.cut_at < round_s or pace.share <= settings.floor:
            return pace
        return Pace(max(settings.floor, pace.share * factor), pace.trouble, now, pace.raised_at)
    if now - max(pace.cut_at, pace.raised_at) < round_s:
        return pace
    return Pace(min(1.0, pace.share + settings.step), pace.trouble, pace.cut_at, now)


def round_of(share: float, spacing_s: float, settings: PaceSettings = DEFAULT) -> float:
    """Seconds until the answers to a changed pace are in.

    Args:
        share: in force.
        spacing_s: between two requests at the configured rate.
        settings: of the law.
    """
    return max(settings.round_s, settings.round_requests * spacing_s / share)


def _noted(pace: Pace, troubled: bool, settings: PaceSettings) -> Pace:
    if not troubled and pace.trouble == 0.0:
        return pace
    trouble = pace.trouble + settings.gain * (troubled - pace.trouble)
    # An average never gets to 0 by itself, and at 0 the usual answer costs nothing.
    return Pace(pace.share, trouble if trouble > 0.001 else 0.0, pace.cut_at, pace.raised_at)
