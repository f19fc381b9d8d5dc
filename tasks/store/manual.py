"""What a person does about a subtask: try again, try again on a certain node, abandon it.

Each is one transition (`tasks.store.transitions`, `tasks.store.leases`) with what belongs to it.
"""

from __future__ import annotations

from datetime import datetime

from splitter.catalog.model import Kind
from splitter.errors import InputError
from sqlalchemy import Connection, select, update

from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.states import State, Transition
from tasks.store import endings, leases, nodes, transitions
from tasks.store.tables import subtasks, targets


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
        transitions.Note(node=node, detail={"round": row.round + 1, "left": left, "assigned_node": node}),
        values={
            "round": row.round + 1,
            "recalls": 0,
            "failed_on": [],
            "not_before": None,
            "assigned_node": node,
            "reason": None,
            "left": left,
        },
    )
    return left


def abandon(conn: Connection, now: datetime, subtask_id: int, why: str) -> None:
    """Give a subtask up for good: CANCELLED, from any queue but DONE.

    Raises:
        UnknownSubtask, IllegalTransition: as `tasks.store.endings.cancel`.
    """
    endings.cancel(conn, now, subtask_id, why)


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
