"""An address's estimate of a host's threshold: the share of its limit that keeps below it.

Some hosts refuse an address for a while after k requests in w seconds, both unknown. A refusal that speaks of frequency
(429; 403 or a captcha after answers) bounds what is borne. With n answers in the w seconds before it, w can be the
host's only if no earlier w seconds had as many. If that holds for all windows from T up to the longest, as after
a burst from rest, w is guessed as sqrt(T x longest), which errs by the smallest factor at worst; if it does not hold
for the longest, the rate was steady, and is taken over the longest. The share becomes

    `BELOW` x min(n / w / limit, the share before)

and is held: for w seconds after the first refusal, for four times as long after each further one, up to
`LONGEST_HOLD_S`. Then it is multiplied by `PROBE` once a hold if at least four fifths of it are used (RFC 7661 asks
for a half; but half of a rate shows nothing about the whole), up to the limit; there the threshold is forgotten.
Falling to just below what was refused and coming near it ever more slowly is the way of BIC (Xu, Harfoush and Rhee,
Binary increase congestion control for fast long-distance networks, 2004). The increase is multiplicative: additive
increase makes those fair who share a link (Chiu and Jain, 1989), and a threshold is an address's own.

Times are those of the caller's clock, in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf, sqrt
from typing import NamedTuple

FLOOR = 0.05
"""Minimum share of a pace."""

BELOW = 0.85
"""The share of a rate that was refused which is kept afterwards."""

PROBE = 1.05
"""Growth of a rate that was borne for a hold, as a factor."""

LONGEST_WINDOW_S = 60.0
"""The longest window that a host is believed to count requests in."""

LONGEST_HOLD_S = 3600.0
"""The longest time between two probes."""

LEAST_BORNE = 3
"""Minimum number of answers before a refusal is evidence about frequency."""

BUCKET_S = 2.0
"""Length in seconds of the steps in which answers are counted."""

# Counts are kept for two of the longest windows: earlier windows are compared with the last one.
_WINDOW_BUCKETS = round(LONGEST_WINDOW_S / BUCKET_S)
_BUCKETS = 2 * _WINDOW_BUCKETS
# Growth of the hold with each further refusal, as a factor.
_RARER = 4.0
# Minimum used part of a share before it is raised.
_USED = 0.8
# Minimum length of a round in seconds, and in requests.
_ROUND_S = 2.0
_ROUND_REQUESTS = 4.0


class Answered(NamedTuple):
    """How many answers an address got lately, refusals left out, in steps of `BUCKET_S`.

    Attributes:
        bucket: the latest step with an answer, counted from the clock's zero.
        seen: answers in it.
        earlier: (step, answers) of those before it, latest first; steps without an answer are left out.
    """

    bucket: int = 0
    seen: int = 0
    earlier: tuple[tuple[int, int], ...] = ()

    def add_answer(self, now: float) -> Answered:
        """Return the counts with one more answer."""
        bucket, seen, earlier = self
        current = int(now // BUCKET_S)
        if current == bucket:
            return Answered(bucket, seen + 1, earlier)
        return Answered(current, 1, ((bucket, seen), *earlier[: _BUCKETS - 2]))

    def counts(self, now: float, since: float) -> list[int]:
        """Answers by step, latest first, for two of the longest windows; those before `since` are left out."""
        current = int(now // BUCKET_S)
        found = [0] * _BUCKETS
        for bucket, seen in ((self.bucket, self.seen), *self.earlier):
            if current - bucket < _BUCKETS and bucket * BUCKET_S >= since:
                found[current - bucket] = seen
        return found


@dataclass(frozen=True, slots=True)
class Threshold:
    """The rate that a host is believed to bear from one address before it refuses (module docstring).

    Attributes:
        share: of the address's limit, up to 1; not less than one request in `LONGEST_WINDOW_S`.
        hold_s: seconds until it is raised.
        refused_at: when it was last refused.
        raised_at: when the share last grew.
    """

    share: float = 1.0
    hold_s: float = 0.0
    refused_at: float = -inf
    raised_at: float = -inf


NEVER_REFUSED = Threshold()


def bearable_rate(counts: Sequence[int]) -> tuple[float, float]:
    """Return the most requests per second that a host bears which has just refused one, and over how long.

    Args:
        counts: answers by step of `BUCKET_S`, latest first, for two of the longest windows. At least one is there;
            windows end with the latest.

    Returns:
        The rate, and the window in seconds.
    """
    ended = next(place for place, count in enumerate(counts) if count)
    sums = [0, *accumulate(counts[ended:])]

    def consistent(buckets: int) -> bool:
        earlier = (sums[start + buckets] - sums[start] for start in range(1, len(sums) - buckets))
        return all(sums[buckets] > count for count in earlier)

    shortest = _WINDOW_BUCKETS
    while shortest > 1 and consistent(shortest):
        shortest -= 1
    window = round(sqrt(min(shortest + 1, _WINDOW_BUCKETS) * _WINDOW_BUCKETS))
    return sums[window] / (window * BUCKET_S), window * BUCKET_S


def threshold_refused(before: Threshold, answered: Answered, now: float, spacing_s: float) -> Threshold:
    """Return the threshold after a refusal because of frequency; unchanged if the host bore too little before it.

    Args:
        spacing_s: between two requests of the address at the configured rate.
    """
    if now - before.refused_at < round_length_s(before.share, spacing_s):
        return before  # of requests that were under way
    counts = answered.counts(now, before.refused_at)
    if sum(counts[:_WINDOW_BUCKETS]) < LEAST_BORNE:
        return before
    per_s, window_s = bearable_rate(counts)
    least = min(1.0, spacing_s / LONGEST_WINDOW_S)
    share = max(least, BELOW * min(per_s * spacing_s, before.share))
    return Threshold(share, min(LONGEST_HOLD_S, max(window_s, _RARER * before.hold_s)), now, now)


def threshold_borne(before: Threshold, answered: Answered, now: float, spacing_s: float) -> Threshold:
    """Return the threshold after an answer that is no refusal: raised if it was held and used long enough.

    Args:
        spacing_s: between two requests of the address at the configured rate.
    """
    if now - before.raised_at < before.hold_s:
        return before
    used = sum(answered.counts(now, before.raised_at)[:_WINDOW_BUCKETS])
    asked_s = min(now - before.raised_at, LONGEST_WINDOW_S)
    if used * spacing_s < _USED * before.share * asked_s:
        return before
    share = before.share * PROBE
    if share >= 1.0:
        return NEVER_REFUSED
    return Threshold(share, before.hold_s, before.refused_at, now)


def round_length_s(share: float, spacing_s: float) -> float:
    """Return the seconds until the answers to a changed pace are in.

    Args:
        share: in force.
        spacing_s: between two requests at the configured rate.
    """
    return max(_ROUND_S, _ROUND_REQUESTS * spacing_s / share)
