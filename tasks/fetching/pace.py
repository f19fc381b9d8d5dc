"""How fast a host may be asked just now: a share of its configured limits that falls with errors and grows back.

Three shares per (host, node address). The first falls when the host refuses this address's rate (429, Retry-After) or
grows slower. The second falls with faults: server errors (5xx) and requests left without an answer. The third keeps
below what the host bears. In force is the smaller one of first and third, times the second.

Addresses are compared to find the cause of faults. A host gives all addresses the greatest second share
among those it answered lately: a fault that one address sees concerns the pair, one that all see slows the host.
With one address, that is the host. The estimator of an address is the exponential average of its answers (gain 1/8,
1 = a fault); a fall needs more than `_TROUBLED` of it. Its error, by simulation of 10^6 answers: with a share `p` of
faults an address is above the threshold for 0.6 % of the time at p = 0.2, 5 % at 0.3, 22 % at 0.4, 65 % at 0.55. A host
that has too much to do is missed as long as one address is answered well; one that has not is slowed only while all
its addresses are above the threshold at once.

The law, once a round (the time the answers to a changed pace need): additive increase by `STEP` up to 1, which is the
configured limit; multiplicative decrease by `CUT` (AIMD: Chiu and Jain, Analysis of the increase and decrease
algorithms for congestion avoidance, 1989). For growing response times the decrease is the gradient, allowed over
smoothed time, in the way of delay-based congestion control (TCP Vegas: Brakmo and Peterson, 1995); the smoothed time
is the exponential average of RFC 6298 (gain 1/8), the fast baseline an average that follows what is faster five times
as readily as what is slower. The 2014 coroutine paper asks for such a control per server; its table is not legible.

The third share is that of `tasks.fetching.thresholds`. Times are those of the caller's clock, in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.thresholds import (
    FLOOR,
    NEVER_REFUSED,
    Answered,
    Threshold,
    round_length_s,
    threshold_borne,
    threshold_refused,
)

STEP = 0.05
"""Step of an increase, as a share of the limit."""

CUT = 0.5
"""The share left by the strongest decrease, as a factor."""

ALONE = 0.25
"""The share that faults leave an address if the host answers another one well, so that it is not overloaded."""

HEARD = 4
"""Answers after which an address is full evidence about the host, ..."""

HEARD_WELL = 2
"""... and answers that suffice if none was a fault. At a host that was slowed for the faults of others, a new
address gets its first answers late."""

RECENT_S = 60.0
"""Seconds after its last answer in which an address counts."""

# The share left by the mildest decrease, as a factor.
_MILDEST = 0.9
# Of the averages over answers.
_GAIN = 0.125
# Time constant of the baseline towards slower answers. A host that stays slow for this long, however seldom it is
# asked, counts as slow by nature.
_MEMORY_S = 300.0
# How many times as readily the baseline follows faster answers.
_DOWNWARD = 5.0
# An answer may take tolerance x baseline + slack before a host counts as slow, once it has given `_LEARN` answers.
_TOLERANCE = 2.5
_SLACK_S = 0.2
_LEARN = 8
# Cap of an answer, in multiples of (average + slack): one hang does not make a host slow.
_OUTLIER = 3.0
# Share of errors among answers that starts a decrease.
_TROUBLED = 0.5


@dataclass(frozen=True, slots=True)
class AnswerSample:
    """The outcome of one request, as far as it bears on the pace.

    Attributes:
        elapsed_s: from sending to the last byte, or to the error.
        error: None = a page.
        retry_after_s: seconds that the host asked to wait, if it did.
    """

    elapsed_s: float
    error: ErrorClass | None = None
    retry_after_s: float | None = None

    @classmethod
    def failure(cls, error: FetchError, elapsed_s: float) -> AnswerSample:
        """The sample of a request that ended in an error."""
        return cls(elapsed_s, error.error, error.retry_after_s)


@dataclass(frozen=True, slots=True)
class Pace:
    """A share of the limits, and what it rests on.

    Attributes:
        share: of the configured rate, from `FLOOR` to 1.
        trouble: smoothed share of errors among the answers, 0 to 1.
        cut_at, raised_at: when it last fell, and grew.
    """

    share: float = 1.0
    trouble: float = 0.0
    cut_at: float = -inf
    raised_at: float = -inf

    @property
    def untroubled(self) -> bool:
        """Return True if a good answer changes nothing."""
        return self.share == 1.0 and self.trouble == 0.0


FULL = Pace()


class Latency(NamedTuple):
    """How long a host takes to answer one address, in seconds.

    A tuple, because there is a new one for every answer: it is made in a quarter of a frozen dataclass' time.

    Attributes:
        answers: seen so far, up to `_LEARN`.
        smooth_s: exponential average.
        fast_s: its fast baseline.
        at: when the last answer came.
    """

    answers: int = 0
    smooth_s: float = 0.0
    fast_s: float = 0.0
    at: float = 0.0


class AddressPace(NamedTuple):
    """The pace one address keeps at a host, and what it rests on.

    Attributes:
        pace: falls with refusals of its rate, and if the host grows slower.
        latency: that it sees there.
        faults: falls with faults; its share also affects the host's.
        answers: seen so far, up to `HEARD`.
        at: when the last answer came.
        threshold: falls with refusals that speak of frequency.
        answered: counts of its latest answers.
    """

    pace: Pace = FULL
    latency: Latency = Latency()
    faults: Pace = FULL
    answers: int = 0
    at: float = -inf
    threshold: Threshold = NEVER_REFUSED
    answered: Answered = Answered()

    @property
    def own_share(self) -> float:
        """Share of the address's limit without faults: its pace, or less if the host bears less."""
        return min(self.pace.share, self.threshold.share)

    def evidence(self, now: float) -> int:
        """Return the weight of this address as evidence about the host: 0 nothing, 1 a little, 2 fully."""
        if not self.answers or now - self.at >= RECENT_S:
            return 0
        well = self.answers >= HEARD_WELL and self.faults.untroubled
        return 2 if well or self.answers >= HEARD else 1

    def is_answered_well(self, now: float) -> bool:
        """Return True if the address was answered well lately, by full evidence."""
        return self.evidence(now) == 2 and self.faults.share == 1.0

    def share(self, host_share: float) -> float:
        """Return the share of the address's limit.

        Args:
            host_share: of the host's (`host_share`).
        """
        faults = self.faults.share
        return self.own_share * (faults if faults >= host_share else max(faults, min(ALONE, host_share)))


NEW_ADDRESS = AddressPace()


def latency_after(latency: Latency, elapsed_s: float, now: float) -> Latency:
    """The latency with one more answer at ``now``; the first few weigh as much as each other."""
    answers, smooth_s, fast_s, at = latency
    drift = (now - at) / _MEMORY_S
    if elapsed_s < fast_s:
        drift *= _DOWNWARD
    if drift > _GAIN:
        drift = _GAIN
    gain = _GAIN
    if answers < _LEARN:
        answers += 1
        gain = drift = max(gain, 1.0 / answers)
    elif elapsed_s > (longest_s := _OUTLIER * (smooth_s + _SLACK_S)):
        elapsed_s = longest_s
    return Latency(
        answers, smooth_s + gain * (elapsed_s - smooth_s), fast_s + drift * (elapsed_s - fast_s), now
    )


def gradient(latency: Latency) -> float:
    """Return 1 if a host answers as fast as it usually does; if it is slower, the share that remains."""
    if latency.answers < _LEARN:
        return 1.0
    allowed_s = _TOLERANCE * latency.fast_s + _SLACK_S
    if latency.smooth_s <= allowed_s:
        return 1.0
    return min(_MILDEST, max(CUT, allowed_s / latency.smooth_s))


def address_pace_after(
    before: AddressPace, answer: AnswerSample, now: float, spacing_s: float
) -> AddressPace:
    """The pace of an address at a host after an answer it got.

    Args:
        spacing_s: between two requests of the address at the configured rate.
    """
    pace, latency, faults, answers, _, threshold, answered = before
    error = answer.error
    if error is not None and error.facts.is_of_frequency:
        threshold = threshold_refused(threshold, answered, now, spacing_s)
    else:
        answered = answered.add_answer(now)
        if threshold.share < 1.0:
            threshold = threshold_borne(threshold, answered, now, spacing_s)
    if error is None:
        latency = latency_after(latency, answer.elapsed_s, now)
    if answers < HEARD and (error is None or error.facts.is_evidence_of_pace):
        answers += 1
    usual = error is None and pace.untroubled and faults.untroubled and answer.retry_after_s is None
    if not usual or gradient(latency) != 1.0:  # the usual answer is kept cheap
        round_s = round_length_s(before.share(1.0), spacing_s)
        pace = step_pace(pace, _own_factor(latency, answer), now, round_s)
        faults = faults_after(faults, answer, now, round_s)
    return AddressPace(pace, latency, faults, answers, now, threshold, answered)


def faults_after(pace: Pace, answer: AnswerSample, now: float, round_s: float) -> Pace:
    """The share that faults leave, after an answer; one that is no evidence of faults leaves it as it is.

    Args:
        round_s: length of a round.
    """
    fault = answer.error is not None and answer.error.facts.is_fault
    if not fault and answer.error is not None:
        return pace
    pace = _note_trouble(pace, fault)
    factor: float | None = 1.0
    if fault:
        asked = answer.retry_after_s is not None and answer.error is ErrorClass.SERVER_ERROR
        factor = CUT if asked or pace.trouble > _TROUBLED else None
    return step_pace(pace, factor, now, round_s)


def host_share(addresses: Iterable[AddressPace], now: float) -> float:
    """Share of a host's limits for all addresses: the one of the address with the fewest faults (module docstring).

    Addresses with little evidence count only if none has more.
    """
    best = {0: 1.0, 1: 0.0, 2: 0.0}
    for one in addresses:
        evidence = one.evidence(now)
        if evidence:
            best[evidence] = max(best[evidence], one.faults.share)
    return best[2] or best[1] or best[0]


def _own_factor(latency: Latency, answer: AnswerSample) -> float | None:
    """The step of an address's own share, as `step_pace` takes it."""
    if answer.error is ErrorClass.RATE_LIMITED or answer.retry_after_s is not None:
        return CUT
    return gradient(latency) if answer.error is None else None


def step_pace(pace: Pace, factor: float | None, now: float, round_s: float) -> Pace:
    """Return the pace after one step of the law, if a round has passed since the last one.

    Args:
        factor: 1 = the share grows by a step; below 1 = it is multiplied by this; None = it stays.
        round_s: length of a round.
    """
    if factor is None or (factor >= 1.0 and pace.share >= 1.0):
        return pace
    if factor < 1.0:
        if now - pace.cut_at < round_s or pace.share <= FLOOR:
            return pace
        return Pace(max(FLOOR, pace.share * factor), pace.trouble, now, pace.raised_at)
    if now - max(pace.cut_at, pace.raised_at) < round_s:
        return pace
    return Pace(min(1.0, pace.share + STEP), pace.trouble, pace.cut_at, now)


def _note_trouble(pace: Pace, troubled: bool) -> Pace:
    if not troubled and pace.trouble == 0.0:
        return pace
    trouble = pace.trouble + _GAIN * (troubled - pace.trouble)
    # An average never gets to 0 by itself, and at 0 the usual answer costs nothing.
    return Pace(pace.share, trouble if trouble > 0.001 else 0.0, pace.cut_at, pace.raised_at)
