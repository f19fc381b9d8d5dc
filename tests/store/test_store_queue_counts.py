"""How many subtasks are in each queue: kept as they move, added up by a sweep, the same as counted."""

from tasks.domain.states import MAX_RECALLS, State
from tasks.jobs import recalling, sweeps
from tasks.store.queue import attempts, manual, transitions
from tasks.store.sql.tables import queue_counts as table
from tasks.store.sql.tables import subtasks


def kept(world):
    """Those that are not empty."""
    return {state: n for state, n in world.look(transitions.count_queues).items() if n}


def rows(world):
    return len(world.rows(table))


def test_every_queue_is_counted_as_subtasks_move(world):
    (one,), (other,) = world.add("特仑苏"), world.add("蒙牛")
    assert kept(world) == {"PRIORITY": 2}
    world.sweep(sweeps.admit)
    assert kept(world) == {"WAIT": 2}
    lease, work = world.begin(one)
    assert kept(world) == {"WAIT": 1, "CRAWL": 1}
    world.read_results(lease, work.targets[0], ())
    world.close(lease)
    world.pass_s(600)
    world.sweep(sweeps.wake)
    assert kept(world) == {"WAIT": 1, "DONE": 1}
    for n in range(MAX_RECALLS + 1):
        world.begin(other, f"n{n % MAX_RECALLS}")
        world.pass_s(60)
        world.sweep(recalling.recall)
    assert kept(world)["MANUAL"] == 1
    world.do(manual.retry, other)
    world.do(attempts.cancel, other, "not wanted")
    assert kept(world)["CANCELLED"] == 1
    assert "MANUAL" not in kept(world)
    assert sum(kept(world).values()) == len(world.rows(subtasks))


def test_rows_are_added_up_to_one_a_queue_and_say_the_same(world):
    for n in range(transitions._MANY_ROWS - 1):
        world.add(f"牛奶{n}")
    many = rows(world)
    world.do(transitions.add_up_queues)
    assert rows(world) == many, "few rows are left as they are"
    world.sweep(sweeps.admit)
    world.add("特仑苏")
    before = kept(world)
    world.do(transitions.add_up_queues)
    assert rows(world) <= len(transitions.KEPT)
    assert kept(world) == before


def test_a_row_of_a_transaction_under_way_is_neither_lost_nor_waited_for(postgres_store):
    def note(tx):
        for _ in range(transitions._MANY_ROWS):
            transitions.count_moves(tx, None, State.DONE, 1)

    with postgres_store.begin() as tx:
        note(tx)
    with postgres_store.begin() as late:
        note(late)
        with postgres_store.begin() as tx:
            transitions.add_up_queues(tx)
        with postgres_store.read() as tx:
            assert transitions.count_queues(tx)["DONE"] == transitions._MANY_ROWS
    with postgres_store.read() as tx:
        assert transitions.count_queues(tx)["DONE"] == 2 * transitions._MANY_ROWS
