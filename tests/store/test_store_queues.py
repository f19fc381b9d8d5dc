"""Queues: the heads of PRIORITY by site, how many subtasks are in each queue, and what a person tries again."""

from dataclasses import replace

import pytest
from world import CATALOG, SITE, hit, statements, undone

from splitter.errors import InputError
from tasks.domain.attempt_end import Counters
from tasks.domain.errors import IllegalTransition
from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.jobs.context import LoopSettings
from tasks.scheduling.admission import Entrant
from tasks.store.queue import manual, snapshot, transitions
from tasks.store.sql.tables import attempts as attempt_table
from tasks.store.sql.tables import queue_counts, subtasks, targets

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
    world.admit()
    assert world.look(snapshot.count_waiting) == {(SITE, 0): 4}
    assert world.look(snapshot.count_pending) == [(SITE, 2, 2 * LEFT)]
    (urgent,) = world.add("加急", priority=9)
    assert world.admit() == 1
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
            tx.run(
                f"INSERT INTO subtasks (task_id, chunk, {listed}) "
                f"SELECT task_id, n, {listed} FROM subtasks, generate_series(1000, 4000) n"
            )
            tx.run("ANALYZE subtasks")
        explain = "EXPLAIN QUERY PLAN " if world.store.is_sqlite else "EXPLAIN "
        for statement in (one for one in asked if "subtasks" in one):
            plan = "\n".join(str(tuple(row)) for row in tx.rows(explain + statement))
            assert "ix_subtasks_by_site" in plan
            assert "TEMP B-TREE" not in plan
            assert "Seq Scan on subtasks" not in plan


# --- how many subtasks are in each queue: counted as they move, added up by a sweep ---------------------------


def counted(world):
    """The queues that are not empty."""
    return {state: n for state, n in world.look(transitions.count_queues).items() if n}


def test_counts_are_added_up_to_one_row_a_queue_and_say_the_same(world):
    for n in range(transitions._MANY_ROWS - 1):
        world.add(f"牛奶{n}")
    many = len(world.rows(queue_counts))
    world.do(transitions.add_up_queues)
    assert len(world.rows(queue_counts)) == many, "few rows are left as they are"
    world.admit()
    world.add("特仑苏")
    before = counted(world)
    assert sum(before.values()) == transitions._MANY_ROWS
    world.do(transitions.add_up_queues)
    assert len(world.rows(queue_counts)) <= len(transitions.KEPT)
    assert counted(world) == before


def test_a_count_of_a_transaction_under_way_is_neither_lost_nor_waited_for(postgres_store):
    def note(tx):
        for _ in range(transitions._MANY_ROWS):
            transitions.count_moves(tx, None, State.DONE, 1)

    def done():
        with postgres_store.read() as tx:
            return transitions.count_queues(tx)["DONE"]

    with postgres_store.begin() as tx:
        note(tx)
    with postgres_store.begin() as late:
        note(late)
        with postgres_store.begin() as tx:
            transitions.add_up_queues(tx)
        assert done() == transitions._MANY_ROWS
    assert done() == 2 * transitions._MANY_ROWS


# --- a person changes a failed subtask and has it tried again ---------------------------------------------------


@pytest.fixture
def failed(world):
    """Subtask 1 in MANUAL, with its result page and three hits to do."""
    world.node("n1")
    lease, _ = world.found("特仑苏", [hit("1"), hit("2"), hit("3")])
    world.close(lease, Counters(offered=3, tried=3), reason=FailureReason.BAD_RULE)
    world.recall()
    assert world.state(1) is State.MANUAL


@pytest.mark.usefixtures("failed")
@pytest.mark.parametrize("edit", [{"quota": 0}, {"pages": 0}, {"pages": 1}])
def test_an_impossible_edit_is_refused_and_changes_nothing(world, edit):
    before = world.rows(targets)
    with pytest.raises(InputError):
        world.do(manual.retry, 1, **edit)  # its result page was read
    assert world.rows(targets) == before
    assert world.state(1) is State.MANUAL


@pytest.mark.usefixtures("failed")
def test_a_quota_that_a_person_sets_holds_for_further_attempts_and_what_carries_them_on(world):
    assert world.do(manual.retry, 1, quota=2) == 3
    with pytest.raises(IllegalTransition):
        world.do(manual.retry, 1, quota=3)
    (lease,) = world.allocate()
    (attempt,) = world.rows(attempt_table, attempt_table.c.no == 2)
    assert (lease.quota, attempt.quota) == (2, 2)
    for target in world.start(lease).targets[:2]:
        world.save(lease, target)
    world.close(lease, Counters(offered=2, tried=2, collected=2))
    world.wake()
    (follow_up,) = world.rows(subtasks, subtasks.c.parent_id == 1)
    assert (follow_up.left, follow_up.assigned_quota) == (1, 2)
