"""The queues and what is stored over time, from the newest rows of the event log and of the pages. Reads only.

Every query is bounded: it looks at so many of the newest rows, however many there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, case, func, select

from tasks.domain.states import State
from tasks.store.queue import transitions
from tasks.store.sql.tables import events, pages, reviews, subtasks

NEWEST_EVENTS = 50_000
NEWEST_PAGES = 20_000
_BINS = 48
_POINTS = 96


@dataclass(frozen=True, slots=True)
class QueueTrend:
    """How many subtasks were in each queue.

    Attributes:
        at: moments, ascending.
        counts: by queue, the number at each of these.
        whole: True where all events there are were looked at.
    """

    at: Sequence[datetime]
    counts: Mapping[str, Sequence[int]]
    whole: bool


def queue_trend(conn: Connection) -> QueueTrend:
    """The queues over the time of the newest `NEWEST_EVENTS` events: from the counts now, back by what moved.

    Points are as many events apart, not as long: numbers of rows are cheaper to sort by than times.
    """
    counts = transitions.count_queues(conn)
    newest = conn.execute(select(func.max(events.c.id))).scalar_one()
    if newest is None:
        return QueueTrend((), {}, True)
    base = max(0, newest - NEWEST_EVENTS)
    step = max(1, -(-(newest - base) // _POINTS))
    place = (events.c.id - base - 1) // step
    rows = conn.execute(
        select(
            place.label("place"), events.c.from_state, events.c.to_state, func.count(), func.max(events.c.at)
        )
        .where(events.c.id > base)
        .group_by(place, events.c.from_state, events.c.to_state)
    ).all()
    ends: dict[int, datetime] = {}
    change: dict[int, dict[str, int]] = {}
    for at_place, source, target, n, at in rows:
        ends[at_place] = max(at, ends.get(at_place, at))
        moved = change.setdefault(at_place, dict.fromkeys(counts, 0))
        if source is not None:
            moved[source] -= n
        moved[target] += n
    backwards: list[dict[str, int]] = []
    current = dict(counts)
    for at_place in sorted(change, reverse=True):
        backwards.append(current)
        current = {name: max(0, current[name] - change[at_place][name]) for name in current}
    series = {name: [one[name] for one in reversed(backwards)] for name in counts}
    return QueueTrend([ends[one] for one in sorted(ends)], series, base == 0)


@dataclass(frozen=True, slots=True)
class StoringTrend:
    """Pages and reviews stored a second, of the newest `NEWEST_PAGES` pages.

    Attributes:
        at: ends of equal spans of time, ascending.
        pages_per_s, reviews_per_s: in each span.
    """

    at: Sequence[datetime]
    pages_per_s: Sequence[float]
    reviews_per_s: Sequence[float]


def storing_trend(conn: Connection, now: datetime, bins: int = _BINS) -> StoringTrend:
    """How fast pages and reviews were stored."""
    newest = conn.execute(select(func.max(pages.c.id))).scalar_one()
    if newest is None:
        return StoringTrend((), (), ())
    looked_at = pages.c.id > newest - NEWEST_PAGES
    begin = conn.execute(
        select(pages.c.fetched_at).where(looked_at).order_by(pages.c.id).limit(1)
    ).scalar_one()
    end = conn.execute(select(pages.c.fetched_at).where(pages.c.id == newest)).scalar_one()
    ends = _ends(begin, end, now, bins)
    span = _span(pages.c.fetched_at, ends)
    rows = conn.execute(
        select(span.label("span"), func.count(), func.sum(pages.c.reviews)).where(looked_at).group_by(span)
    ).all()
    of_pages, of_reviews = [0.0] * len(ends), [0.0] * len(ends)
    length_s = (ends[0] - begin).total_seconds() or 1.0
    for place, n, read in rows:
        of_pages[place], of_reviews[place] = n / length_s, int(read or 0) / length_s
    return StoringTrend(ends, of_pages, of_reviews)


def _ends(begin: datetime, end: datetime, now: datetime, bins: int) -> list[datetime]:
    """Ends of equal spans from `begin` until now, or until the last row where nothing has come for long."""
    last = max(end, now) if now - end < (end - begin) * 0.5 else end
    last = max(last, begin + timedelta(seconds=1))
    return [begin + (last - begin) * (n + 1) / bins for n in range(bins)]


def _span(at: Any, ends: Sequence[datetime]) -> ColumnElement[int]:
    """The place of a time among spans that end at these times."""
    return case(*((at < end, n) for n, end in enumerate(ends[:-1])), else_=len(ends) - 1)


@dataclass(frozen=True, slots=True)
class Pace:
    """Pages and reviews stored lately.

    Attributes:
        seconds: length of the measured time, at least 1.
        pages, reviews: number stored in that time.
    """

    seconds: float
    pages: int
    reviews: int


def pace(conn: Connection, now: datetime, seconds: float) -> Pace:
    """Count what nodes stored in the last seconds, or since the first page in that time.

    It reads at most the newest `NEWEST_PAGES` pages.
    """
    newest = conn.execute(select(func.max(pages.c.id))).scalar_one() or 0
    first, n, read = conn.execute(
        select(func.min(pages.c.fetched_at), func.count(), func.sum(pages.c.reviews)).where(
            pages.c.id > newest - NEWEST_PAGES,
            pages.c.fetched_at > now - timedelta(seconds=seconds),
            pages.c.node != "",  # an import has no node
        )
    ).one()
    return Pace(max(1.0, (now - first).total_seconds()) if first else seconds, n, int(read or 0))


@dataclass(frozen=True, slots=True)
class Sizes:
    """About how much there is: the highest numbers, which count what was removed, too."""

    subtasks: int
    pages: int
    reviews: int
    events: int


def sizes(conn: Connection) -> Sizes:
    """The ends of four indexes: as quick with many rows as with few."""
    ends = (select(func.max(table.c.id)).scalar_subquery() for table in (subtasks, pages, reviews, events))
    return Sizes(*(n or 0 for n in conn.execute(select(*ends)).one()))


def open_subtasks(queues: Mapping[str, int]) -> int:
    """How many are not settled."""
    return sum(n for name, n in queues.items() if not State(name).settled)
