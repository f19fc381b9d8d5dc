"""Check every invariant of the store, from the event log and the tables (docs/verify.md lists them).

Each subtask is in exactly one queue, the one its last event led to; every attempt is allocated, begun and closed
once, under one token; what rows say follows from their events; counters add up; no page and no review is stored twice;
nothing is lost; nothing that is due waits for long.

Set-based SQL and streaming passes over the tables, each linear in its rows, on a connection of `Store.read`: one
consistent view.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from splitter.normalize import name_key
from sqlalchemy import and_, func, or_, select

from tasks.domain.hit_count import PartitionState
from tasks.domain.pair_stats import SUMS
from tasks.domain.states import State
from tasks.store.queue import transitions
from tasks.store.queue.stats import ATTEMPT_SUMS
from tasks.store.sql.tables import attempts, metadata, pair_stats, products, subtasks, task_parts
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.grouped import TargetSums
from tasks.store.verify.invariants import Violation, order_violations, row_violations
from tasks.store.verify.liveness import BOUNDS, Liveness, liveness, overdue_violations
from tasks.store.verify.plan_invariants import plan_violations
from tasks.store.verify.replay import replay

_CACHE_KIB = 12 * 1024
"""SQLite's cache while all is read once: as fast as the runner's larger one."""
_CHECKED = (*SUMS, "wait_s", "requests")
_COUNTED = (
    *("products", "virtual_tasks", "tasks", "task_parts", "subtasks", "targets", "attempts", "events"),
    *("pages", "reviews"),
)


@dataclass(frozen=True, slots=True)
class Verification:
    """The findings of `verify`.

    Attributes:
        violations: empty where every invariant holds.
        counts: rows looked at by table; `overdue`: leases that have run out and wait for the recall sweep;
            `logs_dropped`: subtasks that ended so long ago that retention dropped their events, so that how they came
            to their state can't be proved any more.
        live: what is overdue as of the loop's last sign of life.
    """

    violations: tuple[Violation, ...]
    counts: Mapping[str, int]
    live: Liveness


def verify(conn: Transaction, now: datetime, bounds: Mapping[str, timedelta] | None = BOUNDS) -> Verification:
    """Check every invariant over the whole store; changes nothing.

    Args:
        bounds: how long things may be overdue; None: for ever, where no loop turns by itself.
    """
    if conn.dialect.name == "sqlite":
        conn.exec_driver_sql(f"PRAGMA cache_size=-{_CACHE_KIB}")
    counts, live, of_tasks = _counts(conn, now), liveness(conn), TargetSums()
    violations = (
        *replay(conn, of_tasks),
        *row_violations(conn),
        *order_violations(conn),
        *plan_violations(conn, of_tasks),
        *(Violation("counters", None, told) for told in transitions.wrong_queue_counts(conn)),
        *_statistics(conn),
        *_faded(conn),
        *_lost_chunks(conn),
        *_names(conn),
        *(overdue_violations(conn, live, bounds) if bounds is not None else ()),
    )
    return Verification(violations, counts, live)


def _counts(conn: Transaction, now: datetime) -> dict[str, int]:
    counts = {
        name: int(conn.execute(select(func.count()).select_from(metadata.tables[name])).scalar_one())
        for name in _COUNTED
    }
    overdue = select(func.count()).where(subtasks.c.state == State.CRAWL, subtasks.c.lease_deadline <= now)
    without_log = select(func.count()).where(subtasks.c.log_dropped)
    counts["logs_dropped"] = int(conn.execute(without_log).scalar_one())
    counts["overdue"] = int(conn.execute(overdue).scalar_one())
    return counts


def _names(conn: Transaction) -> Iterator[Violation]:
    """Yield a violation for each product whose `name_key` is not that of its name."""
    for row in conn.execute(select(products.c.name, products.c.name_key).order_by(products.c.id)):
        if row.name_key != name_key(row.name):
            yield Violation(
                "copy", None, f"product {row.name!r} has the key {row.name_key!r}, not that of its name"
            )


def _statistics(conn: Transaction) -> Iterator[Violation]:
    kept, summed = (
        {(site, node): tuple(map(float, sums)) for site, node, *sums in conn.rows(statement)}
        for statement in (_KEPT_SUMS, _CLOSED_SUMS)
    )
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


_KEPT_SUMS = f"SELECT site, node, {', '.join(_CHECKED)} FROM pair_stats"
_CLOSED_SUMS = f"""
    SELECT a.site, a.node, {ATTEMPT_SUMS}, sum(a.wait_s), sum(a.requests)
    FROM attempts a WHERE a.outcome IS NOT NULL GROUP BY a.site, a.node
"""


def _faded(conn: Transaction) -> Iterator[Violation]:
    """Faded sums are at most the plain ones, and as of the last attempt that ended."""
    ends = {
        (row.site, row.node): row.at
        for row in conn.execute(
            select(
                attempts.c.site,
                attempts.c.node,
                func.max(attempts.c.ended_at, type_=attempts.c.ended_at.type).label("at"),
            ).group_by(attempts.c.site, attempts.c.node)
        )
    }
    for row in conn.execute(select(pair_stats)):
        name, values = f"{row.site} on {row.node}", row._mapping
        for sum_ in SUMS:
            plain, faded = values[sum_], values[f"f_{sum_}"]
            if not -1e-6 <= faded <= plain + 1e-6 * max(1.0, plain):
                yield Violation(
                    "statistics", None, f"{name}: {sum_} is {plain:g}, faded {faded:g}, which is more"
                )
        if row.faded_at != ends.get((row.site, row.node)):
            message = (
                f"{name}: faded to {row.faded_at}, its last attempt ended at {ends.get((row.site, row.node))}"
            )
            yield Violation("statistics", None, message)
        if (row.rtt_ms is None) != (row.rtt_n == 0):
            yield Violation("statistics", None, f"{name}: response time {row.rtt_ms} rests on {row.rtt_n}")


def _lost_chunks(conn: Transaction) -> Iterator[Violation]:
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
    before = subtasks.alias("before")
    showed = select(attempts.c.id).join(before, before.c.id == attempts.c.subtask_id)
    showed = showed.where(
        before.c.part_id == subtasks.c.part_id,
        before.c.task_id == subtasks.c.task_id,
        before.c.chunk == subtasks.c.chunk - 1,
        attempts.c.more,
    )
    early = (
        select(subtasks.c.id, subtasks.c.chunk)
        .join(task_parts, task_parts.c.id == subtasks.c.part_id)
        .where(subtasks.c.parent_id.is_(None), subtasks.c.chunk > task_parts.c.first_chunk, ~showed.exists())
    )
    for subtask_id, chunk in conn.execute(early):
        yield Violation("lost", subtask_id, f"chunk {chunk} was released, but the one before showed no more")
