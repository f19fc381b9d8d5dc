"""A query that holds too much or nothing: what is asked instead.

What an engine will not list is reached by asking for a range of time at a time. How many ranges are needed follows from
found / cap; where they are cut, from the dates of what was stored already, so that each range holds about as much. A
range costs one result page to learn that it holds too much, and less than one more than necessary where it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from splitter.spans import Span, Unit, ceiling, floor
from splitter.word_weight import first_to_drop

from tasks.domain.hit_count import Listing, Lists

_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class NarrowSettings:
    """How queries are divided and relaxed.

    Attributes:
        since: what is older is found by undivided queries only.
        fill: share of the cap that a range is meant to hold: a fuller one is too full more often.
        most_at_once: ranges a query is cut into at once: engines make numbers up.
        most_parts: parts of one task in all.
        fewest_words: keywords a relaxed query has at least. Two: one alone names a brand or a class of goods,
            no product, and finds everything about it.
        own_words: whether keywords that a person chose may be relaxed, too.
    """

    since: datetime = datetime(2000, 1, 1, tzinfo=UTC)
    fill: float = 0.8
    most_at_once: int = 32
    most_parts: int = 200
    fewest_words: int = 2
    own_words: bool = False


def narrow(
    found: int | None,
    cap: int,
    span: Span,
    least: Unit,
    *,
    dates: Sequence[datetime] = (),
    settings: NarrowSettings | None = None,
) -> tuple[Span, ...]:
    """The spans a query is asked for instead: they share no moment and leave none out.

    Cut at midnights (China time), within a day at full hours.

    Args:
        found: hits it has; None: more than the cap, nobody knows how many.
        cap: hits the engine lists for one query.
        span: what it was asked for.
        least: the shortest range the engine can tell apart.
        dates: of some of its hits, in any order; those outside the span are ignored.

    Returns:
        At least two, each shorter; none where the span cannot be cut.
    """
    rules = settings or NarrowSettings()
    unit = _DAY if _inside(span, _DAY) else _HOUR
    if unit < _DAY and (least == "day" or not _inside(span, _HOUR)):
        return ()
    wanted = math.ceil((2 * cap if found is None else found) / (rules.fill * cap))
    n = max(2, min(wanted, rules.most_at_once))
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


# --- what becomes of a part ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """A part that was asked.

    Attributes:
        span: None: of any time.
        own_words: a person chose its keywords.
        parts: how many its task has by now.
    """

    keywords: tuple[str, ...]
    span: Span | None
    own_words: bool
    listing: Listing
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Split:
    """It is asked span by span."""

    spans: tuple[Span, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Relax:
    """It is asked with fewer words."""

    keywords: tuple[str, ...]
    dropped: str
    why: str


@dataclass(frozen=True, slots=True)
class Full:
    """It holds more than is listed, and that is all that can be had."""

    why: str


def next_step(
    asked: Asked,
    lists: Lists,
    least: Unit | None,
    now: datetime,
    dates: Callable[[], Sequence[datetime]],
    settings: NarrowSettings,
) -> Split | Relax | Full | None:
    """What becomes of a part, by what its result pages showed; None: it goes on as it is.

    An undivided query is divided once it was listed up to the cap: a reported number alone may be made up, and its
    listing is wanted anyway, for the hits that have no date. A span is divided as soon as it reports too many.

    Args:
        least: the shortest range its engine can tell apart; None: it knows no ranges.
        dates: of hits of its task that are stored, in any order; asked only if they are needed.
    """
    listing = asked.listing
    if listing.ended and not listing.listed:
        return _relaxed(asked, settings)
    if least is None or not listing.over(lists) or not (asked.span or listing.at_cap(lists)):
        return None
    told = f"more than {lists.most:,} hits" if listing.reported is None else f"{listing.reported:,} hits"
    head = f"{told}, the engine lists {lists.most:,}"
    span = asked.span or _whole(now, least, settings)
    spans = narrow(listing.reported, lists.most, span, least, dates=dates(), settings=settings)
    if not spans:
        return Full(f"{head}: no shorter range than one {least} can be asked for")
    spans = _merged(spans, settings.most_parts - asked.parts)
    if len(spans) < 2:
        return Full(f"{head}: the task has {asked.parts} parts already, which is the most")
    unit = "day" if all(one.start == floor(one.start, _DAY) for one in spans[1:]) else "hour"
    return Split(spans, f"{head}: by {unit} into {len(spans)} parts")


def _merged(spans: tuple[Span, ...], most: int) -> tuple[Span, ...]:
    """At most so many, the last ones put together."""
    if len(spans) <= most or most < 2:
        return spans if most >= 2 else ()
    return (*spans[: most - 1], Span(spans[most - 1].start, spans[-1].end))


def _whole(now: datetime, least: Unit, settings: NarrowSettings) -> Span:
    end = ceiling(now, _DAY if least == "day" else _HOUR)
    start = floor(settings.since, _DAY)
    return Span(start if start < end else end - _DAY, end)


def _relaxed(asked: Asked, settings: NarrowSettings) -> Relax | None:
    words = asked.keywords
    if asked.span or len(words) <= max(1, settings.fewest_words):
        return None
    if asked.own_words and not settings.own_words:
        return None
    place = first_to_drop(words)
    left = words[:place] + words[place + 1 :]
    return Relax(left, words[place], f"no hit with {' '.join(words)}: asked anew without {words[place]}")
