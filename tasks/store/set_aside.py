"""Subtasks that no sweep can do anything with: set aside for a person, so that they hold up nothing else.

Work of a site that left the catalog is found where it would be given to a node. A row that can't be read makes the
sweep fail that meets it; the next tick then looks at each row by itself, once.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from splitter.catalog.names import Kind
from sqlalchemy import Connection, Row, select

from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.scheduling.recall import SUGGESTIONS
from tasks.store import partitions, transitions
from tasks.store.tables import subtasks
from tasks.store.transitions import EventData

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog

log = logging.getLogger("reviewloop.sweeps")

UNREADABLE = (ValueError, TypeError, LookupError)
"""Errors of reading a row that a newer version wrote, or no program of ours."""

AGAIN = timedelta(seconds=30)
"""Rows are looked at one by one no more often."""
_AT_ONCE = 500
_OF_SWEEP = 1000
"""So many in FAILED, and in SLEEP, a sweep takes at most."""


def unknown_sites(conn: Connection, now: datetime, catalog: Catalog, found: dict[int, str]) -> int:
    """Set aside subtasks of sites that the catalog has no more; returns how many.

    Args:
        found: their sites, by subtask.
    """
    told = {
        subtask_id: _event(FailureReason.UNKNOWN_SITE, f"{catalog.name} has no site {site} (any more)")
        for subtask_id, site in found.items()
    }
    return transitions.set_aside(conn, now, told)


def unanswered(conn: Connection, now: datetime, sites: Mapping[str, str]) -> int:
    """Set aside what waits of sites whose host answers nobody; returns how many.

    Args:
        sites: their hosts that don't answer, by site.
    """
    if not sites:
        return 0
    waits = select(subtasks.c.id, subtasks.c.site).where(
        subtasks.c.state == State.WAIT, subtasks.c.site.in_(sites)
    )
    reason = FailureReason.HOST_UNREACHABLE
    told = {
        subtask_id: _event(reason, f"{sites[site]} answers no node, however often it is asked")
        for subtask_id, site in conn.execute(waits.limit(_AT_ONCE))
    }
    return transitions.set_aside(conn, now, told)


def unreadable_rows(conn: Connection, now: datetime, most: int) -> int:
    """Look at the rows that the next sweeps would read, and set aside those that can't be read; returns how many.

    No sweep reads a subtask in PRIORITY before it is in WAIT; of every other queue the sweeps read the first ones.

    Args:
        most: subtasks in WAIT that a decision reads.
    """
    told: dict[int, EventData] = {}
    s = subtasks.c
    due = s.state == State.WAIT, s.not_before.is_(None) | (s.not_before <= now)
    heads = [select(s.id).where(*due).order_by(s.priority.desc(), s.id).limit(most)]
    for state in (State.FAILED, State.SLEEP):
        heads.append(select(s.id).where(s.state == state).order_by(s.id).limit(_OF_SWEEP))
    for head in heads:
        ids = list(conn.scalars(head))
        for at in range(0, len(ids), _AT_ONCE):
            told |= _unreadable(conn, ids[at : at + _AT_ONCE])
    done = transitions.set_aside(conn, now, told)
    for subtask_id, event in told.items():
        log.error("subtask %d is set aside: %s", subtask_id, (event.detail or {}).get("why"))
    return done


def _unreadable(conn: Connection, ids: Sequence[int]) -> dict[int, EventData]:
    try:
        for row in _rows(conn, ids):
            _read(conn, row)
        return {}
    except UNREADABLE as error:
        if len(ids) == 1:
            why = f"its row can't be read: {error}"
            return {ids[0]: _event(FailureReason.UNREADABLE, why)}
    half = len(ids) // 2
    return _unreadable(conn, ids[:half]) | _unreadable(conn, ids[half:])


def _rows(conn: Connection, ids: Collection[int]) -> Sequence[Row[tuple[object, ...]]]:
    return conn.execute(select(subtasks).where(subtasks.c.id.in_(ids))).all()


def _read(conn: Connection, row: Row[tuple[object, ...]]) -> None:
    """Read a row as the sweeps do. Raises one of `UNREADABLE`."""
    columns = row._mapping
    Kind(columns["kind"])
    if columns["state"] == State.FAILED:
        FailureReason(columns["reason"])
    failed_on = columns["failed_on"]
    if not isinstance(failed_on, list) or not all(isinstance(name, str) for name in failed_on):
        raise TypeError(f"failed_on is no list of nodes: {failed_on!r}")
    if columns["state"] == State.SLEEP and columns["part_id"] is not None:
        partitions.by_id(conn, {columns["part_id"]})


def _event(reason: FailureReason, why: str) -> EventData:
    return EventData(reason=reason, detail={"why": why, "suggestion": SUGGESTIONS[reason]})
