"""`reviewloop nodes` and `reviewloop control`: the crawl nodes, and how they do on sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from app.actions.manual_actions import set_drained
from app.cli.names import check_node, check_site
from app.cli.options import db_option, json_option, person, settings_of, store_there
from app.cli.output import ago, answer, print_json, printed, table, table_of
from app.cli.people.node_changes import add, remove
from app.cli.tables import pair_list, pair_matrices, permit_list, permit_matrices
from app.files.harmless import shown
from app.reports.summary import pair_document
from app.views.durations import seconds
from app.views.permit_worth import PermitWorth, permit_worths
from tasks.domain.breaker import Breaker, BreakerState
from tasks.jobs.measurements import load_of
from tasks.scheduling.rebalancing import BufferRule
from tasks.store.content import links
from tasks.store.queries import pairs as pair_queries
from tasks.store.queue import hosts as host_store
from tasks.store.queue import nodes as node_store
from tasks.store.queue.nodes import CLOCK_S, NodeRow


@click.group()
def nodes() -> None:
    """Add crawl nodes and remove them, list them, drain them, and take them back.

    \b
    Examples:
      reviewloop nodes add second --address 192.0.2.7
      reviewloop nodes add third --proxy http://proxy.example:8080
      reviewloop nodes list
      reviewloop nodes drain node2
      reviewloop nodes resume node2
    """


@nodes.command("list")
@db_option
@json_option
def list_(db: str | None, as_json: bool) -> None:
    """List the nodes with what each is doing, and which hosts refuse their addresses.

    "held" are leases a node has not begun, "wait" is when it is expected to begin the last of them. "idle" are
    attempts that only wait, for a host's rate or the database: they hold no slot. Of these, "backlog" (in JSON) and
    "attempts/s" are as of the last heartbeat. Where waits differ by more than a few seconds, leases move.

    A rest is "open" (nothing is asked until then) or "half_open" (it is over; one attempt at a time asks again, and
    a page closes it).

    \b
    Example:
      reviewloop nodes list --json
    """
    settings = settings_of(db)
    with store_there(settings) as store, store.read() as tx:
        now, rows, unrendered = tx.now, node_store.list_nodes(tx), node_store.count_unrendered(tx)
        breakers = host_store.list_rests(tx)
        added = {node.name: node for node in node_store.list_added(tx, settings.slots)}
    rule = settings.buffer()
    if as_json:
        documents = [node_document(row, now, rule) for row in rows]
        for document in documents:
            node = added.get(document["name"])
            document["added"] = node is not None
            document["proxy"] = str(node.proxy) if node is not None and node.proxy is not None else None
            document["rests"] = [one for one in breakers if one.node == document["name"]]
        print_json({"nodes": documents})
    elif rows:
        printed().print(node_table(rows, now, rule))
        for note in node_notes(rows, unrendered):
            printed().print(note, style="yellow")
        if breakers:
            printed().print(rest_table(breakers, now))
    else:
        printed().print("No node has run yet: reviewloop run --until-done")


@nodes.command()
@click.argument("name")
@db_option
@json_option
def drain(name: str, db: str | None, as_json: bool) -> None:
    """Give a node nothing new; what it runs it ends, what it has not started goes back.

    \b
    Example:
      reviewloop nodes drain node2
    """
    _set(name, db, as_json, drained=True)


@nodes.command()
@click.argument("name")
@db_option
@json_option
def resume(name: str, db: str | None, as_json: bool) -> None:
    """Give a drained node work again.

    \b
    Example:
      reviewloop nodes resume node2
    """
    _set(name, db, as_json, drained=False)


def _set(name: str, db: str | None, as_json: bool, *, drained: bool) -> None:
    with store_there(settings_of(db)) as store:
        set_drained(store, name, drained, person())
    said = f"{name} is {'drained: it gets nothing new' if drained else 'in service again'}"
    answer({"node": name, "drained": drained}, said, as_json)


nodes.add_command(add)
nodes.add_command(remove)


@click.group()
def control() -> None:
    """Show how well each node crawls each site: the node-run control.

    \b
    Example:
      reviewloop control pairs
    """


@control.command()
@click.option("--site", metavar="NAME", help="Only this site.")
@click.option("--node", metavar="NAME", help="Only this node.")
@click.option("--products", is_flag=True, help="One row for each product.")
@db_option
@json_option
def pairs(site: str | None, node: str | None, products: bool, db: str | None, as_json: bool) -> None:
    """Completion rate, efficiency and requests of each (site, node), with the counts behind them.

    Completion rate: pages collected of hits offered; more is better. Efficiency: active seconds per collected
    page; fewer is better. With --site, --node or --products the counts are shown, otherwise a matrix.

    Requests: all that were sent, per stored page. What a send permit is worth: pages that a request is expected to
    give there; and what one more permit, or one more second of a slot, would have added by the last plan (shadow
    prices; 0 where there was enough of it, - where no plan is at hand).

    \b
    Examples:
      reviewloop control pairs
      reviewloop control pairs --site 12315.com --products
      reviewloop control pairs --json
    """
    settings = settings_of(db)
    with store_there(settings) as store, store.read() as tx:
        check_site(tx, settings, site)
        check_node(tx, node)
        refused = links.refusal_counts(tx, site=site)
        if products:
            rows = pair_queries.list_product_pairs(tx, site, node)
        else:
            every = pair_queries.list_pairs(tx)
            rows = [row for row in every if site in (None, row.site) and node in (None, row.node)]
        worths = permit_worths(tx) if rows else {}
    worth = [worths.get((row.site, row.node), PermitWorth()) for row in rows]
    if as_json:
        documents = [pair_document(row) | asdict(one) for row, one in zip(rows, worth, strict=True)]
        print_json({"pairs": documents, "refused": [asdict(row) for row in refused]})
        return
    out = printed()
    if not rows:
        out.print("No attempt has been closed yet" + (" there." if site or node else "."))
    elif site or node or products:
        out.print(pair_list(rows))
        out.print(permit_list(rows, worth))
    else:
        for matrix in (*pair_matrices(rows, out.width), *permit_matrices(rows, worth, out.width)):
            out.print(matrix)
    if refused:
        title = "Not stored as reviews"
        columns = ("site", "product", "why", "pages", "records")
        cells = ((r.site, shown(r.product), r.reason.replace("_", " "), r.pages, r.n) for r in refused)
        out.print(table(columns, cells, title))


def state_of(row: NodeRow, now: datetime, rule: BufferRule) -> str:
    """A node's state in a word: alive, drained, silent or stopped."""
    if row.seen_at is None:
        return "stopped"
    if now - row.seen_at >= timedelta(seconds=rule.silent_after_s):
        return "silent"
    return "drained" if row.drained else "alive"


def expected_wait_s(row: NodeRow, now: datetime, rule: BufferRule) -> float | None:
    """Seconds until the node begins the last lease it holds; None where it isn't alive."""
    return load_of(row, now, rule).wait_s if state_of(row, now, rule) == "alive" else None


def node_document(row: NodeRow, now: datetime, rule: BufferRule) -> dict[str, Any]:
    """A node as `--json` prints it."""
    derived = {"state": state_of(row, now, rule), "expected_wait_s": expected_wait_s(row, now, rule)}
    return asdict(row) | {"kinds": sorted(row.kinds)} | derived


def node_table(rows: Sequence[NodeRow], now: datetime, rule: BufferRule) -> Table:
    """Nodes as people read them."""
    styles = {"alive": "green", "drained": "yellow", "silent": "red", "stopped": "dim"}

    def state(row: NodeRow) -> Text:
        name = state_of(row, now, rule)
        return Text(name + (" (drained)" if row.drained and name != "drained" else ""), style=styles[name])

    return table_of(
        rows,
        {
            "node": lambda row: row.name,
            "state": state,
            "seen": lambda row: ago(row.seen_at, now),
            "kinds": lambda row: ", ".join(sorted(row.kinds)),
            "address": lambda row: row.permit_address,
            "slots": lambda row: row.slots,
            "running": lambda row: row.running,
            "idle": lambda row: row.idle,
            "held": lambda row: row.waiting,
            "attempts/s": lambda row: row.attempts_per_s,
            "wait": lambda row: seconds(expected_wait_s(row, now, rule)),
        },
        least=("attempts/s", "kinds", "idle", "address", "held", "wait"),
    )


def node_notes(rows: Sequence[NodeRow], unrendered: Mapping[str, int]) -> list[str]:
    """Problems of nodes beside their state: catalogs that differ, no browser, clocks that are off.

    Args:
        unrendered: by node without a browser, how many sites need one (`tasks.store.queue.nodes.count_unrendered`).
    """
    alive = [row for row in rows if row.seen_at is not None]
    # Of nodes without a browser the hash tells that, too.
    catalogs = Counter(row.catalog for row in alive if row.catalog is not None and row.name not in unrendered)
    usual = catalogs.most_common(1)[0][0] if catalogs else None
    notes = [
        f"{row.name} has another catalog than most nodes: of sites that the scheduler's has otherwise it is given "
        "nothing; restart it with the same sites.yaml"
        for row in alive
        if row.name not in unrendered and row.catalog not in (None, usual)
    ]
    unable = [
        f"{row.name} has no browser: it is given nothing of {unrendered[row.name]} sites "
        "whose pages need one (docs/browser.md)"
        for row in alive
        if row.name in unrendered
    ]
    off = [row for row in rows if abs(row.clock_s) > CLOCK_S]
    return [
        *notes,
        *unable,
        *(f"{row.name}: its clock is {row.clock_s:+.0f} s off the database's: set it (NTP)" for row in off),
    ]


def rest_table(breakers: Sequence[Breaker], now: datetime) -> Table:
    """Hosts that refuse nodes' addresses, as people read them."""

    def state(one: Breaker) -> Text:
        if one.state is BreakerState.HALF_OPEN:
            return Text("one attempt at a time asks", style="yellow")
        return Text(f"rests for another {seconds((one.until - now).total_seconds())}", style="red")

    return table(
        ("node", "host", "refused", "in a row", "now"),
        ((one.node, one.host, one.cause, one.times, state(one)) for one in breakers),
        "Hosts that refuse a node's address",
    )
