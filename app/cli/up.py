"""`reviewloop up`: a real cluster on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from app.cli.options import (
    ask_for_contact,
    json_option,
    lab_option,
    pseudonymise_option,
    settings_of,
    sites_option,
    store_for_work,
    strategy_options,
    until_options,
)
from app.cli.output import print_json, printed, say
from app.cli.progress import Progress
from app.cli.run import add_names
from app.cli.tables import print_summary
from app.config import DEFAULT_DATABASE, Settings
from app.summary import Summary, document, mark, settings_told, summary
from splitter.errors import InputError

_MOST_NODES = 250
_MOST_SLOTS = 1000


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
    "--slots", type=click.IntRange(1, _MOST_SLOTS), help="Attempts a node runs at once. Default: 4."
)
@until_options
@lab_option
@click.option(
    "--db",
    metavar="URL",
    help="postgresql+psycopg2://USER@HOST/NAME. Default: REVIEWLOOP_DATABASE_URL, else a PostgreSQL of its own.",
)
@click.option(
    "--redis",
    metavar="URL",
    help="redis://HOST:6379/0 or sentinel://... Default: REVIEWLOOP_REDIS_URL, else a Redis of its own.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=".reviewloop",
    show_default=True,
    help="Folder of its own servers' data and of all logs.",
)
@strategy_options
@pseudonymise_option
@sites_option
@json_option
def up(
    names: tuple[str, ...],
    nodes: int,
    slots: int | None,
    until_done: bool,
    seconds: float | None,
    lab: tuple[str, int] | None,
    db: str | None,
    redis: str | None,
    data: Path,
    allocation: str | None,
    no_modification: bool,
    no_recall: bool,
    pseudonymise: bool,
    silent_after: float | None,
    sites: str | None,
    as_json: bool,
) -> None:
    """Start a cluster on this machine: PostgreSQL, Redis, scheduler, beat, and a Celery worker a node.

    NAMEs are added as products first. What ends by itself is started again. Ctrl-C ends everything cleanly; the
    work goes on at the next start. Several machines, docker compose, Sentinel: docs/cluster.md.

    \b
    Examples:
      reviewloop up --until-done 光明高钙牛奶
      reviewloop up --nodes 8 --slots 16
      reviewloop lab --port 8400 --sites paper-2014 &
      reviewloop up --until-done --lab 127.0.0.1:8400 --sites paper-2014 特仑苏 蒙牛早餐奶
    """
    settings = settings_of(
        db,
        sites,
        redis_url=redis,
        lab=lab,
        slots=slots,
        allocation=allocation,
        modification=False if no_modification else None,
        recall=False if no_recall else None,
        pseudonymise=pseudonymise or None,
        silent_after_s=silent_after,
    )
    settings.catalog()  # a wrong one is told before anything is started
    if settings.database_url.startswith("sqlite:") and settings.database_url != DEFAULT_DATABASE:
        raise InputError(
            f"{settings.database_url}: a cluster needs a PostgreSQL; leave --db away and it starts its own"
        )
    done, refused = _up(settings, data, names, nodes, until_done, seconds)
    if as_json:
        print_json(document(done))
    else:
        print_summary(printed(), done, "")
    if refused:
        sys.exit(2)


def _up(
    settings: Settings,
    data: Path,
    names: tuple[str, ...],
    nodes: int,
    until_done: bool,
    seconds: float | None,
) -> tuple[Summary, bool]:
    # Slow to import, and a wrong option should be told at once.
    from time import monotonic

    from app.cluster.supervisor import Cluster
    from app.embedded import Until
    from app.runs import nodes_named

    with Cluster(settings, data, say) as cluster, store_for_work(cluster.settings) as store:
        refused = add_names(store, names)
        _tell(cluster.settings, nodes, own=settings.database_url == DEFAULT_DATABASE)
        rows = nodes_named(nodes, settings.slots, lab=settings.lab is not None)
        begin, began_s = mark(store), monotonic()
        progress = Progress(store, begin)
        with progress.shown():
            cluster.run(store, rows, Until(until_done, seconds), progress.look)
        done = summary(store, begin, monotonic() - began_s, settings_told(cluster.settings, nodes))
    return done, refused


def _tell(settings: Settings, nodes: int, *, own: bool) -> None:
    where = "the lab at {}:{}".format(*settings.lab) if settings.lab else "the web"
    say(f"{nodes} node processes with {settings.slots} slots on {where}; Ctrl-C ends it.", "dim")
    ask_for_contact(settings)
    if own:
        # It has no password: who may enter its folder may look.
        say(f"Look at it from another terminal: reviewloop status --db '{settings.database_url}'", "dim")
