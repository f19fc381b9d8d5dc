"""Crawl nodes: registered, alive, drained, and the leases they have."""

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
from tasks.store.statement_batch import defer
from tasks.store.tables import attempts, nodes, subtasks

_LEAST_AT_HOSTS = 0.1
"""Least share of a node's attempts counted as at their hosts, as heartbeats are some seconds old."""


@dataclass(frozen=True, slots=True)
class Node:
    """A crawl node.

    Attributes:
        kinds: what it may crawl.
        slots: attempts it runs at once.
        address: source address it binds; None = the system's choice.
        machine: whose outgoing address it then shares with other nodes there.
    """

    name: str
    kinds: frozenset[Kind]
    slots: int
    address: str | None = None
    machine: str | None = None

    @property
    def permit_address(self) -> str:
        """The address that hosts see: permits, rests and paces are kept for it."""
        return self.address or self.machine or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow:
    """A node with its state, as `nodes list` shows it.

    Attributes:
        attempts_per_s, backlog, idle: as of its last heartbeat (`NodeLoad`).
        running, waiting: leases it has begun, and has not begun.
        waits_since: since when it has had unbegun leases and begun none; None where it has none.
        parameters: of its machine, as it reported them (2019 balance paper); None: not reported.
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
    """Insert or update a node; whether it is drained stays as it was."""
    values = {
        "kinds": sorted(node.kinds),
        "slots": node.slots,
        "address": node.address,
        "machine": node.machine,
        "seen_at": now,
    }
    statement = insert_or(conn.dialect, nodes).values(name=node.name, registered_at=now, **values)
    defer(conn, statement.on_conflict_do_update(index_elements=[nodes.c.name], set_=values))


def describe(conn: Connection, names: Sequence[str], parameters: NodeParameters) -> None:
    """Record the parameters of the machine that these nodes share."""
    described = update(nodes).where(nodes.c.name.in_(names)).values(parameters=asdict(parameters))
    defer(conn, described)


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """The load of a node, as its heartbeat reports it.

    Attributes:
        attempts_per_s: ended, mean over a fixed window (2022 buffering paper: throughput).
        backlog: leases it has not begun.
        idle: attempts it has begun that hold no slot: they wait for a permit or for the database.
        storing: those of them that wait for the database.
    """

    attempts_per_s: float
    backlog: int
    idle: int
    storing: int = 0


def heartbeat(conn: Connection, now: datetime, name: str, load: NodeLoad) -> bool:
    """Record that a node lives, and its load; True if it is drained. Raises UnknownNode."""
    row = conn.execute(
        update(nodes)
        .where(nodes.c.name == name)
        .values(seen_at=now, **asdict(load))
        .returning(nodes.c.drained)
    ).one_or_none()
    if row is None:
        raise UnknownNode(f"node {name!r} is not registered")
    return bool(row.drained)


def alive(conn: Connection, now: datetime, name: str, silent_after: timedelta) -> bool:
    """Whether a node's last heartbeat is less than `silent_after` ago."""
    seen = conn.execute(select(nodes.c.seen_at).where(nodes.c.name == name)).scalar_one_or_none()
    return seen is not None and now - seen < silent_after


def at_hosts(conn: Connection) -> dict[str, float]:
    """Share of each node's begun attempts that load hosts; nodes where all do are left out.

    The others wait for the database, which may be far away, and send no request meanwhile.
    """
    rows = conn.execute(_STORING)
    return {name: max(_LEAST_AT_HOSTS, 1.0 - storing / begun) for name, storing, begun in rows}


_STORING = (
    select(nodes.c.name, nodes.c.storing, func.count())
    .join(subtasks, (subtasks.c.lease_node == nodes.c.name) & subtasks.c.lease_started)
    .where(nodes.c.storing > 0, subtasks.c.state == State.CRAWL)
    .group_by(nodes.c.name, nodes.c.storing)
)


def permit_addresses(conn: Connection) -> dict[str, str]:
    """By node, the address its permits are granted to."""
    return {row.name: _node(row).permit_address for row in conn.execute(_NODES)}


def live(conn: Connection, now: datetime, silent_after: timedelta | None) -> list[Node]:
    """Nodes that are alive and not drained, by name; without `silent_after`, silent ones too."""
    statement = select(nodes).where(nodes.c.drained.is_(False)).order_by(nodes.c.name)
    if silent_after is not None:
        statement = statement.where(nodes.c.seen_at > now - silent_after)
    return [_node(row) for row in conn.execute(statement)]


def leave(conn: Connection, name: str) -> None:
    """Record that a node stops: it counts as silent from now on."""
    conn.execute(update(nodes).where(nodes.c.name == name).values(seen_at=None))


def set_drained(conn: Connection, name: str, drained: bool) -> None:
    """Drain a node (it gets nothing new) or take it back. Raises UnknownNode."""
    if conn.execute(update(nodes).where(nodes.c.name == name).values(drained=drained)).rowcount != 1:
        raise _unknown(conn, name)


def find(conn: Connection, name: str) -> Node | None:
    """The node of that name, where there is one."""
    row = conn.execute(select(nodes).where(nodes.c.name == name)).one_or_none()
    return _node(row) if row is not None else None


def get(conn: Connection, name: str) -> Node:
    """The node of that name. Raises UnknownNode."""
    if (node := find(conn, name)) is not None:
        return node
    raise _unknown(conn, name)


def _unknown(conn: Connection, name: str) -> UnknownNode:
    known = ", ".join(sorted(conn.scalars(select(nodes.c.name)))) or "none yet"
    return UnknownNode(f"there is no node {name!r}; registered: {known}")


def listed(conn: Connection) -> Sequence[NodeRow]:
    """Every node, by name."""
    leases = {(row.lease_node, bool(row.lease_started)): row for row in conn.execute(_LEASES)}
    return [
        _listed(row, leases.get((row.name, True)), leases.get((row.name, False)))
        for row in conn.execute(_NODES)
    ]


_NODES = select(nodes).order_by(nodes.c.name)
_LEASES = (
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


def _listed(row: Row[Any], started: Row[Any] | None, unstarted: Row[Any] | None) -> NodeRow:
    """A node, with the sums over the leases it has begun and over those it has not."""
    waits_since = None
    if unstarted is not None:
        waits_since = max(unstarted.since, started.last_start if started is not None else unstarted.since)
    return NodeRow(
        node=_node(row),
        drained=row.drained,
        seen_at=row.seen_at,
        attempts_per_s=row.attempts_per_s,
        backlog=row.backlog,
        idle=row.idle,
        running=started.n if started is not None else 0,
        waiting=unstarted.n if unstarted is not None else 0,
        waits_since=waits_since,
        parameters=NodeParameters.of(row.parameters) if row.parameters is not None else None,
    )


def _node(row: Row[Any]) -> Node:
    return Node(row.name, frozenset(Kind(kind) for kind in row.kinds), row.slots, row.address, row.machine)
