"""Serve the dashboard on a socket: require tokens if other machines can reach it, and limit connections."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from app.run.setting_fields import Settings
from app.web.address import address_of, is_loopback, split_public
from app.web.application import make_application
from app.web.base.access import Access, Tokens, VisitorRole, token_hash
from app.web.base.context import WebContext
from app.web.pages.matrix import read_pairs
from app.web.pages.overview import read_status, read_trends
from splitter.errors import InputError, ReviewloopError
from tasks.fetching.hosts import HostCatalog
from tasks.store.sql.database import Store
from tasks.worker.pseudonyms import load_key

_START_S = 10.0
_MAX_CONNECTIONS = 512
_LIMITS_S = {"headers": 10.0, "body": 30.0, "reading": 30.0}
"""Maximum seconds for sending headers, sending a body and reading an answer, by name."""
_log = logging.getLogger(__name__)


class NotServing(ReviewloopError):
    """The server did not start."""


class LimitedProtocol(H11Protocol):
    """An HTTP connection that is closed if its client takes too long or has too many connections.

    A client is an IPv4 address or the /64 network of an IPv6 address. It may use a quarter of `limit_concurrency`.
    Trusted proxies may use all, because they bring many clients.

    A timer runs while the client has something to do: send the headers (after the connection is opened or the last
    answer is complete), send the body, or read the answer. It is not reset by bytes that arrive. It does not run while
    the application works.
    """

    _network: IPv4Network | IPv6Network | None = None
    _awaited = ""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or close it if the client has reached its limit."""
        super().connection_made(transport)
        if self._exceeds_limits():
            self.connections.discard(self)
            transport.abort()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the request and count the connection as closed."""
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Process bytes that the client sent."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Start to wait for the client's next request."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Let the application wait until the client has read what was sent."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """Let the application continue after the client has read what was sent."""
        super().resume_writing()
        self._watch()

    def _exceeds_limits(self) -> bool:
        # At its limit uvicorn answers every request with 503, so one connection fewer is accepted.
        limit = self.limit_concurrency or 0
        address = ip_address(self.client[0] if self.client else "::")
        if not any(address in ip_network(proxy) for proxy in self.config.forwarded_allow_ips):
            self._network = ip_network((address.packed, 32 if address.version == 4 else 64), strict=False)
        own = sum(getattr(one, "_network", None) == self._network for one in self.connections)
        return len(self.connections) >= limit or (self._network is not None and own > limit // 4)

    def _watch(self) -> None:
        if self.flow.write_paused:
            awaited = "reading"
        elif self.conn.their_state is h11.SEND_BODY:
            awaited = "body"
        else:
            awaited = "headers" if self.cycle is None or self.cycle.response_complete else ""
        if awaited != self._awaited:
            self._awaited = awaited
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self.loop.call_later(_LIMITS_S[awaited], self._expire) if awaited else None

    def _expire(self) -> None:
        unanswered = self._awaited == "body" and not self.cycle.response_started
        if unanswered and not self.transport.get_write_buffer_size():
            self.send_400_response(f"The body of a request may take {_LIMITS_S['body']:g} s.")
        else:
            self.transport.abort()


def add_tokens(settings: Settings, host: str) -> tuple[Settings, str]:
    """Make sure that the dashboard has tokens if other machines can reach it.

    Other machines can also reach 127.0.0.1 if a proxy has a public address for it. A missing token is made at random
    once and stored in a file in the keys folder.

    Returns:
        The settings with the hashes of the tokens, and the operator's token if it is one of those files, else "".

    Raises:
        InputError: a token can't be read or stored.
    """
    public = urlsplit(settings.web_address).hostname or host
    is_ours = is_loopback(host) and is_loopback(public)
    if is_ours or (settings.web_viewer and settings.web_operator):
        return settings, ""
    folder = Path(settings.keys_folder)
    viewer, operator = (load_key(folder / f"reviewloop.web-{role}") for role in VisitorRole)
    own = settings.replace(
        web_viewer=settings.web_viewer or token_hash(viewer),
        web_operator=settings.web_operator or token_hash(operator),
    )
    return own, "" if settings.web_operator else operator


def make_server(
    settings: Settings, store: Store, sock: socket.socket, *, ahead: bool = False
) -> uvicorn.Server:
    """Return the server for a store and a socket.

    Args:
        ahead: True to compute costly values in advance, before the first visitor comes.

    Raises:
        InputError: other machines reach the address, and there are no tokens (`add_tokens` makes them).
        CatalogError: the catalog is wrong.
    """
    host = sock.getsockname()[0]
    tokens = Tokens(settings.web_viewer, settings.web_operator)
    if not is_loopback(host) and not (tokens.viewer and tokens.operator):
        raise InputError("other machines reach {host}: the dashboard needs tokens there", host=host)
    catalog = settings.catalog()
    settings.use_themes()
    access = Access(tokens)
    context = WebContext(settings, store, catalog, HostCatalog(catalog), access)
    if ahead:
        warm_up(context)
    # The other open files of the process belong to the database, uploads and a crawl.
    max_connections = min(_MAX_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    config = uvicorn.Config(
        make_application(context, _list_hosts(settings, host), find_root_path(settings)),
        http=LimitedProtocol,
        ws="none",
        limit_concurrency=max_connections,
        proxy_headers=False,
        forwarded_allow_ips=[str(network) for network in settings.trusted_proxies],
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def find_root_path(settings: Settings) -> str:
    """Return the path under which a proxy serves the dashboard; empty for the root."""
    return settings.web_root_path or split_public(settings.web_address)[1]


def _list_hosts(settings: Settings, host: str) -> list[str]:
    """Return the names to accept in the Host header.

    Without tokens and a public address, only the names of this machine are accepted.
    """
    public = urlsplit(settings.web_address).hostname
    if public is None and (settings.web_viewer or settings.web_operator):
        return ["*"]
    own = [host, f"[{host}]", "localhost", "127.0.0.1", "[::1]", "::1"]
    return own if public is None else [*own, public]


def warm_up(context: WebContext) -> None:
    """Compute values in the background that are costly in a large store, so that the first visitor need not wait."""

    def make() -> None:
        try:
            for read in (read_status, read_trends, read_pairs):
                read(context)
        except Exception:
            _log.warning("the dashboard could not read the store ahead of its first visitor", exc_info=True)

    threading.Thread(target=make, daemon=True).start()


@contextmanager
def serving(settings: Settings, store: Store, sock: socket.socket) -> Iterator[str]:
    """Serve the dashboard in a thread during the block, and yield its address."""
    server = make_server(settings, store, sock)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    give_up = time.monotonic() + _START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > give_up:
            raise NotServing("the dashboard did not start within {s:.0f} s", s=_START_S)
        time.sleep(0.01)
    try:
        yield address_of(sock)
    finally:
        server.should_exit = True
        thread.join(_START_S)
