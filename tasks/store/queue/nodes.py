"""Crawl nodes: registered, alive, drained, and the leases they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from splitter.catalog.entries import NO_BROWSER, catalog_hash
from splitter.catalog.names import Kind
from sqlalchemy import String, bindparam, cast, func, select, update

from tasks.domain.errors import UnknownNode
from tasks.domain.proxy import Proxy
from tasks.domain.states import State
from tasks.scheduling.balance.parameters import NodeParameters
from tasks.store.sql.database import insert_or
from tasks.store.sql.prepared import Prepared, defer
from tasks.store.sql.tables import attempts, nodes, subtasks
from tasks.store.sql.transaction import Transaction

_LEAST_AT_HOSTS = 0.1
"""Least share of a node's attempts counted as at their hosts, as heartbeats are some seconds old."""


CLOCK_S = 10.0
"""Clocks that are further apart are told: messages expire by them, and dates of reviews are relative to them."""


@dataclass(frozen=True, slots=True)
class Node:
    """A crawl node.

    Attributes:
        kinds: what it may crawl.
        slots: attempts it runs at once.
        address: source address it binds; None = the system's choice.
        machine: whose outgoing address it then shares with other nodes there: a computer, or a proxy's HOST:PORT.
        proxy: that it goes through, of a node that is about to start; None: none, or not known.
    """

    name: str
    kinds: frozenset[Kind]
    slots: int
    address: str | None = None
    machine: str | None = None
    proxy: Proxy | None = None

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
        catalog: hash of the entries of its catalog; None: not reported.
        clock_s: how far its clock is ahead of the database's, as of its last heartbeat.
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
    catalog: str | None = None
    clock_s: float = 0.0


def register(
    conn: Transaction, now: datetime, node: Node, entries: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Insert or update a node that starts; whether it is drained stays as it was.

    Args:
        entries: of its catalog, as hashes, or that it has no browser for a site (`splitter.catalog.entries`); empty:
            not told, so it is given any site.
    """
    values = {
        "kinds": sorted(node.kinds),
        "slots": node.slots,
        "address": node.address,
        "machine": node.machine,
        "seen_at": now,
        "catalog": catalog_hash(entries) if entries else None,
        "entries": dict(entries) or None,
        "registered_at": now,
    }
    statement = insert_or(conn.dialect, nodes).values(name=node.name, **values)
    defer(conn, statement.on_conflict_do_update(index_elements=[nodes.c.name], set_=values))


def set_addresses(conn: Transaction, given: Sequence[Node]) -> None:
    """Note the addresses of nodes about to start: their processes take them from rows that an earlier run wrote."""
    for node in given:
        conn.execute(update(nodes).where(nodes.c.name == node.name).values(address=node.address))


def describe(conn: Transaction, names: Sequence[str], parameters: NodeParameters) -> None:
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
        clock_s: how far its clock is ahead of the database's.
    """

    attempts_per_s: float
    backlog: int
    idle: int
    storing: int = 0
    clock_s: float = 0.0


def heartbeat(conn: Transaction, now: datetime, name: str, load: NodeLoad) -> bool:
    """Record that a node lives, and its load; True if it is drained. Raises UnknownNode."""
    rows = _BEAT.rows(
        conn, {"of_name": name, "now": now, **{f"new_{key}": n for key, n in asdict(load).items()}}
    )
    if not rows:
        raise UnknownNode(f"node {name!r} is not registered")
    return bool(rows[0].drained)


_BEAT = Prepared(
    update(nodes)
    .where(nodes.c.name == bindparam("of_name"))
    .values(seen_at=bindparam("now"), **{one.name: bindparam(f"new_{one.name}") for one in fields(NodeLoad)})
    .returning(nodes.c.drained)
)


def alive(conn: Transaction, now: datetime, name: str, silent_after: timedelta) -> bool:
    """Whether a node's last heartbeat is less than `silent_after` ago."""
    seen = conn.execute(select(nodes.c.seen_at).where(nodes.c.name == name)).scalar_one_or_none()
    return seen is not None and now - seen < silent_after


def at_hosts(conn: Transaction) -> dict[str, float]:
    """Share of each node's begun attempts that load hosts; nodes where all do are left out.

    The others wait for the database, which may be far away, and send no request meanwhile.
    """
    rows = _STORING.rows(conn)
    return {name: max(_LEAST_AT_HOSTS, 1.0 - storing / begun) for name, storing, begun in rows}


_STORING = Prepared(
    select(nodes.c.name, nodes.c.storing, func.count())
    .join(subtasks, (subtasks.c.lease_node == nodes.c.name) & subtasks.c.lease_started)
    .where(nodes.c.storing > 0, subtasks.c.state == State.CRAWL)
    .group_by(nodes.c.name, nodes.c.storing)
)


def permit_addresses(conn: Transaction) -> dict[str, str]:
    """By node, the address its permits are granted to."""
    return {row.name: _node(row).permit_address for row in _NODES.rows(conn)}


def live(conn: Transaction, now: datetime, silent_after: timedelta | None) -> list[Node]:
    """Nodes that are alive and not drained, by name; without `silent_after`, silent ones too."""
    statement = select(nodes).where(nodes.c.drained.is_(False)).order_by(nodes.c.name)
    if silent_after is not None:
        statement = statement.where(nodes.c.seen_at > now - silent_after)
    return [_node(row) for row in conn.execute(statement)]


def leave(conn: Transaction, name: str) -> None:
    """Record that a node stops: it counts as silent from now on."""
    conn.execute(update(nodes).where(nodes.c.name == name).values(seen_at=None))


def set_drained(conn: Transaction, name: str, drained: bool) -> None:
    """Drain a node (it gets nothing new) or take it back. Raises UnknownNode."""
    if conn.execute(update(nodes).where(nodes.c.name == name).values(drained=drained)).rowcount != 1:
        raise _unknown(conn, name)


def find(conn: Transaction, name: str) -> Node | None:
    """The node of that name, where there is one."""
    row = conn.execute(select(nodes).where(nodes.c.name == name)).one_or_none()
    return _node(row) if row is not None else None


def get(conn: Transaction, name: str) -> Node:
    """The node of that name. Raises UnknownNode."""
    if (node := find(conn, name)) is not None:
        return node
    raise _unknown(conn, name)


def _unknown(conn: Transaction, name: str) -> UnknownNode:
    known = ", ".join(sorted(conn.scalars(select(nodes.c.name)))) or "none yet"
    return UnknownNode(f"there is no node {name!r}; registered: {known}")


def listed(conn: Transaction) -> Sequence[NodeRow]:
    """Every node, by name."""
    leases = {(row.lease_node, bool(row.lease_started)): row for row in _LEASES.rows(conn)}
    return [
        _listed(row, leases.get((row.name, True)), leases.get((row.name, False))) for row in _NODES.rows(conn)
    ]


_NODES = Prepared(
    select(*(column for column in nodes.c if column is not nodes.c.entries)).order_by(nodes.c.name)
)
_LEASES = Prepared(
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


def _listed(row: Any, started: Any | None, unstarted: Any | None) -> NodeRow:
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
        parameters=_parameters(row.parameters),
        catalog=row.catalog,
        clock_s=row.clock_s,
    )


def catalogs(conn: Transaction) -> dict[str, str]:
    """By node that told of its catalog, the hash of all its entries."""
    return {row.name: row.catalog for row in _CATALOGS.rows(conn)}


_CATALOGS = Prepared(select(nodes.c.name, nodes.c.catalog).where(nodes.c.catalog.is_not(None)))


def entries(conn: Transaction, name: str) -> dict[str, str]:
    """The entries of a node's catalog, as hashes by site; empty where it told none."""
    told = conn.execute(select(nodes.c.entries).where(nodes.c.name == name)).scalar_one_or_none()
    return dict(told) if isinstance(told, dict) else {}


def unrendered(conn: Transaction) -> dict[str, int]:
    """By node without a browser: how many sites of its catalog need one."""
    without = select(nodes.c.name, nodes.c.entries).where(cast(nodes.c.entries, String).contains(NO_BROWSER))
    return {row.name: _unrendered(row.entries) for row in conn.execute(without)}


def browsers(conn: Transaction, now: datetime, silent_after: timedelta) -> tuple[int, int]:
    """How many nodes are alive and told of their catalog, and how many of them lack no browser for a site in it."""
    alive = nodes.c.seen_at > now - silent_after
    told = conn.execute(select(nodes.c.entries).where(alive, nodes.c.drained.is_(False))).scalars().all()
    return len(told), sum(not _unrendered(entries) for entries in told)


def none_renders(conn: Transaction, now: datetime, silent_after: timedelta) -> bool:
    """True where nodes are alive and none of them has a browser for the sites that need one."""
    told, rendering = browsers(conn, now, silent_after)
    return bool(told) and not rendering


def _unrendered(told: Any) -> int:
    return sum(entry == NO_BROWSER for entry in told.values()) if isinstance(told, dict) else 0


def _parameters(told: Any) -> NodeParameters | None:
    """A row that another version wrote must not end every turn: what can't be read counts as not reported."""
    try:
        return NodeParameters.of(told) if told is not None else None
    except (ValueError, TypeError, LookupError):
        return None


_KINDS = frozenset(Kind)


def _node(row: Any) -> Node:
    told = row.kinds if isinstance(row.kinds, list) else ()
    # A kind that only a newer version knows is none that could be given here.
    kinds = frozenset(Kind(kind) for kind in told if kind in _KINDS)
    return Node(row.name, kinds, row.slots, row.address, row.machine)
