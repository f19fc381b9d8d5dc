"""Rows that nobody can read are spoiled, and repaired as they were."""

from __future__ import annotations

from random import Random

import pytest

from app.actions.products import new_product
from research.chaos import spoiled_rows
from tasks.store.content import products
from tasks.store.queue import partitions, tasks
from tasks.store.sql.database import read_now


class Only:
    """Chance that chooses one."""

    def __init__(self, of: spoiled_rows.Spoiling) -> None:
        self._of = of

    def choice(self, _of: object) -> spoiled_rows.Spoiling:
        return self._of


def text(conn, of, row_id):
    return conn.exec_driver_sql(f"SELECT {of.column}::text FROM {of.table} WHERE id = {row_id}").scalar_one()


@pytest.fixture
def waiting(postgres_store):
    """A store with a subtask that waits, and one that has failed."""
    with postgres_store.begin() as conn:
        now = read_now(conn)
        products.add(conn, now, new_product("光明高钙牛奶"))
        (wanted,) = tasks.unplanned(conn, 1)
        chunks = [["http://e.example/1"], ["http://e.example/2"]]
        partition = partitions.NewPartition(("光明",), chunks)
        tasks.plan(conn, now, wanted, [tasks.NewTask("12315.com", "baidu", "meta", (partition,))])
        conn.exec_driver_sql("UPDATE subtasks SET state = 'WAIT'")
    return postgres_store


@pytest.mark.parametrize("of", spoiled_rows.SPOILINGS, ids=lambda of: f"{of.table}.{of.column}")
def test_a_row_is_spoiled_and_repaired(waiting, of):
    with waiting.begin() as conn:
        if of.column == "reason":
            conn.exec_driver_sql("UPDATE subtasks SET state = 'FAILED', reason = 'silent'")
        spoiled = spoiled_rows.spoil(conn, Only(of))
        assert spoiled is not None
        assert text(conn, of, spoiled.row_id) == of.value.split("::")[0].strip("'")
        spoiled_rows.repair(conn, spoiled)
        assert text(conn, of, spoiled.row_id) == spoiled.before


def test_what_somebody_else_wrote_is_left(waiting):
    (of,) = (one for one in spoiled_rows.SPOILINGS if one.column == "kind")
    with waiting.begin() as conn:
        spoiled = spoiled_rows.spoil(conn, Only(of))
        conn.exec_driver_sql("UPDATE subtasks SET kind = 'microblog'")
        spoiled_rows.repair(conn, spoiled)
        assert text(conn, of, spoiled.row_id) == "microblog"


def test_nothing_to_spoil(postgres_store):
    with postgres_store.begin() as conn:
        assert spoiled_rows.spoil(conn, Random(1)) is None
