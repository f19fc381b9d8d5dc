"""Old tasks get a partition for each keyword set, with its search URLs and hit count, on both databases; and back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command

from tasks.store import migrate
from tasks.store.chunks import release_chunks
from tasks.store.database import Store, read_now
from tasks.store.verify import verify

AT = "'2026-01-01 00:00:00'"
ROWS = [
    f"INSERT INTO products (id, name, keywords, aliases, created_at) VALUES (1, '甲', '[\"a\"]', '[]', {AT})",
    "INSERT INTO virtual_tasks (id, product_id, keywords, aliases, created_at, planned_at) "
    f'VALUES (1, 1, \'["a"]\', \'[["b", "c"]]\', {AT}, {AT})',
    *[
        "INSERT INTO tasks (id, virtual_task_id, product_id, site, engine, kind, chunks, found, found_provenance, "
        f"created_at) VALUES ({id_}, 1, 1, '{site}', 'baidu', 'meta', '{chunks}', {found}, '{rests_on}', {AT})"
        for id_, site, chunks, found, rests_on in [
            (
                1,
                "a.cn",
                '[{"urls": ["http://s/1"], "first": true}, {"urls": ["http://s/2", "http://s/3"], "first": false}]',
                12,
                "reported",
            ),
            (
                2,
                "b.cn",
                '[{"urls": ["http://s/1"], "first": true}, {"urls": ["http://s/2"], "first": true}, '
                '{"urls": ["http://s/3"], "first": false}]',
                5,
                "counted",
            ),
        ]
    ],
    *[
        'INSERT INTO subtasks (id, task_id, product_id, site, kind, chunk, state, "left", failed_on, created_at, '
        "changed_at) "
        f"VALUES ({id_}, {task}, 1, '{site}', 'meta', {chunk}, 'PRIORITY', 10, '[]', {AT}, {AT})"
        for id_, task, site, chunk in [(1, 1, "a.cn", 1), (2, 2, "b.cn", 1), (3, 2, "b.cn", 2)]
    ],
    *[
        "INSERT INTO events (at, subtask_id, transition, to_state) "
        f"VALUES ({AT}, {id_}, 'create', 'PRIORITY')"
        for id_ in (1, 2, 3)
    ],
    *[
        "INSERT INTO targets (task_id, subtask_id, kind, url, url_key) "
        f"VALUES ({task}, {subtask}, 'result', '{url}', KEY('{16 * str(subtask)}'))"
        for task, subtask, url in [(1, 1, "http://s/1"), (2, 2, "http://s/1"), (2, 3, "http://s/2")]
    ],
]


@pytest.fixture(params=["sqlite", "postgres"])
def filled(request, tmp_path: Path, migrations: Path) -> Iterator[Store]:
    """A database with tasks, as it was before partitions."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    if request.param == "postgres":
        url = request.getfixturevalue("empty_postgres_url")
    store = Store.open(url)
    with store.begin() as conn:
        command.upgrade(migrate.config(migrations, conn), "0004")
    with store.begin() as conn:
        for row in ROWS:
            bytes_of = "CAST('\\1' AS BLOB)" if store.is_sqlite else "CAST('\\1' AS BYTEA)"
            conn.exec_driver_sql(re.sub(r"KEY\('(\d+)'\)", bytes_of, row))
        if not store.is_sqlite:
            conn.exec_driver_sql("SELECT setval('subtasks_id_seq', 3)")
    yield store
    store.close()


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def _task_chunks(store: Store) -> list[Any]:
    with store.read() as conn:
        return [_json(row) for row in conn.exec_driver_sql("SELECT chunks FROM tasks ORDER BY id").scalars()]


def test_old_tasks_get_their_partitions(filled: Store, migrations: Path) -> None:
    migrate.upgrade(filled, migrations)
    with filled.read() as conn:
        partitions = conn.exec_driver_sql(
            "SELECT task_id, first_chunk, chunks, keywords, own_words, reported, found, provenance "
            "FROM task_parts ORDER BY id"
        ).all()
        of = conn.exec_driver_sql("SELECT part_id FROM subtasks ORDER BY id").scalars().all()
        violations = verify(conn, read_now(conn)).violations
    assert [(*row[:2], _json(row[2]), _json(row[3]), bool(row[4]), *row[5:]) for row in partitions] == [
        (1, 1, [["http://s/1"], ["http://s/2", "http://s/3"]], ["a"], True, 12, 12, "reported"),
        (
            2,
            1,
            [["http://s/1"]],
            ["a"],
            True,
            None,
            None,
            "unknown",
        ),  # its task's hit count was of one set, unknown which
        (2, 2, [["http://s/2"], ["http://s/3"]], ["b", "c"], False, None, None, "unknown"),
    ]
    assert of == [1, 2, 3]
    assert violations == ()


def test_search_urls_move_to_partitions_and_back(filled: Store, migrations: Path) -> None:
    before = _task_chunks(filled)
    migrate.upgrade(filled, migrations)
    with filled.begin() as conn:
        command.downgrade(migrate.config(migrations, conn), "0006")
    assert _task_chunks(filled) == before


def test_an_upgraded_task_goes_on_with_its_next_chunk(filled: Store, migrations: Path) -> None:
    migrate.upgrade(filled, migrations)
    with filled.begin() as conn:
        assert release_chunks(conn, read_now(conn), [(3, 3), (3, 4), (1, 2)]) == {(1, 2): 4, (3, 3): 5}
        urls = conn.exec_driver_sql("SELECT url FROM targets WHERE subtask_id = 5").scalars().all()
    assert urls == ["http://s/3"]
