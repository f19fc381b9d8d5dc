"""The first page: queues now and over time, pages and reviews a second, nodes, time left and what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fastapi import APIRouter
from markupsafe import Markup
from starlette.responses import Response

from app.reports import charts
from app.run.eta import Ending, TimeLeft, time_left
from app.views.host_waits import unplanned_texts, wait_text
from app.web.base.context import Context, Here
from app.web.base.phrases import Translate
from tasks.domain.states import State
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.queues import HostQueue, Pace, QueueTrend, Sizes, StoringTrend, host_waits
from tasks.store.queue import nodes, tasks, transitions
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.transaction import Transaction

router = APIRouter()

SAID = {
    Ending.NO_WORK: "There is no work yet.",
    Ending.NOTHING_LEFT: "Nothing is left to do.",
    Ending.HOSTS: "All that is left waits for hosts; the next one is asked in:",
    Ending.DONE_IN: "Time left, about:",
    Ending.UNKNOWN: "The time left is not known: no page was stored in the last 5 minutes.",
}
"""How the page says what is known of the end; of two of them the time follows."""
_PACE_S = 120.0
_WAITS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Overview:
    """What the page tells."""

    now: datetime
    queues: dict[str, int]
    sizes: Sizes
    pace: Pace
    left: TimeLeft
    waits: Sequence[HostQueue]
    unplanned: Sequence[str]
    nodes: Sequence[NodeRow]

    @property
    def left_said(self) -> str:
        """What is known of the end."""
        return SAID[self.left.ending]

    @property
    def left_s(self) -> float | None:
        """The time that belongs to it; None: there is none."""
        return self.left.seconds if self.left.ending in (Ending.HOSTS, Ending.DONE_IN) else None


def read_overview(context: Context) -> Overview:
    """The state of the loop."""

    def read(tx: Transaction) -> Overview:
        queues = transitions.count_queues(tx)
        waits = host_waits(tx, context.hosts.of_site, context.silent_after)
        return Overview(
            now=tx.now,
            queues=queues,
            sizes=queue_queries.sizes(tx),
            pace=queue_queries.pace(tx, _PACE_S),
            left=time_left(tx, queues, waits),
            waits=waits,
            unplanned=unplanned_texts(tasks.list_late_sites(tx)),
            nodes=nodes.list_nodes(tx),
        )

    return context.read("overview", read)


def read_trends(context: Context) -> tuple[QueueTrend, StoringTrend]:
    """The queues, and what was stored, over time."""
    queues = context.read("queue trend", lambda tx: queue_queries.queue_trend(tx))
    return queues, context.read("storing trend", lambda tx: queue_queries.storing_trend(tx))


@router.get("/")
def overview(page: Here) -> Response:
    """The state of the loop in one look."""
    context, t = page.context, page.t
    queues, storing = read_trends(context)
    told = read_overview(context)
    return page.html(
        "overview.html",
        live_s=3,
        told=told,
        waits=[wait_text(one, context.catalog, told.now) for one in told.waits[:_WAITS_SHOWN]],
        silent_after=context.silent_after,
        queue_chart=_queue_chart(queues, t),
        whole=queues.whole,
        storing_chart=_storing_chart(storing, t),
    )


def _queue_chart(trend: QueueTrend, t: Translate) -> Markup:
    open_ones = [state for state in State if not state.settled or state is State.MANUAL]
    shown = [name for name in open_ones if any(trend.counts.get(name, ()))]
    return charts.lines(
        [charts.Line(t(name), list(zip(trend.at, trend.counts[name], strict=True))) for name in shown],
        t("Subtasks in the open queues over time"),
        width=720,
    )


def _storing_chart(trend: StoringTrend, t: Translate) -> Markup:
    both = ((t("pages a second"), trend.pages_per_s), (t("reviews a second"), trend.reviews_per_s))
    return charts.lines(
        [charts.Line(name, list(zip(trend.at, values, strict=True))) for name, values in both],
        t("Pages and reviews stored a second"),
        width=720,
    )
