"""Several writers at once: one of them gets it, the others find it gone, and nobody deadlocks."""

import threading
from concurrent.futures import ThreadPoolExecutor

from patience import PATIENCE_S
from world import SILENT, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.jobs import sweeps
from tasks.jobs.ticks import tick
from tasks.store.queue import leases
from tasks.store.queue.attempts import cancel, release, silence
from tasks.store.queue.leases import Grant
from tasks.store.sql.database import try_lock
from tasks.store.sql.tables import attempts, events, pages, reviews, targets


def _at_once(n, work):
    """Run `work(0)` to `work(n - 1)`, each in a thread, all from one starting gun."""
    gun = threading.Barrier(n)

    def run(number):
        gun.wait(timeout=PATIENCE_S)
        return work(number)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(run, range(n)))


def test_granted_by_two_at_once_one_lease(world):
    subtask_ids = [world.waiting(f"产品{n}") for n in range(6)]
    given = _at_once(
        3,
        lambda n: world.do(
            leases.grant, [Grant(subtask_id, f"n{n}", 20, 30.0, {}) for subtask_id in subtask_ids], SILENT
        ),
    )
    assert sorted(lease.subtask_id for some in given for lease in some) == subtask_ids
    assert len(world.rows(attempts)) == 6


def test_a_doorbell_rung_in_several_processes_starts_once(world):
    lease = world.grant(world.waiting())
    works = _at_once(4, lambda _: world.start(lease))
    assert sum(work is not None for work in works) == 1


def test_closed_and_silenced_at_once_one_of_them_counts(world):
    held = [world.begin(world.waiting(f"产品{n}"))[0] for n in range(6)]
    world.pass_s(60)

    def end(n):
        if n == 0:
            return [world.close(lease) for lease in held]
        return [bool(world.do(silence, {lease: FailureReason.SILENT})) for lease in held]

    closed, silenced = _at_once(2, end)
    assert [a + b for a, b in zip(closed, silenced, strict=True)] == [1] * 6
    assert world.pair().attempts == 6


def test_started_and_released_at_once_one_of_them_counts(world):
    held = [world.grant(world.waiting(f"产品{n}")) for n in range(6)]

    def use(n):
        if n == 0:
            return [world.start(lease) is not None for lease in held]
        return [bool(world.do(release, {lease: "drained"})) for lease in held]

    started, released = _at_once(2, use)
    assert [a + b for a, b in zip(started, released, strict=True)] == [1] * 6


def test_granted_and_cancelled_at_once_leaves_no_attempt_open(world):
    subtask_ids = [world.waiting(f"产品{n}") for n in range(6)]

    def use(n):
        for subtask_id in subtask_ids:
            if n == 0:
                world.grant(subtask_id)
            else:
                world.do(cancel, subtask_id, "not wanted")

    _at_once(2, use)
    assert {world.state(subtask_id) for subtask_id in subtask_ids} == {State.CANCELLED}


def test_one_page_stored_by_several_at_once_is_one_page(world):
    work = []
    for name in ("甲", "乙", "丙"):
        lease, begun = world.begin(world.waiting(name))
        work.append((lease, world.read_results(lease, begun.targets[0], [hit("1")]).todo[0]))
    stored = _at_once(3, lambda n: world.save(*work[n]))
    assert sorted(stored) == [False, False, True]
    assert (len(world.rows(pages)), len(world.rows(reviews))) == (1, 1)
    assert {row.state for row in world.rows(targets, targets.c.kind == "hit")} == {"stored"}


def test_two_sweeps_at_once_do_the_work_once(postgres_world):
    world = postgres_world
    for n in range(5):
        lease, work = world.begin(world.waiting(f"产品{n}"))
        world.read_results(lease, work.targets[0], [hit(f"{n}")])
        world.close(lease)
    _at_once(3, lambda _: world.sweep(sweeps.wake))
    assert [row.transition for row in world.rows(events)].count("wake") == 5


def test_while_one_scheduler_ticks_the_others_tick_does_nothing(postgres_world):
    world = postgres_world
    world.add("特仑苏")
    with world.store.begin() as first:
        assert try_lock(first, "scheduler", 2.0)
        assert not world.do(lambda tx: try_lock(tx, "scheduler", 2.0))
        assert world.do(lambda tx: try_lock(tx, "another", 2.0))
        world.do(tick, world.context, ["admit"])
        assert world.rows(events, events.c.transition == "admit") == []
    world.do(tick, world.context, ["admit"])
    assert len(world.rows(events, events.c.transition == "admit")) == 1


def test_a_lease_renewed_while_the_sweep_looks_is_not_taken_back(postgres_world):
    world = postgres_world
    lease, _ = world.begin(world.waiting())
    world.pass_s(59)
    in_time = world.now
    world.pass_s(1)

    def sweep(tx):
        ((seen, _),) = leases.list_overdue(tx, 10)
        with world.store.begin(now=in_time) as node:
            assert leases.progress_many(node, [leases.Renewal(lease, SILENT, Counters())]) == [True]
        return silence(tx, {seen: FailureReason.SILENT})

    assert not world.do(sweep)
    assert world.state(lease.subtask_id) is State.CRAWL
