"""Crawl nodes: registered, added by a person, alive, drained, and the leases they have.

A node that a person added, for `run` and `up` to crawl with, has `added_at`. Its proxy's password stands in the column
`proxy` and nowhere else: only what starts the node reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple

from splitter.catalog.entries import NO_BROWSER, catalog_hash
from splitter.catalog.names import Kind
from splitter.errors import InputError, Message

from tasks.domain.errors import UnknownNode
from tasks.domain.proxy import Proxy
from tasks.domain.states import State
from tasks.scheduling.balance.parameters import NodeParameters
from tasks.store.sql.transaction import Transaction

_LEAST_AT_HOSTS = 0.1
"""Least share of a node's attempts counted as at their hosts, as heartbeats are some seconds old."""
CLOCK_S = 10.0
"""A larger difference of clocks is reported: messages expire by them, and dates of reviews are relative to them."""


@dataclass(frozen=True, slots=True)
class RegisteredNode:
    """A crawl node as other processes know it.

    Attributes:
        kinds: sites of these kinds may be crawled by it.
        slots: attempts it runs at once.
        address: source address it binds; None = the system's choice.
        machine: whose outgoing address it then shares with other nodes there: a computer, or a proxy's HOST:PORT.
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


@dataclass(frozen=True, slots=True)
class Node(RegisteredNode):
    """A crawl node.

    Attributes:
        proxy: the proxy of a node that is about to start; None if it has none, or if that is not known.
    """

    proxy: Proxy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRow(RegisteredNode):
    """A node with its state, as `nodes list` shows it.

    Attributes:
        attempts_per_s, backlog, idle, storing, clock_s: as of its last `Heartbeat`.
        running, waiting: leases it has begun, and has not begun.
        waits_since: since when it has had unbegun leases and begun none; `None` if it has none.
        parameters: of its machine, as it reported them (2019 balance paper); None: not reported.
        catalog: hash of the entries of its catalog; None: not reported.
    """

    drained: bool
    seen_at: datetime | None
    attempts_per_s: float
    backlog: int
    idle: int
    running: int
    waiting: int
    storing: int = 0
    clock_s: float = 0.0
    waits_since: datetime | None = None
    parameters: Mapping[str, float | None] | None = None
    catalog: str | None = None

    def is_alive(self, now: datetime, silent_after: timedelta) -> bool:
        """Return True if the last heartbeat is less than `silent_after` ago."""
        return self.seen_at is not None and now - self.seen_at < silent_after

    @property
    def asking_share(self) -> float:
        """The share of its begun attempts that load hosts: the others wait for the database, which may be far away."""
        return max(_LEAST_AT_HOSTS, 1.0 - self.storing / self.running) if self.running else 1.0


def register(tx: Transaction, node: Node, entries: Mapping[str, str] = MappingProxyType({})) -> None:
    """Insert or update a node that starts; whether it is drained stays as it was.

    Args:
        entries: of its catalog, as hashes, or that it has no browser for a site (`splitter.catalog.entries`); empty:
            not reported, so it is given any site.
    """
    catalog = catalog_hash(entries) if entries else None
    tx.later(_REGISTER, catalog=catalog, entries=entries or None, now=tx.now, **_columns(node))


def _columns(node: Node) -> dict[str, object]:
    proxy = node.proxy.url if node.proxy is not None else None
    return {**asdict(node), "kinds": sorted(node.kinds), "proxy": proxy}


_CHANGED = """
    ON CONFLICT (name) DO UPDATE SET kinds = excluded.kinds, slots = excluded.slots, address = excluded.address,
        machine = excluded.machine
"""
_REGISTER = f"""
    INSERT INTO nodes (name, kinds, slots, address, machine, catalog, entries, seen_at, registered_at)
    VALUES (:name, :kinds, :slots, :address, :machine, :catalog, :entries, :now, :now) {_CHANGED},
        catalog = excluded.catalog, entries = excluded.entries, seen_at = excluded.seen_at,
        registered_at = excluded.registered_at
"""


def set_addresses(tx: Transaction, given: Sequence[Node]) -> None:
    """Note the addresses of nodes about to start: their processes take them from rows that an earlier run wrote."""
    tx.update("nodes", ("name",), [{"name": node.name, "address": node.address} for node in given])


def describe(tx: Transaction, names: Sequence[str], parameters: NodeParameters) -> None:
    """Record the parameters of the machine that these nodes share."""
    tx.update("nodes", ("name",), [{"name": name, "parameters": asdict(parameters)} for name in names])


def add(tx: Transaction, node: Node, slots: int | None) -> None:
    """Add a node; it is listed as stopped until it runs.

    Args:
        node: with its address or proxy.
        slots: None: as many as the run gives each node.

    Raises:
        InputError: a node of that name was added already.
    """
    if not tx.run(_ADD, chosen_slots=slots, now=tx.now, **_columns(node)):
        raise InputError(
            "node {name!r} was added already: name another, or `reviewloop nodes remove {name}` first",
            name=node.name,
        )


_ADD = f"""
    INSERT INTO nodes (name, kinds, slots, address, machine, registered_at, added_at, chosen_slots, proxy)
    VALUES (:name, :kinds, :slots, :address, :machine, :now, :now, :chosen_slots, :proxy) {_CHANGED},
        added_at = excluded.added_at, chosen_slots = excluded.chosen_slots, proxy = excluded.proxy
    WHERE nodes.added_at IS NULL
"""


def remove(tx: Transaction, name: str, silent_after: timedelta) -> None:
    """Remove a node that was added and does not run; its statistics stay in the node-run control.

    Its leases stay: release them in the same transaction (`tasks.store.queue.attempts.release_leases`).

    Args:
        silent_after: a node does not run if its last heartbeat is older than this.

    Raises:
        UnknownNode: none of that name was added.
        InputError: it runs, or a person assigned work to it.
    """
    known = [node.name for node in list_added(tx, 1)]
    if name not in known:
        raise UnknownNode(
            "no node {name!r} was added; added: {known}",
            name=name,
            known=", ".join(sorted(known)) or Message("none"),
        )
    if any(row.name == name and row.is_alive(tx.now, silent_after) for row in list_nodes(tx)):
        raise InputError(
            "node {name!r} runs, or was killed less than {silent_s:.0f} s ago: end the run first "
            "(`reviewloop nodes drain {name}` gives it nothing new meanwhile)",
            name=name,
            silent_s=silent_after.total_seconds(),
        )
    if waiting := tx.value(_ASSIGNED, name=name):
        raise InputError(
            "{waiting} subtasks are assigned to node {name!r}: assign them to another, or abandon them "
            "(failed list)",
            waiting=waiting,
            name=name,
        )
    tx.later("DELETE FROM nodes WHERE name = :name", name=name)


_ASSIGNED = f"""
    SELECT count(*) FROM subtasks
    WHERE assigned_node = :name AND state NOT IN ('{State.DONE}', '{State.CANCELLED}')
"""


def list_added(tx: Transaction, slots: int) -> list[Node]:
    """Return the nodes that were added, in that order, as they are to start.

    Args:
        slots: of those that were added without a number.
    """
    return tx.records(Node, _ADDED, slots=slots)


_ADDED = """
    SELECT name, kinds, coalesce(chosen_slots, :slots) AS slots, address, machine, proxy
    FROM nodes WHERE added_at IS NOT NULL ORDER BY added_at, name
"""


class Heartbeat(NamedTuple):
    """The load of a node.

    Attributes:
        attempts_per_s: ended, mean over a fixed window (2022 buffering paper: throughput).
        backlog: leases it has not begun.
        idle: attempts it has begun that hold no slot: they wait for a permit or for the database.
        storing: those of them that wait for the database.
        clock_s: how far its clock is ahead of the database's.
    """

    attempts_per_s: float = 0.0
    backlog: int = 0
    idle: int = 0
    storing: int = 0
    clock_s: float = 0.0


def record_heartbeat(tx: Transaction, name: str, load: Heartbeat) -> bool:
    """Record that a node lives, and its load; True if it is drained. Raises UnknownNode."""
    drained = tx.value(_BEAT, name=name, now=tx.now, **load._asdict())
    if drained is None:
        raise UnknownNode("node {name!r} is not registered", name=name)
    return bool(drained)


_LOAD = ", ".join(f"{column} = :{column}" for column in Heartbeat._fields)
_BEAT = f"UPDATE nodes SET seen_at = :now, {_LOAD} WHERE name = :name RETURNING drained"


def move_heartbeats(tx: Transaction, by: timedelta) -> None:
    """Move the last heartbeat of each node by this time, at most to now."""
    seen = tx.records(
        _Heartbeat, "SELECT name, seen_at FROM nodes WHERE seen_at IS NOT NULL ORDER BY name FOR UPDATE"
    )
    tx.update(
        "nodes", ("name",), [{"name": one.name, "seen_at": min(one.seen_at + by, tx.now)} for one in seen]
    )


class _Heartbeat(NamedTuple):
    name: str
    seen_at: datetime


def leave(tx: Transaction, name: str) -> None:
    """Record that a node stops: it counts as silent from now on."""
    tx.later("UPDATE nodes SET seen_at = NULL WHERE name = :name", name=name)


def set_drained(tx: Transaction, name: str, drained: bool) -> None:
    """Drain a node (it gets nothing new) or take it back. Raises UnknownNode."""
    get(tx, name)
    tx.later("UPDATE nodes SET drained = :drained WHERE name = :name", name=name, drained=drained)


_NODES = "SELECT name, kinds, slots, address, machine FROM nodes"


def list_live(tx: Transaction, silent_after: timedelta) -> list[Node]:
    """Return the nodes that are alive and not drained, by name."""
    condition = "NOT drained AND seen_at > :since"
    return tx.records(Node, f"{_NODES} WHERE {condition} ORDER BY name", since=tx.now - silent_after)


def find(tx: Transaction, name: str) -> Node | None:
    """Return the node of that name; `None` if there is none."""
    return tx.record(Node, f"{_NODES} WHERE name = :name", name=name)


def get(tx: Transaction, name: str) -> Node:
    """Return the node of that name. Raises UnknownNode."""
    if (node := find(tx, name)) is None:
        known = ", ".join(one.name for one in list_nodes(tx)) or Message("none yet")
        raise UnknownNode("there is no node {name!r}; registered: {known}", name=name, known=known)
    return node


def list_nodes(tx: Transaction) -> list[NodeRow]:
    """Return every node, by name."""
    return tx.records(NodeRow, _LISTED)


_LISTED = f"""
    SELECT n.name, n.kinds, n.slots, n.address, n.machine, n.drained, n.seen_at, n.attempts_per_s, n.backlog, n.idle,
        n.storing, n.clock_s, n.parameters, n.catalog, coalesce(leases.running, 0) AS running,
        coalesce(leases.waiting, 0) AS waiting,
        CASE WHEN leases.last_start > leases.since THEN leases.last_start ELSE leases.since END AS waits_since
    FROM nodes n LEFT JOIN (
        SELECT s.lease_node, count(*) FILTER (WHERE s.lease_started) AS running, max(a.started_at) AS last_start,
            count(*) FILTER (WHERE NOT s.lease_started) AS waiting,
            min(a.allocated_at) FILTER (WHERE NOT s.lease_started) AS since
        FROM subtasks s JOIN attempts a ON a.id = s.attempt_id WHERE s.state = '{State.CRAWL}' GROUP BY s.lease_node
    ) leases ON leases.lease_node = n.name
    ORDER BY n.name
"""


class _NodeEntries(NamedTuple):
    name: str
    entries: Mapping[str, str]


def get_entries(tx: Transaction, name: str) -> Mapping[str, str]:
    """Return the entries of a node's catalog, as hashes by site; empty if it reported none."""
    found = tx.record(_NodeEntries, f"{_ENTRIES} AND name = :name", name=name)
    return found.entries if found is not None else {}


def count_unrendered(tx: Transaction) -> dict[str, int]:
    """Return how many sites of its catalog need a browser, by node without one."""
    found = tx.records(_NodeEntries, _WITHOUT_BROWSER)
    return {row.name: list(row.entries.values()).count(NO_BROWSER) for row in found}


_ENTRIES = "SELECT name, entries FROM nodes WHERE entries IS NOT NULL"
_WITHOUT_BROWSER = f"{_ENTRIES} AND CAST(entries AS text) LIKE '%{NO_BROWSER}%'"


def count_browsers(tx: Transaction, silent_after: timedelta) -> tuple[int, int]:
    """Return the number of live nodes, and of those that can render all sites of their catalog."""
    live, unable = list_live(tx, silent_after), count_unrendered(tx)
    return len(live), sum(node.name not in unable for node in live)
