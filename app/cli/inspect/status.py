"""`reviewloop status` and `verify`: the state of the loop, while a runner runs or not."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from app.cli.options import DatabaseUnusable, db_option, json_option, left_by_up, settings_of, store_there
from app.cli.output import ago, labelled, print_json, printed, table
from app.cli.people.nodes import node_document, node_notes, node_table
from app.cli.tables import counted, coverage_text, queue_line
from app.run.open_store import is_busy
from app.views.durations import seconds
from app.views.host_waits import unplanned_texts, wait_documents, wait_text
from app.views.loop_state import Situation, SystemState, read_state
from tasks.domain.errors import StoreUnavailable, WrongRevision
from tasks.fetching.hosts import HostCatalog
from tasks.store.content import links
from tasks.store.queries import products as product_queries
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.queues import WaitingSummary
from tasks.store.queue import nodes
from tasks.store.verify.verify import verify as check_invariants

if TYPE_CHECKING:
    from app.run.setting_fields import Settings


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
    catalog = settings.catalog()
    rule = settings.buffer()
    with _report_absence(settings, as_json), store_there(settings) as store, store.read() as tx:
        state = read_state(tx, HostCatalog(catalog).of_site, timedelta(seconds=rule.silent_after_s))
        totals = queue_queries.get_totals(tx)
        refused = links.refusals_by_reason(tx)
        unrendered = nodes.count_unrendered(tx)
        covered = sum(
            product_queries.get_coverages(tx, catalog.most_hits).values(), product_queries.Coverage()
        )
        relaxed = len(product_queries.list_relaxed(tx))
    now, load, waits = state.now, state.load, state.waits
    if as_json:
        print_json(
            {
                "queues": state.queues,
                **state_document(state.system),
                "waits_for_hosts": wait_documents(waits, catalog),
                "sites_not_asked": state.unplanned,
                "held_back": load.delayed,
                "next_held_at": load.next_at,
                "oldest_waiting_since": load.oldest_at,
                **asdict(totals),
                "refused": refused,
                "coverage": covered.share,
                "coverage_rests_on": asdict(covered),
                "relaxed": relaxed,
                "nodes": [node_document(row, now, rule) for row in state.nodes],
                "now": now,
            }
        )
        return
    out = printed()
    labelled(out, "State", state_text(state.system))
    labelled(out, "Queues", queue_line(state.queues))
    labelled(out, "Waiting", _waiting(load, now))
    for one in waits:
        labelled(out, "", wait_text(one, catalog, now))
    for text in unplanned_texts(state.unplanned):
        labelled(out, "Not asked", text)
    labelled(
        out,
        "Stored",
        f"{totals.pages:,} pages, {totals.reviews:,} reviews of {totals.products:,} products "
        f"({totals.tasks:,} tasks, {totals.recalls:,} recalls, {totals.reposts:,} reposts linked)",
    )
    if totals.compared < 1:
        labelled(
            out,
            "Compared",
            f"{math.floor(totals.compared * 100)} % of the reviews with earlier ones, for reposts",
        )
    if totals.voices:
        labelled(out, "Voices", counted(totals.voices))
    if refused:
        labelled(out, "Refused", f"{counted(refused)} (in no export)")
    hits = counted(dict(sorted(totals.targets.items()))) or "none yet"
    labelled(out, "Hits", hits)
    labelled(out, "Coverage", _covered(covered, relaxed))
    if state.nodes:
        out.print(node_table(state.nodes, now, rule))
        for note in node_notes(state.nodes, unrendered):
            out.print(note, style="yellow")


@contextmanager
def _report_absence(settings: Settings, as_json: bool) -> Iterator[None]:
    """Say that the database does not answer, or that `up` is about to make its tables, and end with status 1."""
    try:
        yield
    except WrongRevision:
        folder = left_by_up(settings)
        if folder is None or not is_busy(folder):
            raise
        situation = Situation.STARTING
    except (DatabaseUnusable, StoreUnavailable) as error:
        if not isinstance(error, StoreUnavailable) and not isinstance(error.__cause__, StoreUnavailable):
            raise
        situation = Situation.DATABASE_AWAY
    else:
        return
    if as_json:
        print_json(state_document(SystemState(situation)))
    else:
        labelled(printed(), "State", state_text(SystemState(situation)))
    sys.exit(1)


def state_text(system: SystemState) -> str:
    """Return the sentence of a state, with the command that comes next."""
    return f"{system} Next: {system.situation.command}"


def state_document(system: SystemState) -> dict[str, Any]:
    """Return the same as `--json` prints it."""
    return {
        "state": system.situation,
        "sentence": str(system),
        "next_command": system.situation.command,
        "left_s": system.left_s,
    }


def _waiting(load: WaitingSummary, now: datetime) -> str:
    if load.oldest_at is None:
        return "nothing"
    waiting = f"the oldest came to its queue {ago(load.oldest_at, now)}"
    if load.next_at is not None:
        next_in = seconds(max(0.0, (load.next_at - now).total_seconds()))
        waiting += f"; {load.delayed} held back, the next may go in {next_in}"
    return waiting


def _covered(of: product_queries.Coverage, relaxed: int) -> str:
    """The coverage, and how many searches were made with fewer words."""
    words = f"; {relaxed:,} searches with fewer words" if relaxed else ""
    return (coverage_text(of) or f"unknown ({counted(of.rests_on) or 'no task yet'})") + words


@click.command()
@db_option
@json_option
def verify(db: str | None, as_json: bool) -> None:
    """Prove that the loop kept its invariants.

    From the event log and the tables: nothing was lost, doubled, or moved where it may not go.
    Each subtask is in exactly one queue, only legal transitions, never more than 5 recalls in a round, every attempt
    counted once, no page or review stored twice, nothing overdue for long. docs/verify.md says what is proved, and what
    is not. Works while a runner runs. Exit status 1 if there is a violation.

    \b
    Example:
      reviewloop verify --json
    """
    with store_there(settings_of(db)) as store, store.read() as tx:
        found = check_invariants(tx)
    if as_json:
        told = {"violations": [asdict(v) for v in found.violations], "counts": dict(found.counts)}
        overdue = {kind: asdict(one) for kind, one in found.overdue.items()}
        set_clocks = [one._asdict() for one in found.set_clocks]
        print_json({**told, "as_of": found.as_of, "overdue": overdue, "set_clocks": set_clocks})
    else:
        out = printed()
        if found.violations:
            rows = ((v.kind, v.subtask_id, v.message) for v in found.violations)
            out.print(
                table(("kind", "subtask", "what is wrong>"), rows, f"{len(found.violations)} violations")
            )
        else:
            out.print("No violation.", style="green")
        out.print(
            "Checked: " + ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in found.counts.items())
        )
        if dropped := found.counts["logs_dropped"]:
            out.print(
                f"{dropped:,} subtasks ended so long ago that their event log was dropped: how they came to their "
                "state can't be proved any more."
            )
        for one in found.set_clocks:
            out.print(
                f"The database's clock was set back from {one.until:%Y-%m-%d %H:%M:%S} to "
                f"{one.since:%Y-%m-%d %H:%M:%S} UTC: the order of what happened in between is not judged."
            )
    if found.violations:
        sys.exit(1)
