"""`reviewloop nodes add` and `nodes remove`: the nodes that `run` and `up` crawl with beside this machine's own."""

from __future__ import annotations

import socket
from ipaddress import ip_address

import click

from app.actions.manual_actions import add_node, remove_node
from app.cli.options import ReadBy, db_option, json_option, person, settings_of, store_there, store_to_fill
from app.cli.output import answer, say
from app.run.nodes import OWN, check_node_name, own_address, system_addresses
from app.run.setting_values import read_kinds, read_proxy
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.domain.proxy import Proxy
from tasks.store.queue.nodes import Node

_ANSWERS_WITHIN_S = 3.0
_MOST_SLOTS = 1000


def _kinds(text: str) -> frozenset[Kind]:
    try:
        return read_kinds(text)
    except ValueError as error:
        raise InputError("{text!r}: {error}", text=text, error=error) from None


@click.command()
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
    type=ReadBy("kinds", _kinds),
    metavar="meta,microblog",
    help="Kinds of sites that it crawls. Default: both.",
)
@db_option
@json_option
def add(
    name: str,
    address: str | None,
    proxy_url: str | None,
    slots: int | None,
    kinds: frozenset[Kind] | None,
    db: str | None,
    as_json: bool,
) -> None:
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
    proxy = None if proxy_url is None else _proxy(proxy_url)
    place = proxy.place if proxy is not None else None
    node = Node(name, kinds or frozenset(Kind), slots or settings_of().slots, address, place, proxy)
    with store_to_fill(settings_of(db)) as store:
        add_node(store, node, slots, person())
    if proxy is not None:
        _try(proxy)
    if address is not None and ip_address(address).is_loopback:
        say(f"{address} reaches nothing but a lab: `run` on the web will refuse it", "yellow")
    # An address that the system would choose by itself is no second client.
    instead = name == OWN or address in system_addresses(lab=False)
    own = f", {'instead of' if instead else 'beside'} {OWN} (this machine as the system connects it)"
    where = f"from {address}" if address is not None else f"through {proxy}"
    answer(
        {
            "node": name,
            "address": address,
            "proxy": str(proxy) if proxy is not None else None,
            "slots": slots,
            "kinds": sorted(node.kinds),
        },
        f"{name} is added: from the next start on `run` and `up` crawl {where}{own}",
        as_json,
    )


@click.command()
@click.argument("name")
@db_option
@json_option
def remove(name: str, db: str | None, as_json: bool) -> None:
    """Remove a node that was added; the pages it collected and what was learned of it stay.

    \b
    Example:
      reviewloop nodes remove second
    """
    settings = settings_of(db)
    with store_there(settings) as store:
        remove_node(store, name, settings.node_silent_after(), person())
    answer({"node": name, "removed": True}, f"{name} is removed", as_json)


def _proxy(text: str) -> Proxy:
    """The proxy that is named, or asked for. Raises InputError, whose message does not repeat it."""
    given = click.prompt("Proxy", hide_input=True, err=True) if text == "-" else text
    try:
        return Proxy(read_proxy(given))
    except InputError as error:
        raise InputError("--proxy: {error}", error=error) from None


def _try(proxy: Proxy) -> None:
    """Say so where nothing answers at the proxy's place; it may come later."""
    host, _, port = proxy.place.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWERS_WITHIN_S).close()
    except OSError as error:
        say(
            f"nothing answers at {proxy.place} now ({error.strerror or error}); the node is added all the same",
            "yellow",
        )
