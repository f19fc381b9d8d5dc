"""How far sweeps that go through a table have come: the number of the last row each has processed."""

from __future__ import annotations

from sqlalchemy import Connection, bindparam, select

from tasks.store.database import insert_or
from tasks.store.prepared import Prepared
from tasks.store.statement_batch import defer
from tasks.store.tables import sweep_marks


def mark_of(conn: Connection, sweep: str) -> int | None:
    """The mark of a sweep; None: it has left none yet."""
    rows = _MARK.rows(conn, {"of_sweep": sweep})
    return rows[0].last_id if rows else None


_MARK = Prepared(select(sweep_marks.c.last_id).where(sweep_marks.c.sweep == bindparam("of_sweep")))


def set_mark(conn: Connection, sweep: str, last_id: int) -> None:
    """Leave the mark of a sweep."""
    given = {"sweep": sweep, "last_id": last_id}
    marked = insert_or(conn.dialect, sweep_marks).values(given)
    defer(conn, marked.on_conflict_do_update(index_elements=[sweep_marks.c.sweep], set_=given))
