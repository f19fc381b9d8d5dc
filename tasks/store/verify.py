"""Check every invariant of the store, from the event log and the tables.

Each subtask is in exactly one queue, the one its last event led to; only legal transitions, each from where the one
before ended; never more than `MAX_RECALLS` recalls in a round; leases exactly where attempts run; every attempt
numbered, closed and added to the statistics once; no page and no review stored twice; nothing lost.

Set-based SQL, and one streaming pass over the event log, on a connection of `Store.read`: one consistent view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection, and_, func, or_, select

from tasks.domain.hit_count import PartitionState, task_hit_count
from tasks.domain.pair_stats import SUMS
from tasks.domain.states import LEGAL, MAX_RECALLS, State, Transition
from tasks.store.database import count_by
from tasks.store.invariants import Violation, row_violations
from tasks.store.partitions import COLUMNS, row_of
from tasks.store.stats import attempt_sums
from tasks.store.tables import attempts, events, metadata, pair_stats, subtasks, targets, task_parts, tasks

_CHECKED = (*SUMS, "wait_s")
_COUNTED = (
    *("products", "virtual_tasks", "tasks", "task_parts", "subtasks", "targets", "attempts", "events"),
    *("pages", "reviews"),
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes:
        violations: empty where every invariant holds.
        counts: rows looked at by table, and `overdue`: leases that have run out and wait for the recall sweep.
    """

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]


def verify(conn: Connection, now: datetime) -> Verification:
    """Check every invariant over the whole store; changes nothing."""
    violations = (
        *_log_violations(conn),
        *row_violations(conn),
        *_statistics(conn),
        *_lost_chunks(conn),
        *_partition_violations(conn),
    )
    return Verification(violations, _counts(conn, now))


def _counts(conn: Connection, now: datetime) -> dict[str, int]:
    counts = {
        name: int(conn.execute(select(func.count()).select_from(metadata.tables[name])).scalar_one())
        for name in _COUNTED
    }
    overdue = select(func.count()).where(subtasks.c.state == State.CRAWL, subtasks.c.lease_deadline <= now)
    counts["overdue"] = int(conn.execute(overdue).scalar_one())
    return counts


def _log_violations(conn: Connection) -> Iterator[Violation]:
    """The event log against the queues, in one streaming pass over it."""
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


def _statistics(conn: Connection) -> Iterator[Violation]:
    counted, a = attempt_sums(), attempts.c
    statement = (
        select(a.site, a.node, *(counted[name] for name in SUMS), func.sum(a.wait_s))
        .where(a.outcome.is_not(None))
        .group_by(a.site, a.node)
    )
    kept = {
        (row.site, row.node): tuple(float(getattr(row, name)) for name in _CHECKED)
        for row in conn.execute(select(pair_stats))
    }
    summed = {(row.site, row.node): tuple(float(v) for v in row[2:]) for row in conn.execute(statement)}
    nothing = (0.0,) * len(_CHECKED)
    for pair in sorted(kept.keys() | summed.keys()):
        for name, is_, should in zip(
            _CHECKED, kept.get(pair, nothing), summed.get(pair, nothing), strict=True
        ):
            if not math.isclose(is_, should, rel_tol=1e-6, abs_tol=1e-6):
                message = (
                    f"{pair[0]} on {pair[1]}: {name} is {is_:g}, its closed attempts sum up to {should:g}"
                )
                yield Violation("statistics", None, message)


def _lost_chunks(conn: Connection) -> Iterator[Violation]:
    """Chunks whose predecessor is DONE and showed that there is more, and that were not released."""
    released = select(subtasks.c.task_id, subtasks.c.chunk).distinct().subquery()
    next_one = and_(released.c.task_id == subtasks.c.task_id, released.c.chunk == subtasks.c.chunk + 1)
    rows = conn.execute(
        select(subtasks.c.id, subtasks.c.chunk, task_parts.c.first_chunk, task_parts.c.chunks)
        .select_from(
            attempts.join(subtasks, subtasks.c.id == attempts.c.subtask_id)
            .join(task_parts, task_parts.c.id == subtasks.c.part_id)
            .outerjoin(released, next_one)
        )
        .where(attempts.c.more, subtasks.c.state == State.DONE, released.c.chunk.is_(None))
        # A span that holds too much is not read on, but divided.
        .where(or_(task_parts.c.state != PartitionState.SPLIT, task_parts.c.start_at.is_(None)))
        .order_by(subtasks.c.id)
    )
    for subtask_id, chunk, first_chunk, chunks in rows:
        if chunk + 1 < first_chunk + len(chunks):
            yield Violation(
                "lost", subtask_id, f"showed that there is more, but chunk {chunk + 1} was not released"
            )


def _partition_violations(conn: Connection) -> Iterator[Violation]:
    """Parts against each other and what their tasks have found."""
    different = count_by(conn, targets.c.task_id, targets.c.kind == "hit")
    rows = conn.execute(
        select(*COLUMNS, tasks.c.found.label("of_task"), tasks.c.found_provenance.label("rests_on"))
        .join(tasks, tasks.c.id == task_parts.c.task_id)
        .order_by(task_parts.c.task_id, task_parts.c.id),
        execution_options={"yield_per": 10_000},
    )
    for task_id, group in groupby(rows, key=lambda row: row.task_id):
        of_task = list(group)
        yield from _replaced(task_id, of_task)
        task = of_task[0]
        found = task_hit_count([row_of(row).summand for row in of_task], different.get(task_id, 0))
        if (task.of_task, task.rests_on) != (found.found, found.provenance):
            message = (
                f"task {task_id} has found {task.of_task} ({task.rests_on}), its partitions add up to "
                f"{found.found} ({found.provenance})"
            )
            yield Violation("partitions", None, message)


def _replaced(task_id: int, of_task: Sequence[Any]) -> Iterator[Violation]:
    """Whether what was split or relaxed has what takes its place, and spans share no moment and leave none out."""
    for part in of_task:
        inside = sorted(
            (one.start_at, one.end_at) for one in of_task if one.parent_id == part.id and one.start_at
        )
        below = [one for one in of_task if one.parent_id == part.id]
        name = f"partition {part.id} of task {task_id}"
        if (part.state in (PartitionState.SPLIT, PartitionState.RELAXED)) != bool(below):
            yield Violation("partitions", None, f"{name} is {part.state} and is replaced by {len(below)}")
        if part.state != PartitionState.SPLIT or not inside:
            continue
        meet = all(before[1] == after[0] for before, after in pairwise(inside))
        whole = part.start_at is None or (part.start_at, part.end_at) == (inside[0][0], inside[-1][1])
        if not (meet and whole):
            yield Violation("partitions", None, f"{name}: the spans that replace it overlap or leave a gap")
