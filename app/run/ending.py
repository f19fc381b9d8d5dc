"""What is known of the end, read from the store: for progress, `status` and the dashboard."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache

from sqlalchemy import Connection

from app.run.work_left import Ending, NodeSeen, Paces, SiteLeft, TimeLeft, site_rate, work_left_s
from splitter.catalog.model import Catalog, Limits
from tasks.fetching.hosts import HostCatalog, slower
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules
from tasks.store import nodes, open_work, todo
from tasks.store.host_waits import HostQueue
from tasks.store.nodes import Node
from tasks.store.open_work import NodeRest, OpenWork, PairPace
from tasks.store.trends import open_subtasks


def time_left(
    conn: Connection,
    now: datetime,
    queues: Mapping[str, int],
    waits: Sequence[HostQueue],
    catalog: Catalog,
    hosts: HostCatalog,
    silent_after: timedelta,
) -> TimeLeft:
    """The time left, if no work is added.

    Args:
        queues: subtasks by state.
        waits: what subtasks wait for (`tasks.store.host_waits`).
        silent_after: a node without a heartbeat for so long is silent; where all are, nobody knows when it goes on.
    """
    unsettled, waiting = open_subtasks(queues), sum(one.subtasks for one in waits)
    if not unsettled:
        planned = sum(queues.values()) and todo.all_settled(conn)
        return TimeLeft(Ending.NOTHING_LEFT if planned else Ending.NO_WORK)
    silent = sum(one.subtasks for one in waits if one.unreachable)
    next_s = None
    if waits and unsettled <= waiting:
        next_s = max(0.0, min((one.until - now).total_seconds() for one in waits))
        if silent:
            return TimeLeft(Ending.HOSTS, next_s, waiting, silent, next_s)
    able = nodes.live(conn, now, silent_after)
    work = open_work.open_work(conn, now)
    paces = open_work.pair_paces(conn, {one.site for one in work})
    if not able or not any(one.tried for one in paces):
        return TimeLeft(Ending.UNKNOWN, 0.0, waiting, silent)
    rests = _by_host(open_work.node_rests(conn, now))
    limits = _Limits(hosts, conn)
    sites = _Sites(now, catalog, hosts, limits, able, paces, rests, open_work.nodes_at(conn))
    left = [found for one in work if (found := sites.left(one)) is not None]
    if not left:  # no host of what is left answers
        return TimeLeft(Ending.UNKNOWN, 0.0, waiting, silent)
    shared = Paces(
        open_work.pages_per_s(conn, now) or math.inf,
        open_work.hits_per_result(conn),
        {one.engine: limits.in_all(one.engine, len(able)) for one in left},
    )
    return TimeLeft(Ending.DONE_IN, work_left_s(left, shared), waiting, silent, next_s)


def _by_host(rests: Sequence[NodeRest]) -> Mapping[str, Mapping[str, NodeRest]]:
    found: defaultdict[str, dict[str, NodeRest]] = defaultdict(dict)
    for one in rests:
        found[one.host][one.node] = one
    return found


class _Limits:
    """How often hosts may be asked, their Crawl-delay included."""

    def __init__(self, hosts: HostCatalog, conn: Connection) -> None:
        self._hosts = hosts
        self._delays_s = {
            hosts.name(f"https://{host}"): _crawl_delay_s(text, status)
            for host, status, text in open_work.slow_robots(conn)
        }

    def of(self, host: str) -> Limits:
        return slower(self._hosts.limits(host), self._delays_s.get(host))

    def in_all(self, host: str, nodes: int) -> float:
        """Requests a second that a host grants so many nodes."""
        limits = self.of(host)
        return min(limits.total_per_s, nodes * limits.per_address_per_s)


@lru_cache(maxsize=1000)
def _crawl_delay_s(text: str, status: int | None) -> float | None:
    return RobotsRules.parse(text, status).crawl_delay_s(ROBOTS_TOKEN)


class _Sites:
    """What is left of each site, and how fast it is asked."""

    def __init__(
        self,
        now: datetime,
        catalog: Catalog,
        hosts: HostCatalog,
        limits: _Limits,
        able: Sequence[Node],
        paces: Sequence[PairPace],
        rests: Mapping[str, Mapping[str, NodeRest]],
        there: Mapping[str, Collection[str]],
    ) -> None:
        self._there = there
        self._now = now
        self._catalog = catalog
        self._hosts = hosts
        self._limits = limits
        self._able = able
        self._paces = {(one.site, one.node): one for one in paces}
        self._rests = rests

    def left(self, work: OpenWork) -> SiteLeft | None:
        """None: its host does not answer, so nobody knows."""
        engine, host = self._hosts.of_site(work.site)
        kind = self._catalog.kind_of(work.site) if work.site in self._catalog.sites else None
        able = [node.name for node in self._able if kind is None or kind in node.kinds]
        asked = (engine, host) if work.results else (host,)
        able, until, silent = self._able_at(asked, able)
        if silent or work.silent:
            return None
        until = max((one for one in (until, work.until) if one is not None), default=self._now)
        of = ((name, self._paces.get((work.site, name))) for name in able)
        there, limits = self._there.get(work.site, ()), self._limits.of(host)
        seen = [
            NodeSeen(one.tried, one.collected, one.active_s, name in there)
            if one
            else NodeSeen(there=name in there)
            for name, one in of
        ]
        return SiteLeft(
            hits=work.hits,
            results=work.results,
            engine=engine,
            per_s=site_rate(limits.per_address_per_s, limits.total_per_s, seen),
            after_s=max(0.0, (until - self._now).total_seconds()),
        )

    def _able_at(self, hosts: Sequence[str], able: list[str]) -> tuple[list[str], datetime | None, bool]:
        """The nodes that may ask these hosts; where none may, all, and until when, or that nobody knows."""
        for host in hosts:
            rests = self._rests.get(host, {})
            free = [name for name in able if name not in rests]
            if able and not free:
                first = min((rests[name] for name in able), key=lambda rest: rest.until)
                return able, first.until, first.silent
            able = free
        return able, None, False
