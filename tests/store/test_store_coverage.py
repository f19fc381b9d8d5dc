"""Coverage: stored / min(found, cap), over the tasks whose found is known."""

from __future__ import annotations

from sqlalchemy import insert, update
from world import World

from tasks.store.queries import products as product_queries
from tasks.store.queries.products import Coverage
from tasks.store.sql.tables import subtasks, targets, tasks


def _store_hits(world, subtask_id: int, stored: int, todo: int) -> None:
    with world.store.begin() as tx:
        task_id = tx.engine_connection.scalar(
            subtasks.select().with_only_columns(subtasks.c.task_id).where(subtasks.c.id == subtask_id)
        )
        rows = [
            {
                "task_id": task_id,
                "subtask_id": subtask_id,
                "kind": "hit",
                "url": f"http://a.cn/{n}",
                "url_key": n.to_bytes(16),
                "state": "stored" if n < stored else "todo",
            }
            for n in range(stored + todo)
        ]
        tx.engine_connection.execute(insert(targets), rows)


def test_found_is_cut_at_the_engines_cap_and_unknown_found_does_not_count(store):
    world = World(store)
    (first,) = world.add("特仑苏", chunks=(True,))
    _store_hits(world, first, stored=6, todo=2)
    with store.begin() as tx:
        assert product_queries.product_coverages(tx, lambda _: 10) == {
            1: Coverage(0, 0, 1, 0, {"unknown": 1})
        }
        tx.engine_connection.execute(update(tasks).values(found=1000, found_provenance="reported"))
        (covered,) = product_queries.product_coverages(tx, lambda _: 12).values()
        assert covered == Coverage(6, 12, 1, 1, {"reported": 1})
        assert covered.share == 0.5
        tx.engine_connection.execute(update(tasks).values(found=4))
        (covered,) = product_queries.product_coverages(tx, lambda _: 12).values()
        assert covered.share == 1.0
    assert Coverage().share is None
