"""The commands `reviewloop run` and `reviewloop up`: crawl in this process, or with a cluster on this machine."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.command import App, command
from app.cli.crawl.runner_options import runner_options
from app.cli.inspect.web import running_dashboard, say_dashboard
from app.cli.options import FOLDER, database_hint, refuse_store_of_up, store_for_work
from app.cli.output import say
from app.run.open_store import hold_database, refuse_busy
from app.run.setting_values import sqlite_file
from app.run.version import DEFAULT_DATA, DEFAULT_DATABASE
from app.views.words import translate
from splitter.errors import InputError

if TYPE_CHECKING:
    from app.reports.summary import RunView
    from app.run.cluster.processes import Program
    from app.run.cluster.supervisor import Cluster
    from app.run.setting_fields import Settings
    from app.views.crawl_plan import CrawlPlan

_NODES_ON_THE_WEB = 1
_NODES_IN_THE_LAB = 4
_NODES_OF_A_CLUSTER = 4
_MOST_NODES = 250


@command(None, "run", sites=True, lab=True)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--nodes",
    type=click.IntRange(1, _MOST_NODES),
    help="Number of crawl nodes in this process. Default: those of `nodes add` and this machine; "
    "if there are none 1, with --lab 4.",
)
@click.option("--seed", type=int, help="Seed of the allocation. Default: another one each time.")
@click.option("--plan", "only_plan", is_flag=True, help="Only show what would be crawled; store nothing.")
@click.option("--web", is_flag=True, help="Serve the dashboard while it runs; products can be added there.")
@click.option(
    "--web-host",
    default="127.0.0.1",
    show_default=True,
    help="Address of that dashboard; any other than 127.0.0.1 needs a token.",
)
@runner_options
def run(
    app: App,
    names: tuple[str, ...],
    nodes: int | None,
    only_plan: bool,
    web: bool,
    web_host: str,
    until_done: bool,
    seconds: float | None,
    groups: tuple[str, ...],
    sites_named: tuple[str, ...],
    **options: Any,
) -> RunView | CrawlPlan:
    """Collect reviews of products in this process.

    It runs until all is done, for a time, or until Ctrl-C. NAMEs are added as products first. Ctrl-C ends it
    cleanly; the next start continues. While it runs, `reviewloop status` and the other commands work from
    another terminal.

    \b
    Examples:
      reviewloop run --plan 光明高钙牛奶
      reviewloop run --until-done 光明高钙牛奶
      reviewloop run --for 600 --json > result.json
      reviewloop lab --port 8400 --sites paper-2014 &
      reviewloop run --until-done --lab 127.0.0.1:8400 --sites paper-2014 特仑苏 蒙牛早餐奶
    """
    settings = _read_settings(app, **options)
    if not only_plan:
        refuse_store_of_up(settings)
    from app.cli.crawl import crawling  # slow to import; a wrong option should be refused at once
    from app.cli.crawl.run_end import finish
    from app.run.nodes import choose_nodes, list_nodes
    from app.run.process import Until

    settings = app.settings = crawling.limit_to(settings, groups, sites_named)
    given = crawling.read_names(settings, names)
    otherwise = _NODES_IN_THE_LAB if settings.lab else _NODES_ON_THE_WEB
    if only_plan:
        return crawling.make_plan(app, given, lambda added: choose_nodes(settings, added, nodes, otherwise))
    with ExitStack() as stack:
        stack.enter_context(hold_database(sqlite_file(settings.database_url)))
        store = stack.enter_context(store_for_work(settings))
        rows = list_nodes(settings, store, nodes, otherwise)
        refused = crawling.add_names(store, given, may_be_none=web)
        if web:
            stack.enter_context(running_dashboard(settings, store, web_host))
        found = crawling.require_askable_sites(settings, store, rows, may_be_none=web)
        from app.run.embedded import (
            crawl,  # loads the downloader, which a plan does not need
        )

        crawling.announce(len(rows), settings)
        until = Until(until_done, seconds)
        done = crawling.watch(
            app,
            store,
            len(rows),
            lambda watch: crawl(settings, store, rows, until, watch, found),
            until_done,
        )
    return finish(app, done, until, refused=refused)


@command(None, "up", db=False, sites=True, lab=True)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--nodes",
    type=click.IntRange(1, _MOST_NODES),
    help="Number of crawl nodes, each a worker process. Default: those of `nodes add` and this machine; "
    "if there are none 4.",
)
@click.option(
    "--db",
    metavar="URL",
    help="postgresql+psycopg2://USER@HOST/NAME. Default: REVIEWLOOP_DATABASE_URL, else a PostgreSQL of its own.",
)
@click.option(
    "--redis",
    "redis_url",
    metavar="URL",
    help="redis://HOST:6379/0 or sentinel://... Default: REVIEWLOOP_REDIS_URL, else a Redis of its own.",
)
@click.option(
    "--data",
    type=FOLDER,
    default=DEFAULT_DATA,
    show_default=True,
    help="Folder for the data of its own servers and for all logs.",
)
@runner_options
def up(
    app: App,
    names: tuple[str, ...],
    nodes: int | None,
    until_done: bool,
    seconds: float | None,
    groups: tuple[str, ...],
    sites_named: tuple[str, ...],
    data: Path,
    **options: Any,
) -> RunView:
    """Collect reviews of products with a cluster on this machine.

    It runs PostgreSQL, Redis, scheduler, beat, and one Celery worker process for each node. NAMEs are added
    as products first. A process that ends is started again. Ctrl-C ends everything cleanly; the next
    start continues. Without --until-done and --for it also serves the dashboard. Several machines, docker
    compose, Sentinel: see docs/cluster.md.

    \b
    Examples:
      reviewloop up --until-done 光明高钙牛奶
      reviewloop up --nodes 8 --slots 16
      reviewloop lab --port 8400 --sites paper-2014 &
      reviewloop up --until-done --lab 127.0.0.1:8400 --sites paper-2014 特仑苏 蒙牛早餐奶
    """
    refuse_busy(data)
    settings = _read_settings(app, **options)
    own = settings.database_url == DEFAULT_DATABASE
    if settings.database_url.startswith("sqlite:") and not own:
        raise InputError(
            "{address}: a cluster needs a PostgreSQL; leave --db away and it starts its own",
            address=settings.database_url,
        )
    from app.cli.crawl import crawling  # slow to import; a wrong option should be refused at once
    from app.cli.crawl.run_end import finish
    from app.run.cluster.supervisor import Cluster
    from app.run.nodes import list_nodes
    from app.run.process import Until

    settings = app.settings = crawling.limit_to(settings, groups, sites_named)
    given = crawling.read_names(settings, names)
    with Cluster(settings, data, say) as cluster, store_for_work(cluster.settings) as store:
        rows = list_nodes(settings, store, nodes, _NODES_OF_A_CLUSTER)
        refused = crawling.add_names(store, given)
        crawling.require_askable_sites(settings, store, rows)
        crawling.announce(len(rows), settings)
        if own:
            # It has no password: access to its folder gives access to the data.
            look = translate(
                "Look at it from another terminal, now or when it has ended: {command}",
                command=f"reviewloop status{database_hint()}",
            )
            say(look, "dim")
        until = Until(until_done, seconds)
        others = [_dashboard(cluster)] if not until_done and seconds is None else []
        crawl = partial(cluster.run, store, rows, until, others=others)
        done = crawling.watch(app, store, len(rows), crawl, until_done)
    return finish(app, done, until, refused=refused)


def _dashboard(cluster: Cluster) -> Program:
    """Return the dashboard as a program, at its default port if that is free, else at another port."""
    from app.run.cluster import processes
    from app.web.address import DEFAULT_PORT, address_of, listening_near

    with listening_near(DEFAULT_PORT) as sock:
        say_dashboard(address_of(sock))
        return processes.web_program(cluster.settings, cluster.log("web"), sock.getsockname()[1])


def _read_settings(app: App, *, no_modification: bool, no_recall: bool, **options: Any) -> Settings:
    """Return the settings of a run. Raises InputError for a wrong catalog or address."""
    app.options |= options
    app.options |= {
        "modification": False if no_modification else None,
        "recall": False if no_recall else None,
    }
    settings = app.settings
    settings.catalog()
    if settings.alert_to:  # apprise takes half a second
        from app.sending.alert_sending import Receivers

        Receivers(settings.alert_to.split(), settings.mail_server())
    return settings
