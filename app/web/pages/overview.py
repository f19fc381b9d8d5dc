"""The first page: queues now and over time, pages and reviews a second, nodes, time left and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fastapi import APIRouter
from markupsafe import Markup
from starlette.responses import Response

from app.reports import charts
from app.views.host_waits import unplanned_texts, wait_text
from app.views.loop_state import LoopState, describe_state, read_state
from app.views.nodes import NODE_FIELDS
from app.views.words import translate
from app.web.base.context import Context, Here
from app.web.pages.nodes import read_nodes
from tasks.domain.states import State
from tasks.store.queries.queues import Pace, Point, count_stored, get_pace, get_queue_trend, get_storing_trend
from tasks.store.sql.transaction import Transaction

router = APIRouter()

_PACE_S = 120.0
_WAITS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Overview:
    """The content of the page.

    Attributes:
        pages, reviews: numbers of all that are stored.
    """

    state: LoopState
    pace: Pace
    pages: int
    reviews: int


def read_overview(context: Context) -> Overview:
    """The state of the loop."""

    def read(tx: Transaction) -> Overview:
        state = read_state(tx, context.hosts.of_site, context.silent_after)
        return Overview(state, get_pace(tx, _PACE_S), *count_stored(tx))

    return context.read("overview", read)


def read_trends(context: Context) -> tuple[tuple[Sequence[Point], bool], Sequence[Point]]:
    """Return the queues, with whether this is all of them, and what was stored a second, over time."""
    return context.read("queue trend", get_queue_trend), context.read("storing trend", get_storing_trend)


@router.get("/")
def overview(page: Here) -> Response:
    """The state of the loop in one look."""
    context = page.context
    (queues, whole), storing = read_trends(context)
    now = read_overview(context)
    told = now.state
    ever = {name for _, counts in queues for name, n in counts.items() if n}
    shown = [one for one in State if (not one.settled or one is State.MANUAL) and one in ever]
    rates = {"pages": translate("pages per second"), "reviews": translate("reviews per second")}
    return page.html(
        "overview.html",
        live_s=3,
        overview=now,
        told=told,
        sentence=describe_state(told.system),
        waits=[wait_text(one, context.catalog, told.now) for one in told.waits[:_WAITS_SHOWN]],
        unplanned=unplanned_texts(told.unplanned),
        nodes=read_nodes(context),
        node_fields=NODE_FIELDS,
        queue_chart=_chart(
            queues, {one: translate(one) for one in shown}, translate("Subtasks in the open queues over time")
        ),
        whole=whole,
        storing_chart=_chart(storing, rates, translate("Stored pages and reviews per second")),
    )


def _chart(trend: Sequence[Point], names: Mapping[str, str], title: str) -> Markup:
    """Return a chart of some numbers of a trend, each with its name for people."""
    lines = [charts.Line(name, [(at, values[key]) for at, values in trend]) for key, name in names.items()]
    return charts.lines(lines, title, width=720)
