"""Serving the dashboard on a socket, with the tokens that its address needs."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from app.run.setting_fields import Settings
from app.web.address import address_of, is_loopback
from app.web.application import make_application
from app.web.base.access import Access, Role, Tokens, token_hash
from app.web.base.context import Context
from app.web.pages.matrix import read_matrix
from app.web.pages.overview import read_overview, read_trends
from app.web.pages.reviews import read_counts
from splitter.errors import InputError, ReviewloopError
from tasks.fetching.hosts import HostCatalog
from tasks.store.sql.database import Store
from tasks.worker.pseudonyms import kept_key

_START_S = 10.0
_log = logging.getLogger(__name__)


class NotServing(ReviewloopError):
    """The server did not come up."""


def with_tokens(settings: Settings, host: str) -> tuple[Settings, str]:
    """Return the settings with tokens if other machines reach the address, and the operator's token if it was made.

    Tokens that are not set are made at random, once, and kept in files of the keys folder.

    Raises:
        InputError: a token can't be read or kept.
    """
    if is_loopback(host) or (settings.web_viewer and settings.web_operator):
        return settings, ""
    folder = Path(settings.keys_folder)
    viewer, operator = (kept_key(folder / f"reviewloop.web-{role}") for role in Role)
    own = settings.with_(
        web_viewer=settings.web_viewer or token_hash(viewer),
        web_operator=settings.web_operator or token_hash(operator),
    )
    return own, "" if settings.web_operator else operator


def make_server(
    settings: Settings, store: Store, sock: socket.socket, *, ahead: bool = False
) -> uvicorn.Server:
    """The server of a store on a socket.

    Args:
        ahead: read what is costly before the first visitor comes.

    Raises:
        InputError: other machines reach the address, and there are no tokens (`with_tokens` makes them).
        CatalogError: the catalog is wrong.
    """
    host, port = sock.getsockname()[:2]
    tokens = Tokens(settings.web_viewer, settings.web_operator)
    if not is_loopback(host) and not (tokens.viewer and tokens.operator):
        raise InputError(f"other machines reach {host}: the dashboard needs tokens there")
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
