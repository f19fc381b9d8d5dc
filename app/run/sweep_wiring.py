"""Make the objects that a process needs to run sweeps: scheduling context, alerts, reports, planning.

Crawl nodes of a cluster don't import this module: strategies, reports and senders take 20 MB.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from random import Random
from threading import Event
from typing import Any

from app.reports.scheduled_files import DeliveryTools, deliver_due
from app.reports.summary import write_report
from app.run.preflight import UnaskedSites
from app.run.setting_fields import Settings
from app.run.settings import language_set
from app.run.wiring import pseudonyms
from app.sending.alert_sending import GoOn, Receivers
from app.sending.delivery import Sender
from app.views.moments import local_time
from app.views.words import language
from splitter.catalog.model import Catalog
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules
from tasks.jobs import planning
from tasks.jobs.alerting import Alerting
from tasks.jobs.context import Context
from tasks.jobs.runtime import Control
from tasks.jobs.scheduler_state import SchedulerState
from tasks.store.queries import themes
from tasks.store.queue.upkeep import load_value, store_value
from tasks.store.sql.database import Store, lift_limits
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Writer
from tasks.worker.counters import Timing
from tasks.worker.fetcher import Dependencies, Fetcher


def context(settings: Settings, catalog: Catalog) -> Context:
    """Return the context of the sweeps: catalog, settings and strategies."""
    settings.use_themes()
    loop = settings.loop()
    return Context(catalog, loop, HostCatalog(catalog), Random(settings.seed), SchedulerState(loop.strategy))


def alerting(
    settings: Settings, catalog: Catalog, hosts: HostCatalog, go_on: GoOn = lambda: True
) -> Alerting:
    """Return the sweep that finds alerts and sends them while `go_on` allows it. Raises InputError."""
    engines: dict[str, str] = {}
    for name in catalog.engines:
        host = hosts.engine_host(name)
        engines[host] = f"{engines[host]}, {name}" if host in engines else name
    receivers = Receivers(settings.alert_to.split(), settings.mail_server(), language_set() or language())
    return Alerting(settings.alerts, engines, partial(receivers.tell, go_on=go_on))


def control(
    settings: Settings,
    catalog: Catalog,
    store: Store,
    writer: Writer,
    ending: Event,
    **own: Callable[..., object],
) -> Control:
    """Return the functions and connections that the sweeps use.

    Args:
        writer: writes records that must survive an outage of the database: alerts and files that were sent.
        ending: set when the process should end.
        own: functions of the process, by name: `write`, and `plan` and `fill_seen` only if they run as sweeps.
    """
    scheduling = context(settings, catalog)
    tools = delivery_tools(settings)

    def goes_on() -> bool:
        return not ending.is_set()

    alerts = alerting(settings, catalog, scheduling.hosts, goes_on)
    return Control(
        store=store,
        context=scheduling,
        report=partial(write_report, store, settings.report_file),
        deliver=partial(deliver_due, tools, store, writer.call, goes_on),
        alerts=partial(alerts.look, writer.call),
        rises=partial(_judge_rises, store, writer, catalog),
        ending=ending,
        **own,
    )


def _judge_rises(store: Store, writer: Writer, catalog: Catalog) -> None:
    """Judge which themes rise, and store the result. Do nothing if that was done today and after the last import."""
    with store.read() as tx:
        today = local_time(tx.now).date()
        stored = load_value(tx, themes.RISES)
        if stored is not None and local_time(stored.at).date() == today:
            is_done = not themes.has_new_import(tx, stored.at)
        else:
            is_done = not themes.list_products_with_reviews(tx)
    if is_done:
        return
    from app.insight.themes import judge_rises  # loads numpy

    groups = {name: site.group for name, site in catalog.sites.items()}
    with (
        store.read() as tx,
        lift_limits(tx),
    ):  # on a cold server the newest reviews of 200 products take many seconds
        found = judge_rises(tx, today, groups)
    writer.call(partial(_save_rises, found))


def _save_rises(found: Mapping[str, Any], tx: Transaction) -> None:
    store_value(tx, themes.RISES, tx.now, found)


def delivery_tools(settings: Settings) -> DeliveryTools:
    """Return the settings and functions that the sweep `deliver` uses."""

    def sender() -> Sender:
        return Sender(smtp=settings.mail_server(), user_agent=settings.crawl().user_agent)

    return DeliveryTools(
        catalog=settings.catalog,
        pseudonyms=partial(pseudonyms, settings),
        sender=sender,
        language=language_set(),
        address=settings.web_address,
    )


async def make_tasks(writer: Writer, catalog: Catalog, tools: Dependencies, unasked: UnaskedSites) -> int:
    """Make the tasks of new products, and return their number. `tools` fetch the robots.txt of the sites."""

    def robots_of(url: str) -> Awaitable[RobotsRules]:
        return Fetcher(tools, Timing(time.monotonic), lambda _wait_s: None).robots(url)

    return await planning.plan(
        writer, catalog, robots_of, ROBOTS_TOKEN, unasked.list_unasked, late=unasked.due
    )
