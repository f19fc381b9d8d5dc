"""Nodes that a person added, which `run` and `up` crawl with: the one table in which passwords (of proxies) stand."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from splitter.catalog.names import Kind
from splitter.errors import InputError

from tasks.domain.errors import UnknownNode
from tasks.domain.proxy import Proxy
from tasks.domain.states import State
from tasks.store.queue import closing, nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql.transaction import Transaction


def add(tx: Transaction, now: datetime, node: Node, slots: int | None) -> None:
    """Add a node; it is listed as stopped until it runs.

    Args:
        node: with its address or proxy.
        slots: None: as many as the run gives each node.

    Raises:
        InputError: a node of that name was added already.
    """
    values = {"name": node.name, "kinds": sorted(node.kinds), "address": node.address, "now": now}
    proxy = node.proxy.url if node.proxy is not None else None
    if not tx.run(_ADD, slots=slots, proxy=proxy, **values):
        raise InputError(
            f"node {node.name!r} was added already: name another, or `reviewloop nodes remove {node.name}` first"
        )
    tx.later(_REGISTER, slots=node.slots, machine=node.machine, **values)


_ADD = """
    INSERT INTO added_nodes (name, kinds, slots, address, proxy, added_at)
    VALUES (:name, :kinds, :slots, :address, :proxy, :now) ON CONFLICT DO NOTHING
"""
_REGISTER = """
    INSERT INTO nodes (name, kinds, slots, address, machine, registered_at)
    VALUES (:name, :kinds, :slots, :address, :machine, :now)
    ON CONFLICT (name) DO UPDATE SET kinds = excluded.kinds, slots = excluded.slots, address = excluded.address,
        machine = excluded.machine
"""


def remove(tx: Transaction, now: datetime, name: str, silent_after: timedelta) -> None:
    """Remove a node that was added and does not run; what was learned of it stays in the node-run control.

    Args:
        silent_after: a node without a heartbeat for so long does not run.

    Raises:
        UnknownNode: none of that name was added.
        InputError: it runs, or a person assigned work to it.
    """
    known = [known for (known,) in tx.rows("SELECT name FROM added_nodes ORDER BY name")]
    if name not in known:
        raise UnknownNode(f"no node {name!r} was added; added: {', '.join(known) or 'none'}")
    if nodes.alive(tx, now, name, silent_after):
        raise InputError(
            f"node {name!r} runs, or was killed less than {silent_after.total_seconds():.0f} s ago: end the run first "
            f"(`reviewloop nodes drain {name}` gives it nothing new meanwhile)"
        )
    if waiting := tx.value(_ASSIGNED, name=name):
        raise InputError(
            f"{waiting} subtasks are assigned to node {name!r}: assign them to another, or abandon them (failed list)"
        )
    closing.release_leases(tx, now, name, "its node was removed")
    tx.later("DELETE FROM added_nodes WHERE name = :name", name=name)
    tx.later("DELETE FROM nodes WHERE name = :name", name=name)


_ASSIGNED = f"""
    SELECT count(*) FROM subtasks
    WHERE assigned_node = :name AND state NOT IN ('{State.DONE}', '{State.CANCELLED}')
"""


class _AddedNode(NamedTuple):
    name: str
    kinds: frozenset[Kind]
    slots: int | None
    address: str | None
    proxy: str | None


def listed(tx: Transaction, slots: int) -> list[Node]:
    """Return the nodes that were added, in that order, as they are to start.

    Args:
        slots: of those that were added without a number.
    """
    return [_node(row, slots) for row in tx.records(_AddedNode, _ADDED)]


_ADDED = "SELECT name, kinds, slots, address, proxy FROM added_nodes ORDER BY added_at, name"


def _node(row: _AddedNode, slots: int) -> Node:
    proxy = Proxy(row.proxy) if row.proxy else None
    place = proxy.place if proxy is not None else None
    return Node(row.name, row.kinds, row.slots or slots, row.address, place, proxy)
