"""Make the objects that a crawl node needs from its settings: tools, sign-ins, pseudonyms."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import entry_points
from pathlib import Path

from app.run.hardware import this_machine
from app.run.setting_fields import Settings
from app.run.settings import logins
from splitter.catalog.entries import entries_of, entries_without_browser
from splitter.catalog.model import Catalog
from splitter.errors import InputError, system_reason
from tasks.domain.proxy import Proxy
from tasks.fetching.browser import Browser
from tasks.fetching.chromium import find_chromium, missing
from tasks.fetching.downloader import Downloader
from tasks.fetching.guard import SessionSettings
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.permits import Permits
from tasks.signin.credentials import Credentials
from tasks.signin.errors import MissingCredential
from tasks.signin.granted import SignInFile
from tasks.signin.signins import OwnMethod, SignIns, signing
from tasks.store.queue import nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql.writer import Writer
from tasks.worker.fetcher import Dependencies
from tasks.worker.list_cache import ListCache
from tasks.worker.node import CrawlNode
from tasks.worker.page_reader import PageReader
from tasks.worker.pseudonyms import SHORTEST_KEY, Pseudonyms, load_key
from tasks.worker.request_log import RequestLog
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages

_SHORTEST_SECRET = 16


@dataclass(frozen=True, slots=True)
class SharedTools:
    """The tools that the nodes of one process share.

    Attributes:
        browser: runs the scripts of pages; `None` if there is no Chromium.
        requests: log of all requests, if the settings name a file for it.
    """

    reader: PageReader
    browser: Browser | None
    requests: RequestLog | None
    lists: ListCache = field(default_factory=ListCache)


@asynccontextmanager
async def open_shared_tools(settings: Settings) -> AsyncIterator[SharedTools]:
    """Open the tools that the nodes of one process share. Raises InputError."""
    async with AsyncExitStack() as stack:
        requests = None
        if settings.request_log:
            try:
                requests = stack.enter_context(closing(RequestLog(Path(settings.request_log))))
            except OSError as error:
                raise InputError(
                    "{path}: requests can't be logged there: {reason}",
                    path=settings.request_log,
                    reason=system_reason(error),
                ) from None
        settings.use_themes()
        reader = stack.enter_context(closing(PageReader()))
        if (browser := new_browser(settings)) is not None:
            stack.push_async_callback(browser.close)
        yield SharedTools(reader, browser, requests)


@asynccontextmanager
async def open_tools(
    settings: Settings,
    catalog: Catalog,
    robots: RobotsCache,
    permits: Permits,
    seen: SeenPages,
    shared: SharedTools | None = None,
) -> AsyncIterator[Dependencies]:
    """Open the tools of one node. Its downloader sends requests from the address that the settings name.

    Nodes without an address of their own share their machine's address. A host sees them as one client, and they share
    one limit `per_address_per_s`.

    Args:
        shared: tools to share with other nodes. By default the node opens its own, without a log of requests, because
            only one process may write to that file.
    """
    crawl, address = settings.crawl(), settings.address
    hosts = HostCatalog(catalog)
    async with AsyncExitStack() as stack:
        if shared is None:
            shared = await stack.enter_async_context(open_shared_tools(settings.replace(request_log="")))
        downloader = await stack.enter_async_context(
            Downloader(
                user_agent=crawl.user_agent,
                clock=utc_now,
                local_address=address,
                lab=settings.lab,
                proxy=settings.proxy or None,
                private=hosts.may_be_private,
            )
        )
        yield Dependencies(
            downloader=downloader,
            permits=permits,
            robots=robots,
            hosts=hosts,
            address=address or machine(settings),
            settings=crawl,
            now=utc_now,
            seen=seen,
            sign_ins=sign_ins(settings, catalog) if signing(catalog) else None,
            pseudonyms=pseudonyms(settings),
            reader=shared.reader,
            browser=shared.browser,
            lists=shared.lists,
            requests=shared.requests,
        )


def open_node(
    settings: Settings,
    row: Node,
    tools: Dependencies,
    catalog: Catalog,
    writer: Writer,
    on_free: Callable[[], None],
) -> CrawlNode:
    """Open a node, which runs leases until it is stopped.

    Args:
        on_free: called on the event loop when a slot is free.
    """
    entries, recall = entries_of_node(settings, catalog), settings.loop().recall
    node = CrawlNode(row, tools, catalog, writer, recall, on_free, entries=entries)
    node.open()
    return node


def new_browser(settings: Settings) -> Browser | None:
    """Return a browser for pages made by scripts; `None` if there is no Chromium. It starts with the first page."""
    program = None if any(missing(settings.chromium)) else find_chromium(settings.chromium)
    return Browser(program) if program is not None else None


def entries_of_node(settings: Settings, catalog: Catalog) -> dict[str, str]:
    """Return the entries of the catalog that a node of this process can crawl, and with which it registers."""
    return (entries_without_browser if any(missing(settings.chromium)) else entries_of)(catalog)


def machine(settings: Settings) -> str:
    """Return the name that identifies all processes behind one outgoing address."""
    return settings.machine or platform.node()


def sign_ins(settings: Settings, catalog: Catalog) -> SignIns:
    """Return the sign-ins of one node, from the catalog, the credentials of the environment and the encrypted file.

    Raises:
        MissingCredential: a site has credentials, but there is no key to encrypt the session that the site grants.
    """
    names = signing(catalog)
    secret = settings.secret_key
    crawl, environment = settings.crawl(), logins()
    # Without credentials there are no sign-ins to store, so no key is needed.
    given = [
        name for name in names if Credentials(name, environment).any and _is_crawled(settings, catalog, name)
    ]
    if given and settings.proxy:
        raise InputError(
            "a node goes through the proxy {place}, and {name} signs in to {given}: signing in does not go "
            "through a proxy, and would show the site another address than its pages are asked from; leave "
            "out the proxy, or the user and password of these sites, or let the node crawl other kinds only "
            "(--kinds)",
            place=Proxy(settings.proxy).place,
            name=catalog.name,
            given=", ".join(given),
        )
    if (given or (names and secret)) and len(secret) < _SHORTEST_SECRET:
        raise MissingCredential(
            "{name} signs in to {given}: set REVIEWLOOP_SECRET_KEY to {n} characters or more",
            name=catalog.name,
            given=", ".join(given or names),
            n=_SHORTEST_SECRET,
        )
    return SignIns(
        catalog,
        lambda name: Credentials(name, environment),
        SignInFile(settings.sign_in_file, secret) if names and secret else None,
        SessionSettings(
            user_agent=crawl.user_agent,
            local_address=settings.address,
            lab=settings.lab,
            timeout_s=crawl.request_timeout_s,
        ),
        utc_now,
        own_sign_in_methods(),
    )


def own_sign_in_methods() -> Mapping[str, OwnMethod]:
    """Return the sign-in methods that installed packages provide, by site: classes that take the catalog's rules."""
    return {method.name: method.load() for method in entry_points(group="reviewloop.sign_ins")}


def _is_crawled(settings: Settings, catalog: Catalog, name: str) -> bool:
    """Return True if a node with the kinds of the settings asks the site or engine of this name."""
    kind = catalog.engines[name].kind if name in catalog.engines else catalog.kind_of(name)
    return settings.kinds is None or kind in settings.kinds


def pseudonyms(settings: Settings) -> Pseudonyms | None:
    """Return the object that replaces authors' names by pseudonyms, or None if names are stored as they are.

    Raises:
        InputError: the key is too short, or its file can't be read or made.
    """
    if not settings.pseudonymise:
        return None
    source = "REVIEWLOOP_PSEUDONYM_KEY" if settings.pseudonym_key else settings.pseudonym_key_file
    try:
        return Pseudonyms(settings.pseudonym_key or load_key(settings.pseudonym_key_file))
    except ValueError as error:
        raise InputError(
            "{source}: {error}; write at least {n} characters",
            source=source,
            error=error,
            n=SHORTEST_KEY,
        ) from None


async def describe(writer: Writer, names: Sequence[str]) -> None:
    """Measure this machine and store the result for its nodes.

    They crawl meanwhile, because timing the disk takes a while.
    """
    parameters = await asyncio.to_thread(this_machine)
    await writer.run(lambda tx: nodes.describe(tx, names, parameters))


def utc_now() -> datetime:
    """Return the current time of the system clock.

    Use it for dates on pages (3小时前) and Retry-After, never for leases.
    """
    return datetime.now(UTC)
