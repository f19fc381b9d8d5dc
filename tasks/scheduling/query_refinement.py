"""Replace a query with too many hits by several narrower ones, and a query without hits by a wider one.

Hits that an engine does not list are reached by searching one range of time after another. Their number follows from
found / cap. They are cut by the dates of stored hits, so that all ranges have about as many hits. If a range has too
many, the first result page shows it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from splitter.spans import Span, Unit, ceiling, floor
from splitter.word_weight import first_to_drop

from tasks.domain.hit_count import EngineLimits, Partition
from tasks.domain.reasons import Explanation, Reason, because

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)


FILL = 0.8
"""Planned number of hits in a range as a share of the cap. With a greater share, more ranges exceed the cap."""

MOST_RANGES = 32
"""Maximum number of ranges in one split, as engines may report invented numbers."""

MOST_PARTITIONS = 200
"""Maximum number of partitions of a task."""

FEWEST_WORDS = 2
"""Minimum number of keywords in a relaxed query. A single keyword would find everything about a brand or a kind."""

SINCE = datetime(2000, 1, 1, tzinfo=UTC)
"""Start of the first time range. Older hits are found only by queries without a range."""


def ranges(
    found: int | None,
    cap: int,
    span: Span,
    least: Unit,
    *,
    dates: Sequence[datetime] = (),
) -> tuple[Span, ...]:
    """Return the ranges of time that replace a span. They don't overlap and leave no gap.

    Cuts are at midnights (China time), or at full hours within a day.

    Args:
        found: number of hits in the span; `None` for an unknown number above the cap.
        cap: maximum number of hits that the engine lists for a query.
        span: the searched span.
        least: the shortest range that the engine can search.
        dates: dates of some of the hits, in any order; dates outside the span are ignored.

    Returns:
        At least two shorter ranges; none if the span can't be cut.
    """
    unit = _DAY if _inside(span, _DAY) else _HOUR
    if unit < _DAY and (least == "day" or not _inside(span, _HOUR)):
        return ()
    wanted = math.ceil((2 * cap if found is None else found) / (FILL * cap))
    n = max(2, min(wanted, MOST_RANGES))
    at = _quantiles(span, dates)
    cuts = {_nearest(at(place / n), unit) for place in range(1, n)}
    inside = sorted(cut for cut in cuts if span.start < cut < span.end)
    if not inside:
        halves = span.halves(least)
        return halves or ()
    return tuple(Span(a, b) for a, b in pairwise((span.start, *inside, span.end)))


def _inside(span: Span, unit: timedelta) -> bool:
    return floor(span.start, unit) + unit < span.end


def _nearest(moment: datetime, unit: timedelta) -> datetime:
    below, above = floor(moment, unit), ceiling(moment, unit)
    return below if moment - below < above - moment else above


def _quantiles(span: Span, dates: Sequence[datetime]) -> Callable[[float], datetime]:
    """Return a function from a share of the hits to the time when it was reached, interpolated from known dates."""
    inner = sorted(date for date in dates if span.start < date < span.end)
    steps = [span.start, *inner, span.end]

    def time_at(share: float) -> datetime:
        place = share * (len(steps) - 1)
        below = min(int(place), len(steps) - 2)
        return steps[below] + (steps[below + 1] - steps[below]) * (place - below)

    return time_at


# --- the next step of a partition ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitByTime:
    """The partition is split into ranges of time."""

    spans: tuple[Span, ...]
    because: Explanation


@dataclass(frozen=True, slots=True)
class DropWord:
    """The partition is searched again with one word fewer."""

    keywords: tuple[str, ...]
    dropped: str
    because: Explanation


@dataclass(frozen=True, slots=True)
class LeaveFull:
    """The partition has more hits than the engine lists, and can't be split further."""

    because: Explanation


def choose_refinement(
    partition: Partition,
    n: int,
    limits: EngineLimits,
    least: Unit | None,
    now: datetime,
    dates: Callable[[], Sequence[datetime]],
) -> SplitByTime | DropWord | LeaveFull | None:
    """Return the next step of a partition, given the results of its pages; `None` continues it unchanged.

    A query without a span is split after it was listed up to the cap, because a reported number may be invented, and
    the list is needed for hits without a date. A span is split as soon as it reports too many hits.

    Args:
        n: number of partitions of its task.
        least: the shortest range that its engine can search; `None` if it can't search ranges.
        dates: returns dates of stored hits of its task, in any order; called only if needed.
    """
    reported = partition.reported
    if partition.ended and not partition.listed:
        return _drop_word(partition)
    if least is None or not partition.is_over(limits) or not (partition.span or partition.is_at_cap(limits)):
        return None
    counts = {"hits": limits.most + 1 if reported is None else reported, "most": limits.most}
    span = partition.span or _whole(now, least)
    spans = ranges(reported, limits.most, span, least, dates=dates())
    if not spans:
        return LeaveFull(because(Reason.SPAN_TOO_SHORT, unit=least, **counts))
    spans = _merge_last(spans, MOST_PARTITIONS - n)
    if len(spans) < 2:
        return LeaveFull(because(Reason.MOST_PARTS, parts=n, **counts))
    unit = "day" if all(one.start == floor(one.start, _DAY) for one in spans[1:]) else "hour"
    return SplitByTime(spans, because(Reason.SPLIT_BY_TIME, unit=unit, parts=len(spans), **counts))


def _merge_last(spans: tuple[Span, ...], most: int) -> tuple[Span, ...]:
    """Return at most `most` spans, by merging the last ones into one."""
    if len(spans) <= most or most < 2:
        return spans if most >= 2 else ()
    return (*spans[: most - 1], Span(spans[most - 1].start, spans[-1].end))


def _whole(now: datetime, least: Unit) -> Span:
    end = ceiling(now, _DAY if least == "day" else _HOUR)
    start = floor(SINCE, _DAY)
    return Span(start if start < end else end - _DAY, end)


def _drop_word(partition: Partition) -> DropWord | None:
    words = partition.keywords
    if partition.span or partition.own_words or len(words) <= FEWEST_WORDS:
        return None
    place = first_to_drop(words)
    left = words[:place] + words[place + 1 :]
    reason = because(Reason.NO_HIT, words=" ".join(words), dropped=words[place])
    return DropWord(left, words[place], reason)
