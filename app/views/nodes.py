"""Views of crawl nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.views.fields import NodeState, extend_row
from app.views.words import translate
from tasks.domain.breaker import Breaker
from tasks.jobs.measurements import load_of
from tasks.scheduling.rebalancing import BufferRule
from tasks.store.queue import hosts, nodes
from tasks.store.queue.nodes import CLOCK_S, NodeRow
from tasks.store.sql.transaction import Transaction

NODE_FIELDS = (
    "name state drained seen_at kinds permit_address slots working free paused waiting attempts_per_s "
    "expected_wait_s"
)
REST_FIELDS = "node host cause times state until"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView(NodeRow):
    """A node as people see it, with values that are computed from settings and other tables.

    Attributes:
        working: number of attempts that hold a slot.
        paused: number of begun attempts without a slot: they wait for a permit or for the database.
        free: number of slots that no attempt holds; 0 if the node is not alive.
        expected_wait_s: seconds until the node begins the last lease that it holds; `None` if it is not alive.
        added: True if a person added the node.
        proxy: proxy of a node that a person added, without the password.
        rests: hosts that refuse the node's address.
        has_other_catalog: True if the node's catalog differs from that of most nodes.
        without_browser: number of sites that need a browser, if the node has none; else 0.
    """

    state: NodeState
    working: int
    paused: int
    free: int
    expected_wait_s: float | None
    added: bool
    proxy: str | None
    rests: Sequence[Breaker]
    has_other_catalog: bool
    without_browser: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesView:
    """All nodes, with the time of the store's clock at which they were read."""

    nodes: Sequence[NodeView]
    now: datetime


def get_nodes_view(tx: Transaction, rule: BufferRule) -> NodesView:
    """Return all nodes with their current state."""
    rows = nodes.list_nodes(tx)
    rests = hosts.list_rests(tx)
    added = {node.name: node for node in nodes.list_added(tx, 1)}
    unrendered = nodes.count_unrendered(tx)
    usual = _find_usual_catalog(row for row in rows if row.name not in unrendered)
    silent_after = timedelta(seconds=rule.silent_after_s)
    views = []
    for row in rows:
        runs = row.is_alive(tx.now, silent_after)
        works = runs and not row.drained
        working = max(0, min(row.slots, row.running - row.idle)) if runs else 0
        proxy = added[row.name].proxy if row.name in added else None
        differs = row.seen_at is not None and row.name not in unrendered and row.catalog not in (None, usual)
        views.append(
            extend_row(
                NodeView,
                row,
                state=_find_state(row, runs),
                working=working,
                paused=row.running - working,
                free=row.slots - working if runs else 0,
                expected_wait_s=load_of(row, tx.now, rule).wait_s if works else None,
                added=row.name in added,
                proxy=None if proxy is None else str(proxy),
                rests=[one for one in rests if one.node == row.name],
                has_other_catalog=differs,
                without_browser=unrendered.get(row.name, 0),
            )
        )
    return NodesView(nodes=views, now=tx.now)


def list_problems(row: NodeView) -> Iterator[str]:
    """Yield a sentence for each problem of a node that its state does not show."""
    if row.has_other_catalog:
        yield translate(
            "{node} has another catalog than most nodes, so it gets nothing of sites that differ: restart it with "
            "the same sites.yaml",
            node=row.name,
        )
    if row.without_browser:
        yield translate(
            "{node} has no browser: it gets nothing of {n} sites whose pages need one (docs/browser.md)",
            node=row.name,
            n=row.without_browser,
        )
    if abs(row.clock_s) > CLOCK_S:
        yield translate(
            "The clock of {node} is {s:+.0f} s off the database's: set it (NTP)", node=row.name, s=row.clock_s
        )


def _find_state(row: NodeRow, runs: bool) -> NodeState:
    if row.seen_at is None:
        return NodeState.STOPPED
    if not runs:
        return NodeState.SILENT
    return NodeState.DRAINED if row.drained else NodeState.ALIVE


def _find_usual_catalog(rows: Iterable[NodeRow]) -> str | None:
    """Return the hash of the catalog that most nodes have; `None` if no node reported a catalog."""
    counts = Counter(row.catalog for row in rows if row.seen_at is not None and row.catalog is not None)
    return counts.most_common(1)[0][0] if counts else None
