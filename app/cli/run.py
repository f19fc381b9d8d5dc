"""`reviewloop run` and `reviewloop up`: the whole loop, in this process or as a cluster on this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import click

from app.cli.options import (
    FOLDER,
    db_option,
    json_option,
    lab_option,
    pseudonymise_option,
    settings_of,
    sites_option,
    store_for_work,
    warn_without_contact,
)
from app.cli.output import print_json, printed, say
from app.cli.product import add_products, say_refused
from app.cli.progress import Progress
from app.cli.tables import print_summary
from app.config import DEFAULT_DATABASE, Settings
from app.products import named_products
from app.summary import Summary, document, mark, run_settings, summary
from splitter.errors import InputError
from tasks.fetching.hosts import HostBook
from tasks.scheduling.strategies import ALLOCATION
from tasks.store import products
from tasks.store.database import Store

F = TypeVar("F", bound=Callable[..., Any])

_NODES_ON_THE_WEB = 1
_NODES_IN_THE_LAB = 4
_MOST_NODES = 250
_MOST_SLOTS = 1000

_RUNNER_OPTIONS = (
    click.option("--until-done", is_flag=True, help="End when all is DONE, CANCELLED or waits for a person."),
    click.option(
        "--for",
        "seconds",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="End after so long.",
    ),
    click.option(
        "--slots", type=click.IntRange(1, _MOST_SLOTS), help="Attempts a node runs at once. Default: 4."
    ),
    lab_option,
    click.option(
        "--allocation", type=click.Choice(list(ALLOCATION)), help="Allocation strategy. Default: feedback."
    ),
    click.option("--no-modification", is_flag=True, help="Leave quota and budget at the site's defaults."),
    click.option("--no-recall", is_flag=True, help="Give every failed subtask to a person at once."),
    click.option(
        "--silent-after",
        "silent_after_s",
        type=click.FloatRange(1),
        metavar="S",
        help="Silence after which work is taken back. Default: 60.",
    ),
    pseudonymise_option,
    sites_option,
    json_option,
)


def runner_options(command: F) -> F:
    """The options that `run` and `up` share: all but the first two and `--json` are read by `_settings`."""
    for option in reversed(_RUNNER_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--nodes",
    type=click.IntRange(1, _MOST_NODES),
    help="Crawl nodes in this process. Default: 1, with --lab 4.",
)
@click.option("--seed", type=int, help="Of chance in allocation. Default: another one each time.")
@db_option
@runner_options
def run(
    names: tuple[str, ...],
    nodes: int | None,
    until_done: bool,
    seconds: float | None,
    db: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Collect reviews of products in this process.

    Until all is done, for a time, or until Ctrl-C.
    NAMEs are added as products first. Ctrl-C ends it cleanly; the work goes on at the next start. While it runs,
    `reviewloop status` and the other commands work from another terminal.

    \b
    Examples:
      reviewloop run --until-done 光明高钙牛奶
      reviewloop run --for 600 --json > result.json
      reviewloop lab --port 8400 --sites paper-2014 &
      reviewloop run --until-done --lab 127.0.0.1:8400 --sites paper-2014 特仑苏 蒙牛早餐奶
    """
    settings = _settings(db, **options)
    count = nodes or (_NODES_IN_THE_LAB if settings.lab else _NODES_ON_THE_WEB)
    with store_for_work(settings) as store:
        refused = _add_names(store, names)
        # Slow to import (aiohttp, APScheduler); a wrong option should be refused at once.
        from app.embedded import Until, crawl, numbered_nodes

        _announce(f"{count} {'node' if count == 1 else 'nodes'}", settings)
        rows = numbered_nodes(count, settings.slots, lab=settings.lab is not None)
        until = Until(until_done, seconds)
        done = watched(
            settings, store, count, lambda watch: crawl(settings, store, rows, until, watch), until_done
        )
    _finish(done, settings, as_json, refused, until_done, f" --db {db}" if db else "")


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--nodes",
    type=click.IntRange(1, _MOST_NODES),
    default=4,
    show_default=True,
    help="Crawl nodes: one worker process each.",
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
    default=".reviewloop",
    show_default=True,
    help="Folder of its own servers' data and of all logs.",
)
@runner_options
def up(
    names: tuple[str, ...],
    nodes: int,
    until_done: bool,
    seconds: float | None,
    data: Path,
    db: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Collect reviews of products with a cluster on this machine.

    PostgreSQL, Redis, scheduler, beat, and one Celery worker process for each node.
    NAMEs are added as products first. What ends by itself is started again. Ctrl-C ends everything cleanly; the
    work goes on at the next start. Several machines, docker compose, Sentinel: docs/cluster.md.

    \b
    Examples:
      reviewloop up --until-done 光明高钙牛奶
      reviewloop up --nodes 8 --slots 16
      reviewloop lab --port 8400 --sites paper-2014 &
      reviewloop up --until-done --lab 127.0.0.1:8400 --sites paper-2014 特仑苏 蒙牛早餐奶
    """
    settings = _settings(db, **options)
    own = settings.database_url == DEFAULT_DATABASE
    if settings.database_url.startswith("sqlite:") and not own:
        raise InputError(
            f"{settings.database_url}: a cluster needs a PostgreSQL; leave --db away and it starts its own"
        )
    # Slow to import; a wrong option should be refused at once.
    from app.cluster.supervisor import Cluster
    from app.embedded import Until, numbered_nodes

    with Cluster(settings, data, say) as cluster, store_for_work(cluster.settings) as store:
        refused = _add_names(store, names)
        _announce(f"{nodes} node processes", settings)
        if own:
            # It has no password: whoever may enter its folder may read it.
            address = cluster.settings.database_url
            say(f"Look at it from another terminal: reviewloop status --db '{address}'", "dim")
        rows = numbered_nodes(nodes, settings.slots, lab=settings.lab is not None)
        until = Until(until_done, seconds)
        done = watched(
            cluster.settings, store, nodes, lambda watch: cluster.run(store, rows, until, watch), until_done
        )
    _finish(done, settings, as_json, refused, until_done)


def watched(
    settings: Settings,
    store: Store,
    nodes: int,
    crawl: Callable[[Callable[[], None]], None],
    until_done: bool = False,
) -> Summary:
    """Crawl with live progress; returns what the run came to.

    Args:
        nodes: how many, for the summary.
        crawl: runs to the end; called with the function that shows progress.
        until_done: it goes on while work waits for hosts, and says so once.
    """
    begin, began_s = mark(store), monotonic()
    catalog = settings.catalog()
    progress = Progress(store, begin, catalog, until_done=until_done)
    with progress.live():
        crawl(progress.update)
    return summary(
        store, begin, monotonic() - began_s, run_settings(settings, nodes), HostBook(catalog).of_site
    )


def _settings(db: str | None, *, no_modification: bool, no_recall: bool, **options: Any) -> Settings:
    settings = settings_of(
        db, modification=False if no_modification else None, recall=False if no_recall else None, **options
    )
    settings.catalog()  # a wrong one is refused before anything is stored or started
    return settings


def _announce(nodes: str, settings: Settings) -> None:
    where = "the lab at {}:{}".format(*settings.lab) if settings.lab else "the web"
    say(f"{nodes} with {settings.slots} slots on {where}; Ctrl-C ends it.", "dim")
    warn_without_contact(settings)


def _add_names(store: Store, names: Sequence[str]) -> bool:
    """Add products named on the command line; True where some were refused.

    Raises:
        InputError: there is no product at all to crawl.
    """
    result = add_products(store, named_products(names))
    say_refused(result.refused)
    with store.read() as conn:
        if not products.any_there(conn):
            raise InputError("there is no product to crawl: reviewloop run --until-done 光明高钙牛奶")
    return bool(result.refused)


def _finish(
    done: Summary, settings: Settings, as_json: bool, refused: bool, until_done: bool, db_hint: str = ""
) -> None:
    if as_json:
        print_json(document(done))
    else:
        print_summary(printed(), done, db_hint, settings.catalog())
    if until_done and done.waits:
        say(
            "The run was ended before all was done: what is left waits for hosts. Nothing is lost; run it again."
        )
    if refused:
        sys.exit(2)
    if until_done and done.waits:
        sys.exit(1)
