"""Prepared statements do what SQLAlchemy does with the same statement, over both databases."""

from __future__ import annotations

import pytest
from sqlalchemy import bindparam, select, update
from world import START, World

from tasks.domain.errors import Unstorable
from tasks.store.sql.database import Store
from tasks.store.sql.prepared import Prepared, insertion, new_rows
from tasks.store.sql.tables import hosts, pages

MARKS = ("host", "robots_status")
ROWS = [{"host": f"s{n}", "robots_status": n} for n in range(1, 5)]
OF = Prepared(
    select(hosts.c.host, hosts.c.robots_status)
    .where(hosts.c.robots_status.in_(bindparam("ids", expanding=True)), hosts.c.host > "s1")
    .order_by(hosts.c.robots_status)
)
PAGE = {
    **dict.fromkeys(("url", "site", "title", "content_hash", "encoding", "node"), "特仑苏"),
    **{
        "url_key": b"k" * 16,
        "bytes": 1,
        "reviews": 0,
        "fetched_at": START,
        "attempt_id": None,
        "late": False,
    },
}


@pytest.fixture
def filled(store: Store) -> Store:
    with store.begin() as conn:
        insertion(hosts, MARKS).defer(conn, ROWS)
    return store


@pytest.mark.parametrize(
    ("ids", "found"), [([], []), ([2], [2]), ([1, 2, 3], [2, 3]), (range(100), [2, 3, 4])]
)
def test_a_list_of_any_length_is_a_parameter(filled: Store, ids, found) -> None:
    with filled.read() as conn:
        rows = OF.rows(conn, {"ids": list(ids)})
    assert [(row.host, row.robots_status) for row in rows] == [(f"s{n}", n) for n in found]
    assert [row._asdict()["robots_status"] for row in rows] == found


def test_rows_that_are_there_are_skipped_and_new_ones_returned(filled: Store) -> None:
    wanted = new_rows_of(filled, [{"host": "s1", "robots_status": 9}, {"host": "new", "robots_status": 7}])
    assert wanted == [("new", 7)]
    assert new_rows_of(filled, [{"host": "new", "robots_status": 8}]) == []


def new_rows_of(store: Store, rows: list[dict[str, object]]) -> list[tuple[str, int]]:
    with store.begin() as conn:
        made = new_rows(conn, hosts, MARKS, hosts.c.host, hosts.c.robots_status)
        return [tuple(row) for row in made.rows_of_each(conn, rows)]


def test_values_come_back_as_their_columns_say(store: Store) -> None:
    world = World(store)
    lease, _ = world.begin(world.waiting())
    page = {**PAGE, "attempt_id": lease.attempt_id}
    with store.begin() as conn:
        (made,) = insertion(pages, tuple(page), pages.c.id).rows_of_each(conn, [page])
    with store.read() as conn:
        (prepared,) = Prepared(select(pages)).rows(conn)
        plain = conn.execute(select(pages)).one()
    assert prepared._asdict() == plain._asdict()
    assert (prepared.id, prepared.fetched_at, prepared.late) == (made.id, START, False)


def test_an_update_returns_what_it_changed(filled: Store) -> None:
    move = Prepared(
        update(hosts)
        .where(hosts.c.host == bindparam("of"), hosts.c.robots_status == bindparam("at"))
        .values(robots_status=bindparam("to"))
        .returning(hosts.c.robots_status)
    )
    with filled.begin() as conn:
        assert [row.robots_status for row in move.rows(conn, {"of": "s1", "at": 1, "to": 11})] == [11]
        assert not move.rows(conn, {"of": "s1", "at": 1, "to": 12})


def test_an_error_is_sqlalchemys_and_nothing_stays_of_its_transaction(filled: Store) -> None:
    with pytest.raises(Unstorable), filled.begin() as conn:
        insertion(hosts, MARKS).defer(conn, [{"host": "s5", "robots_status": 5}, ROWS[0]])
    with filled.read() as conn:
        assert len(OF.rows(conn, {"ids": [1, 2, 3, 4, 5]})) == 3


def test_what_is_read_is_one_consistent_view(filled: Store) -> None:
    with filled.read() as conn:
        before = OF.rows(conn, {"ids": [2]})
        with filled.begin() as other:
            insertion(hosts, MARKS).defer(other, {"host": "t", "robots_status": 2})
        assert OF.rows(conn, {"ids": [2]}) == before
