"""Subtasks that wait for a person, cause by cause and page by page, however many they are. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from tasks.domain.states import Transition
from tasks.store.manual import IN_ORDER, ManualRow, manual_row, waiting
from tasks.store.tables import events, products, subtasks


@dataclass(frozen=True, slots=True)
class Cause:
    """Subtasks that wait for a person for one reason at one site.

    Attributes:
        since: when the first of them came.
    """

    reason: str
    site: str
    count: int
    since: datetime


def causes(conn: Connection) -> list[Cause]:
    """Every cause, the one with the most subtasks first."""
    s = subtasks.c
    count = func.count().label("n")
    rows = conn.execute(
        select(s.reason, s.site, count, func.min(s.changed_at))
        .where(waiting())
        .group_by(s.reason, s.site)
        .order_by(count.desc(), s.reason, s.site)
    )
    return [Cause(reason or "", site, n, since) for reason, site, n, since in rows]


def manual_page(
    conn: Connection, *, after: int = 0, most: int, reason: str | None = None, site: str | None = None
) -> list[ManualRow]:
    """Subtasks in MANUAL by their numbers.

    Args:
        after: behind this subtask.
        reason, site: only this one; None: all.
    """
    s = subtasks.c
    ids = select(s.id).where(waiting(reason, site), after < IN_ORDER).order_by(IN_ORDER).limit(most)
    rows = conn.execute(
        select(subtasks, products.c.name)
        .join(products, products.c.id == s.product_id)
        .where(s.id.in_(conn.scalars(ids).all()))
        .order_by(s.id)
    ).all()
    told = _why_given_up(conn, [row.id for row in rows])
    return [manual_row(r, r.changed_at, *told.get(r.id, ("", ""))) for r in rows]


def _why_given_up(conn: Connection, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """(why, suggestion) of each subtask, by the event that gave it to a person last."""
    rows = conn.execute(
        select(events.c.subtask_id, events.c.detail)
        .where(
            events.c.subtask_id.in_(ids),
            events.c.transition.in_((Transition.GIVE_UP, Transition.SET_ASIDE)),
        )
        .order_by(events.c.id)
    )
    return {
        subtask_id: ((detail or {}).get("why", ""), (detail or {}).get("suggestion", ""))
        for subtask_id, detail in rows
    }
