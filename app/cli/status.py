"""`reviewloop status` and `reviewloop schedule`: where things stand, while a runner runs or not."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime

import click
from rich.text import Text

from app.cli.nodes import node_document, node_table
from app.cli.options import db_option, json_option, settings_of, sqlite_file, store_there
from app.cli.output import ago, clock, print_json, printed, seconds, table
from app.cli.tables import queue_line
from tasks.jobs.schedule import SWEEPS
from tasks.store import coverage, nodes, page_links, reports
from tasks.store.database import read_now
from tasks.store.reports import Load


@click.command()
@db_option
@json_option
def status(db: str | None, as_json: bool) -> None:
    """Show the queues, what is stored, and which nodes are alive.

    \b
    Examples:
      reviewloop status
      watch -n 2 reviewloop status
    """
    settings = settings_of(db)
    with store_there(settings) as store, store.read() as conn:
        now = read_now(conn)
        queues, load, totals = reports.queues(conn), reports.load(conn, now), reports.totals(conn)
        refused = page_links.refused_by_reason(conn)
        rows = nodes.listed(conn)
        engines = settings.catalog().engines
        covered = sum(
            coverage.of_products(
                conn, lambda name: engines[name].max_hits if name in engines else sys.maxsize
            ).values(),
            coverage.Coverage(),
        )
        relaxed = sum(len(of) for of in coverage.relaxed(conn).values())
    rule = settings.loop().buffer
    if as_json:
        print_json(
            {
                "queues": queues,
                "held_back": load.held,
                "next_held_at": load.next_at,
                "oldest_waiting_since": load.oldest_at,
                "products": totals.products,
                "tasks": totals.tasks,
                "pages": totals.pages,
                "reviews": totals.reviews,
                "reposts": totals.reposts,
                "recalls": totals.recalls,
                "refused": refused,
                "targets": dict(totals.targets),
                "coverage": covered.share,
                "coverage_rests_on": asdict(covered),
                "relaxed": relaxed,
                "nodes": [node_document(row, now, rule) for row in rows],
                "now": now,
            }
        )
        return
    out = printed()
    out.print(Text("Queues   ", style="bold") + queue_line(queues), soft_wrap=True)
    out.print(Text("Waiting  ", style="bold") + _waiting(load, now), soft_wrap=True)
    out.print(
        Text("Stored   ", style="bold")
        + f"{totals.pages:,} pages, {totals.reviews:,} reviews of {totals.products:,} products "
        f"({totals.tasks:,} tasks, {totals.recalls:,} recalls, {totals.reposts:,} reposts linked)",
        soft_wrap=True,
    )
    if refused:
        told = ", ".join(f"{n:,} {reason.replace('_', ' ')}" for reason, n in refused.items())
        out.print(Text("Refused  ", style="bold") + f"{told} (not stored as reviews)", soft_wrap=True)
    out.print(Text("Hits     ", style="bold") + _states(totals.targets), soft_wrap=True)
    out.print(Text("Coverage ", style="bold") + _covered(covered, relaxed), soft_wrap=True)
    if rows:
        out.print(node_table(rows, now, rule))
    else:
        out.print("No node has run yet: reviewloop run --until-done", style="dim")


def _waiting(load: Load, now: datetime) -> str:
    if load.oldest_at is None:
        return "nothing"
    told = f"the oldest came to its queue {ago(load.oldest_at, now)}"
    if load.next_at is not None:
        told += f"; {load.held} held back after failures, the next may go in "
        told += seconds(max(0.0, (load.next_at - now).total_seconds())) or ""
    return told


def _covered(of: coverage.Coverage, relaxed: int) -> str:
    """How much of what the searches have is stored, what that rests on, and how many rest on fewer words."""
    rests_on = ", ".join(f"{n:,} {kind}" for kind, n in sorted(of.rests_on.items()))
    most = "at least " if of.at_least else ""
    share = "unknown" if of.share is None else f"{of.share:.0%} of {most}{of.reachable:,}"
    words = f"; {relaxed:,} searches with fewer words" if relaxed else ""
    return f"{share} ({rests_on or 'no task yet'}){words}"


def _states(states: Mapping[str, int]) -> str:
    return ", ".join(f"{n:,} {state.replace('_', ' ')}" for state, n in sorted(states.items())) or "none yet"


@click.group()
def schedule() -> None:
    """Show what happens by itself, and when.

    \b
    Example:
      reviewloop schedule list
    """


@schedule.command("list")
@db_option
@json_option
def list_(db: str | None, as_json: bool) -> None:
    """List the periodic sweeps, and the products that are looked at again and again.

    \b
    Example:
      reviewloop schedule list --json
    """
    settings = settings_of(db)
    path = sqlite_file(settings.database_url)
    recrawls = []
    if path is None or path.is_file():
        with store_there(settings) as store, store.read() as conn:
            recrawls = reports.recrawls(conn)
    if as_json:
        print_json({"sweeps": SWEEPS, "recrawls": recrawls})
        return
    out = printed()
    out.print(table(("sweep", "every", "does"), ((s.name, seconds(s.every_s), s.does) for s in SWEEPS)))
    if recrawls:
        rows = ((r.product, seconds(r.every_s), clock(r.next_at)) for r in recrawls)
        out.print(table(("product", "again every", "next time (UTC)"), rows))
    else:
        out.print("  No product is looked at again: give one --recrawl 7d when you add it.", style="dim")
