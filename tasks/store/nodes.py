"""Crawl nodes: who there is, who is alive, who is drained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from splitter.catalog.model import Kind
from sqlalchemy import Connection, Row, func, select, update

from tasks.domain.errors import UnknownNode
from tasks.domain.states import State
from tasks.scheduling.balance.parameters import NodeParameters
from tasks.store.database import insert_or
from tasks.store.statement_batch import later
from tasks.store.tables import attempts, nodes, subtasks

# What a heartbeat tells is some seconds old: never all of the attempts are believed away from their hosts.
_LEAST_AT_HOSTS = 0.1


@dataclass(frozen=True, slots=True)
class Node:
    """A crawl node.

    Attributes:
        kinds: what it may crawl.
        slots: attempts it runs at once.
        address: source address it binds; None = the system's choice.
    """

    name: str
    kinds: frozenset[Kind]
    slots: int
    address: str | None = None


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node with its state: what `nodes list` shows.

    Attributes:
        attempts_per_s, backlog, idle: as of its last heartbeat (`Load`).
        running, waiting: leases it has started, and holds without having started them.
        waits_since: since when it has held leases and started none; None where it holds none.
        parameters: of its machine, as it told them (2019 balance paper); None: it hasn't yet.
    """

    node: Node
    drained: bool
    seen_at: datetime | None
    attempts_per_s: float
    backlog: int
    idle: int
    running: int
    waiting: int
    waits_since: datetime | None = None
    parameters: NodeParameters | None = None


def register(conn: Connection, now: datetime, node: Node) -> None:
    """Make a node known or bring its row up to date; whether it is drained stays as it was."""
    values = {
        "kinds": sorted(node.kinds),
        "slots": node.slots,
        "address": node.address,
        "seen_at": now,
    }
    statement = insert_or(conn.dialect, nodes).values(name=node.name, registered_at=now, **values)
    later(conn, statement.on_conflict_do_update(index_elements=[nodes.c.name], set_=values))


def describe(conn: Connection, names: Sequence[str], parameters: NodeParameters) -> None:
    """Nodes tell what the machine they share is like."""
    described = update(nodes).where(nodes.c.name.in_(names)).values(parameters=asdict(parameters))
    later(conn, described)


@dataclass(frozen=True, slots=True)
class Load:
    """What a heartbeat carries.

    Attributes:
        attempts_per_s: ended, mean over a fixed window (2022 buffering paper: throughput).
        backlog: leases it holds and has not begun.
        idle: attempts it has begun that only wait and hold no slot.
        storing: those of them that wait for the database, not for a host.
    """

    attempts_per_s: float
    backlog: int
    idle: int
    storing: int = 0


def heartbeat(conn: Connection, now: datetime, name: str, load: Load) -> bool:
    """Record that a node lives, and its load; True if it is drained. Raises UnknownNode."""
    row = conn.execute(
        update(nodes)
        .where(nodes.c.name == name)
        .values(
            seen_at=now,
            attempts_per_s=load.attempts_per_s,
            backlog=load.backlog,
            idle=load.idle,
            storing=load.storing,
        )
        .returning(nodes.c.drained)
    ).one_or_none()
    if row is None:
        raise UnknownNode(f"node {name!r} is not registered")
    return bool(row.drained)


def alive(conn: Connection, now: datetime, name: str, silent_after: timedelta) -> bool:
    """Whether a node was heard of less than `silent_after` ago."""
    seen = conn.execute(select(nodes.c.seen_at).where(nodes.c.name == name)).scalar_one_or_none()
    return seen is not None and now - seen < silent_after


def at_hosts(conn: Connection) -> dict[str, float]:
    """Share of a node's begun attempts that are at a host, or wait for one; nodes where all are, are left out.

    The others wait for the database, which may be far away, and ask nobody meanwhile.
    """
    rows = conn.execute(
        select(nodes.c.name, nodes.c.storing, func.count())
        .join(subtasks, (subtasks.c.lease_node == nodes.c.name) & subtasks.c.lease_started)
        .where(nodes.c.storing > 0, subtasks.c.state == State.CRAWL)
        .group_by(nodes.c.name, nodes.c.storing)
    )
    return {name: max(_LEAST_AT_HOSTS, 1.0 - storing / begun) for name, storing, begun in rows}


def leave(conn: Connection, name: str) -> None:
    """A node says that it stops: it is silent from now on."""
    conn.execute(update(nodes).where(nodes.c.name == name).values(seen_at=None))


def set_drained(conn: Connection, name: str, drained: bool) -> None:
    """Drain a node (it gets nothing new) or take it back. Raises UnknownNode."""
    if conn.execute(update(nodes).where(nodes.c.name == name).values(drained=drained)).rowcount != 1:
        known = ", ".join(sorted(conn.scalars(select(nodes.c.name)))) or "none yet"
        raise UnknownNode(f"there is no node {name!r}; registered: {known}")


def find(conn: Connection, name: str) -> Node | None:
    """The node of that name, where there is one."""
    row = conn.execute(select(nodes).where(nodes.c.name == name)).one_or_none()
    return _node(row) if row is not None else None


def get(conn: Connection, name: str) -> Node:
    """The node of that name. Raises UnknownNode."""
    if (node := find(conn, name)) is not None:
        return node
    known = ", ".join(sorted(conn.scalars(select(nodes.c.name)))) or "none yet"
    raise UnknownNode(f"there is no node {name!r}; registered: {known}")


def listed(conn: Connection) -> Sequence[NodeRow]:
    """Every node, by name."""
    holds = {
        (row.lease_node, bool(row.lease_started)): row
        for row in conn.execute(
            select(
                subtasks.c.lease_node,
                subtasks.c.lease_started,
                func.count().label("n"),
                func.min(attempts.c.allocated_at).label("since"),
                func.max(attempts.c.started_at).label("last_start"),
            )
            .join(attempts, attempts.c.id == subtasks.c.attempt_id)
            .where(subtasks.c.state == State.CRAWL)
            .group_by(subtasks.c.lease_node, subtasks.c.lease_started)
        )
    }
    return [
        NodeRow(
            _node(r),
            r.drained,
            r.seen_at,
            r.attempts_per_s,
            r.backlog,
            r.idle,
            *_held(holds.get((r.name, True)), holds.get((r.name, False))),
            NodeParameters.of(r.parameters) if r.parameters is not None else None,
        )
        for r in conn.execute(select(nodes).order_by(nodes.c.name))
    ]


def _node(row: Row[Any]) -> Node:
    return Node(row.name, frozenset(Kind(kind) for kind in row.kinds), row.slots, row.address)


def _held(started: Row[Any] | None, unstarted: Row[Any] | None) -> tuple[int, int, datetime | None]:
    """Of a node, from what `listed` read: `running`, `waiting`, `waits_since`."""
    running = started.n if started is not None else 0
    if unstarted is None:
        return running, 0, None
    last = started.last_start if started is not None else unstarted.since
    return running, unstarted.n, max(unstarted.since, last)
