"""Products become virtual tasks, tasks and subtasks, each once; the urgent are admitted first."""

from dataclasses import replace

import pytest
from world import SITE, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.hit_count import NewPartition
from tasks.domain.states import State
from tasks.jobs import sweeps
from tasks.jobs.context import LoopSettings
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queries.products import list_products
from tasks.store.queue import attempts, tasks
from tasks.store.queue.tasks import NewTask
from tasks.store.sql.tables import subtasks, virtual_tasks


@pytest.mark.parametrize(
    "name", ["特仑苏", "蒙牛早餐奶 250ml", "Ａ２　牛奶🥛", "𠮷野家", "e\u0301 é", "O'Brien; --"]
)
def test_a_product_is_added_once(world, name):
    assert world.do(
        products.add, NewProduct(name=name, keywords=("蒙牛",), own_keywords=("蒙牛",), aliases=("别名",))
    )
    assert not world.do(products.add, NewProduct(name=name, keywords=("其他",)))
    (row,) = world.look(list_products)
    assert (row.name, row.keywords, row.aliases) == (name, ("蒙牛",), ("别名",))
    assert len(world.rows(virtual_tasks)) == 1


def test_a_virtual_task_is_planned_once(world):
    world.do(products.add, NewProduct(name="特仑苏", keywords=("蒙牛", "特仑苏")))
    (wanted,) = world.look(tasks.list_unplanned, 10)
    partition = NewPartition(("蒙牛", "特仑苏"), 1, 1)
    planned = [NewTask(SITE, "baidu", "meta", (partition,))]
    assert world.do(tasks.plan, wanted, planned, lambda *_: ["http://search/1"]) == 1
    assert world.do(tasks.plan, wanted, planned, lambda *_: ["http://search/1"]) == 0
    assert world.look(tasks.list_unplanned, 10) == []
    assert len(world.rows(subtasks)) == 1


def test_every_keyword_sets_first_chunk_is_released_at_once_and_no_other(world):
    released = world.add("特仑苏", chunks=(True, False, True, False))
    assert [world.subtask(i).chunk for i in released] == [1, 3]
    assert [world.state(i) for i in released] == [State.PRIORITY] * 2


def _finish(world, subtask_id, *, more):
    lease, work = world.begin(subtask_id)
    (result,) = work.targets
    hits = world.read_results(lease, result, [hit(f"{work.task_id}-{work.chunk}")], more=more)
    for target in hits.todo:
        world.save(lease, target)
    assert world.close(lease, Counters(offered=1, tried=1, collected=1))


def test_the_next_chunk_is_released_when_a_chunk_shows_that_there_is_more(world):
    first = world.waiting(chunks=(True, False, False))
    _finish(world, first, more=True)
    assert world.sweep(sweeps.wake) == 1
    (second,) = world.rows(subtasks, subtasks.c.state == State.PRIORITY)
    assert (second.chunk, world.state(first)) == (2, State.DONE)
    world.sweep(sweeps.admit)
    _finish(world, second.id, more=False)
    world.sweep(sweeps.wake)
    assert [row.chunk for row in world.rows(subtasks)] == [1, 2]


def test_what_one_keyword_set_shows_releases_no_chunk_of_another(world):
    released = world.add("特仑苏", chunks=(True, False, True, False))
    world.sweep(sweeps.admit)
    _finish(world, released[0], more=False)
    _finish(world, released[1], more=True)
    world.sweep(sweeps.wake)
    assert sorted(row.chunk for row in world.rows(subtasks)) == [1, 3, 4]


def test_a_chunk_is_not_released_beyond_the_end_nor_into_the_next_keyword_set(world):
    released = world.add("特仑苏", chunks=(True, True))
    world.sweep(sweeps.admit)
    for subtask_id in released:
        _finish(world, subtask_id, more=True)
    world.sweep(sweeps.wake)
    assert len(world.rows(subtasks)) == 2


def test_higher_priority_first_then_first_in_first_out(world):
    early, urgent, *more, late = (
        world.add(name, priority=5 if name == "乙" else 0)[0] for name in "甲乙丙丁戊"
    )
    world.context = replace(world.context, settings=LoopSettings(wait_limit=4))
    assert world.sweep(sweeps.admit) == 4
    assert {world.state(i) for i in (urgent, early, *more)} == {State.WAIT}
    assert world.state(late) is State.PRIORITY
    assert world.sweep(sweeps.admit) == 0, "WAIT is bounded"
    lease = world.grant(urgent)
    assert world.sweep(sweeps.admit) == 1
    assert world.state(late) is State.WAIT
    assert world.do(attempts.release, {lease: "drained"})
