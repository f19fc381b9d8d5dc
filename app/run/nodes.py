"""The nodes that a run crawls with: so many alike, or this machine's own and those that a person added."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.run.addresses import is_loopback, own_address, system_choice
from app.run.setting_fields import Settings
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.store.queue import added_nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store

OWN = "node1"
"""The node of this machine's own address, as the system chooses it; one added by this name takes its place."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
# Programs of a cluster have logs by their names.
_TAKEN = frozenset({"beat", "control", "postgres", "redis", "web"})
_ADD = "reviewloop nodes add NAME --address A | --proxy URL"


def node_name(text: str) -> str:
    """Check the name of a node: it is also that of its queue and its log. Raises InputError."""
    if not _NAME.fullmatch(text):
        raise InputError(
            f"{text!r} is no name for a node: write at most 64 letters (a-z), digits, '.', '_', '-'"
        )
    if text in _TAKEN:
        raise InputError(f"{text!r} is a program of the cluster: name the node otherwise")
    return text


def numbered_nodes(count: int, slots: int, *, lab: bool) -> list[Node]:
    """node1, node2, ...: towards the lab each from its own address, otherwise as the system chooses."""
    return [
        Node(f"node{n}", frozenset(Kind), slots, f"127.0.0.{n + 1}" if lab else None)
        for n in range(1, count + 1)
    ]


def nodes_of(settings: Settings, store: Store, count: int | None, otherwise: int) -> list[Node]:
    """The nodes of a run on this store, as `crawl_nodes` says. Raises InputError."""
    with store.read() as conn:
        added = added_nodes.listed(conn, settings.slots)
    return crawl_nodes(settings, added, count, otherwise)


def crawl_nodes(settings: Settings, added: Sequence[Node], count: int | None, otherwise: int) -> list[Node]:
    """The nodes of a run.

    Args:
        added: by a person; they crawl where no count is given, and this machine's own node beside them.
        count: as given to the command; None: not given.
        otherwise: how many where none were added either.

    Raises:
        InputError: an added node can't crawl: its address is gone, or reaches only a lab, or would be hidden.
    """
    if count is not None or not added:
        return numbered_nodes(count or otherwise, settings.slots, lab=settings.lab is not None)
    if settings.proxy:
        raise InputError(
            "REVIEWLOOP_PROXY is set: the added nodes would all go through it, and be one client to every site; leave "
            "it out and add a node for it (reviewloop nodes add NAME --proxy -), or crawl with --nodes 1"
        )
    for node in added:
        _check(node, lab=settings.lab is not None)
    taken = {node.address for node in added} & system_choice(lab=settings.lab is not None)
    if taken or OWN in (node.name for node in added):
        return list(added)
    return [Node(OWN, frozenset(Kind), settings.slots), *added]


def _check(node: Node, *, lab: bool) -> None:
    if node.address is None:
        return
    again = f"`reviewloop nodes remove {node.name}`, and add it with another address"
    try:
        own_address(node.address)
    except InputError as error:
        raise InputError(f"node {node.name!r}: {error}; {again}") from None
    if is_loopback(node.address) and not lab:
        raise InputError(f"node {node.name!r}: {node.address} reaches nothing but a lab; {again}")


def own_settings(settings: Settings, node: Node) -> Settings:
    """The settings of one node's process or tools: with its own address, kinds, and proxy."""
    own = settings.with_(address=node.address, kinds=node.kinds)
    if node.proxy is None:
        return own
    return own.with_(proxy=node.proxy.url, machine=node.proxy.place)


def clients(nodes: Sequence[Node]) -> int:
    """How many clients these nodes are to a site: nodes behind one address are one."""
    return len({node.address or node.machine for node in nodes})


def notes(nodes: Sequence[Node]) -> list[str]:
    """Notes on the nodes before they crawl: who they are, and what can't be learned of them."""
    if clients(nodes) > 1:
        return [f"{len(nodes)} nodes: {', '.join(_described(node) for node in nodes)}."]
    these = "One node" if len(nodes) == 1 else f"{len(nodes)} nodes behind one address (one client to a site)"
    return [
        f"{these}: what can't be learned is which node is good at which site, and whether a refusal is about the "
        "address or about everybody.",
        f"A second one: {_ADD}",
    ]


def _described(node: Node) -> str:
    if node.proxy is not None:
        return f"{node.name} (through {node.proxy})"
    return f"{node.name} ({node.address or 'as the system chooses'})"
