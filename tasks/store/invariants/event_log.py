"""Each subtask is where its last event led, by legal transitions only, and recalls of a round have their bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, select

from tasks.domain.states import LEGAL, MAX_RECALLS, State, Transition
from tasks.store.invariants.violation import Violation
from tasks.store.tables import events, subtasks


def log_violations(conn: Connection) -> Iterator[Violation]:
    """What the event log says against the queues, in one streaming pass over it."""
    rows = conn.execute(
        select(
            subtasks.c.id,
            subtasks.c.state,
            subtasks.c.recalls,
            events.c.id.label("event"),
            events.c.transition,
            events.c.from_state,
            events.c.to_state,
        )
        .select_from(subtasks.outerjoin(events, events.c.subtask_id == subtasks.c.id))
        .order_by(subtasks.c.id, events.c.id),
        execution_options={"yield_per": 10_000},
    )
    for subtask_id, of_subtask in groupby(rows, key=lambda row: row.id):
        yield from _chain(subtask_id, list(of_subtask))


def _chain(subtask_id: int, rows: Sequence[Any]) -> Iterator[Violation]:
    """The events of one subtask, in order, against its row."""
    here, recalls = None, 0
    for row in rows:
        if row.event is None:
            break
        event = f"event {row.event} ({row.transition}: {row.from_state} to {row.to_state})"
        if row.from_state != here:
            yield Violation("chain", subtask_id, f"{event} does not start from {here}, where it was")
        if not _legal(row.transition, row.from_state, row.to_state):
            yield Violation("transition", subtask_id, f"{event} is no legal transition")
        if row.transition == Transition.RECALL:
            recalls += 1
            if recalls == MAX_RECALLS + 1:
                yield Violation(
                    "recalls", subtask_id, f"{event} is more than recall {MAX_RECALLS} of a round"
                )
        elif row.transition == Transition.RETRY:
            recalls = 0
        here = row.to_state
    last = rows[-1]
    if last.state != here:
        yield Violation("queue", subtask_id, f"is in {last.state}, but its last event led to {here}")
    if last.recalls != recalls:
        yield Violation(
            "recalls", subtask_id, f"says {last.recalls} recalls, its events of the round {recalls}"
        )


def _legal(transition: str, begin: str | None, end: str) -> bool:
    try:
        return LEGAL[Transition(transition)].get(None if begin is None else State(begin)) == end
    except ValueError:
        return False
