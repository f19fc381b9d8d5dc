"""The commands `reviewloop nodes add` and `remove`: change the nodes that `run` and `up` use in addition."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import click

from app.actions.manual_actions import add_node, remove_node
from app.cli.command import App, command
from app.cli.options import ReadBy, store_to_fill
from app.cli.output import say
from app.cli.render import Done
from app.run.nodes import OWN, check_node_name, own_address, system_addresses
from app.run.setting_values import read_kinds, read_proxy
from app.views.words import translate
from splitter.catalog.names import Kind
from splitter.errors import InputError, system_reason
from tasks.domain.proxy import Proxy
from tasks.store.queue.nodes import Node

_ANSWERS_WITHIN_S = 3.0
_MOST_SLOTS = 1000


def _read_kinds(text: str) -> frozenset[Kind]:
    try:
        return read_kinds(text)
    except ValueError as error:
        raise InputError("{text!r}: {error}", text=text, error=error) from None


@command(None, "add")
@click.argument("name", type=ReadBy("name", check_node_name))
@click.option(
    "--address",
    type=ReadBy("address", own_address),
    metavar="A",
    help="An address of this machine to crawl from.",
)
@click.option(
    "--proxy",
    "proxy_url",
    metavar="URL",
    help="Proxy to crawl through: http://, https:// or socks5h://[USER:PASSWORD@]HOST:PORT; - asks for it.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, _MOST_SLOTS),
    help="Attempts that it runs at the same time. Default: as `run --slots`.",
)
@click.option(
    "--kinds",
    type=ReadBy("kinds", _read_kinds),
    metavar="meta,microblog",
    help="Kinds of sites that it crawls. Default: both.",
)
def add(
    app: App,
    name: str,
    address: str | None,
    proxy_url: str | None,
    slots: int | None,
    kinds: frozenset[Kind] | None,
) -> Done:
    """Add a crawl node with an address of its own, or through a proxy.

    Without --nodes, `run` and `up` crawl with all added nodes and with node1, which is this machine with its
    default address; an added node with that address or the name node1 replaces it. To a site, each
    address is another client; the scheduler learns which node is good at which site.

    A proxy's password is kept in the database (docs/cluster.md) and never shown. With `--proxy -` it does not
    appear in the shell's history either.

    \b
    Examples:
      reviewloop nodes add second --address 192.0.2.7
      reviewloop nodes add third --proxy socks5h://proxy.example:1080 --kinds meta
      reviewloop nodes add fourth --proxy -
    """
    if (address is None) == (proxy_url is None):
        raise InputError("say how {name} reaches the web: either --address A or --proxy URL", name=name)
    proxy = None if proxy_url is None else _read_proxy(proxy_url)
    place = proxy.place if proxy is not None else None
    node = Node(name, kinds or frozenset(Kind), slots or app.settings.slots, address, place, proxy)
    with store_to_fill(app.settings) as store:
        add_node(store, node, slots, app.who)
    if proxy is not None:
        _try_proxy(proxy)
    if address is not None and ip_address(address).is_loopback:
        say(
            translate("{address} reaches only a lab: `run` on the web will refuse it", address=address),
            "yellow",
        )
    document = {
        "node": name,
        "address": address,
        "proxy": str(proxy) if proxy is not None else None,
        "slots": slots,
        "kinds": sorted(node.kinds),
    }
    origin = translate("from {address}", address=address)
    if proxy is not None:
        origin = translate("through {proxy}", proxy=proxy)
    # The address that the system chooses by default is not another client.
    if name == OWN or address in system_addresses(lab=False):
        message = translate(
            "{name} is added: from the next start on `run` and `up` crawl {origin}, instead of {own} (this machine "
            "with its default address).",
            name=name,
            origin=origin,
            own=OWN,
        )
    else:
        message = translate(
            "{name} is added: from the next start on `run` and `up` crawl {origin}, beside {own} (this machine "
            "with its default address).",
            name=name,
            origin=origin,
            own=OWN,
        )
    return Done(document, message)


@command(None, "remove")
@click.argument("name")
def remove(app: App, name: str) -> Done:
    """Remove a node that was added. Its pages and statistics stay.

    \b
    Example:
      reviewloop nodes remove second
    """
    remove_node(app.store, name, app.settings.node_silent_after(), app.who)
    return Done({"node": name, "removed": True}, translate("{name} is removed.", name=name))


def _read_proxy(text: str) -> Proxy:
    """Return the proxy at an address. If the address is "-", ask the person for it.

    Raises:
        InputError: the address is wrong. The message does not quote it, as it may contain a password.
    """
    given = click.prompt(translate("Proxy"), hide_input=True, err=True) if text == "-" else text
    try:
        return Proxy(read_proxy(given))
    except InputError as error:
        raise InputError("--proxy: {error}", error=error) from None


def _try_proxy(proxy: Proxy) -> None:
    """Print a warning if the proxy does not answer. This is no error, because the proxy may start later."""
    host, _, port = proxy.place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_WITHIN_S).close()
    except OSError as error:
        warning = translate(
            "nothing answers at {place} now ({why}); the node is added all the same",
            place=proxy.place,
            why=system_reason(error),
        )
        say(warning, "yellow")
