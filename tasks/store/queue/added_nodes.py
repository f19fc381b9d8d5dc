"""Nodes that a person added, which `run` and `up` crawl with: the one table in which passwords (of proxies) stand."""

from __future__ import annotations

from datetime import datetime, timedelta

from splitter.catalog.names import Kind
from splitter.errors import InputError
from sqlalchemy import Row, delete, func, insert, select

from tasks.domain.errors import UnknownNode
from tasks.domain.proxy import Proxy
from tasks.domain.states import State
from tasks.store.queue import closing, nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import insert_or
from tasks.store.sql.tables import added_nodes, subtasks
from tasks.store.sql.tables import nodes as registered
from tasks.store.sql.transaction import Transaction


def add(conn: Transaction, now: datetime, node: Node, slots: int | None) -> None:
    """Add a node; it is listed as stopped until it runs.

    Args:
        node: with its address or proxy.
        slots: None: as many as the run gives each node.

    Raises:
        InputError: a node of that name was added already.
    """
    if conn.execute(select(added_nodes.c.name).where(added_nodes.c.name == node.name)).one_or_none():
        raise InputError(
            f"node {node.name!r} was added already: name another, or `reviewloop nodes remove {node.name}` first"
        )
    kinds = sorted(node.kinds)
    proxy = node.proxy.url if node.proxy is not None else None
    conn.execute(
        insert(added_nodes).values(
            name=node.name, kinds=kinds, slots=slots, address=node.address, proxy=proxy, added_at=now
        )
    )
    values = {"kinds": kinds, "slots": node.slots, "address": node.address, "machine": node.machine}
    row = insert_or(conn.dialect, registered).values(name=node.name, registered_at=now, **values)
    conn.execute(row.on_conflict_do_update(index_elements=[registered.c.name], set_=values))


def remove(conn: Transaction, now: datetime, name: str, silent_after: timedelta) -> None:
    """Remove a node that was added and does not run; what was learned of it stays in the node-run control.

    Args:
        silent_after: a node without a heartbeat for so long does not run.

    Raises:
        UnknownNode: none of that name was added.
        InputError: it runs, or a person assigned work to it.
    """
    known = sorted(conn.scalars(select(added_nodes.c.name)))
    if name not in known:
        raise UnknownNode(f"no node {name!r} was added; added: {', '.join(known) or 'none'}")
    if nodes.find(conn, name) is not None and nodes.alive(conn, now, name, silent_after):
        raise InputError(
            f"node {name!r} runs, or was killed less than {silent_after.total_seconds():.0f} s ago: end the run first "
            f"(`reviewloop nodes drain {name}` gives it nothing new meanwhile)"
        )
    assigned = select(func.count()).where(
        subtasks.c.assigned_node == name, subtasks.c.state.not_in((State.DONE, State.CANCELLED))
    )
    if waiting := conn.scalars(assigned).one():
        raise InputError(
            f"{waiting} subtasks are assigned to node {name!r}: assign them to another, or abandon them (failed list)"
        )
    closing.release_leases(conn, now, name, "its node was removed")
    conn.execute(delete(added_nodes).where(added_nodes.c.name == name))
    conn.execute(delete(registered).where(registered.c.name == name))


def listed(conn: Transaction, slots: int) -> list[Node]:
    """The nodes that were added, in that order, as they are to start.

    Args:
        slots: of those that were added without a number.
    """
    ordered = select(added_nodes).order_by(added_nodes.c.added_at, added_nodes.c.name)
    return [_node(row, slots) for row in conn.execute(ordered)]


def _node(row: Row[tuple[object, ...]], slots: int) -> Node:
    proxy = Proxy(row.proxy) if row.proxy else None
    kinds = frozenset(Kind(kind) for kind in row.kinds)
    place = proxy.place if proxy is not None else None
    return Node(row.name, kinds, row.slots or slots, row.address, place, proxy)
