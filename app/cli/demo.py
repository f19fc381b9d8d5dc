"""`reviewloop demo`: see the whole loop work, with nothing but this machine."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from app.cli.options import db_option, json_option
from app.cli.output import clock, messages, print_json, printed, short, shown
from app.cli.tables import print_summary
from splitter.query import product_query

if TYPE_CHECKING:
    from app.config import Settings
    from app.demo import DemoResult
    from tasks.store.review_rows import ReviewRow


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Of chance in allocation.")
@db_option
@json_option
def demo(seed: int, db: str | None, as_json: bool) -> None:
    """See the whole loop work on a local web, in a minute.

    Four dairy products, four nodes.
    Search engines, complaint sites and microblogs are simulated on loopback, each node is another client to them.
    The database is a new one in a temporary folder, unless --db names one, and stays there to be looked at.

    \b
    Example:
      reviewloop demo
    """
    from app import demo as demonstration
    from app.cli.progress import Progress

    settings = demonstration.demo_settings(db, seed)
    if not as_json:
        _introduce(settings, demonstration.PRODUCTS)
    with demonstration.opened(settings) as (running, store):
        result = demonstration.crawl(running, store, lambda begin: Progress(store, begin))
    if as_json:
        _print_document(settings, result)
    else:
        _print_result(settings, result)
    if result.verification.violations or not result.summary.settled:
        sys.exit(1)


def _introduce(settings: Settings, names: tuple[str, ...]) -> None:
    from app import demo as demonstration

    out = printed()
    sites = settings.catalog().sites
    out.print("1. Product names become keywords, and these become search URLs", style="bold")
    for name in names:
        out.print(f"   {name} -> {' & '.join(product_query(name).keywords)}")
    out.print(
        f"   Each is searched on the {len(sites)} sites of the catalog {settings.sites}, but for those whose "
        "robots.txt refuses.",
        soft_wrap=True,
    )
    out.print("\n2. The loop runs on a simulated web on this machine", style="bold")
    out.print(
        f"   {demonstration.NODES} nodes with {settings.slots} slots, each from an address of its own "
        "(127.0.0.2 and up), which every site treats in another way.",
        soft_wrap=True,
    )
    out.print(
        f"   Shortened for the demo: silence until recall {settings.silent_after_s:g} s instead of 60, a request "
        f"{settings.request_timeout_s:g} s instead of 30, the first delay of a recall {settings.backoff_s:g} s "
        f"instead of 2, rests of hosts times {settings.rest_factor:g}.",
        soft_wrap=True,
    )
    out.print("   315chn.com is dead: its subtasks come to a person after 5 recalls.\n", soft_wrap=True)


def _print_document(settings: Settings, result: DemoResult) -> None:
    from app.demo import PRODUCTS
    from app.summary import document

    print_json(
        {
            **document(result.summary),
            "split": [{"product": name, "keywords": product_query(name).keywords} for name in PRODUCTS],
            "samples": [asdict(row) for row in result.samples],
            "verify": asdict(result.verification),
            "shortened": {
                "silent_after_s": settings.silent_after_s,
                "request_timeout_s": settings.request_timeout_s,
                "backoff_s": settings.backoff_s,
                "rest_factor": settings.rest_factor,
            },
            "database": settings.database_url,
        }
    )


def _print_result(settings: Settings, result: DemoResult) -> None:
    from app.demo import LONGEST_S

    out = printed()
    hint = f" --db {settings.database_url}"
    out.print("3. What came of it", style="bold")
    print_summary(out, result.summary, hint)
    out.print("\n4. Reviews, for example", style="bold")
    for row in result.samples:
        _print_review(out, row)
    out.print("\n5. Did the loop keep its promises?", style="bold")
    for violation in result.verification.violations:
        out.print(f"   {violation.kind}: {violation.message}", style="red", soft_wrap=True)
    counts = result.verification.counts
    verdict = "no violation" if not result.verification.violations else "VIOLATIONS"
    out.print(
        f"   reviewloop verify: {verdict} in {counts['subtasks']:,} subtasks, {counts['attempts']:,} attempts, "
        f"{counts['events']:,} events, {counts['pages']:,} pages, {counts['reviews']:,} reviews",
        style="red" if result.verification.violations else "green",
        soft_wrap=True,
    )
    if not result.summary.settled:
        why = "it was ended" if result.summary.seconds < LONGEST_S else "this machine is very busy"
        messages.print(f"reviewloop: the demo ended before all was settled: {why}")
    _suggest(out, result, hint)


def _print_review(out: Console, row: ReviewRow) -> None:
    out.print(
        Text(f"   {shown(row.product)}", style="cyan") + f"  {shown(short(row.title or row.page_title, 50))}"
    )
    out.print(f"     {shown(short(row.body, 90))}", soft_wrap=True)
    written = clock(row.published_at) or row.date_text or "no date"
    out.print(
        f"     {shown(row.url)}  {shown(row.author or 'anonymous')}, {written}, by {row.node}",
        style="dim",
        soft_wrap=True,
    )


def _suggest(out: Console, result: DemoResult, hint: str) -> None:
    out.print("\nWhat to try next", style="bold")
    waiting = result.summary.manual
    lines = [
        f"reviewloop export reviews --format csv -o reviews.csv{hint}",
        f"reviewloop control pairs --site 12315.com --products{hint}",
        f"reviewloop explain {waiting[0].subtask_id if waiting else 1}{hint}",
    ]
    if waiting:
        lines.append(f"reviewloop failed show {waiting[0].subtask_id}{hint}")
    lines.append(
        "reviewloop lab --profile default        (then: reviewloop run --until-done --lab 127.0.0.1:8400 特仑苏)"
    )
    for line in lines:
        out.print(f"   {line}", soft_wrap=True)
