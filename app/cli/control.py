"""`reviewloop control`: the node-run control."""

from __future__ import annotations

from dataclasses import asdict

import click

from app.cli.options import db_option, json_option, settings_of, store_there
from app.cli.output import print_json, printed, shown, table
from app.cli.tables import pair_list, pair_matrices
from app.summary import pair_document
from tasks.store import page_links, reports


@click.group()
def control() -> None:
    """Show the node-run control: how nodes do on sites.

    \b
    Example:
      reviewloop control pairs
    """


@control.command()
@click.option("--site", metavar="NAME", help="Only this site.")
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--products", is_flag=True, help="Told apart by product.")
@db_option
@json_option
def pairs(site: str | None, node: str | None, products: bool, db: str | None, as_json: bool) -> None:
    """Completion rate and efficiency of each (site, node), with the counts behind them.

    Completion rate: pages collected of hits offered; more is better. Efficiency: active seconds per collected
    page; fewer is better. With --site, --node or --products the counts are shown, otherwise a matrix.

    \b
    Examples:
      reviewloop control pairs
      reviewloop control pairs --site 12315.com --products
      reviewloop control pairs --json
    """
    with store_there(settings_of(db)) as store, store.read() as conn:
        refused = page_links.refused(conn, site=site)
        if products:
            by_product = reports.pairs_by_product(conn, site, node)
            rows, names = [row.pair for row in by_product], [row.product for row in by_product]
        else:
            rows = [p for p in reports.pairs(conn) if site in (None, p.site) and node in (None, p.node)]
            names = []
    if as_json:
        told = [pair_document(row) for row in rows]
        if products:
            told = [{"product": name, **row} for name, row in zip(names, told, strict=True)]
        print_json({"pairs": told, "refused": [asdict(row) for row in refused]})
        return
    out = printed()
    if not rows:
        out.print("No attempt has been closed yet" + (" there." if site or node else "."))
    elif site or node or products:
        out.print(pair_list(rows, names))
    else:
        for matrix in pair_matrices(rows):
            out.print(matrix)
    if refused:
        title = "Not stored as reviews"
        columns = ("site", "product", "why", "pages", "records")
        cells = ((r.site, shown(r.product), r.reason.replace("_", " "), r.pages, r.n) for r in refused)
        out.print(table(columns, cells, title))
