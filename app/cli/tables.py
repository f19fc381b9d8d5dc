"""The loop's state as people read it: queues, pairs, what waits for a person. Used by several commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.output import Cell, labelled, percent, seconds, shown, table, table_of
from app.cli.waits import wait_text
from app.summary import Summary, by_cause
from splitter.catalog.model import Catalog
from tasks.store.coverage import Coverage
from tasks.store.manual import ManualRow
from tasks.store.reports import PairRow

_NODES_A_TABLE = 8
_SUBTASKS_SHOWN = 8

COLORS = {
    "PRIORITY": "blue",
    "WAIT": "cyan",
    "CRAWL": "bold green",
    "SLEEP": "magenta",
    "FAILED": "red",
    "MANUAL": "yellow",
    "DONE": "green",
    "CANCELLED": "dim",
}


def queue_line(queues: Mapping[str, int], *, all_of_them: bool = True) -> Text:
    """Queues in one line, in the order of the loop."""
    parts = [
        Text(f"{name} {n:,}", style=COLORS.get(name, "") if n else "dim")
        for name, n in queues.items()
        if n or all_of_them
    ]
    return Text("  ").join(parts)


def counted(numbers: Mapping[str, int]) -> str:
    """Counts by name in one line: 3 stored, 1 given up."""
    return ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in numbers.items())


def coverage_text(of: Coverage | None) -> str | None:
    """The share of the reachable hits that is stored, and the provenance of their number; None where not known."""
    if of is None or of.share is None:
        return None
    rests_on = counted(dict(sorted(of.rests_on.items())))
    return f"{of.share:.0%} of {'at least ' if of.at_least else ''}{of.reachable:,} ({rests_on})"


def pair_matrices(pairs: Sequence[PairRow]) -> Iterator[Table]:
    """Completion rate and efficiency: sites as rows, nodes as columns, the best node of a row marked."""
    nodes = sorted({pair.node for pair in pairs})
    cells = {(pair.site, pair.node): pair for pair in pairs}
    best = {site: _best(list(of_site)) for site, of_site in groupby(pairs, key=lambda pair: pair.site)}
    for at in range(0, len(nodes), _NODES_A_TABLE):
        columns = nodes[at : at + _NODES_A_TABLE]
        yield table(
            ("site", *columns),
            (
                (site, *(_pair_cell(cells.get((site, node)), best[site] == node) for node in columns))
                for site in best
            ),
            "Completion rate / active time per page, of each (site, node)",
            "* least active time per collected page among the nodes that were tried there",
        )


def _best(pairs: Sequence[PairRow]) -> str | None:
    """The node with the fewest active seconds per collected page; None where there is nothing to compare."""
    rated = [(pair.stats.efficiency_s, pair.node) for pair in pairs if pair.stats.efficiency_s is not None]
    return min(rated)[1] if rated and len(pairs) > 1 else None


def _pair_cell(pair: PairRow | None, best: bool) -> Cell:
    if pair is None:
        return Text("·", style="dim")
    rates = f"{percent(pair.stats.completion) or '-'} / {seconds(pair.stats.efficiency_s) or '-'}"
    return Text(f"{rates} *", style="bold green") if best else Text(rates)


def pair_list(pairs: Sequence[PairRow], products: Sequence[str] = ()) -> Table:
    """Completion rate and efficiency with the counts behind them.

    Args:
        products: of each pair, where each product has rows of its own.
    """
    columns: dict[str, Callable[[tuple[str, PairRow]], Cell]] = {
        "product": lambda row: row[0],
        "site": lambda row: row[1].site,
        "node": lambda row: row[1].node,
        "completion": lambda row: percent(row[1].stats.completion),
        "per page": lambda row: seconds(row[1].stats.efficiency_s),
        "offered": lambda row: row[1].stats.offered,
        "tried": lambda row: row[1].stats.tried,
        "collected": lambda row: row[1].stats.collected,
        "attempts": lambda row: row[1].stats.attempts,
        "failed": lambda row: row[1].stats.failed,
        "silent": lambda row: row[1].stats.silent,
        "active": lambda row: seconds(row[1].stats.active_s),
        "waited": lambda row: seconds(row[1].wait_s),
        "answers in": lambda row: None if row[1].rtt_ms is None else f"{row[1].rtt_ms:.0f} ms",
    }
    if not products:
        del columns["product"]
    return table_of(list(zip(products or [""] * len(pairs), pairs, strict=True)), columns)


def print_manual(out: Console, rows: Sequence[ManualRow], db_hint: str = "") -> None:
    """Print what waits for a person, grouped by cause, with what is suggested."""
    if not rows:
        out.print("Nothing waits for a person.", style="green")
        return
    out.print(f"{len(rows)} subtasks wait for a person:", style="bold yellow")
    for reason, site, of_cause in by_cause(rows):
        out.print(f"\n  {reason} at {site}: {len(of_cause)}", style="bold")
        for row in of_cause[:_SUBTASKS_SHOWN]:
            nodes = ", ".join(row.nodes) or "no node"
            out.print(
                f"    subtask {row.subtask_id}  {shown(row.product)}  {row.attempts} attempts on {nodes}, "
                f"{row.recalls} recalls"
            )
        if len(of_cause) > _SUBTASKS_SHOWN:
            out.print(f"    ... and {len(of_cause) - _SUBTASKS_SHOWN} more")
        out.print(f"    suggested: {of_cause[0].suggestion}")
    out.print(f"\n  More: reviewloop failed show {rows[0].subtask_id}{db_hint}", style="dim")


def print_summary(out: Console, done: Summary, db_hint: str = "", catalog: Catalog | None = None) -> None:
    """Print what a run came to; with its catalog, also what waits for hosts."""
    totals = done.totals
    if done.pairs:
        for matrix in pair_matrices(done.pairs):
            out.print(matrix)
    labelled(out, "Queues", queue_line(done.queues))
    labelled(
        out,
        "Stored",
        f"{totals.pages:,} pages, {totals.reviews:,} reviews ({done.added.pages:,} and {done.added.reviews:,} "
        f"of them by this run) of {totals.products:,} products on {totals.tasks:,} tasks",
    )
    hits = counted(totals.targets) or "none"
    labelled(out, "Took", f"{seconds(done.seconds)}; {totals.recalls} recalls; hits: {hits}")
    if catalog is not None and done.at is not None:
        for n, one in enumerate(done.waits):
            labelled(out, "" if n else "Waiting", wait_text(one, catalog, done.at))
    out.print()
    print_manual(out, done.manual, db_hint)
