"""The work that is left, by site, and how fast pages came lately: what the time left rests on. Reads only."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, case, func, select

from tasks.domain.host_wait import UNREACHABLE, HostWait
from tasks.domain.states import State
from tasks.store.leases import HITS_UNREAD
from tasks.store.tables import host_rests, hosts, pages, pair_stats, subtasks, targets, task_parts
from tasks.store.trends import NEWEST_PAGES
from tasks.store.views import pending

_WINDOWS_S = (10, 20, 40, 80, 160, 320, 640)
_NEWEST_PARTS = 1000
_PRIOR_PAGES = 3
_CRAWL_DELAY = "%crawl-delay%"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenWork:
    """Hits to do at a site.

    Attributes:
        hits: their pages are still to be asked for.
        results: result pages that are still to be read.
        until: they are not given to a node earlier; None: they may be now.
        silent: they wait for a host that does not answer.
    """

    site: str
    hits: int = 0
    results: float = 0.0
    until: datetime | None = None
    silent: bool = False


def open_work(conn: Connection, now: datetime) -> list[OpenWork]:
    """What is left, by site and by what it waits for.

    PRIORITY has no bound: of it the hits left are summed from an index, as those of unread result pages. Of the other
    queues targets are counted.
    """
    found = [
        OpenWork(
            site=row.site,
            hits=row.hits,
            results=row.results,
            until=row.until,
            silent=row.waits_for is not None and HostWait.read(row.waits_for).cause == UNREACHABLE,
        )
        for row in conn.execute(_OPEN, {"now": now})
    ]
    found += (
        OpenWork(site=site, results=backlog.left / HITS_UNREAD) for site, backlog in pending(conn).items()
    )
    return found


_held = (
    subtasks.c.state == State.WAIT,
    subtasks.c.not_before > bindparam("now", type_=subtasks.c.not_before.type),
)
_until, _waits_for = (
    case((_held[0] & _held[1], column)) for column in (subtasks.c.not_before, subtasks.c.waits_for)
)
_OPEN = (
    select(
        subtasks.c.site,
        _until.label("until"),
        _waits_for.label("waits_for"),
        func.count(targets.c.id).filter(targets.c.kind == "hit").label("hits"),
        func.count(targets.c.id).filter(targets.c.kind == "result").label("results"),
    )
    .outerjoin(targets, (targets.c.subtask_id == subtasks.c.id) & (targets.c.state == "todo"))
    .where(subtasks.c.state.in_([State.WAIT, State.CRAWL, State.SLEEP, State.FAILED]))
    .group_by(subtasks.c.site, _until, _waits_for)
)


def nodes_at(conn: Connection) -> dict[str, set[str]]:
    """The nodes that have leases at each site."""
    found: dict[str, set[str]] = {}
    for site, node in conn.execute(_LEASED):
        found.setdefault(site, set()).add(node)
    return found


_LEASED = select(subtasks.c.site, subtasks.c.lease_node).where(subtasks.c.state == State.CRAWL).distinct()


@dataclass(frozen=True, slots=True)
class NodeRest:
    """A node that a host is not asked from.

    Attributes:
        until: when it may be asked next; `silent`: as it does not answer.
    """

    host: str
    node: str
    until: datetime
    silent: bool


def node_rests(conn: Connection, now: datetime) -> list[NodeRest]:
    """Every node that may not ask a host now; where it does not answer, also those that ask whether it does."""
    of = host_rests.c
    rows = conn.execute(
        select(of.host, of.node, of.until, of.cause).where((of.until > now) | (of.cause == UNREACHABLE))
    )
    return [NodeRest(row.host, row.node, row.until, row.cause == UNREACHABLE) for row in rows]


@dataclass(frozen=True, slots=True)
class PairPace:
    """What a node did at a site; sums that fade (`tasks.domain.pair_stats`).

    Attributes:
        tried: pages asked for; `collected`: those stored; `active_s`: seconds they took without waiting for permits.
    """

    site: str
    node: str
    tried: float
    collected: float
    active_s: float


def pair_paces(conn: Connection, sites: Collection[str]) -> list[PairPace]:
    """What every node did at these sites."""
    of = pair_stats.c
    columns = of.site, of.node, of.f_tried, of.f_collected, of.f_active_s
    return [PairPace(*row) for row in conn.execute(select(*columns).where(of.site.in_(sorted(sites))))]


def pages_per_s(conn: Connection, now: datetime) -> float | None:
    """The highest rate at which pages came over the last 10, 20, 40, ... 640 s; None: none came.

    Of the windows, as pages come ever slower at the end of a run, where no slot is short any more. A window begins with
    the first page in it at the earliest. Looks at the newest `NEWEST_PAGES` pages.
    """
    newest = conn.execute(select(func.max(pages.c.id))).scalar_one() or 0
    came = [func.count().filter(pages.c.fetched_at > now - timedelta(seconds=s)) for s in _WINDOWS_S]
    first, *counts = conn.execute(
        select(func.min(pages.c.fetched_at), *came).where(
            pages.c.id > newest - NEWEST_PAGES,
            pages.c.node != "",
            pages.c.fetched_at > now - timedelta(seconds=_WINDOWS_S[-1]),
        )
    ).one()
    if first is None:
        return None
    longest_s = max(1.0, (now - first).total_seconds())
    return float(max(n / min(s, longest_s) for s, n in zip(_WINDOWS_S, counts, strict=True)))


def hits_per_result(conn: Connection) -> float:
    """Hits that a result page yields in the end: of the newest parts of tasks, with those that they were relaxed to."""
    newest = conn.execute(select(func.max(task_parts.c.id))).scalar_one() or 0
    hits, read = conn.execute(
        select(
            func.coalesce(func.sum(task_parts.c.new_hits), 0),
            func.coalesce(func.sum(task_parts.c.pages_read).filter(task_parts.c.parent_id.is_(None)), 0),
        ).where(task_parts.c.id > newest - _NEWEST_PARTS)
    ).one()
    return float((int(hits) + _PRIOR_PAGES * HITS_UNREAD) / (int(read) + _PRIOR_PAGES))


def slow_robots(conn: Connection) -> list[tuple[str, int | None, str]]:
    """Host, status and text of every robots.txt that has a Crawl-delay."""
    of = hosts.c
    rows = conn.execute(select(of.host, of.robots_status, of.robots).where(of.robots.ilike(_CRAWL_DELAY)))
    return [(row.host, row.robots_status, row.robots) for row in rows]
