"""The end of a run: what a person wants to know, what is left to do, and the exit status."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from rich.table import Table

from app.cli.output import print_json, printed, say, table
from app.cli.tables import print_samples, print_summary
from app.reports.summary import Summary, document
from app.views.durations import seconds
from tasks.store.queries.pairs import AttemptSums

if TYPE_CHECKING:
    from app.run.process import Until
    from app.run.setting_fields import Settings


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
