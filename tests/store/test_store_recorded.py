"""What a run left behind for the simulator."""

from __future__ import annotations

from tasks.store.recorded import RecordedTask, recorded_tasks
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
