"""The parts of a task add up to what it found, share no moment of time and leave none out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from sqlalchemy import Connection, func, or_, select

from tasks.domain.hit_count import PartState, total
from tasks.store import partitions as parts
from tasks.store.invariants.violation import Violation
from tasks.store.tables import subtasks, targets, task_parts, tasks


def part_violations(conn: Connection) -> Iterator[Violation]:
    """Parts against each other and what their tasks have found; then against their subtasks."""
    hits = conn.execute(
        select(targets.c.task_id, func.count()).where(targets.c.kind == "hit").group_by(targets.c.task_id)
    )
    different = {row[0]: row[1] for row in hits}
    rows = conn.execute(
        select(task_parts, tasks.c.found.label("of_task"), tasks.c.found_provenance.label("rests_on"))
        .join(tasks, tasks.c.id == task_parts.c.task_id)
        .order_by(task_parts.c.task_id, task_parts.c.id),
        execution_options={"yield_per": 10_000},
    )
    for task_id, group in groupby(rows, key=lambda row: row.task_id):
        of_task = list(group)
        yield from _replaced(task_id, of_task)
        told = of_task[0]
        found = total([parts.row_of(row).summand for row in of_task], different.get(task_id, 0))
        if (told.of_task, told.rests_on) != (found.found, found.provenance):
            message = (
                f"task {task_id} has found {told.of_task} ({told.rests_on}), its parts add up to "
                f"{found.found} ({found.provenance})"
            )
            yield Violation("parts", None, message)
    yield from _subtasks_of_parts(conn)


def _replaced(task_id: int, of_task: Sequence[Any]) -> Iterator[Violation]:
    """Whether what was split or relaxed has what takes its place, and spans share no moment and leave none out."""
    for part in of_task:
        inside = sorted(
            (one.start_at, one.end_at) for one in of_task if one.parent_id == part.id and one.start_at
        )
        below = [one for one in of_task if one.parent_id == part.id]
        name = f"part {part.id} of task {task_id}"
        if (part.state in (PartState.SPLIT, PartState.RELAXED)) != bool(below):
            yield Violation("parts", None, f"{name} is {part.state} and has {len(below)} parts in its place")
        if part.state != PartState.SPLIT or not inside:
            continue
        meet = all(before[1] == after[0] for before, after in pairwise(inside))
        whole = part.start_at is None or (part.start_at, part.end_at) == (inside[0][0], inside[-1][1])
        if not (meet and whole):
            yield Violation("parts", None, f"{name}: the spans of its parts overlap or leave a gap")


def _subtasks_of_parts(conn: Connection) -> Iterator[Violation]:
    theirs = select(subtasks.c.id).where(subtasks.c.part_id == task_parts.c.id).exists()
    for row in conn.execute(select(task_parts.c.id, task_parts.c.task_id).where(~theirs)):
        yield Violation("parts", None, f"part {row.id} of task {row.task_id} has no subtask")
    astray = conn.execute(
        select(subtasks.c.id, subtasks.c.part_id)
        .select_from(subtasks.outerjoin(task_parts, task_parts.c.id == subtasks.c.part_id))
        .where(
            subtasks.c.part_id.is_not(None),
            or_(task_parts.c.id.is_(None), task_parts.c.task_id != subtasks.c.task_id),
        )
    )
    for row in astray:
        yield Violation("parts", row.id, f"is of part {row.part_id}, which is none of its task")
