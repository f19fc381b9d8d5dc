"""The queues, the stored pages and reviews, and their recent course. Reads only.

Queries about what happened lately are bounded: they look at the newest rows, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

from tasks.domain.breaker import Breaker
from tasks.domain.host_wait import UNREACHABLE, HostWait
from tasks.domain.states import State, Transition
from tasks.domain.voices import Voice
from tasks.store.queue import nodes, transitions
from tasks.store.queue.hosts import list_rests
from tasks.store.queue.nodes import Node
from tasks.store.sql.transaction import Transaction

NEWEST_EVENTS = 50_000
NEWEST_PAGES = 20_000
LOW_CONFIDENCE = 0.5
"""Confidence limit: among 187 saved pages, 6 of the 37 below it were read wrongly, and 4 of the 150 others."""
NOT_JUDGED = "not_judged"
"""Stands in the place of a voice for reviews that no model has judged."""
_SPANS = 48
_POINTS = 96

HostsOf = Callable[[str], tuple[str, str]]
"""Function that returns the host of a site's engine and the site's own host."""

_RELEASABLE = ", ".join(f"'{state}'" for state in State if not state.settled and state != State.CRAWL)


def open_left(tx: Transaction) -> int:
    """Return the hits to do of all open subtasks, by their last attempts and by the reports of running ones."""
    return int(tx.value(_OPEN_LEFT))


_OPEN_LEFT = f"""
    SELECT coalesce((SELECT sum("left") FROM subtasks WHERE state IN ({_RELEASABLE})), 0) + coalesce((
        SELECT sum(CASE WHEN most > collected THEN most - collected ELSE 0 END) FROM (
            SELECT CASE WHEN s."left" > a.offered THEN s."left" ELSE a.offered END AS most, a.collected
            FROM subtasks s JOIN attempts a ON s.attempt_id = a.id WHERE s.state = '{State.CRAWL}'
        ) running
    ), 0)
"""


class WaitingSummary(NamedTuple):
    """Delayed and waiting subtasks.

    Attributes:
        delayed: subtasks in WAIT that have to wait after a failure.
        next_at: when the first of these may go.
        oldest_at: since when the subtask that waits longest (PRIORITY, WAIT) has been in its queue.
    """

    delayed: int
    next_at: datetime | None
    oldest_at: datetime | None


def waiting_summary(tx: Transaction) -> WaitingSummary:
    """Return what is delayed and what waits, now."""
    (found,) = tx.records(WaitingSummary, _WAITING, now=tx.now)
    return found


# PRIORITY is long, and nothing returns to it: of each priority the first came first.
_WAITING = f"""
    WITH RECURSIVE priorities(priority) AS (
        SELECT max(priority) FROM subtasks WHERE state = '{State.PRIORITY}'
        UNION ALL
        SELECT (SELECT max(s.priority) FROM subtasks s WHERE s.state = '{State.PRIORITY}' AND s.priority < p.priority)
        FROM priorities p WHERE p.priority IS NOT NULL
    )
    SELECT count(*) AS delayed, min(not_before) AS next_at, (
        SELECT min(changed_at) FROM (
            SELECT changed_at FROM subtasks WHERE id IN (
                SELECT (SELECT min(s.id) FROM subtasks s WHERE s.state = '{State.PRIORITY}' AND s.priority = p.priority)
                FROM priorities p
            )
            UNION ALL
            SELECT changed_at FROM subtasks WHERE state = '{State.WAIT}'
        ) since
    ) AS oldest_at
    FROM subtasks WHERE state = '{State.WAIT}' AND not_before > :now
"""


def has_old_work(tx: Transaction, age: timedelta) -> bool:
    """Return True if a subtask of that age may be tried now or within that time: it waits between tries."""
    return tx.value(_OLD_WORK, before=tx.now - age, soon=tx.now + age) is not None


_OLD_WORK = f"""
    SELECT id FROM subtasks
    WHERE state IN ('{State.PRIORITY}', '{State.WAIT}', '{State.CRAWL}') AND created_at <= :before
        AND (not_before IS NULL OR not_before <= :soon)
    LIMIT 1
"""


def newest_page_at(tx: Transaction) -> datetime | None:
    """Return when the last page was stored; `None` if there is none."""
    return tx.time("SELECT fetched_at FROM pages ORDER BY id DESC LIMIT 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostQueue:
    """Subtasks in WAIT that wait for one host.

    Attributes:
        host, cause: as of `HostWait`.
        until: when it may be asked next; not after now if it is being probed.
        subtasks: how many wait.
        left: their hits to do, as far as known.
    """

    host: str
    cause: str
    until: datetime
    subtasks: int
    left: int

    @property
    def unreachable(self) -> bool:
        """True if the host did not answer, and may not answer at that time either."""
        return self.cause == UNREACHABLE


class _Waiting(NamedTuple):
    """Subtasks in WAIT of one site and kind.

    Attributes:
        wait_host, wait_reason: as of `HostWait`, if they were released with a time that has not come.
        until: that time, of the first of them.
    """

    site: str
    kind: str
    wait_host: str | None
    wait_reason: str | None
    until: datetime | None
    n: int
    left: int


def host_waits(tx: Transaction, hosts_of: HostsOf, silent_after: timedelta) -> list[HostQueue]:
    """Return the hosts that subtasks in WAIT wait for, the one with the most of them first.

    A subtask waits for a host if it was released with a time that has not come, or if the host rests for every live
    node of its kind.

    Args:
        silent_after: a node without a heartbeat for this time is silent; if all are silent, all registered ones count.
    """
    now = tx.now
    rests: dict[str, dict[str, Breaker]] = {}
    for rest in list_rests(tx):
        if rest.until > now or rest.unanswered:
            rests.setdefault(rest.host, {})[rest.node] = rest
    able = nodes.list_live(tx, silent_after) or nodes.list_live(tx, None)
    resting = cache(lambda site, kind: _resting(hosts_of(site), kind, able, rests))
    found: dict[HostWait, HostQueue] = {}
    for group in tx.records(_Waiting, _HELD, now=now):
        wait, until = resting(group.site, group.kind) or (None, now)
        if group.wait_host is not None and group.wait_reason is not None and group.until is not None:
            released = HostWait(group.wait_host, group.wait_reason)
            wait, until = released, max(group.until, until) if wait == released else group.until
        if wait is not None:
            before = found.get(wait)
            found[wait] = HostQueue(
                host=wait.host,
                cause=wait.cause,
                until=min(until, before.until) if before else until,
                subtasks=group.n + (before.subtasks if before else 0),
                left=group.left + (before.left if before else 0),
            )
    return sorted(found.values(), key=lambda one: (-one.subtasks, one.host, one.cause))


def _resting(
    hosts: Sequence[str], kind: str, able: Sequence[Node], rests: Mapping[str, Mapping[str, Breaker]]
) -> tuple[HostWait, datetime] | None:
    """Return the first of these hosts that rests for every node of the kind, and until when; `None`: none does."""
    names = [node.name for node in able if kind in node.kinds]
    for host in hosts:
        of = rests.get(host, {})
        if names and all(name in of for name in names):
            first = min((of[name] for name in names), key=lambda rest: rest.until)
            return HostWait(host, first.cause), first.until
    return None


_HELD = f"""
    SELECT site, kind, wait_host, wait_reason, min(until) AS until, count(*) AS n, coalesce(sum("left"), 0) AS "left"
    FROM (
        SELECT site, kind, "left", CASE WHEN not_before > :now THEN not_before END AS until,
            CASE WHEN not_before > :now THEN wait_host END AS wait_host,
            CASE WHEN not_before > :now THEN wait_reason END AS wait_reason
        FROM subtasks WHERE state = '{State.WAIT}'
    ) waiting GROUP BY site, kind, wait_host, wait_reason
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """Pages and reviews stored since a mark: their numbers, and the mark to go on from."""

    pages: int = 0
    reviews: int = 0
    page_id: int = 0
    review_id: int = 0
    attempt_id: int = 0


def count_stored_since(tx: Transaction, mark: Stored) -> Stored:
    """Return `mark` plus what was stored after it; cheap enough to show progress."""
    ((n_pages, page_id),) = tx.rows(
        "SELECT count(*), max(id) FROM pages WHERE id > :after", after=mark.page_id
    )
    ((n_reviews, review_id),) = tx.rows(
        "SELECT count(*), max(id) FROM reviews WHERE id > :after AND refused IS NULL", after=mark.review_id
    )
    return Stored(
        mark.pages + n_pages,
        mark.reviews + n_reviews,
        page_id or mark.page_id,
        review_id or mark.review_id,
        mark.attempt_id,
    )


@dataclass(frozen=True, slots=True)
class SiteRow:
    """The work done at a site so far.

    Attributes:
        manual: subtasks that wait for a person.
    """

    site: str
    tasks: int = 0
    pages: int = 0
    reviews: int = 0
    manual: int = 0


def count_by_site(tx: Transaction) -> dict[str, SiteRow]:
    """Return tasks, pages and reviews of every site that has any."""
    return {row.site: row for row in tx.records(SiteRow, _BY_SITE)}


_BY_SITE = f"""
    SELECT site, sum(tasks) AS tasks, sum(pages) AS pages, sum(reviews) AS reviews, sum(manual) AS manual FROM (
        SELECT site, count(*) AS tasks, 0 AS pages, 0 AS reviews, 0 AS manual FROM tasks GROUP BY site
        UNION ALL
        SELECT site, 0, count(*), coalesce(sum(reviews), 0), 0 FROM pages GROUP BY site
        UNION ALL
        SELECT site, 0, 0, 0, count(*) FROM subtasks WHERE state = '{State.MANUAL}' GROUP BY site
    ) counted GROUP BY site ORDER BY site
"""


def waiting_of_site(tx: Transaction, site: str) -> list[tuple[str, int]]:
    """Return the states of a site's unsettled subtasks, and of those that wait for a person, with their numbers."""
    return tx.rows(_WAITING_OF_SITE, site=site)


_WAITING_OF_SITE = """
    SELECT state, count(*) FROM subtasks
    WHERE site = :site AND state IN ('WAIT', 'CRAWL', 'SLEEP', 'FAILED', 'MANUAL') GROUP BY state
"""


def confidence_of_site(tx: Transaction, site: str) -> tuple[int, int]:
    """Return the number of a site's pages that have a confidence, and of those with a low one.

    Only the newest `NEWEST_PAGES` pages of all sites are counted.
    """
    ((n, n_low),) = tx.rows(_CONFIDENCE, site=site, newest=NEWEST_PAGES, low=LOW_CONFIDENCE)
    return n, n_low


# A subquery, since SQLite might else choose another index and go through the whole table by it.
_CONFIDENCE = """
    SELECT count(confidence), count(CASE WHEN confidence < :low THEN 1 END)
    FROM (SELECT site, confidence FROM pages ORDER BY id DESC LIMIT :newest) newest WHERE site = :site
"""


def has_site(tx: Transaction, name: str) -> bool:
    """Return True if there is a task, an attempt or a page of a site."""
    return bool(tx.value(_HAS_SITE, name=name))


_HAS_SITE = """
    SELECT EXISTS (SELECT 1 FROM tasks WHERE site = :name) OR EXISTS (SELECT 1 FROM attempts WHERE site = :name)
        OR EXISTS (SELECT 1 FROM pages WHERE site = :name)
"""


def node_names(tx: Transaction) -> list[str]:
    """Return the nodes that are registered, or had an attempt, by name."""
    return sorted(name for (name,) in tx.rows("SELECT name FROM nodes UNION SELECT node FROM attempts"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The numbers of stored rows, and how far the targets are.

    Attributes:
        recalls: all; of subtasks whose event log was dropped, those of their last round.
        reposts: reviews whose text is nearly an earlier one's, among those looked at so far.
        voices: reviews by voice (`by_voice`).
    """

    products: int
    tasks: int
    pages: int
    reviews: int
    recalls: int
    targets: Mapping[str, int] = field(default_factory=dict)
    reposts: int
    voices: Mapping[str, int] = field(default_factory=dict)


def totals(tx: Transaction) -> Totals:
    """Return counts over the whole store."""
    (found,) = tx.records(Totals, _TOTALS)
    targets = tx.rows("SELECT state, count(*) FROM targets WHERE kind = 'hit' GROUP BY state")
    return replace(found, targets=dict(targets), voices=count_by_voice(tx))


_TOTALS = f"""
    SELECT (SELECT count(*) FROM products) AS products, (SELECT count(*) FROM tasks) AS tasks,
        (SELECT count(*) FROM pages) AS pages,
        (SELECT count(*) FROM reviews WHERE refused IS NULL) AS reviews,
        (SELECT count(*) FROM events WHERE transition = '{Transition.RECALL}')
            + (SELECT coalesce(sum(recalls), 0) FROM subtasks WHERE log_dropped) AS recalls,
        (SELECT count(*) FROM review_links) AS reposts
"""


def count_by_voice(tx: Transaction) -> dict[str, int]:
    """Return the number of reviews by voice, in the order of `Voice`; voices without a review are left out."""
    n = dict(tx.rows("SELECT voice, count(*) FROM reviews WHERE refused IS NULL GROUP BY voice"))
    return {voice or NOT_JUDGED: n[voice] for voice in (*Voice, None) if voice in n}


@dataclass(frozen=True, slots=True)
class QueueTrend:
    """How many subtasks were in each queue.

    Attributes:
        at: moments, ascending.
        counts: by queue, the number at each of these.
        whole: True if all events were counted.
    """

    at: Sequence[datetime]
    counts: Mapping[str, Sequence[int]]
    whole: bool


class _Moved(NamedTuple):
    """Subtasks that went from one queue to another among as many events as a point has."""

    place: int
    from_state: str | None
    to_state: str
    n: int
    at: datetime


def queue_trend(tx: Transaction) -> QueueTrend:
    """Return the queues over the time of the newest `NEWEST_EVENTS` events: the counts now, less the later moves.

    Points are as many events apart, not as long: numbers of rows are cheaper to sort by than times.
    """
    counts = transitions.count_queues(tx)
    newest = tx.value("SELECT max(id) FROM events")
    if newest is None:
        return QueueTrend((), {}, True)
    base = max(0, newest - NEWEST_EVENTS)
    step = max(1, -(-(newest - base) // _POINTS))
    ends: dict[int, datetime] = {}
    change: dict[int, dict[str, int]] = {}
    for one in tx.records(_Moved, _MOVED, base=base, step=step):
        ends[one.place] = max(one.at, ends.get(one.place, one.at))
        moved = change.setdefault(one.place, dict.fromkeys(counts, 0))
        if one.from_state is not None:
            moved[one.from_state] -= one.n
        moved[one.to_state] += one.n
    backwards: list[dict[str, int]] = []
    current = dict(counts)
    for place in sorted(change, reverse=True):
        backwards.append(current)
        current = {name: max(0, current[name] - change[place][name]) for name in current}
    series = {name: [one[name] for one in reversed(backwards)] for name in counts}
    return QueueTrend([ends[one] for one in sorted(ends)], series, base == 0)


_MOVED = """
    SELECT (id - :base - 1) / :step AS place, from_state, to_state, count(*) AS n, max(at) AS at
    FROM events WHERE id > :base GROUP BY (id - :base - 1) / :step, from_state, to_state
"""


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


def storing_trend(tx: Transaction) -> StoringTrend:
    """Return how fast pages and reviews were stored."""
    newest = tx.value("SELECT max(id) FROM pages")
    if newest is None:
        return StoringTrend((), (), ())
    after = newest - NEWEST_PAGES
    begin = tx.time("SELECT fetched_at FROM pages WHERE id > :after ORDER BY id LIMIT 1", after=after)
    end = tx.time("SELECT fetched_at FROM pages WHERE id = :newest", newest=newest)
    assert begin is not None
    assert end is not None
    ends = _ends(begin, end, tx.now)
    of_pages, of_reviews = [0.0] * len(ends), [0.0] * len(ends)
    length_s = (ends[0] - begin).total_seconds() or 1.0
    for place, n, read in tx.rows(_STORED, after=after, **dict(zip(_ENDS, ends, strict=True))):
        of_pages[place], of_reviews[place] = n / length_s, read / length_s
    return StoringTrend(ends, of_pages, of_reviews)


def _ends(begin: datetime, end: datetime, now: datetime) -> list[datetime]:
    """Return the ends of equal spans from `begin` until now, or until the last row if that is long ago."""
    last = max(end, now) if now - end < (end - begin) * 0.5 else end
    last = max(last, begin + timedelta(seconds=1))
    return [begin + (last - begin) * (n + 1) / _SPANS for n in range(_SPANS)]


_ENDS = [f"end_{n}" for n in range(_SPANS)]
_SPAN = " ".join(f"WHEN fetched_at < :{end} THEN {n}" for n, end in enumerate(_ENDS))
_STORED = f"""
    SELECT span, count(*), coalesce(sum(reviews), 0) FROM (
        SELECT CASE {_SPAN} ELSE {_SPANS - 1} END AS span, reviews FROM pages WHERE id > :after
    ) spans GROUP BY span
"""


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


class _Lately(NamedTuple):
    first: datetime | None
    pages: int
    reviews: int


def pace(tx: Transaction, seconds: float) -> Pace:
    """Count what nodes stored in the last seconds, or since the first page in that time.

    It reads at most the newest `NEWEST_PAGES` pages.
    """
    after = (tx.value("SELECT max(id) FROM pages") or 0) - NEWEST_PAGES
    (lately,) = tx.records(_Lately, _PACE, after=after, since=tx.now - timedelta(seconds=seconds))
    if lately.first is not None:
        seconds = max(1.0, (tx.now - lately.first).total_seconds())
    return Pace(seconds, lately.pages, lately.reviews)


# An import has no node.
_PACE = """
    SELECT min(fetched_at) AS first, count(*) AS pages, coalesce(sum(reviews), 0) AS reviews
    FROM pages WHERE id > :after AND fetched_at > :since AND node <> ''
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Approximate numbers of rows: the highest ids, which include removed rows."""

    subtasks: int
    pages: int
    reviews: int
    events: int


def sizes(tx: Transaction) -> Sizes:
    """Return the ends of four indexes: as quick with many rows as with few."""
    (found,) = tx.records(Sizes, _SIZES)
    return found


_SIZES = """
    SELECT coalesce((SELECT max(id) FROM subtasks), 0) AS subtasks, coalesce((SELECT max(id) FROM pages), 0) AS pages,
        coalesce((SELECT max(id) FROM reviews WHERE refused IS NULL), 0) AS reviews,
        coalesce((SELECT max(id) FROM events), 0) AS events
"""


def open_subtasks(queues: Mapping[str, int]) -> int:
    """Return how many subtasks are not settled."""
    return sum(n for name, n in queues.items() if not State(name).settled)
