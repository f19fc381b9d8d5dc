"""The command `reviewloop control`: show the results of each node at each site."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import click
from rich.table import Table
from rich.text import Text

from app.cli import output
from app.cli.command import App, command
from app.cli.names import check_node, check_site
from app.cli.output import make_console
from app.cli.render import Part, table, text
from app.views.fields import format_value, label
from app.views.pairs import PAIR_FIELDS, PERMIT_FIELDS, REFUSED_FIELDS, PairsView, get_pairs_view
from app.views.words import translate
from tasks.store.queries.pairs import PairRow

_LEAST = "rtt_ms wait_s active_s silent failed tried attempts"
_NODES_A_TABLE = 8
_BETWEEN = 3
"""Number of characters between two columns of a table."""


@click.group()
def control() -> None:
    """Show how well each node crawls each site: the node-run control.

    \b
    Example:
      reviewloop control pairs
    """


@command(control, "pairs")
@click.option("--site", metavar="NAME", help="Only this site.")
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--products", is_flag=True, help="One row per product.")
def pairs(app: App, site: str | None, node: str | None, products: bool) -> PairsView:
    """Show how well each node crawls each site: completion rate, efficiency, requests, and the counts behind them.

    Completion rate: collected pages per search hit that was given to the node; more is better. Efficiency: active
    seconds per collected page; less is better. With --site, --node or --products, a table shows also the counts;
    otherwise a matrix of sites and nodes is shown.

    Requests: all requests per stored page. Every request needs a send permit, of which each host has only some per
    second. The value of a permit: the pages that a request at this site is expected to give, and the pages that the
    last plan would have added with one more permit, or with one more second of a slot (shadow prices; 0 if there was
    enough, - if there is no plan).

    \b
    Examples:
      reviewloop control pairs
      reviewloop control pairs --site 12315.com --products
      reviewloop control pairs --json
    """
    with app.store.read() as tx:
        check_site(tx, app.settings, site)
        check_node(tx, node)
        return get_pairs_view(tx, site, node, products=products)


@text.register
def _(view: PairsView) -> Iterator[Part]:
    rows = view.pairs
    if not rows:
        yield translate("No attempt has been closed.")
    elif min(len({row.site for row in rows}), len({row.node for row in rows})) > 1 and not rows[0].product:
        yield from pair_matrices(rows, make_console().width)
    else:
        yield table(rows, PAIR_FIELDS, least=_LEAST)
        yield table(rows, PERMIT_FIELDS)
    if view.refused:
        yield table(view.refused, REFUSED_FIELDS, title=translate("Not stored as reviews"))


def pair_matrices(pairs: Sequence[PairRow], width: int) -> Iterator[Table]:
    """Yield tables of completion rate and efficiency: a row per site, a column per node. The best node is marked.

    Args:
        width: maximum number of characters in a line.
    """
    cells = {(pair.site, pair.node): pair for pair in pairs}
    best = {site: _find_best(list(of_site)) for site, of_site in groupby(pairs, key=lambda pair: pair.site)}
    widest = max(len(_format_pair(pair, best=True)) for pair in pairs)
    for columns in _divide_nodes(pairs, widest, width):
        yield output.table(
            (label("site"), *columns),
            (
                (site, *(_format_pair(cells.get((site, node)), best[site] == node) for node in columns))
                for site in best
            ),
            translate("Completion rate and active time per page of each (site, node)"),
            translate("* least active time per collected page among the nodes that were tried there"),
        )


def _divide_nodes(pairs: Sequence[PairRow], cell: int, width: int) -> Iterator[Sequence[str]]:
    """Divide the nodes into groups, each for one table that fits the width. Yield the names of each group.

    Args:
        cell: number of characters in a cell.
        width: maximum number of characters in a line.
    """
    nodes = sorted({pair.node for pair in pairs})
    left = width - max(len(pair.site) for pair in pairs) - _BETWEEN - 1
    at_once = min(_NODES_A_TABLE, max(1, left // (max(cell, *map(len, nodes)) + _BETWEEN)))
    return (nodes[at : at + at_once] for at in range(0, len(nodes), at_once))


def _find_best(pairs: Sequence[PairRow]) -> str | None:
    """Return the node with the fewest active seconds per collected page; `None` if fewer than two nodes were tried."""
    rated = [(pair.efficiency_s, pair.node) for pair in pairs if pair.efficiency_s is not None]
    return min(rated)[1] if rated and len(pairs) > 1 else None


def _format_pair(pair: PairRow | None, best: bool) -> Text:
    if pair is None:
        return Text("·", style="dim")
    completion = format_value("completion", pair.completion) or "-"
    per_page = format_value("efficiency_s", pair.efficiency_s) or ""
    rates = f"{completion} {per_page}".rstrip()
    return Text(f"{rates}*", style="bold green") if best else Text(rates)
