"""The attempts and tasks of a recorded run, as `simulate --from` reads them from its store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime

from sqlalchemy import Select, func, select

from tasks.domain.states import State
from tasks.store.sql.tables import attempts, subtasks, targets, tasks
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAttempt:
    """A closed attempt; `active_s` without waits for send times, `errors` of its requests by class.

    Attributes:
        requests: result pages and pages; 0: not known.
    """

    site: str
    node: str
    begun_at: datetime
    ended_at: datetime
    outcome: str
    offered: int
    tried: int
    collected: int
    active_s: float
    requests: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """A task: its site, the kind that is, and the hits known of it that no task before it has.

    Attributes:
        vain: attempts that read its result pages and found nothing to try.
        read: its result pages were, or nobody will.
    """

    site: str
    kind: str
    hits: int
    vain: int = 0
    read: bool = True


_COLUMNS = [attempts.c[one.name] for one in fields(RecordedAttempt) if one.name in attempts.c]


def recorded_attempts(tx: Transaction) -> list[RecordedAttempt]:
    """Every attempt that was closed, the oldest first; those given back only where they tried pages."""
    rows = tx.engine_connection.execute(
        select(*_COLUMNS, attempts.c.allocated_at.label("begun_at"))
        .where(
            attempts.c.outcome.in_(("succeeded", "failed", "silent"))
            | ((attempts.c.outcome == "released") & (attempts.c.tried > 0)),
            attempts.c.ended_at.is_not(None),
        )
        .order_by(attempts.c.allocated_at, attempts.c.id)
    )
    return [RecordedAttempt(**row._mapping) for row in rows]


def recorded_tasks(tx: Transaction) -> Sequence[RecordedTask]:
    """Every task, in the order they were made, but for those with nothing to do. A page is fetched once: it is of the
    first task that lists it.
    """
    first = select(func.min(targets.c.id)).where(targets.c.kind == "hit").group_by(targets.c.url_key)
    hits = _by_task(select(targets.c.task_id, func.count()).where(targets.c.id.in_(first)), tx)
    vain = _by_task(
        select(subtasks.c.task_id, func.count())
        .join(attempts, attempts.c.subtask_id == subtasks.c.id)
        .where(attempts.c.outcome == "succeeded", attempts.c.offered == 0, attempts.c.requests > 0),
        tx,
    )
    listed = _by_task(select(targets.c.task_id, func.count()).where(targets.c.kind == "hit"), tx)
    settled = [state for state in State if state.settled]
    is_open = _by_task(
        select(subtasks.c.task_id, func.count()).where(subtasks.c.state.not_in(settled)),
        tx,
    )
    found = [
        RecordedTask(site, kind, hits.get(id_, 0), vain.get(id_, 0), id_ in listed or id_ not in is_open)
        for id_, site, kind in tx.engine_connection.execute(
            select(tasks.c.id, tasks.c.site, tasks.c.kind).order_by(tasks.c.id)
        )
    ]
    return [one for one in found if one.hits or one.vain or not one.read]


def _by_task(counted: Select[int, int], tx: Transaction) -> dict[int, int]:
    """Rows of (task, count), one for each task."""
    rows = tx.engine_connection.execute(counted.group_by(counted.selected_columns[0]))
    return {row[0]: row[1] for row in rows}
