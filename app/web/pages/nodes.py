"""The page of nodes with capacity, load and last heartbeat, and forms to drain and resume them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from app.actions import manual_actions
from app.views.nodes import NODE_FIELDS, REST_FIELDS, NodesView, get_nodes_view, list_problems
from app.views.words import translate
from app.web.base.context import Here, Notice, WebContext

router = APIRouter()


def read_nodes(context: WebContext) -> NodesView:
    """Return the nodes with their current state."""
    return context.read("nodes", lambda tx: get_nodes_view(tx, context.settings.buffer()))


@router.get("/nodes")
def show_list(page: Here) -> Response:
    """Show all nodes and the hosts that refuse their addresses."""
    view = read_nodes(page.context)
    return page.html(
        "nodes.html",
        live_s=3,
        view=view,
        fields=NODE_FIELDS,
        problems=[problem for row in view.nodes for problem in list_problems(row)],
        rests=[rest for row in view.nodes for rest in row.rests],
        rest_fields=REST_FIELDS,
    )


@router.post("/nodes")
def act(page: Here, node: Annotated[str, Form(max_length=100)], action: Annotated[str, Form()]) -> Response:
    """Stop giving work to a node, or give it work again."""
    drained = action == "drain"
    manual_actions.set_drained(page.context.store, node, drained, page.who)
    said = "{node} is drained: it gets nothing new." if drained else "{node} is in service again."
    return page.redirect_with("/nodes", Notice(translate(said, node=node)))
