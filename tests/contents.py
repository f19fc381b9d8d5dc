"""What a store holds: emptied in one round trip, and put back as it was."""

from __future__ import annotations

from sqlalchemy import select

from tasks.store.sql.database import Store
from tasks.store.sql.tables import metadata

_CHILDREN_FIRST = tuple(reversed(metadata.sorted_tables))
_DELETES = [f"DELETE FROM {table.name}" for table in _CHILDREN_FIRST]
_NUMBERED = [table for table in _CHILDREN_FIRST if "id" in table.c]


def empty(store: Store) -> None:
    """Delete every row; numbers begin at 1 again."""
    with store.begin() as tx:
        if store.is_sqlite:
            for delete in _DELETES:
                tx.engine_connection.exec_driver_sql(delete)
        else:
            firsts = [f"SELECT setval('{table.name}_id_seq', 1, false)" for table in _NUMBERED]
            tx.engine_connection.exec_driver_sql("; ".join((*_DELETES, *firsts)))


class Snapshot:
    """All rows of a store."""

    def __init__(self, store: Store) -> None:
        with store.read() as tx:
            found = {
                table: tx.engine_connection.execute(select(table)).mappings().all()
                for table in metadata.sorted_tables
            }
        self._rows = {table: [dict(row) for row in rows] for table, rows in found.items() if rows}

    def restore(self, store: Store) -> None:
        """Make a store hold these rows and no others; new rows are numbered behind them."""
        empty(store)
        with store.begin() as tx:
            for table, rows in self._rows.items():
                tx.engine_connection.execute(table.insert(), rows)
            lasts = [
                f"SELECT setval('{table.name}_id_seq', {max(row['id'] for row in self._rows[table])})"
                for table in _NUMBERED
                if table in self._rows
            ]
            if not store.is_sqlite:
                tx.engine_connection.exec_driver_sql("; ".join(lasts))
