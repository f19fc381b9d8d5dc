"""The loop's state as people read it: queues, pairs, what waits for a person. Used by several commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.output import Cell, clock, labelled, percent, short, table, table_of
from app.files.harmless import shown
from app.reports.summary import Summary, by_cause
from app.views.durations import seconds
from app.views.host_waits import unplanned_texts, wait_text
from app.views.permit_worth import PermitWorth
from tasks.store.queries.pairs import PairRow
from tasks.store.queries.products import Coverage, ProductRow
from tasks.store.queries.reviews import ReviewRow
from tasks.store.queue.manual import ManualRow

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog

_NODES_A_TABLE = 8
_BETWEEN = 3
"""Characters that a column of a table takes beside its cells."""
_SUBTASKS_SHOWN = 8
_PRODUCTS_SHOWN = 10

_SLOT_SECOND = "slot second"
_PRICES = f"permit, {_SLOT_SECOND}: pages that one more of it adds, by the last plan"

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


def pair_matrices(pairs: Sequence[PairRow], width: int) -> Iterator[Table]:
    """Completion rate and efficiency: sites as rows, nodes as columns, the best node of a row marked.

    Args:
        width: characters a line may have.
    """
    cells = {(pair.site, pair.node): pair for pair in pairs}
    best = {site: _best(list(of_site)) for site, of_site in groupby(pairs, key=lambda pair: pair.site)}
    widest = max(len(_pair_cell(pair, best=True)) for pair in pairs)
    for columns in _nodes_a_table(pairs, widest, width):
        yield table(
            ("site", *columns),
            (
                (site, *(_pair_cell(cells.get((site, node)), best[site] == node) for node in columns))
                for site in best
            ),
            "Completion rate and active time per page, of each (site, node)",
            "* least active time per collected page among the nodes that were tried there",
        )


def _nodes_a_table(pairs: Sequence[PairRow], cell: int, width: int) -> Iterator[Sequence[str]]:
    """The nodes in as many tables as it takes, beside a column of sites, with cells of so many characters."""
    nodes = sorted({pair.node for pair in pairs})
    left = width - max(len(_SLOT_SECOND), *(len(pair.site) for pair in pairs)) - _BETWEEN - 1
    at_once = min(_NODES_A_TABLE, max(1, left // (max(cell, *map(len, nodes)) + _BETWEEN)))
    return (nodes[at : at + at_once] for at in range(0, len(nodes), at_once))


def permit_matrices(pairs: Sequence[PairRow], worths: Sequence[PermitWorth], width: int) -> Iterator[Table]:
    """Yield of requests, and what a send permit is worth: sites as rows, nodes as columns.

    Args:
        worths: of each pair.
        width: characters a line may have.
    """
    cells = {(pair.site, pair.node): (pair, worth) for pair, worth in zip(pairs, worths, strict=True)}
    permit = {pair.site: worth.permit_worth for pair, worth in cells.values()}
    slot = {pair.node: worth.slot_worth for pair, worth in cells.values()}
    for columns in _nodes_a_table(pairs, len("1.23/0.95"), width - len("permit") - _BETWEEN):
        rows: list[list[Cell]] = [
            [site, _pages(worth), *(_permit_cell(cells.get((site, node))) for node in columns)]
            for site, worth in permit.items()
        ]
        rows.append([_SLOT_SECOND, Text(""), *(_pages(slot[node]) for node in columns)])
        yield table(
            ("site", "permit", *columns),
            rows,
            "Requests a stored page/pages expected of a request",
            _PRICES,
        )


def _permit_cell(of: tuple[PairRow, PermitWorth] | None) -> Cell:
    if of is None:
        return Text("·", style="dim")
    pair, worth = of
    return f"{_pages(pair.requests_per_page) or '-'}/{_pages(worth.page_chance) or '-'}"


def _pages(value: float | None) -> str | None:
    """A number of pages, or of requests, to two digits after the point at most."""
    return None if value is None else f"{value:.2f}" if value < 10 else f"{value:.3g}"


def permit_list(pairs: Sequence[PairRow], worths: Sequence[PermitWorth]) -> Table:
    """Yield of requests, and what a send permit is worth, a row a pair. What a permit is worth is not a product's.

    Args:
        worths: of each pair.
    """
    columns: dict[str, Callable[[tuple[PairRow, PermitWorth]], Cell]] = {
        "product": lambda row: row[0].product,
        "site": lambda row: row[0].site,
        "node": lambda row: row[0].node,
        "requests": lambda row: row[0].requests,
        "a page": lambda row: _pages(row[0].requests_per_page),
        "gives": lambda row: _pages(row[1].page_chance),
        "permit": lambda row: _pages(row[1].permit_worth),
        _SLOT_SECOND: lambda row: _pages(row[1].slot_worth),
    }
    products = _are_of_products(pairs)
    for name in ("gives", "permit", _SLOT_SECOND) if products else ("product",):
        del columns[name]
    rows = list(zip(pairs, worths, strict=True))
    title = "Requests, requests a stored page" + ("" if products else ", pages expected of a request")
    made = table_of(rows, columns, title)
    made.caption = None if products else _PRICES
    return made


def _best(pairs: Sequence[PairRow]) -> str | None:
    """The node with the fewest active seconds per collected page; None where there is nothing to compare."""
    rated = [(pair.efficiency_s, pair.node) for pair in pairs if pair.efficiency_s is not None]
    return min(rated)[1] if rated and len(pairs) > 1 else None


def _pair_cell(pair: PairRow | None, best: bool) -> Text:
    if pair is None:
        return Text("·", style="dim")
    a_page = (seconds(pair.efficiency_s) or "").replace(" ", "")
    rates = f"{percent(pair.completion) or '-'} {a_page}".rstrip()
    return Text(f"{rates}*", style="bold green") if best else Text(rates)


def _are_of_products(pairs: Sequence[PairRow]) -> bool:
    return any(pair.product for pair in pairs)


def pair_list(pairs: Sequence[PairRow]) -> Table:
    """Completion rate and efficiency with the counts behind them."""
    columns: dict[str, Callable[[PairRow], Cell]] = {
        "product": lambda row: row.product,
        "site": lambda row: row.site,
        "node": lambda row: row.node,
        "completion": lambda row: percent(row.completion),
        "per page": lambda row: seconds(row.efficiency_s),
        "offered": lambda row: row.offered,
        "tried": lambda row: row.tried,
        "collected": lambda row: row.collected,
        "attempts": lambda row: row.attempts,
        "failed": lambda row: row.failed,
        "silent": lambda row: row.silent,
        "active": lambda row: seconds(row.active_s),
        "waited": lambda row: seconds(row.wait_s),
        "answers in": lambda row: None if row.rtt_ms is None else f"{row.rtt_ms:.0f} ms",
    }
    if not _are_of_products(pairs):
        del columns["product"]
    least = ("answers in", "waited", "active", "silent", "failed", "tried", "attempts")
    return table_of(pairs, columns, least=least)


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
        labelled(out, "Voices", counted(totals.voices))
    hits = counted(totals.targets) or "none"
    labelled(out, "Took", f"{seconds(done.seconds)}; {totals.recalls} recalls; hits: {hits}")
    if catalog is not None:
        for n, one in enumerate(done.state.waits):
            labelled(out, "" if n else "Waiting", wait_text(one, catalog, done.state.now))
    for text in unplanned_texts(done.state.unplanned):
        labelled(out, "Not asked", text)
    if done.products:
        _print_products(out, done.products)
    out.print()
    print_manual(out, done.manual, db_hint)


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
        written = clock(row.published_at) or row.date_text or "no date"
        out.print(
            f"     {shown(row.url)}  {shown(row.author or 'anonymous')}, {written}, by {row.node}",
            style="dim",
        )
