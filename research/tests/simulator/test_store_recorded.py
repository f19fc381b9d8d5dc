"""What a run left behind for the simulator."""

from __future__ import annotations

from research.simulator.recorded_rows import RecordedTask, recorded_attempts, recorded_tasks
from tasks.domain.attempt_end import Counters
from tests.store.world import World, hit


def test_a_page_that_two_tasks_have_is_the_first_ones(store):
    world = World(store)
    first = world.waiting("特仑苏")
    second = world.waiting("蒙牛纯甄")
    for subtask, names in ((first, ("a", "b")), (second, ("b", "c"))):
        lease, work = world.begin(subtask)
        world.read_results(lease, work.targets[0], [hit(name) for name in names])
    assert world.look(recorded_tasks) == [
        RecordedTask("cca.org.cn", "meta", 2),
        RecordedTask("cca.org.cn", "meta", 1),
    ]


def test_a_search_that_found_nothing_is_told_and_so_is_a_task_that_nobody_read(store):
    world = World(store)
    vain, waits = world.waiting("特仑苏"), world.waiting("蒙牛纯甄")
    lease, work = world.begin(vain)
    world.read_results(lease, work.targets[0], [])
    world.close(lease, Counters(requests=1, active_s=0.1))
    world.pass_s(1)
    assert world.look(recorded_tasks)[-1] == RecordedTask("cca.org.cn", "meta", 0, vain=0, read=False)
    assert world.look(recorded_tasks)[0].vain == 1
    (attempt,) = world.look(recorded_attempts)
    assert (attempt.outcome, attempt.requests, attempt.tried) == ("succeeded", 1, 0)
    assert world.subtask(waits).attempts == 0
