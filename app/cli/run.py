"""`reviewloop run`: the whole loop in this process."""

from __future__ import annotations

import sys
from typing import Any

import click

from app.cli.options import (
    ask_for_contact,
    db_option,
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
from app.cli.product import add_products, tell_refused
from app.cli.progress import Progress
from app.cli.tables import print_summary
from app.config import Settings
from app.imports import Refused, new_product
from app.summary import Summary, document
from splitter.errors import InputError
from tasks.store import products
from tasks.store.database import Store

_NODES_ON_THE_WEB = 1
_NODES_IN_THE_LAB = 4
_MOST_NODES = 250
_MOST_SLOTS = 1000


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@until_options
@click.option(
    "--nodes",
    type=click.IntRange(1, _MOST_NODES),
    help="Crawl nodes in this process. Default: 1, with --lab 4.",
)
@click.option(
    "--slots", type=click.IntRange(1, _MOST_SLOTS), help="Attempts a node runs at once. Default: 4."
)
@lab_option
@strategy_options
@pseudonymise_option
@click.option("--seed", type=int, help="Of chance in allocation. Default: another one each time.")
@db_option
@sites_option
@json_option
def run(
    names: tuple[str, ...],
    until_done: bool,
    seconds: float | None,
    nodes: int | None,
    slots: int | None,
    lab: tuple[str, int] | None,
    allocation: str | None,
    no_modification: bool,
    no_recall: bool,
    pseudonymise: bool,
    silent_after: float | None,
    seed: int | None,
    db: str | None,
    sites: str | None,
    as_json: bool,
) -> None:
    """Crawl what is wanted, in this process.

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
    settings = settings_of(
        db,
        sites,
        lab=lab,
        slots=slots,
        allocation=allocation,
        modification=False if no_modification else None,
        recall=False if no_recall else None,
        pseudonymise=pseudonymise or None,
        silent_after_s=silent_after,
        seed=seed,
    )
    settings.catalog()  # a wrong one is told before anything is stored
    count = nodes or (_NODES_IN_THE_LAB if settings.lab else _NODES_ON_THE_WEB)
    with store_for_work(settings) as store:
        refused = add_names(store, names)
        done = _run(settings, store, count, until_done, seconds)
    if as_json:
        print_json(document(done))
    else:
        print_summary(printed(), done, f" --db {db}" if db else "")
    if refused:
        sys.exit(2)


def add_names(store: Store, names: tuple[str, ...]) -> bool:
    """Add products named on the command line; True where some were refused (told on standard error).

    Raises:
        InputError: there is no product at all to crawl.
    """
    given: list[Any] = []
    for name in names:
        try:
            given.append(new_product(name))
        except InputError as error:
            given.append(Refused(name, str(error)))
    result = add_products(store, given)
    tell_refused(result.refused)
    with store.read() as conn:
        if not products.any_there(conn):
            raise InputError("there is no product to crawl: reviewloop run --until-done 光明高钙牛奶")
    return bool(result.refused)


def _run(settings: Settings, store: Store, nodes: int, until_done: bool, seconds: float | None) -> Summary:
    # Slow to import (aiohttp, APScheduler); a wrong option should be told at once.
    from app.embedded import Until
    from app.runs import run as run_embedded

    where = "the lab at {}:{}".format(*settings.lab) if settings.lab else "the web"
    say(
        f"{nodes} {'node' if nodes == 1 else 'nodes'} with {settings.slots} slots on {where}; Ctrl-C ends it.",
        "dim",
    )
    ask_for_contact(settings)
    return run_embedded(
        settings, store, nodes, Until(until_done, seconds), lambda begin: Progress(store, begin)
    )
