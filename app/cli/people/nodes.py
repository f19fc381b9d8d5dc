"""`reviewloop nodes`: the crawl nodes."""

from __future__ import annotations

from collections.abc import Iterator

import click

from app.actions.manual_actions import set_drained
from app.cli.command import App, command
from app.cli.people.node_changes import add, remove
from app.cli.render import Done, Part, table, text
from app.cli.tables import list_node_parts
from app.views.nodes import REST_FIELDS, NodesView, get_nodes_view
from app.views.words import translate


@click.group()
def nodes() -> None:
    """Add, remove, list, drain and resume crawl nodes.

    \b
    Examples:
      reviewloop nodes add second --address 192.0.2.7
      reviewloop nodes add third --proxy http://proxy.example:8080
      reviewloop nodes list
      reviewloop nodes drain node2
      reviewloop nodes resume node2
    """


@command(nodes, "list")
def list_(app: App) -> NodesView:
    """List the nodes with their work, and the hosts that refuse their addresses.

    Working and free slots add up to the slots of a node. "waiting" counts begun attempts that wait for a host's rate or
    for the database: they use no slot. "held" counts leases that a node has not started, "wait" is the time until it is
    expected to start the last of them. "backlog" (in JSON) and "attempts/s" are as of the last heartbeat. If the
    waits of nodes differ by more than a few seconds, leases move.

    A rest is "open" (no request is sent until then) or "half_open" (it is over; one attempt at a time tries
    again, and a page ends it).

    \b
    Example:
      reviewloop nodes list --json
    """
    with app.store.read() as tx:
        return get_nodes_view(tx, app.settings.buffer())


@text.register
def _(view: NodesView) -> Iterator[Part]:
    if not view.nodes:
        yield translate("No node has run yet: reviewloop run --until-done")
        return
    yield from list_node_parts(view.nodes, view.now)
    rests = [rest for node in view.nodes for rest in node.rests]
    if rests:
        yield table(rests, REST_FIELDS, title=translate("Hosts that refuse a node's address"), now=view.now)


@command(nodes, "drain")
@click.argument("name")
def drain(app: App, name: str) -> Done:
    """Give a node no new work. It finishes running attempts and returns leases that it has not started.

    \b
    Example:
      reviewloop nodes drain node2
    """
    set_drained(app.store, name, True, app.who)
    message = translate("{node} is drained: it gets nothing new.", node=name)
    return Done({"node": name, "drained": True}, message)


@command(nodes, "resume")
@click.argument("name")
def resume(app: App, name: str) -> Done:
    """Give a drained node work again.

    \b
    Example:
      reviewloop nodes resume node2
    """
    set_drained(app.store, name, False, app.who)
    return Done({"node": name, "drained": False}, translate("{node} is in service again.", node=name))


nodes.add_command(add)
nodes.add_command(remove)
