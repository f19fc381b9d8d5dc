"""What a run's store, SQLite or PostgreSQL, holds in the end: pages with their times, subtasks, targets, attempts."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, func, select, text

from app.run.cluster import processes
from app.run.cluster.servers import PostgresServer
from research.bench.field.worlds import TaskHits
from tasks.domain.states import State, Transition
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, events, pages, subtasks, targets, virtual_tasks

SHARES: Mapping[str, float] = MappingProxyType({"half": 0.5, "most": 0.9, "all": 1.0})
"""Shares of what is there whose times are measured."""

_STOPPED = frozenset({"the runner stops", "the worker stops"})
"""Why attempts are given back when a run is ended."""


@contextmanager
def served(data: Path, log: Path) -> Iterator[str]:
    """Serve the PostgreSQL whose data `up --data` left in a folder; gives its address. Raises ServerFailed."""
    server = PostgresServer(data / "postgres", log, lambda _line: None)
    server.prepare()
    process = processes.start(server.program)
    try:
        server.wait(lambda: process.poll() is None)
        yield server.url
    finally:
        processes.stop([(server.program, process)])
        server.clean_up()


@dataclass(frozen=True, slots=True)
class StoredPages:
    """Pages that are there, and when those that were stored were.

    Attributes:
        there: how many the job's queries list.
        times: seconds, ascending.
        others: stored pages that none of these queries lists.
    """

    there: int
    times: tuple[float, ...]
    others: int

    @classmethod
    def of(cls, conn: Connection, begin: datetime, tasks: Sequence[TaskHits]) -> StoredPages:
        """Read them; times count from `begin`."""
        there = frozenset().union(*(task.pages for task in tasks))
        rows = conn.execute(select(pages.c.url, pages.c.fetched_at)).all()
        times = sorted((at - begin).total_seconds() for url, at in rows if url in there)
        return cls(len(there), tuple(times), len(rows) - len(times))

    def document(self, mark_s: float) -> dict[str, Any]:
        """Fields of `research.bench.field.measured.Measured`."""
        last_s = int(self.times[-1]) + 1 if self.times else 0
        return {
            "there": self.there,
            "pages": len(self.times),
            "others": self.others,
            "pages_at_mark": bisect_right(self.times, mark_s),
            "stored_by_s": tuple(bisect_right(self.times, t) for t in range(1, last_s + 1)),
            "stored_at": {name: self._time_of(share) for name, share in SHARES.items()},
        }

    def _time_of(self, share: float) -> float | None:
        place = max(1, round(share * self.there))
        return round(self.times[place - 1], 1) if len(self.times) >= place else None


def counts(store: Store) -> dict[str, Any]:
    """Fields of `research.bench.field.measured.Measured`: of subtasks, targets and attempts, and the size of a PostgreSQL."""
    with store.read() as conn:
        states = _by(conn, subtasks, subtasks.c.state)
        ends = _by(conn, targets, targets.c.state)
        outcomes = _by(conn, attempts, attempts.c.outcome)
        of_each = (
            select(func.count().label("n")).group_by(attempts.c.subtask_id).select_from(attempts).subquery()
        )
        most = conn.execute(select(func.max(of_each.c.n))).scalar_one()
        recalls = _count(conn, events, events.c.transition == Transition.RECALL)
        stopped = _stopped(conn)
        to_plan = _count(conn, virtual_tasks, virtual_tasks.c.planned_at.is_(None))
        found = {
            "settled": not to_plan and all(State(state).settled for state in states),
            "subtasks": sum(states.values()),
            "manual": states.get(State.MANUAL, 0),
            "targets": sum(ends.values()),
            "given_up": ends.get("given_up", 0),
            "attempts": sum(outcomes.values()),
            "released": outcomes.get("released", 0) - stopped,
            "recalls": recalls,
            "most_attempts": most or 0,
        }
        if not store.is_sqlite:
            size = text("SELECT pg_database_size(current_database())")
            found["database_bytes"] = conn.execute(size).scalar_one()
        return found


def _stopped(conn: Connection) -> int:
    """Attempts that the end of the run gave back."""
    of = select(events.c.detail).where(events.c.transition == Transition.RELEASE)
    return sum((detail or {}).get("why") in _STOPPED for detail in conn.scalars(of))


def _by(conn: Connection, table: Table, column: ColumnElement[Any]) -> dict[str, int]:
    rows = conn.execute(select(column, func.count()).select_from(table).group_by(column))
    return {row[0]: row[1] for row in rows}


def _count(conn: Connection, table: Table, where: ColumnElement[bool]) -> int:
    return int(conn.execute(select(func.count()).select_from(table).where(where)).scalar_one())
