"""The queues, the stored pages and reviews, and their recent course. Reads only.

Queries about what happened lately are bounded: they look at the newest rows, however many there are.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from tasks.domain.breaker import Breaker
from tasks.domain.host_wait import UNREACHABLE
from tasks.domain.states import State, Transition
from tasks.domain.voices import Voice
from tasks.store.content import counted_reviews, reposts
from tasks.store.queue import nodes, snapshot, transitions
from tasks.store.queue.hosts import list_rests
from tasks.store.sql.transaction import Transaction

NEWEST_EVENTS = 50_000
NEWEST_PAGES = 20_000
LOW_CONFIDENCE = 0.5
"""Confidence limit: among 187 saved pages, 6 of the 37 below it were read wrongly, and 4 of the 150 others."""
NOT_JUDGED = "not_judged"
"""Stands in the place of a voice for reviews that no model has judged."""
_SPANS = 48
_POINTS = 96

_OPEN = ", ".join(f"'{state}'" for state in State if not state.settled)


def count_open_hits(tx: Transaction) -> int:
    """Return the hits to do of all open subtasks, by their last attempts and by the reports of running ones."""
    return max(0, int(tx.value(_OPEN_HITS)))


_OPEN_HITS = f"""
    SELECT coalesce(sum(CASE WHEN a.offered > s."left" THEN a.offered ELSE s."left" END - coalesce(a.collected, 0)), 0)
    FROM subtasks s LEFT JOIN attempts a ON a.id = s.attempt_id WHERE s.state IN ({_OPEN})
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


def get_waiting_summary(tx: Transaction) -> WaitingSummary:
    """Return what is delayed and what waits, now."""
    return tx.records(WaitingSummary, _WAITING, now=tx.now)[0]


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


def get_newest_page_time(tx: Transaction) -> datetime | None:
    """Return when the last page was stored; `None` if there is none."""
    return tx.time("SELECT fetched_at FROM pages ORDER BY id DESC LIMIT 1")


def get_newest_lease_time(tx: Transaction) -> datetime | None:
    """Return when the last lease was granted; `None` if there is none."""
    return tx.time("SELECT allocated_at FROM attempts ORDER BY id DESC LIMIT 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostQueue:
    """Subtasks that wait for one host.

    Attributes:
        host, cause: as of `HostWait`.
        until: when it may be asked next; not after now if it is being probed.
        subtasks: how many wait.
        trying: how many are in CRAWL and only try whether it answers again.
        left: the hits to do of both, as far as known.
    """

    host: str
    cause: str
    until: datetime
    subtasks: int
    left: int
    trying: int = 0

    @property
    def unreachable(self) -> bool:
        """True if the host did not answer, and may not answer at that time either."""
        return self.cause == UNREACHABLE


class _Waiting(NamedTuple):
    """Subtasks in WAIT or CRAWL of one site and kind, all with result pages to read or all without.

    Attributes:
        host, cause: as of `HostWait`, if they were released with a time that has not come; else empty.
        until: that time, of the first of them.
    """

    site: str
    kind: str
    state: State
    host: str
    cause: str
    until: datetime | None
    reads_results: bool
    subtasks: int
    left: int


def list_host_waits(tx: Transaction, hosts_of: snapshot.HostsOf, silent_after: timedelta) -> list[HostQueue]:
    """Return the hosts that subtasks wait for, the one with the most of them first.

    A subtask waits for a host if it was released with a time that has not come, or if a host that it needs rests for
    every live node of its kind.

    Args:
        silent_after: a node without a heartbeat for this time is silent; if all are silent, all registered ones count.
    """
    rests = {(one.host, one.node): one for one in list_rests(tx) if one.until > tx.now or one.unanswered}
    able: Sequence[nodes.RegisteredNode] = nodes.list_live(tx, silent_after)
    if not able:
        able = [row for row in nodes.list_nodes(tx) if not row.drained]
    found: dict[tuple[str, str], list[tuple[datetime, _Waiting]]] = defaultdict(list)
    for group in tx.records(_Waiting, _HELD, now=tx.now):
        names = [node.name for node in able if group.kind in node.kinds]
        needed = snapshot.needed_hosts(hosts_of(group.site), group.reads_results)
        rest = _find_rest(needed, names, rests)
        if wait := group if group.host else rest:
            ends = [one.until for one in (group, rest) if one is not None and one.until is not None]
            found[wait.host, wait.cause].append((max(ends), group))
    rows = []
    for (host, cause), groups in found.items():
        until, left = min(until for until, _ in groups), sum(group.left for _, group in groups)
        subtasks = sum(group.subtasks for _, group in groups if group.state == State.WAIT)
        trying = sum(group.subtasks for _, group in groups) - subtasks
        if subtasks:
            rows.append(
                HostQueue(host=host, cause=cause, until=until, subtasks=subtasks, left=left, trying=trying)
            )
    return sorted(rows, key=lambda one: (-one.subtasks, one.host, one.cause))


def _find_rest(
    hosts: Sequence[str], names: Sequence[str], rests: Mapping[tuple[str, str], Breaker]
) -> Breaker | None:
    """Return the first rest to end of the first of these hosts that rests for all of these nodes."""
    for host in hosts:
        of_host = [rests[host, name] for name in names if (host, name) in rests]
        if of_host and len(of_host) == len(names):
            return min(of_host, key=lambda rest: rest.until)
    return None


_IS_HELD = "not_before > :now AND wait_host IS NOT NULL"
_HELD = f"""
    SELECT site, kind, state, CASE WHEN {_IS_HELD} THEN wait_host ELSE '' END AS host,
        CASE WHEN {_IS_HELD} THEN wait_reason ELSE '' END AS cause,
        min(not_before) FILTER (WHERE {_IS_HELD}) AS until, reads_results, count(*) AS subtasks, sum("left") AS "left"
    FROM (
        SELECT *, {snapshot.READS_RESULTS} AS reads_results FROM subtasks
        WHERE state IN ('{State.WAIT}', '{State.CRAWL}')
    ) waiting
    GROUP BY site, kind, state, 4, 5, reads_results
"""


@dataclass(frozen=True, slots=True)
class Stored:
    """Pages and reviews stored since a mark: their numbers, and the mark to go on from, which is the highest ids."""

    pages: int = 0
    reviews: int = 0
    page_id: int = 0
    review_id: int = 0
    attempt_id: int = 0


def get_mark(tx: Transaction) -> Stored:
    """Return a mark of now: the ends of three indexes, as quick with many rows as with few."""
    return tx.records(Stored, f"SELECT {_IDS}")[0]


def count_stored(tx: Transaction) -> tuple[int, int]:
    """Return the number of pages and of reviews; two indexes alone are read."""
    pages, reviews = tx.rows(_COUNTS)[0]
    return pages, reviews


_COUNTS = "SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM reviews WHERE refused IS NULL)"


def count_stored_since(tx: Transaction, mark: Stored) -> Stored:
    """Return `mark` plus what was stored after it; cheap enough to show progress."""
    return tx.records(Stored, _STORED_SINCE, **asdict(mark))[0]


_IDS = """
    (SELECT coalesce(max(id), 0) FROM pages) AS page_id,
    (SELECT coalesce(max(id), 0) FROM reviews WHERE refused IS NULL) AS review_id,
    (SELECT coalesce(max(id), 0) FROM attempts) AS attempt_id
"""
_STORED_SINCE = f"""
    SELECT :pages + (SELECT count(*) FROM pages WHERE id > :page_id) AS pages,
        :reviews + (SELECT count(*) FROM reviews WHERE id > :review_id AND refused IS NULL) AS reviews, {_IDS}
"""


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


def count_site_states(tx: Transaction, site: str) -> list[tuple[str, int]]:
    """Return the states of a site's unsettled subtasks, and of those that wait for a person, with their numbers."""
    return tx.rows(_WAITING_OF_SITE, site=site)


_WAITING_OF_SITE = """
    SELECT state, count(*) FROM subtasks
    WHERE site = :site AND state IN ('WAIT', 'CRAWL', 'SLEEP', 'FAILED', 'MANUAL') GROUP BY state
"""


def count_confident_pages(tx: Transaction, site: str) -> tuple[int, int]:
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
    """Return True if there is a task (all attempts have one) or a page of a site."""
    return bool(tx.value(_HAS_SITE, name=name))


_HAS_SITE = """
    SELECT EXISTS (SELECT 1 FROM tasks WHERE site = :name) OR EXISTS (SELECT 1 FROM pages WHERE site = :name)
"""


def list_node_names(tx: Transaction) -> list[str]:
    """Return the nodes that are registered, or had an attempt, by name."""
    return sorted(name for (name,) in tx.rows("SELECT name FROM nodes UNION SELECT node FROM attempts"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The numbers of stored rows, and how far the targets are.

    Attributes:
        recalls: all; of subtasks whose event log was dropped, those of their last round.
        reposts: reviews whose text is nearly an earlier one's, among those compared so far.
        compared: share of the reviews that the sweep for reposts has compared with earlier ones, 0 to 1.
        counted: share of the reviews of before an upgrade that are counted by day and theme, 0 to 1.
        voices: reviews by voice or `NOT_JUDGED`, in the order of `Voice`.
    """

    products: int
    tasks: int
    pages: int
    reviews: int
    recalls: int
    targets: Mapping[str, int] = field(default_factory=dict)
    reposts: int
    compared: float = 1.0
    counted: float = 1.0
    voices: Mapping[str, int] = field(default_factory=dict)


def get_totals(tx: Transaction) -> Totals:
    """Return counts over the whole store."""
    (found,) = tx.records(Totals, _TOTALS)
    targets = tx.rows("SELECT state, count(*) FROM targets WHERE kind = 'hit' GROUP BY state")
    n = Counter(dict(tx.rows("SELECT voice, count(*) FROM reviews WHERE refused IS NULL GROUP BY voice")))
    for voice, corrected, more in tx.rows(_CORRECTED_VOICES):
        n[voice] -= more
        n[corrected] += more
    voices = {voice or NOT_JUDGED: n[voice] for voice in (*Voice, None) if n[voice]}
    compared = reposts.get_compared_share(tx)
    counted = counted_reviews.get_filled_share(tx)
    return replace(found, targets=dict(targets), voices=voices, compared=compared, counted=counted)


_CORRECTED_VOICES = """
    SELECT r.voice, c.voice, count(*) FROM corrections c JOIN reviews r ON r.correction_id = c.id
    WHERE r.refused IS NULL AND c.voice IS NOT NULL GROUP BY r.voice, c.voice
"""
_TOTALS = f"""
    SELECT (SELECT count(*) FROM products) AS products, (SELECT count(*) FROM tasks) AS tasks,
        (SELECT count(*) FROM pages) AS pages,
        (SELECT count(*) FROM reviews WHERE refused IS NULL) AS reviews,
        (SELECT count(*) FROM events WHERE transition = '{Transition.RECALL}')
            + (SELECT coalesce(sum(recalls), 0) FROM subtasks WHERE log_dropped) AS recalls,
        (SELECT count(*) FROM review_links) AS reposts
"""


Point = tuple[datetime, Mapping[str, float]]
"""A moment of a trend, and numbers by name."""


class _Moved(NamedTuple):
    """Subtasks that went from one queue to another among as many events as a point has."""

    place: int
    from_state: str | None
    to_state: str
    n: int
    at: datetime


def get_queue_trend(tx: Transaction) -> tuple[list[Point], bool]:
    """Return the queues over the time of the newest `NEWEST_EVENTS` events: the counts now, less the later moves.

    Points are as many events apart, not as long: numbers of rows are cheaper to sort by than times.

    Returns:
        Points in the order of time, and whether there are no older events.
    """
    newest = tx.value("SELECT max(id) FROM events") or 0
    base = max(0, newest - NEWEST_EVENTS)
    step = max(1, -(-(newest - base) // _POINTS))
    current = transitions.count_queues(tx)
    points: list[Point] = []
    moved = tx.records(_Moved, _MOVED, base=base, step=step)
    for _, point in groupby(moved, key=attrgetter("place")):
        moves = list(point)
        points.append((max(one.at for one in moves), {name: max(0, n) for name, n in current.items()}))
        for one in moves:
            current[one.to_state] -= one.n
            if one.from_state is not None:
                current[one.from_state] += one.n
    return points[::-1], base == 0


_MOVED = """
    SELECT (id - :base - 1) / :step AS place, from_state, to_state, count(*) AS n, max(at) AS at
    FROM events WHERE id > :base GROUP BY (id - :base - 1) / :step, from_state, to_state ORDER BY place DESC
"""


class _StoredPage(NamedTuple):
    fetched_at: datetime
    reviews: int


def get_storing_trend(tx: Transaction) -> list[Point]:
    """Return pages and reviews stored a second in equal spans of time, of the newest `NEWEST_PAGES` pages."""
    pages = tx.records(_StoredPage, _NEWEST_PAGES, newest=NEWEST_PAGES)
    if not pages:
        return []
    begin, end = pages[-1].fetched_at, pages[0].fetched_at
    # Until now, or until the last page if that is long ago.
    last = max(end, tx.now) if tx.now - end < (end - begin) * 0.5 else end
    span = max(last - begin, timedelta(seconds=1)) / _SPANS
    per_s = 1 / span.total_seconds()
    rates = [{"pages": 0.0, "reviews": 0.0} for _ in range(_SPANS)]
    for one in pages:
        rate = rates[min(_SPANS - 1, max(0, (one.fetched_at - begin) // span))]
        rate["pages"] += per_s
        rate["reviews"] += one.reviews * per_s
    return [(begin + span * (n + 1), rate) for n, rate in enumerate(rates)]


_NEWEST_PAGES = "SELECT fetched_at, reviews FROM pages ORDER BY id DESC LIMIT :newest"


class StoringRate(NamedTuple):
    """Pages and reviews stored a second lately.

    Attributes:
        seconds: length of the measured time, at least 1.
    """

    seconds: float
    pages_per_s: float
    reviews_per_s: float


class _Lately(NamedTuple):
    first: datetime | None
    pages: int
    reviews: int


def get_pace(tx: Transaction, seconds: float) -> StoringRate:
    """Return how fast nodes stored in the last seconds, or since the first page in that time.

    It reads at most the newest `NEWEST_PAGES` pages.
    """
    since = tx.now - timedelta(seconds=seconds)
    (lately,) = tx.records(_Lately, _PACE, newest=NEWEST_PAGES, since=since)
    if lately.first is not None:
        seconds = max(1.0, (tx.now - lately.first).total_seconds())
    return StoringRate(seconds, lately.pages / seconds, lately.reviews / seconds)


# An import has no node.
_PACE = """
    SELECT min(fetched_at) AS first, count(*) AS pages, coalesce(sum(reviews), 0) AS reviews
    FROM (SELECT * FROM pages ORDER BY id DESC LIMIT :newest) newest WHERE fetched_at > :since AND node <> ''
"""
