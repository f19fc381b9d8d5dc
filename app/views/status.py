"""The view of the whole system: its state, counts of stored and waiting rows, and the nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from app.views.fields import extend_row
from app.views.host_waits import HostWaitView, view_waits
from app.views.loop_state import Situation, SystemState, describe_state, read_state
from app.views.nodes import NodeView, get_nodes_view
from tasks.fetching.hosts import HostCatalog
from tasks.store.content import links
from tasks.store.queries import products, queues
from tasks.store.queries.products import Coverage
from tasks.store.queries.queues import Totals
from tasks.store.queue.tasks import UnplannedSite
from tasks.store.sql.transaction import Transaction

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog
    from tasks.scheduling.rebalancing import BufferRule

_PACE_S = 120.0


@dataclass(frozen=True, kw_only=True)
class StateView:
    """The situation of the system, an English sentence about it, and the command to run next."""

    state: Situation
    parameters: Mapping[str, float]
    sentence: str
    next_command: str
    left_s: float | None


@dataclass(frozen=True, kw_only=True)
class StatusView(StateView, Totals):
    """The state of the system with all counts.

    Attributes:
        queues: number of subtasks by state.
        held_back: number of subtasks in WAIT that may start only at a later time.
        next_held_at: time at which the first of these subtasks may start.
        oldest_waiting_since: time at which the longest waiting subtask entered its queue.
        refused: number of records that were not stored as reviews, by reason.
        coverage: share of the reachable hits that are stored; `coverage_rests_on` has the sums behind it.
        relaxed: number of searches that use only some of the product's words.
    """

    queues: Mapping[str, int]
    waits_for_hosts: Sequence[HostWaitView]
    sites_not_asked: Sequence[UnplannedSite]
    held_back: int
    next_held_at: datetime | None
    oldest_waiting_since: datetime | None
    refused: Mapping[str, int]
    coverage: float | None
    coverage_rests_on: Coverage
    relaxed: int
    pages_per_s: float
    reviews_per_s: float
    nodes: Sequence[NodeView]
    now: datetime


def view_state(system: SystemState) -> StateView:
    """Return the view of the state that the system is in."""
    return StateView(
        state=system.situation,
        parameters=system.parameters,
        sentence=str(system),
        next_command=system.command,
        left_s=system.left_s,
    )


def describe_view(view: StateView) -> str:
    """Return the sentence about a state in the current language."""
    return describe_state(SystemState(view.state, view.parameters))


def get_status_view(tx: Transaction, catalog: Catalog, rule: BufferRule) -> StatusView:
    """Return the current state of the whole system."""
    silent_after = timedelta(seconds=rule.silent_after_s)
    state = read_state(tx, HostCatalog(catalog).site_hosts, silent_after)
    covered = sum(products.get_coverages(tx, catalog.most_hits).values(), Coverage())
    pace = queues.get_pace(tx, _PACE_S)
    return extend_row(
        StatusView,
        queues.get_totals(tx),
        **vars(view_state(state.system)),
        queues=state.queues,
        waits_for_hosts=view_waits(state.waits, catalog),
        sites_not_asked=state.unplanned,
        held_back=state.load.delayed,
        next_held_at=state.load.next_at,
        oldest_waiting_since=state.load.oldest_at,
        refused=links.refusals_by_reason(tx),
        coverage=covered.share,
        coverage_rests_on=covered,
        relaxed=len(products.list_relaxed(tx)),
        pages_per_s=pace.pages_per_s,
        reviews_per_s=pace.reviews_per_s,
        nodes=get_nodes_view(tx, rule).nodes,
        now=state.now,
    )
