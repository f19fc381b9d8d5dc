"""PRIORITY by site: who is next, and how much there is. Each statement costs the same however much is queued, but one.

All use the index ``ix_subtasks_by_site`` (state, site, priority descending, id, left). Neither database skips from one
value of an index to the next by itself, so `heads` walks: the first site, the first one behind it, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, Integer, Select, String, func, literal, select, true

from tasks.domain.states import State
from tasks.scheduling.admission import Entrant
from tasks.scheduling.ready_queue import Backlog
from tasks.store.bulk import as_table
from tasks.store.tables import subtasks


def heads(conn: Connection) -> dict[str, int]:
    """By site with subtasks in PRIORITY, the highest priority there."""
    queued = subtasks.c.state == State.PRIORITY
    first = select(func.min(subtasks.c.site).label("site")).where(queued).cte("walk", recursive=True)
    behind = select(func.min(subtasks.c.site)).where(queued, subtasks.c.site > first.c.site)
    walk = first.union_all(select(behind.scalar_subquery()).where(first.c.site.is_not(None)))
    there = select(func.max(subtasks.c.priority)).where(queued, subtasks.c.site == walk.c.site)
    highest = there.scalar_subquery().label("priority")
    rows = conn.execute(select(walk.c.site, highest).where(walk.c.site.is_not(None)))
    return {row.site: row.priority for row in rows}


def waiting_by_site(conn: Connection) -> dict[tuple[str, int], int]:
    """How many subtasks are in WAIT, by (site, priority)."""
    rows = conn.execute(
        select(subtasks.c.site, subtasks.c.priority, func.count())
        .where(subtasks.c.state == State.WAIT)
        .group_by(subtasks.c.site, subtasks.c.priority)
    )
    return {(site, priority): n for site, priority, n in rows}


def entrants(conn: Connection, wanted: Mapping[str, int]) -> list[Entrant]:
    """The first so many of each site in PRIORITY: higher priority first, then first in, first out."""
    if not wanted:
        return []
    if conn.dialect.name == "sqlite":  # it has no LATERAL, and no round trips either
        rows = [row for site, n in wanted.items() for row in conn.execute(_first(literal(site), literal(n)))]
    else:
        asked = as_table((("site", String()), ("n", Integer())), list(wanted.items()))
        first = _first(asked.c.site, asked.c.n).lateral("first")
        rows = list(conn.execute(select(first).select_from(asked.join(first, true()))))
    return [Entrant(row.id, row.site, row.priority) for row in rows]


def _first(site: object, n: object) -> Select[tuple[int, str, int]]:
    return (
        select(subtasks.c.id, subtasks.c.site, subtasks.c.priority)
        .where(subtasks.c.state == State.PRIORITY, subtasks.c.site == site)
        .order_by(subtasks.c.priority.desc(), subtasks.c.id)
        .limit(n)  # type: ignore[arg-type]
    )


def pending(conn: Connection) -> dict[str, Backlog]:
    """By site, what is in PRIORITY: this one reads all of its index (docs/scaling.md says what that costs)."""
    rows = conn.execute(
        select(subtasks.c.site, func.count(), func.sum(subtasks.c.left))
        .where(subtasks.c.state == State.PRIORITY)
        .group_by(subtasks.c.site)
    )
    return {site: Backlog(n, int(left)) for site, n, left in rows}
