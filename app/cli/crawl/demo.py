"""`reviewloop demo`: the whole loop on the built-in lab, from four product names to their reviews, in a minute."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import mkdtemp
from threading import Event
from typing import Any

import click
from rich.console import Console

from app.actions import product_actions
from app.actions.products import named_products
from app.cli.crawl.crawling import watched
from app.cli.crawl.run_end import list_sample_parts, list_summary_parts
from app.cli.inspect.web import running_dashboard
from app.cli.options import db_option, json_option, person
from app.cli.output import messages, print_json, printed, say
from app.cli.people.pairs import pair_matrices
from app.cli.render import print_parts
from app.reports.summary import Summary, document, samples
from app.run.nodes import numbered_nodes
from app.run.setting_fields import Settings
from app.run.setting_values import database
from app.run.version import DEFAULT_DATABASE
from splitter.keywords import product_query
from tasks.store.queue.manual import ManualRow
from tasks.store.verify.verify import Verification, verify

PRODUCTS = ("光明高钙牛奶", "特仑苏", "蒙牛早餐奶", "雀巢中老年奶粉")
NODES = 4
SLOTS = 8
LONGEST_S = 90.0

SHORTENED: dict[str, Any] = {
    "silent_after_s": 12.0,
    "request_timeout_s": 6.0,
    "backoff_s": 0.5,
    "most_unanswered": 6,
    "rest_factor": 0.01,
}
"""Settings that the demo shortens, so that a person is asked about a dead site within a minute."""

_CATALOG = "paper-2014"


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the allocation.")
@click.option("--web", is_flag=True, help="Serve the dashboard while it runs, and afterwards until Ctrl-C.")
@db_option
@json_option
def demo(seed: int, web: bool, db: str | None, as_json: bool) -> None:
    """Watch the whole loop on a local web, in a minute.

    It crawls four dairy products with four nodes. Search engines, complaint sites and microblogs are
    simulated on loopback and see each node as another client. The database is a new one in a temporary
    folder, unless --db names one, and stays there to be looked at.

    \b
    Examples:
      reviewloop demo
      reviewloop demo --web
    """
    # The environment has no say in the demo's settings.
    settings = Settings(
        database_url=database(db or f"{mkdtemp(prefix='reviewloop-demo-')}/{Path(DEFAULT_DATABASE).name}"),
        sites=_CATALOG,
        slots=SLOTS,
        seed=seed,
        **SHORTENED,
    )
    if not as_json:
        _introduce(settings)
    show = _print_document if as_json else _print_result
    summary, verification = _crawl(settings, show, web=web)
    if verification.violations or not summary.settled:
        sys.exit(1)


def _crawl(
    settings: Settings, show: Callable[[Settings, Summary, Verification], None], *, web: bool
) -> tuple[Summary, Verification]:
    """Add the products, run the loop on a lab of its own until all is settled, and show what came of it."""
    # Slow to import (aiohttp, APScheduler): only where the demo really runs.
    from app.lab.running import running_lab
    from app.run.embedded import crawl
    from app.run.open_store import open_store
    from app.run.process import Until
    from tasks.store.queries.reviews import list_reviews

    with ExitStack() as stack:
        lab = stack.enter_context(running_lab(settings.catalog(), "demo", reviews=None))
        settings = settings.with_(lab=(lab.host, lab.port))
        store = stack.enter_context(open_store(settings))
        address = stack.enter_context(running_dashboard(settings, store, "127.0.0.1")) if web else ""
        product_actions.add(store, named_products(PRODUCTS), person())
        rows = numbered_nodes(NODES, settings.slots, lab=True)
        until = Until(done=True, seconds=LONGEST_S)
        done = watched(settings, store, NODES, lambda watch: crawl(settings, store, rows, until, watch))
        with store.read() as tx:
            done = replace(done, samples=samples(list_reviews(tx)))  # also of earlier runs
            verification = verify(tx)
        show(settings, done, verification)
        if web:
            say(f"Dashboard: {address}  (Ctrl-C ends it)")
            # The run had handlers of its own.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with suppress(KeyboardInterrupt):
                Event().wait()
    return done, verification


def _introduce(settings: Settings) -> None:
    out = printed()
    out.print("1. Product names become keywords, and these become search URLs", style="bold")
    for name in PRODUCTS:
        out.print(f"   {name} -> {' & '.join(product_query(name).keywords)}")
    out.print(
        f"   Each is searched on the {len(settings.catalog().sites)} sites of the catalog {settings.sites}, but for "
        "those whose robots.txt refuses."
    )
    out.print("\n2. The loop runs on a simulated web on this machine", style="bold")
    out.print(
        f"   {NODES} nodes with {settings.slots} slots, each from an address of its own (127.0.0.2 and up), which "
        "every site treats in another way."
    )
    out.print(
        f"   Shortened for the demo: silence until recall {settings.silent_after_s:g} s instead of 60, a request "
        f"{settings.request_timeout_s:g} s instead of 30, the first delay of a recall {settings.backoff_s:g} s "
        f"instead of 2, rests of hosts times {settings.rest_factor:g}, attempts without an answer until a "
        f"person is asked {settings.most_unanswered} instead of 20."
    )
    out.print("   315chn.com is dead: its subtasks wait for it, and then come to a person.\n")


def _print_document(settings: Settings, summary: Summary, verification: Verification) -> None:
    print_json(
        {
            **document(summary),
            "split": [{"product": name, "keywords": product_query(name).keywords} for name in PRODUCTS],
            "samples": [asdict(row) for row in summary.samples],
            "verify": asdict(verification),
            "shortened": {name: getattr(settings, name) for name in SHORTENED},
            "database": settings.database_url,
        }
    )


def _print_result(settings: Settings, summary: Summary, verification: Verification) -> None:
    out = printed()
    hint = f" --db {settings.database_url}"
    out.print("3. What came of it", style="bold")
    if summary.pairs:
        print_parts(out, pair_matrices(summary.pairs, out.width))
    print_parts(out, list_summary_parts(summary, hint))
    out.print("\n4. Reviews, for example", style="bold")
    print_parts(out, list_sample_parts(summary.samples))
    out.print("\n5. Did the loop keep its invariants?", style="bold")
    violations, counts = verification.violations, verification.counts
    for violation in violations:
        out.print(f"   {violation.kind}: {violation.message}", style="red")
    out.print(
        f"   reviewloop verify: {'VIOLATIONS' if violations else 'no violation'} in {counts['subtasks']:,} subtasks, "
        f"{counts['attempts']:,} attempts, {counts['events']:,} events, {counts['pages']:,} pages, "
        f"{counts['reviews']:,} reviews",
        style="red" if violations else "green",
    )
    if not summary.settled:
        why = "it was ended" if summary.seconds < LONGEST_S else "this machine is very busy"
        messages.print(f"reviewloop: the demo ended before all was settled: {why}")
    _suggest(out, summary.manual, hint)


def _suggest(out: Console, waiting: Sequence[ManualRow], hint: str) -> None:
    out.print("\nWhat to try next", style="bold")
    lines = [
        f"reviewloop export reviews --format csv -o reviews.csv{hint}",
        f"reviewloop web{hint}",
        f"reviewloop control pairs --site 12315.com --products{hint}",
        f"reviewloop explain {waiting[0].subtask_id if waiting else 1}{hint}",
        *(f"reviewloop failed show {row.subtask_id}{hint}" for row in waiting[:1]),
        "reviewloop lab --profile default        (then: reviewloop run --until-done --lab 127.0.0.1:8400 特仑苏)",
    ]
    for line in lines:
        out.print(f"   {line}")
