"""Coverage: stored / min(found, cap), over the tasks whose found is known."""

from world import World

from tasks.store.queries import products as product_queries
from tasks.store.queries.products import Coverage


def test_found_is_cut_at_the_engines_cap_and_unknown_found_does_not_count(store):
    world = World(store)  # whose store `verify` need not like
    (subtask,) = world.add("特仑苏", chunks=(True,))
    hits = [(f"http://a.cn/{n}", n.to_bytes(16), "stored" if n < 6 else "todo") for n in range(8)]
    of_task = {"task_id": 1, "subtask_id": subtask, "kind": "hit"}
    world.do(lambda tx: tx.insert("targets", ("url", "url_key", "state"), hits, shared=of_task))

    def covered():
        (found,) = world.look(product_queries.get_coverages, lambda _: 12).values()
        return found

    assert covered() == Coverage(0, 0, 1, 0, {"unknown": 1})
    world.do(lambda tx: tx.run("UPDATE tasks SET found = 1000, found_provenance = 'reported'"))
    assert covered() == Coverage(6, 12, 1, 1, {"reported": 1})
    assert covered().share == 0.5
    world.do(lambda tx: tx.run("UPDATE tasks SET found = 4"))
    assert covered().share == 1.0
    assert Coverage().share is None
