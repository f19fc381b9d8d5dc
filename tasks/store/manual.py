"""Subtasks that wait for a person: listed, chosen, tried again. `tasks.store.closing.cancel` abandons one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from splitter.catalog.model import Kind
from splitter.errors import InputError
from sqlalchemy import Connection, func, select, update

from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.states import State, Transition
from tasks.store import leases, nodes, transitions
from tasks.store.tables import events, products, subtasks, targets


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualRow:
    """A subtask that waits for a person.

    Attributes:
        since: when it came to MANUAL.
        why, suggestion: of the recall strategy, when it gave up.
    """

    subtask_id: int
    product: str
    site: str
    chunk: int
    reason: str
    attempts: int
    round: int
    recalls: int
    nodes: tuple[str, ...]
    since: datetime
    why: str
    suggestion: str


def listed(conn: Connection) -> list[ManualRow]:
    """Every subtask in MANUAL, grouped by cause (reason, then site)."""
    last = (
        select(events.c.subtask_id, func.max(events.c.id).label("id"))
        .where(events.c.transition == "give_up")
        .group_by(events.c.subtask_id)
        .subquery()
    )
    rows = conn.execute(
        select(subtasks, products.c.name, events.c.at, events.c.detail)
        .join(products, products.c.id == subtasks.c.product_id)
        .join(last, last.c.subtask_id == subtasks.c.id)
        .join(events, events.c.id == last.c.id)
        .where(subtasks.c.state == State.MANUAL)
        .order_by(subtasks.c.reason, subtasks.c.site, subtasks.c.id)
    )
    return [
        ManualRow(
            subtask_id=r.id,
            product=r.name,
            site=r.site,
            chunk=r.chunk,
            reason=r.reason or "",
            attempts=r.attempts,
            round=r.round,
            recalls=r.recalls,
            nodes=tuple(r.failed_on),
            since=r.at,
            why=(r.detail or {}).get("why", ""),
            suggestion=(r.detail or {}).get("suggestion", ""),
        )
        for r in rows
    ]


def retry(conn: Connection, now: datetime, subtask_id: int, *, node: str | None = None) -> int:
    """Begin a new round of a subtask in MANUAL: no recalls, no node to avoid, its targets untried.

    Args:
        node: the only node it may go to; None: any.

    Returns:
        How many targets are to do.

    Raises:
        UnknownSubtask: there is no such subtask.
        IllegalTransition: it is not in MANUAL.
        UnknownNode, InputError: there is no such node, or it is not of the subtask's kind.
    """
    row = conn.execute(
        select(subtasks.c.state, subtasks.c.round, subtasks.c.kind).where(subtasks.c.id == subtask_id)
    ).one_or_none()
    if row is None:
        raise UnknownSubtask(f"there is no subtask {subtask_id}")
    if row.state != State.MANUAL:
        raise IllegalTransition(
            f"subtask {subtask_id} is in {row.state}; only one in MANUAL can be tried again"
        )
    if node is not None:
        _check_kind(conn, subtask_id, row.kind, node)
    conn.execute(
        update(targets)
        .where(targets.c.subtask_id == subtask_id, targets.c.state.in_(("todo", "given_up")))
        .values(state="todo", tries=0, reason=None)
    )
    left = leases.left_to_do(conn, [subtask_id])[subtask_id]
    transitions.move(
        conn,
        now,
        subtask_id,
        Transition.RETRY,
        transitions.EventData(
            node=node, detail={"round": row.round + 1, "left": left, "assigned_node": node}
        ),
        values={
            "round": row.round + 1,
            "recalls": 0,
            "idle_releases": 0,
            "failed_on": [],
            "not_before": None,
            "assigned_node": node,
            "reason": None,
            "left": left,
        },
    )
    return left


def chosen(conn: Connection, *, reason: str | None = None, site: str | None = None) -> list[int]:
    """Subtasks in MANUAL, of a cause, of a site, or all, in their order."""
    statement = select(subtasks.c.id).where(subtasks.c.state == State.MANUAL).order_by(subtasks.c.id)
    if reason is not None:
        statement = statement.where(subtasks.c.reason == reason)
    if site is not None:
        statement = statement.where(subtasks.c.site == site)
    return list(conn.scalars(statement))


def _check_kind(conn: Connection, subtask_id: int, kind: str, name: str) -> None:
    node = nodes.get(conn, name)
    if Kind(kind) not in node.kinds:
        raise InputError(
            f"subtask {subtask_id} is of kind {kind}, node {name} takes {', '.join(sorted(node.kinds))}"
        )
