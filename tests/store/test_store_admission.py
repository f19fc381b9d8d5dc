"""PRIORITY by site: heads, the first of each, what is pending; and that none of it reads the whole queue."""

from dataclasses import replace

from world import CATALOG, SITE, statements, undone

from tasks.domain.states import State
from tasks.jobs import sweeps
from tasks.jobs.context import LoopSettings
from tasks.scheduling.admission import Entrant
from tasks.store.queue import snapshot
from tasks.store.sql.tables import subtasks

OTHER = next(site for site in CATALOG.sites if site != SITE)
LEFT = 10  # of a subtask with one result page


def test_heads_and_the_first_of_each_site(world):
    low, other = world.add("甲", sites=[SITE, OTHER])
    (high,) = world.add("乙", priority=3)
    (last,) = world.add("丙")
    assert world.look(snapshot.list_heads) == {SITE: 3, OTHER: 0}
    assert set(world.look(snapshot.list_entrants, {SITE: 2, OTHER: 5})) == {
        Entrant(high, SITE, 3),
        Entrant(low, SITE, 0),
        Entrant(other, OTHER, 0),
    }
    assert world.look(snapshot.list_entrants, {SITE: 9})[-1] == Entrant(last, SITE, 0)
    assert world.look(snapshot.list_entrants, {}) == []


def test_pending_counts_what_is_not_let_in_and_something_urgent_is_though_wait_is_full(world):
    world.context = replace(world.context, settings=LoopSettings(wait_limit=4))
    for name in "甲乙丙丁戊己":
        world.add(name)
    assert world.look(snapshot.count_pending) == [(SITE, 6, 6 * LEFT)]
    world.sweep(sweeps.admit)
    assert world.look(snapshot.count_waiting) == {(SITE, 0): 4}
    assert world.look(snapshot.count_pending) == [(SITE, 2, 2 * LEFT)]
    (urgent,) = world.add("加急", priority=9)
    assert world.sweep(sweeps.admit) == 1
    assert world.state(urgent) is State.WAIT


def test_the_index_answers(world):
    """Neither statement sorts or scans: each is by the index of (state, site, priority, id)."""
    world.add("甲", sites=[SITE, OTHER])
    with statements(world.store) as asked, world.store.begin() as tx:
        snapshot.list_heads(tx)
        snapshot.list_entrants(tx, {SITE: 1})
    with undone(world.store) as tx:
        if not world.store.is_sqlite:  # so many that a plan matters, and known to the planner
            others = [one.name for one in subtasks.c if one.name not in ("id", "task_id", "chunk")]
            listed = ", ".join(f'"{name}"' for name in others)
            tx.engine_connection.exec_driver_sql(
                f"INSERT INTO subtasks (task_id, chunk, {listed}) "
                f"SELECT task_id, n, {listed} FROM subtasks, generate_series(1000, 4000) n"
            )
            tx.engine_connection.exec_driver_sql("ANALYZE subtasks")
        explain = "EXPLAIN QUERY PLAN " if world.store.is_sqlite else "EXPLAIN "
        for statement in (one for one in asked if "subtasks" in one):
            plan = "\n".join(str(tuple(row)) for row in tx.rows(explain + statement))
            assert "ix_subtasks_by_site" in plan
            assert "TEMP B-TREE" not in plan
            assert "Seq Scan on subtasks" not in plan
