"""The work left to subtasks: how many hits, and how often these were tried."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import BigInteger, Connection, bindparam, func, select

from tasks.store.leases import HITS_UNREAD
from tasks.store.prepared import Prepared
from tasks.store.tables import targets

_ids = bindparam("ids", expanding=True, type_=BigInteger())


def most_tries(conn: Connection, of: Collection[int]) -> dict[int, int]:
    """How often the targets still to do of each subtask have been tried, at most; 0 where none has been."""
    if not of:
        return {}
    return {row[0]: row[1] for row in _TRIES.rows(conn, {"ids": list(of)})}


_TRIES = Prepared(
    select(targets.c.subtask_id, func.max(targets.c.tries))
    .where(targets.c.subtask_id.in_(_ids), targets.c.state == "todo")
    .group_by(targets.c.subtask_id)
)


def left_to_do(conn: Connection, of: Collection[int]) -> dict[int, int]:
    """Hits still to do of each subtask, an unread result page counted as `HITS_UNREAD`."""
    left = dict.fromkeys(of, 0)
    for subtask_id, kind, n in _LEFT.rows(conn, {"ids": list(of)}):
        left[subtask_id] += n * (HITS_UNREAD if kind == "result" else 1)
    return left


_LEFT = Prepared(
    select(targets.c.subtask_id, targets.c.kind, func.count())
    .where(targets.c.subtask_id.in_(_ids), targets.c.state == "todo")
    .group_by(targets.c.subtask_id, targets.c.kind)
)
