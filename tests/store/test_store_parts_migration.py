"""Tasks of before the parts get one for each keyword set, with what their targets tell, on both databases."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command

from tasks.store import migrate
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
                '[{"urls": ["u1"], "first": true}, {"urls": ["u2"], "first": false}]',
                12,
                "reported",
            ),
            (2, "b.cn", '[{"urls": ["u1"], "first": true}, {"urls": ["u2"], "first": true}]', 5, "counted"),
        ]
    ],
    *[
        "INSERT INTO subtasks (id, task_id, product_id, site, kind, chunk, state, failed_on, created_at, changed_at) "
        f"VALUES ({id_}, {task}, 1, 'x', 'meta', {chunk}, 'PRIORITY', '[]', {AT}, {AT})"
        for id_, task, chunk in [(1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 2, 2)]
    ],
    *[
        "INSERT INTO events (at, subtask_id, transition, to_state) "
        f"VALUES ({AT}, {id_}, 'create', 'PRIORITY')"
        for id_ in (1, 2, 3, 4)
    ],
]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_old_tasks_get_their_parts(request, tmp_path: Path, migrations: Path, kind: str) -> None:
    url = f"sqlite:///{tmp_path / 'old.db'}"
    if kind == "postgres":
        url = request.getfixturevalue("empty_postgres_url")
    store = Store.open(url)
    try:
        with store.begin() as conn:
            command.upgrade(migrate.config(migrations, conn), "0004")
        with store.begin() as conn:
            for row in ROWS:
                conn.exec_driver_sql(row)
        migrate.upgrade(store, migrations)
        with store.read() as conn:
            parts = conn.exec_driver_sql(
                "SELECT task_id, first_chunk, keywords, own_words, reported, found, provenance "
                "FROM task_parts ORDER BY id"
            ).all()
            of = conn.exec_driver_sql("SELECT part_id FROM subtasks ORDER BY id").scalars().all()
            violations = verify(conn, read_now(conn)).violations
    finally:
        store.close()
    told = [(*row[:2], str(row[2]).replace("'", '"'), bool(row[3]), *row[4:]) for row in parts]
    assert told == [
        (1, 1, '["a"]', True, 12, 12, "reported"),
        (2, 1, '["a"]', True, None, None, "unknown"),  # whose number it was, nobody knows
        (2, 2, '["b", "c"]', False, None, None, "unknown"),
    ]
    assert of == [1, 1, 2, 3]
    assert violations == ()
