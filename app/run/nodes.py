"""The nodes of a run: their names, their addresses and their browsers."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from contextlib import closing
from ipaddress import ip_address

from app.run.setting_fields import Settings
from app.run.setting_values import sqlite_file
from splitter.catalog.names import Kind
from splitter.errors import InputError, Message, ReviewloopError
from tasks.domain.reasons import Reason, because
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.store.queue import nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store

OWN = "node1"
"""The node of this machine with the address that the system chooses. An added node of this name takes its place."""
NO_NODE_HAS_BROWSER = Obstacle(
    kind=ObstacleKind.BROWSER,
    because=because(Reason.NO_NODE_HAS_BROWSER),
    mend=Message("install one on the machine of a node, and start the node again (docs/browser.md)"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PROGRAMS = frozenset({"beat", "control", "postgres", "redis", "web"})  # names of a cluster's other logs
# Connecting a UDP socket sends nothing and only chooses a route. Addresses for documentation (RFC 5737, 3849).
_FAR_AWAY = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}


def check_node_name(text: str) -> str:
    """Return the name of a node if it is allowed. It also names the node's queue and log. Raises InputError."""
    if not _NAME.fullmatch(text):
        raise InputError(
            "{text!r} is no name for a node: write at most 64 letters (a-z), digits, '.', '_', '-'", text=text
        )
    if text in _PROGRAMS:
        raise InputError("{text!r} is a program of the cluster: name the node otherwise", text=text)
    return text


def make_nodes(count: int, slots: int, *, lab: bool) -> list[Node]:
    """Return `count` nodes named node1, node2 and so on. In a lab each node has an address of its own.

    Otherwise the system chooses the address.
    """
    return [
        Node(f"node{n}", frozenset(Kind), slots, f"127.0.0.{n + 1}" if lab else None)
        for n in range(1, count + 1)
    ]


def list_nodes(settings: Settings, store: Store, count: int | None, default: int) -> list[Node]:
    """Return the nodes of a run on this store (see `choose_nodes`). Raises InputError."""
    with store.read() as tx:
        added = nodes.list_added(tx, settings.slots)
    return choose_nodes(settings, added, count, default)


def choose_nodes(settings: Settings, added: Sequence[Node], count: int | None, default: int) -> list[Node]:
    """Return the nodes of a run: `count` of them, or else the nodes that a person added and this machine's own.

    Args:
        count: number of nodes given to the command; `None` if none was given.
        default: number of nodes if no number was given and no node was added.

    Raises:
        InputError: an added node can't crawl: its address is gone or reaches only a lab, a proxy hides it, or a
            numbered node has the same name.
    """
    lab = settings.lab is not None
    if count is not None or not added:
        found = make_nodes(count or default, settings.slots, lab=lab)
        if clash := sorted({node.name for node in found} & {node.name for node in added}):
            raise InputError(
                "{name!r} was added, so --nodes {count} has no such name left: leave --nodes out",
                name=clash[0],
                count=count,
            )
        return found
    if settings.proxy:
        raise InputError(
            "REVIEWLOOP_PROXY is set: the added nodes would all go through it, and be one client to every site; leave "
            "it out and add a node for it (reviewloop nodes add NAME --proxy -), or crawl with --nodes 1"
        )
    for node in added:
        _check_address(node, lab=lab)
    if {node.address for node in added} & system_addresses(lab=lab) or OWN in (node.name for node in added):
        return list(added)
    return [Node(OWN, frozenset(Kind), settings.slots), *added]


def _check_address(node: Node, *, lab: bool) -> None:
    if node.address is None:
        return
    again = Message("`reviewloop nodes remove {name}`, and add it with another address", name=node.name)
    try:
        own_address(node.address)
    except InputError as error:
        raise InputError(
            "node {name!r}: {error}; {again}", name=node.name, error=error, again=again
        ) from None
    if ip_address(node.address).is_loopback and not lab:
        raise InputError(
            "node {name!r}: {address} reaches nothing but a lab; {again}",
            name=node.name,
            address=node.address,
            again=again,
        )


def own_settings(settings: Settings, node: Node) -> Settings:
    """Return settings for the process of one node, with the address, kinds and proxy of that node."""
    own = settings.replace(address=node.address, kinds=node.kinds)
    if node.proxy is None:
        return own
    return own.replace(proxy=node.proxy.url, machine=node.proxy.place)


def clients(nodes: Sequence[Node]) -> int:
    """Return the number of clients that a site sees. Nodes behind one address count as one client."""
    return len({node.address or node.machine for node in nodes})


def own_address(text: str) -> str:
    """Return an address of this machine in its usual form, after checking that connections can be made from it.

    Raises:
        InputError: `text` is not an address of this machine. The message lists the machine's addresses.
    """
    try:
        address = ip_address(text.strip())
    except ValueError:
        shown: Message | str = repr(text)
        if "/" in text or "@" in text:
            shown = Message("what is given")
        raise InputError(
            "{shown} is no IP address; {instead}", shown=shown, instead=_describe_addresses()
        ) from None
    if address.is_unspecified or address.is_multicast:
        raise InputError(
            "{address} is no address to connect from; {instead}",
            address=address,
            instead=_describe_addresses(),
        )
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.bind((str(address), 0))
    except OSError:
        raise InputError(
            "this machine has no address {address}; {instead}", address=address, instead=_describe_addresses()
        ) from None
    return str(address)


def _describe_addresses() -> Message:
    known = ", ".join(addresses()) or Message("none but loopback")
    return Message("it has {addresses} (127.0.0.0/8 towards a lab)", addresses=known)


def addresses() -> list[str]:
    """Return the addresses of this machine that other machines can see, IPv4 first."""
    import psutil  # only for messages

    found = {
        ip_address(one.address.partition("%")[0])
        for of_interface in psutil.net_if_addrs().values()
        for one in of_interface
        if one.family in _FAR_AWAY
    }
    seen = [one for one in found if not one.is_loopback and not one.is_link_local]
    return [str(one) for one in sorted(seen, key=lambda one: (one.version, int(one)))]


def system_addresses(*, lab: bool) -> set[str]:
    """Return the addresses that the system chooses for connections: to a local lab if `lab`, else to the web."""
    return {"127.0.0.1"} if lab else {_route(family) for family in _FAR_AWAY} - {""}


def _route(family: socket.AddressFamily) -> str:
    """Return the address of this machine that connections to the Internet use; empty if there is no route."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((_FAR_AWAY[family], 9))
            return str(sock.getsockname()[0])
    except OSError:
        return ""


def browser_obstacle(store: Store, settings: Settings) -> Obstacle | None:
    """Return the obstacle to pages made by scripts if none of the live nodes has a browser; else `None`.

    It is also `None` if no node is live yet.
    """
    with store.read() as tx:
        live, rendering = nodes.count_browsers(tx, settings.node_silent_after())
    return NO_NODE_HAS_BROWSER if live and not rendering else None


def count_browsers(settings: Settings) -> tuple[int, int] | None:
    """Return the number of live nodes in the cluster, and how many of them have a browser; `None` without a cluster."""
    path = sqlite_file(settings.database_url)
    if not settings.redis_url or (path is not None and not path.is_file()):
        return None
    try:
        with closing(Store.open(settings.database_url)) as store, store.read() as tx:
            live, rendering = nodes.count_browsers(tx, settings.node_silent_after())
    except (ReviewloopError, OSError):
        return None  # another check reports the database
    return (live, rendering) if live else None
