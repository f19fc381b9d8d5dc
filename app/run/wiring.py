"""Makes what a process runs from its settings: scheduling context, crawl nodes, sign-ins, pseudonyms."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from random import Random
from threading import Event

from app.reports.scheduled_files import DeliveryTools, deliver_due
from app.reports.summary import write_report
from app.run.hardware import this_machine
from app.run.preflight import Askable
from app.run.setting_fields import Settings
from app.run.settings import logins
from app.sending.alert_sending import GoOn, Receivers
from app.sending.delivery import Sender
from splitter.catalog.entries import entries_of, entries_without_browser
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.domain.proxy import Proxy
from tasks.fetching.browser import Browser
from tasks.fetching.chromium import find_chromium, missing
from tasks.fetching.downloader import Downloader
from tasks.fetching.guarded_session import SessionSettings
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.permits import Permits
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules
from tasks.jobs import planning
from tasks.jobs.alerting import Alerting
from tasks.jobs.context import Context
from tasks.jobs.runtime import Control
from tasks.jobs.scheduler_state import SchedulerState
from tasks.signin.credentials import Credentials
from tasks.signin.errors import MissingCredential
from tasks.signin.granted import SignInFile
from tasks.signin.signins import OwnMethod, SignIns, signing
from tasks.store.queue import nodes
from tasks.store.sql.database import Store
from tasks.store.sql.writer import Writer
from tasks.worker.counters import Timing
from tasks.worker.fetcher import Dependencies, Fetcher
from tasks.worker.list_cache import ListCache
from tasks.worker.page_reader import PageReader
from tasks.worker.pseudonyms import SHORTEST_KEY, Pseudonyms, kept_key
from tasks.worker.request_log import RequestLog
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages

_SHORTEST_SECRET = 16


def context(settings: Settings, catalog: Catalog) -> Context:
    """The context of the sweeps."""
    loop = settings.loop()
    return Context(catalog, loop, HostCatalog(catalog), Random(settings.seed), SchedulerState(loop.strategy))


def alerting(
    settings: Settings, catalog: Catalog, hosts: HostCatalog, go_on: GoOn = lambda: True
) -> Alerting:
    """The sweep that looks what is wrong and tells people, for as long as `go_on` says so. Raises InputError."""
    engines: dict[str, str] = {}
    for name in catalog.engines:
        host = hosts.of_engine(name)
        engines[host] = f"{engines[host]}, {name}" if host in engines else name
    receivers = Receivers(settings.alert_to.split(), settings.mail_server())
    return Alerting(settings.alerts, engines, partial(receivers.tell, go_on=go_on))


@asynccontextmanager
async def deps(
    settings: Settings,
    catalog: Catalog,
    robots: RobotsCache,
    permits: Permits,
    seen: SeenPages,
    *,
    address: str | None,
    reader: PageReader | None = None,
    browser: Browser | None = None,
    lists: ListCache | None = None,
    requests: RequestLog | None = None,
) -> AsyncIterator[Dependencies]:
    """The tools of one node, its downloader bound to its own source address.

    Nodes that bind none share their machine's: to a host they are one client, with one `per_address_per_s`.

    Args:
        reader, browser, lists: what nodes of one process share; None: it gets one of its own (a browser where there
            is a Chromium).
    """
    crawl = settings.crawl()
    hosts = HostCatalog(catalog)
    async with AsyncExitStack() as stack:
        if reader is None:
            reader = stack.enter_context(closing(PageReader()))
        if browser is None and (browser := new_browser(settings)) is not None:
            stack.push_async_callback(browser.close)
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
            sign_ins=sign_ins(settings, catalog, address=address, clock=utc_now)
            if signing(catalog)
            else None,
            pseudonyms=pseudonyms(settings),
            reader=reader,
            browser=browser,
            lists=lists or ListCache(),
            requests=requests,
        )


@contextmanager
def request_log(settings: Settings) -> Iterator[RequestLog | None]:
    """The log of this process's requests, open while the block runs; None: there is none. Raises InputError."""
    if not settings.request_log:
        yield None
        return
    try:
        opened = RequestLog(Path(settings.request_log))
    except OSError as error:
        raise InputError(
            f"{settings.request_log}: requests can't be logged there: {error.strerror}"
        ) from None
    with closing(opened):
        yield opened


def new_browser(settings: Settings) -> Browser | None:
    """The browser that runs the scripts of pages in this process, with the first page; None: there is none."""
    program = None if any(missing(settings.chromium)) else find_chromium(settings.chromium)
    return Browser(program) if program is not None else None


def entries_of_node(settings: Settings, catalog: Catalog) -> dict[str, str]:
    """What a node of this process tells of its catalog when it registers."""
    return (entries_without_browser if any(missing(settings.chromium)) else entries_of)(catalog)


def machine(settings: Settings) -> str:
    """The name that processes behind one outgoing address share."""
    return settings.machine or platform.node()


def sign_ins(
    settings: Settings, catalog: Catalog, *, address: str | None, clock: Callable[[], datetime]
) -> SignIns:
    """The sign-ins of one node: catalog, credentials of the environment, and the encrypted file.

    Args:
        address: the node's source address; None: the system's choice.
        clock: aware time.

    Raises:
        MissingCredential: a site is to be signed in to, and there is no key to encrypt with what it grants.
    """
    names = signing(catalog)
    secret = settings.secret_key
    crawl, environment = settings.crawl(), logins()
    # Without credentials nothing is granted, so no key is needed.
    given = [
        name for name in names if Credentials(name, environment).any and _crawled(settings, catalog, name)
    ]
    if given and settings.proxy:
        raise InputError(
            f"a node goes through the proxy {Proxy(settings.proxy).place}, and {catalog.name} signs in to "
            f"{', '.join(given)}: signing in does not go through a proxy, and would show the site another address "
            "than its pages are asked from; leave out the proxy, or the user and password of these sites, or let "
            "the node crawl other kinds only (--kinds)"
        )
    if (given or (names and secret)) and len(secret) < _SHORTEST_SECRET:
        raise MissingCredential(
            f"{catalog.name} signs in to {', '.join(given or names)}: set REVIEWLOOP_SECRET_KEY to "
            f"{_SHORTEST_SECRET} characters or more"
        )
    return SignIns(
        catalog,
        lambda name: Credentials(name, environment),
        SignInFile(settings.sign_in_file, secret) if names and secret else None,
        SessionSettings(
            user_agent=crawl.user_agent,
            local_address=address,
            lab=settings.lab,
            timeout_s=crawl.request_timeout_s,
        ),
        clock,
        own_sign_in_methods(),
    )


def own_sign_in_methods() -> Mapping[str, OwnMethod]:
    """Return the sign-in methods that distributions bring, by site: classes that take the catalog's rules."""
    return {method.name: method.load() for method in entry_points(group="reviewloop.sign_ins")}


def _crawled(settings: Settings, catalog: Catalog, name: str) -> bool:
    """Whether a node of these kinds asks a site or engine of that name."""
    kind = catalog.engines[name].kind if name in catalog.engines else catalog.kind_of(name)
    return settings.kinds is None or kind in settings.kinds


def pseudonyms(settings: Settings) -> Pseudonyms | None:
    """The maker of authors' pseudonyms; None where names are stored as they are.

    Raises:
        InputError: the key is too short, or its file can't be read or made.
    """
    if not settings.pseudonymise:
        return None
    source = "REVIEWLOOP_PSEUDONYM_KEY" if settings.pseudonym_key else settings.pseudonym_key_file
    try:
        return Pseudonyms(settings.pseudonym_key or kept_key(settings.pseudonym_key_file))
    except ValueError as error:
        raise InputError(f"{source}: {error}; write at least {SHORTEST_KEY} characters") from None


def control(
    settings: Settings,
    catalog: Catalog,
    store: Store,
    writer: Writer,
    ending: Event,
    **own: Callable[..., object],
) -> Control:
    """Return the resources of the sweeps.

    Args:
        writer: writes what must not be lost while the database is away: that people were told, or got a file.
        ending: set when the process should end.
        own: `write`, and if they run as sweeps `plan` and `fill_seen`.
    """
    scheduling, tools = context(settings, catalog), delivery_tools(settings)

    def goes_on() -> bool:
        return not ending.is_set()

    alerts = alerting(settings, catalog, scheduling.hosts, goes_on)
    return Control(
        store=store,
        context=scheduling,
        report=partial(write_report, store, settings.report_file),
        deliver=partial(deliver_due, tools, store, writer.call, goes_on),
        alerts=partial(alerts.look, writer.call),
        ending=ending,
        **own,
    )


def delivery_tools(settings: Settings) -> DeliveryTools:
    """Return what the sweep `deliver` needs from the settings."""

    def sender() -> Sender:
        return Sender(smtp=settings.mail_server(), user_agent=settings.crawl().user_agent)

    return DeliveryTools(catalog=settings.catalog, pseudonyms=partial(pseudonyms, settings), sender=sender)


async def describe(writer: Writer, names: Sequence[str]) -> None:
    """Store the parameters of this machine for its nodes; they crawl meanwhile, as trying the disk takes time."""
    parameters = await asyncio.to_thread(this_machine)
    await writer.run(lambda conn, _now: nodes.describe(conn, names, parameters))


async def make_tasks(writer: Writer, catalog: Catalog, tools: Dependencies, askable: Askable) -> int:
    """Make the tasks of new products, robots.txt fetched with these tools; returns how many."""

    def robots_of(url: str) -> Awaitable[RobotsRules]:
        return Fetcher(tools, Timing(time.monotonic), lambda _wait_s: None).robots(url)

    return await planning.plan(writer, catalog, robots_of, ROBOTS_TOKEN, askable.unasked, late=askable.due)


def utc_now() -> datetime:
    """The wall clock, for dates on pages (3小时前) and Retry-After; never for leases."""
    return datetime.now(UTC)
