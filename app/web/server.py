"""Serving the dashboard on a socket, with the tokens that its address needs."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.run.setting_fields import Settings
from app.web.address import address_of, is_loopback
from app.web.application import make_application
from app.web.base.access import Access, Tokens
from app.web.base.context import Context
from app.web.pages.matrix import read_matrix
from app.web.pages.overview import read_overview, read_trends
from app.web.pages.reviews import read_counts
from splitter.errors import InputError, ReviewloopError
from tasks.fetching.hosts import HostCatalog
from tasks.store.database import Store

_START_S = 10.0
_log = logging.getLogger(__name__)


class NotServing(ReviewloopError):
    """The server did not come up."""


def check_tokens(settings: Settings, host: str) -> Tokens:
    """The tokens in force.

    Raises:
        InputError: others reach this address, and there are not both tokens.
    """
    tokens = Tokens(settings.web_viewer, settings.web_operator)
    if not is_loopback(host) and not (tokens.viewer and tokens.operator):
        raise InputError(
            f"other machines reach {host}: first make tokens with `reviewloop web --make-token operator` and "
            "`reviewloop web --make-token viewer`, or serve 127.0.0.1"
        )
    return tokens


def make_server(
    settings: Settings, store: Store, sock: socket.socket, *, ahead: bool = False
) -> uvicorn.Server:
    """The server of a store on a socket.

    Args:
        ahead: read what is costly before the first visitor comes.

    Raises:
        InputError: see `check_tokens`.
        CatalogError: the catalog is wrong.
    """
    host, port = sock.getsockname()[:2]
    tokens = check_tokens(settings, host)
    catalog = settings.catalog()
    access = Access(tokens, time.monotonic)
    context = Context(settings, store, catalog, HostCatalog(catalog), settings.node_silent_after(), access)
    if ahead:
        warm_up(context)
    names = None if tokens else {f"{name}:{port}" for name in (host, f"[{host}]", "localhost", "127.0.0.1")}
    config = uvicorn.Config(
        make_application(context, names),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def warm_up(context: Context) -> None:
    """Make what is costly on a large store beside the start, so that the first visitor need not wait for it."""

    def make() -> None:
        try:
            for read in (read_overview, read_trends, read_matrix, read_counts):
                read(context)
        except Exception:
            _log.warning("the dashboard could not read the store ahead of its first visitor", exc_info=True)

    threading.Thread(target=make, daemon=True).start()


@contextmanager
def serving(settings: Settings, store: Store, sock: socket.socket) -> Iterator[str]:
    """Serve beside what this process does; gives the address."""
    server = make_server(settings, store, sock)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    give_up = time.monotonic() + _START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > give_up:
            raise NotServing(f"the dashboard did not start within {_START_S:.0f} s")
        time.sleep(0.01)
    try:
        yield address_of(sock)
    finally:
        server.should_exit = True
        thread.join(_START_S)
