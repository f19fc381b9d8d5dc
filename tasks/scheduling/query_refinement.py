"""Query partitioning and relaxation: what is searched instead of a query with too many hits, or with none.

Hits that an engine will not list are reached by searching one range of time after another. How many are needed follows
from found / cap; where they are cut, from the dates of what was stored already, so that each range holds about as much.
Of a range that holds too much one result page is read before that shows.
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
"""Share of the cap that a range is meant to hold: a fuller one is too full more often."""

MOST_RANGES = 32
"""Ranges a query is split into at once: engines make numbers up."""

MOST_PARTITIONS = 200
"""Partitions of one task in all."""

FEWEST_WORDS = 2
"""Keywords a relaxed query has at least: one alone names a brand or a class of goods, and finds everything about it."""

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
    """The ranges of time that are searched instead of a span: they share no moment and leave none out.

    Cut at midnights (China time), within a day at full hours.

    Args:
        found: hits it has; None: more than the cap, their number unknown.
        cap: hits the engine lists for one query.
        span: what was searched.
        least: the shortest range the engine can be searched for.
        dates: of some of its hits, in any order; those outside the span are ignored.

    Returns:
        At least two, each shorter; none where the span cannot be cut.
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
    """When a share of the hits has come: the dates known, in even steps from the span's start to its end."""
    inner = sorted(date for date in dates if span.start < date < span.end)
    steps = [span.start, *inner, span.end]

    def at(share: float) -> datetime:
        place = share * (len(steps) - 1)
        below = min(int(place), len(steps) - 2)
        return steps[below] + (steps[below + 1] - steps[below]) * (place - below)

    return at


# --- what becomes of a partition -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitByTime:
    """It is searched range by range."""

    spans: tuple[Span, ...]
    because: Explanation


@dataclass(frozen=True, slots=True)
class DropWord:
    """It is searched with a word less."""

    keywords: tuple[str, ...]
    dropped: str
    because: Explanation


@dataclass(frozen=True, slots=True)
class LeaveFull:
    """It has more hits than are listed, and cannot be split further."""

    because: Explanation


def refined(
    partition: Partition,
    n: int,
    limits: EngineLimits,
    least: Unit | None,
    now: datetime,
    dates: Callable[[], Sequence[datetime]],
) -> SplitByTime | DropWord | LeaveFull | None:
    """Return the next step of a partition, by what its result pages showed; `None`: it goes on as it is.

    A query of any time is split once it was listed up to the cap: a reported number alone may be made up, and its
    listing is wanted anyway, for the hits that have no date. A span is split as soon as it reports too many.

    Args:
        n: number of partitions of its task.
        least: the shortest range its engine can be searched for; None: it has no ranges.
        dates: of hits of its task that are stored, in any order; called only if they are needed.
    """
    reported = partition.reported
    if partition.ended and not partition.listed:
        return _relaxed(partition)
    if least is None or not partition.is_over(limits) or not (partition.span or partition.is_at_cap(limits)):
        return None
    counts = {"hits": limits.most + 1 if reported is None else reported, "most": limits.most}
    span = partition.span or _whole(now, least)
    spans = ranges(reported, limits.most, span, least, dates=dates())
    if not spans:
        return LeaveFull(because(Reason.SPAN_TOO_SHORT, unit=least, **counts))
    spans = _merged(spans, MOST_PARTITIONS - n)
    if len(spans) < 2:
        return LeaveFull(because(Reason.MOST_PARTS, parts=n, **counts))
    unit = "day" if all(one.start == floor(one.start, _DAY) for one in spans[1:]) else "hour"
    return SplitByTime(spans, because(Reason.SPLIT_BY_TIME, unit=unit, parts=len(spans), **counts))


def _merged(spans: tuple[Span, ...], most: int) -> tuple[Span, ...]:
    """At most so many, the last ones merged into one."""
    if len(spans) <= most or most < 2:
        return spans if most >= 2 else ()
    return (*spans[: most - 1], Span(spans[most - 1].start, spans[-1].end))


def _whole(now: datetime, least: Unit) -> Span:
    end = ceiling(now, _DAY if least == "day" else _HOUR)
    start = floor(SINCE, _DAY)
    return Span(start if start < end else end - _DAY, end)


def _relaxed(partition: Partition) -> DropWord | None:
    words = partition.keywords
    if partition.span or partition.own_words or len(words) <= FEWEST_WORDS:
        return None
    place = first_to_drop(words)
    left = words[:place] + words[place + 1 :]
    reason = because(Reason.NO_HIT, words=" ".join(words), dropped=words[place])
    return DropWord(left, words[place], reason)
