"""The first page: products with the most complaints, rises, queues, rates, nodes, time left, and hosts to wait for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fastapi import APIRouter
from markupsafe import Markup
from starlette.responses import Response

from app.reports import charts
from app.reports.product_list import list_rising
from app.views.host_waits import WAIT_FIELDS, describe_unplanned
from app.views.nodes import NODE_FIELDS
from app.views.status import StatusView, describe_view, get_status_view
from app.views.theme_names import name_theme
from app.views.words import translate
from app.web.base.context import Here, WebContext
from app.web.base.query import ShownPeriod
from app.web.pages.products import ListQuery, read_list
from tasks.domain.states import State
from tasks.store.queries.queues import Point, get_queue_trend, get_storing_trend

router = APIRouter()

_PRODUCTS = 5
"""Products with most complaints that are listed."""


def read_status(context: WebContext) -> StatusView:
    """Return the current state of the system, for this page and the API."""
    rule = context.settings.buffer()
    return context.read("status", lambda tx: get_status_view(tx, context.catalog, rule))


def read_trends(context: WebContext) -> tuple[tuple[Sequence[Point], bool], Sequence[Point]]:
    """Return two series over time: the queues, and the rows stored per second.

    The queues come with True if the series begins with the first event of the store.
    """
    return context.read("queue trend", get_queue_trend), context.read("storing trend", get_storing_trend)


@router.get("/")
def overview(page: Here, period: ShownPeriod) -> Response:
    """Show the state of the system, and the products with most complaints in a period."""
    (queues, whole), storing = read_trends(page.context)
    ever = {name for _, counts in queues for name, n in counts.items() if n}
    shown = [one for one in State if (not one.settled or one is State.MANUAL) and one in ever]
    rates = {"pages": translate("pages per second"), "reviews": translate("reviews per second")}
    view = read_status(page.context)
    return page.html(
        "overview.html",
        live_s=3,
        view=view,
        period=period,
        products=read_list(page, ListQuery(limit=_PRODUCTS), period).products,
        rises=page.context.read(("rising",), list_rising),
        name_theme=name_theme,
        sentence=describe_view(view),
        wait_fields=WAIT_FIELDS,
        unplanned=describe_unplanned(view.sites_not_asked),
        node_fields=NODE_FIELDS,
        queue_chart=_chart(
            queues, {one: translate(one) for one in shown}, translate("Subtasks in the open queues over time")
        ),
        whole=whole,
        storing_chart=_chart(storing, rates, translate("Stored pages and reviews per second")),
    )


def _chart(trend: Sequence[Point], names: Mapping[str, str], title: str) -> Markup:
    """Return a line chart of the values in `names` over time."""
    lines = [charts.Line(name, [(at, values[key]) for at, values in trend]) for key, name in names.items()]
    return charts.lines(lines, title, width=720)
