"""Subtasks that wait for a host that can't be asked, by host: for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from sqlalchemy import Connection, case, func, select

from tasks.domain.host_wait import UNREACHABLE, HostWait
from tasks.domain.states import State
from tasks.store.queue import nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql.tables import host_rests, subtasks

HostsOf = Callable[[str], tuple[str, str]]
"""(engine's host, site's host) of a site."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostQueue:
    """Subtasks in WAIT that wait for one host.

    Attributes:
        host, cause: as of `HostWait`.
        until: when it may be asked next; not after now where it is being probed.
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
        """True where nobody knows whether it will answer then."""
        return self.cause == UNREACHABLE


@dataclass(frozen=True, slots=True)
class _Rest:
    cause: str
    until: datetime


def host_waits(
    conn: Connection, now: datetime, hosts_of: HostsOf, silent_after: timedelta
) -> list[HostQueue]:
    """Hosts that subtasks in WAIT wait for, the one with the most of them first.

    A subtask waits for a host where it was released with a time that has not come, or where the host rests for every
    live node of its kind.

    Args:
        silent_after: a node without a heartbeat for so long is silent; where all are, all registered ones count.
    """
    rests: dict[str, dict[str, _Rest]] = {}
    for row in conn.execute(select(host_rests)):
        if row.until > now or row.cause == UNREACHABLE:
            rests.setdefault(row.host, {})[row.node] = _Rest(row.cause, row.until)
    held = case((subtasks.c.not_before > now, subtasks.c.not_before))
    waits_for = case((subtasks.c.not_before > now, subtasks.c.waits_for))
    groups = conn.execute(
        select(
            subtasks.c.site,
            subtasks.c.kind,
            waits_for.label("waits_for"),
            func.min(held).label("until"),
            func.count().label("n"),
            func.sum(subtasks.c.left).label("left"),
        )
        .where(subtasks.c.state == State.WAIT)
        .group_by(subtasks.c.site, subtasks.c.kind, waits_for)
    ).all()
    able = nodes.live(conn, now, silent_after) or nodes.live(conn, now, None)
    resting = cache(lambda site, kind: _resting(hosts_of(site), kind, able, rests))
    found: dict[HostWait, HostQueue] = {}
    for site, kind, words, until, n, left in groups:
        queue = resting(site, kind)
        if words is not None:
            wait = HostWait.read(words)
            later = queue[1] if queue is not None and queue[0] == wait else until
            queue = wait, max(until, later)
        if queue is not None:
            wait, until = queue
            one = found.get(wait)
            first = min(until, one.until) if one else until
            sums = (one.subtasks if one else 0) + n, (one.left if one else 0) + int(left)
            found[wait] = HostQueue(
                host=wait.host, cause=wait.cause, until=first, subtasks=sums[0], left=sums[1]
            )
    return sorted(found.values(), key=lambda one: (-one.subtasks, one.host, one.cause))


def _resting(
    hosts: Sequence[str], kind: str, able: Sequence[Node], rests: dict[str, dict[str, _Rest]]
) -> tuple[HostWait, datetime] | None:
    """The first of these hosts that rests for every node of the kind, and until when; None where none does."""
    names = [node.name for node in able if kind in node.kinds]
    for host in hosts:
        of = rests.get(host, {})
        if names and all(name in of for name in names):
            first = min((of[name] for name in names), key=lambda rest: rest.until)
            return HostWait(host, first.cause), first.until
    return None
