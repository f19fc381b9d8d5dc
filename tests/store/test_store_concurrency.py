"""Several writers at once: one of them gets it, the others find it gone, and nobody deadlocks."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from patience import PATIENCE_S
from world import SILENT, hit, review

from tasks.domain.attempt_end import Counters
from tasks.domain.errors import StoreConflict
from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.jobs.ticks import tick
from tasks.store.content import products
from tasks.store.content.products import ProductEdit
from tasks.store.queue import leases, transitions
from tasks.store.queue.attempts import silence
from tasks.store.queue.leases import Grant, Renewal
from tasks.store.sql.database import try_lock
from tasks.store.sql.tables import attempts, events, pages, review_days, reviews, targets
from tasks.store.sql.tables import products as product_table
from tasks.store.sql.transaction import Transaction

NAMES = [f"产品{n}" for n in range(6)]


def at_once(*works):
    """Run each of the functions in a thread, all from one starting gun; return their results."""
    gun = Barrier(len(works))

    def run(work):
        gun.wait(timeout=PATIENCE_S)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))


def test_granted_by_several_at_once_a_subtask_has_one_lease(world):
    ids = [world.waiting(name) for name in NAMES]
    wanted = [[Grant(one, f"n{n}", 20, 30.0, {}) for one in ids] for n in range(3)]
    given = at_once(*(lambda grants=grants: world.do(leases.grant, grants, SILENT) for grants in wanted))
    assert sorted(lease.subtask_id for some in given for lease in some) == ids
    assert len(world.rows(attempts)) == 6


def test_a_notification_that_rings_in_several_processes_starts_one_attempt(world):
    lease = world.granted()
    works = at_once(*[lambda: world.start(lease)] * 4)
    assert sum(work is not None for work in works) == 1


@pytest.mark.parametrize("begun", [True, False], ids=["closed and silenced", "started and released"])
def test_of_two_that_use_a_lease_at_once_one_counts(world, begun):
    held = [world.begun(name) if begun else world.granted(name) for name in NAMES]
    if begun:
        world.pass_s(60)
        use, take = world.close, world.silence
    else:
        use, take = world.start, world.release
    used, taken = at_once(lambda: list(map(use, held)), lambda: list(map(take, held)))
    assert [bool(a) + bool(b) for a, b in zip(used, taken, strict=True)] == [1] * 6
    assert not begun or world.pair().attempts == 6


def test_granted_and_cancelled_at_once_leaves_no_attempt_open(world):
    ids = [world.waiting(name) for name in NAMES]
    at_once(
        lambda: [world.grant(one) for one in ids],
        lambda: [world.cancel(one) for one in ids],
    )
    assert {world.state(one) for one in ids} == {State.CANCELLED}


def test_one_page_stored_by_several_at_once_is_one_page(world):
    found = [world.found(name, [hit("1")]) for name in NAMES[:3]]
    saves = [lambda lease=lease, hits=hits: world.save(lease, hits.todo[0]) for lease, hits in found]
    assert sorted(at_once(*saves)) == [False, False, True]
    assert (len(world.rows(pages)), len(world.rows(reviews))) == (1, 1)
    assert {row.state for row in world.rows(targets, targets.c.kind == "hit")} == {"stored"}


@pytest.mark.parametrize("place", [0, 1], ids=["a page that is read again", "a new page"])
def test_a_page_that_is_stored_while_its_product_gets_another_count_waits(postgres_world, place):
    world = postgres_world
    world.stored_page(NAMES[1])
    lease, hits = world.found(NAMES[0], [hit(f"{NAMES[0]}{n}") for n in range(2)])
    world.save(lease, hits.todo[0], [review("1", "一")])
    more = [review("1", "一"), review("2", "二")]
    with ThreadPoolExecutor(1) as pool:
        with world.store.begin() as person:
            products.edit(person, NAMES[0], ProductEdit(counted_as=NAMES[1]))
            saved = pool.submit(world.save, lease, hits.todo[place], more, content_hash="1")
            while not (saved.done() or world.look(Transaction.value, WAITING)):
                pass
        assert saved.result(PATIENCE_S) is (place == 1)
    assert {row.product_id for row in world.rows(review_days)} == {1}
    assert world.verification().violations == ()


WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


def test_two_sweeps_at_once_do_the_work_once(postgres_world):
    world = postgres_world
    for name in NAMES:
        lease, _ = world.found(name, [hit(name)])
        world.close(lease)
    at_once(*[world.wake] * 3)
    assert [row.transition for row in world.rows(events)].count("wake") == 6


def test_a_subtask_that_a_person_has_locked_is_admitted_later(postgres_world):
    world = postgres_world
    (locked,), (free,) = world.add("甲"), world.add("乙")
    with world.store.begin() as person:
        transitions.lock(person, [locked])
        world.admit()
    assert [world.state(one) for one in (locked, free)] == [State.PRIORITY, State.WAIT]


def test_while_one_scheduler_ticks_the_others_tick_does_nothing(postgres_world):
    world = postgres_world
    world.add("特仑苏")
    with world.store.begin() as first:
        assert try_lock(first, "scheduler", 2.0)
        assert not world.do(try_lock, "scheduler", 2.0)
        assert world.do(try_lock, "another", 2.0)
        world.do(tick, world.context, ["admit"])
        assert world.rows(events, events.c.transition == "admit") == []
    world.do(tick, world.context, ["admit"])
    assert len(world.rows(events, events.c.transition == "admit")) == 1


def test_a_lease_renewed_while_the_sweep_looks_is_not_taken_back(postgres_world):
    world = postgres_world
    lease = world.begun()
    world.pass_s(59)
    in_time = world.now
    world.pass_s(1)

    def sweep(tx):
        ((seen, _),) = leases.list_overdue(tx, 10)
        with world.store.begin(now=in_time) as node:
            assert leases.progress_many(node, [Renewal(lease, SILENT, Counters())]) == [True]
        return silence(tx, {seen: FailureReason.SILENT})

    assert not world.do(sweep)
    assert world.state(lease.subtask_id) is State.CRAWL


@pytest.mark.parametrize("losses", [0, 1, 4, 5])
def test_a_transaction_that_loses_deadlocks_is_repeated_five_times_at_most(world, losses):
    tries = []

    def add(tx):
        tries.append(tx)
        tx.run("INSERT INTO stored_values (name, at, data) VALUES ('x', :now, '{}')", now=tx.now)
        if len(tries) <= losses:
            raise StoreConflict("lost")

    if losses == 5:
        with pytest.raises(StoreConflict):
            world.store.write(add)
    else:
        world.store.write(add)
    assert len(tries) == min(losses + 1, 5)
    assert world.look(Transaction.value, "SELECT count(*) FROM stored_values WHERE name = 'x'") == (
        losses < 5
    )


def test_both_of_two_transactions_that_wait_for_each_other_are_written(postgres_world):
    world = postgres_world
    for name in NAMES[:2]:
        world.add_product(name)
    meeting = Barrier(2)
    tries = []

    def raise_priority(first, second, tx):
        tries.append(first)
        for number in (first, second):
            tx.run("UPDATE products SET priority = priority + 1 WHERE id = :id", id=number)
            if number == first and tries.count(first) == 1:
                meeting.wait(PATIENCE_S)

    at_once(*(partial(world.store.write, partial(raise_priority, *pair)) for pair in ((1, 2), (2, 1))))
    assert [row.priority for row in world.rows(product_table)] == [2, 2]
    assert len(tries) > 2, "one of them had to begin again"
