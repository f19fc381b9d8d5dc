"""The end of a run: what a person wants to know, what is left to do, and the exit status."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.output import Cell, labelled, print_json, printed, say, short, table, table_of
from app.cli.people.failed import list_waiting_parts
from app.cli.people.pairs import pair_matrices
from app.cli.render import print_parts
from app.cli.tables import queue_line
from app.files.harmless import shown
from app.reports.summary import Summary, document
from app.views.durations import seconds
from app.views.failed import group_by_cause
from app.views.fields import format_counts
from app.views.host_waits import unplanned_texts, wait_text
from app.views.moments import written_text
from tasks.store.queries.pairs import AttemptSums
from tasks.store.queries.products import ProductRow
from tasks.store.queries.reviews import ReviewRow

if TYPE_CHECKING:
    from app.run.process import Until
    from app.run.setting_fields import Settings
    from splitter.catalog.model import Catalog

_PRODUCTS_SHOWN = 10


def finish(
    done: Summary,
    settings: Settings,
    until: Until,
    *,
    as_json: bool,
    refused: bool,
    matrix: bool,
    stats: bool,
    db_hint: str,
) -> None:
    """Print what a run came to, and end with status 2 where names were refused, 1 where it left work it was to do."""
    if as_json:
        print_json(document(done))
    else:
        _print_end(done, settings, matrix, db_hint)
        if stats or logging.getLogger().isEnabledFor(logging.INFO):
            printed().print(_statistics(done.statistics))
    left, waits = done.state.open, done.state.waits
    ended_early = until.seconds is None or done.seconds < until.seconds
    if until.done and waits:
        say(
            "The run was ended before all was done: what is left waits for hosts. Nothing is lost; run it again."
        )
    elif left and ended_early:
        say(f"The run was ended with {left:,} subtasks to do. Nothing is lost; run it again to go on.")
    if refused:
        sys.exit(2)
    if until.done and (waits or (left and ended_early)):
        sys.exit(1)


def _statistics(of: AttemptSums) -> Table:
    """Requests by status and by error, attempts by outcome and by reason."""
    rows: list[tuple[str, str, int | str | None]] = [
        ("requests", "", of.requests),
        ("requests", "MB of bodies", f"{of.bytes / 1e6:,.1f}"),
        ("requests", "active", seconds(of.active_s)),
        ("requests", "waited for permits", seconds(of.wait_s)),
    ]
    for name in ("statuses", "errors", "outcomes", "reasons"):
        rows += [(_COUNTED[name], kind, n) for kind, n in getattr(of, name).items()]
    return table(("of this run", "which", "n"), rows)


_COUNTED = {
    "statuses": "answers by status",
    "errors": "requests without a page",
    "outcomes": "attempts by outcome",
    "reasons": "attempts by reason",
}


def _print_end(done: Summary, settings: Settings, matrix: bool, db_hint: str) -> None:
    """The summary at the end of a run: counts, reviews by product, some of them, what to do next."""
    out = printed()
    print_summary(out, done, db_hint, settings.catalog(), matrix=matrix)
    if done.samples:
        out.print("\nReviews, for example", style="bold")
        print_samples(out, done.samples)
    if done.totals.reviews:
        out.print("\nNext", style="bold")
        out.print(f"   reviewloop export reviews -o reviews.xlsx{db_hint}")
        out.print(f"   reviewloop report -o report.html{db_hint}")
        out.print(f"   reviewloop web{db_hint}        (look at it in a browser)")
    if done.pairs and not matrix:
        out.print(f"   reviewloop control pairs{db_hint}        (how each node did on each site)")


def print_summary(
    out: Console, done: Summary, db_hint: str = "", catalog: Catalog | None = None, *, matrix: bool = False
) -> None:
    """Print what a run came to; with its catalog, also what waits for hosts.

    Args:
        matrix: also how each node did on each site.
    """
    totals = done.totals
    if done.pairs and matrix:
        for made in pair_matrices(done.pairs, out.width):
            out.print(made)
    labelled(out, "Queues", queue_line(done.state.queues))
    labelled(
        out,
        "Stored",
        f"{totals.pages:,} pages, {totals.reviews:,} reviews ({done.added.pages:,} and {done.added.reviews:,} "
        f"of them by this run) of {totals.products:,} products on {totals.tasks:,} tasks",
    )
    if totals.voices:
        labelled(out, "Voices", format_counts(totals.voices))
    hits = format_counts(totals.targets) or "none"
    labelled(out, "Took", f"{seconds(done.seconds)}; {totals.recalls} recalls; hits: {hits}")
    if catalog is not None:
        for n, one in enumerate(done.state.waits):
            labelled(out, "" if n else "Waiting", wait_text(one, catalog, done.state.now))
    for text in unplanned_texts(done.state.unplanned):
        labelled(out, "Not asked", text)
    if done.products:
        _print_products(out, done.products)
    out.print()
    print_parts(out, list_waiting_parts(group_by_cause(done.manual), db_hint))


def _print_products(out: Console, rows: Sequence[ProductRow]) -> None:
    more = len(rows) - _PRODUCTS_SHOWN
    columns: dict[str, Callable[[ProductRow], Cell]] = {
        "product": lambda row: row.name,
        "reviews": lambda row: row.reviews,
        "pages": lambda row: row.pages,
    }
    made = table_of(rows[:_PRODUCTS_SHOWN], columns)
    made.caption = f"and {more:,} products more: reviewloop product list" if more > 0 else None
    out.print(made)


def print_samples(out: Console, rows: Sequence[ReviewRow]) -> None:
    """Print reviews, as examples."""
    for row in rows:
        title = short(row.title or row.page_title, 50)
        out.print(Text(f"   {shown(row.product)}", style="cyan") + f"  {shown(title)}")
        out.print(f"     {shown(short(row.body, 90))}")
        written = written_text(row) or "no date"
        out.print(
            f"     {shown(row.url)}  {shown(row.author or 'anonymous')}, {written}, by {row.node}",
            style="dim",
        )
