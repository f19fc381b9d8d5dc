"""Nodes: capacity, load, last sign of life; drain and resume."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from app.actions import manual_actions
from app.views.words import translate
from app.web.base.context import Change, Context, Here, Notice
from tasks.domain.breaker import Breaker
from tasks.store.queue import hosts, nodes
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.transaction import Transaction

router = APIRouter()


@dataclass(frozen=True, slots=True)
class Told:
    """The nodes now, and their breakers that are not closed."""

    now: datetime
    rows: list[NodeRow]
    breakers: list[Breaker]


def read_nodes(context: Context) -> Told:
    """Every node."""

    def read(tx: Transaction) -> Told:
        return Told(tx.now, list(nodes.list_nodes(tx)), hosts.list_rests(tx))

    return context.read("nodes", read)


@router.get("/nodes")
def listed(page: Here) -> Response:
    """Every node."""
    return page.html(
        "nodes.html", live_s=3, told=read_nodes(page.context), silent_after=page.context.silent_after
    )


@router.post("/nodes")
def act(page: Change, node: Annotated[str, Form(max_length=100)], action: Annotated[str, Form()]) -> Response:
    """Drain a node, or take it back."""
    drained = action == "drain"
    manual_actions.set_drained(page.context.store, node, drained, page.who)
    said = "{node} is drained: it gets nothing new." if drained else "{node} is in service again."
    return page.redirect_with("/nodes", Notice(translate(said, node=node)))
