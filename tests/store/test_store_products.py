"""Products become tasks and subtasks, each once, the urgent first; they are changed and removed while work goes on."""

from datetime import timedelta

import pytest
from world import SITE, hit

from splitter.errors import InputError
from tasks.domain.attempt_end import Counters
from tasks.domain.hit_count import NewPartition
from tasks.domain.states import State
from tasks.store.content import products
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queries.products import Coverage, get_coverages, list_products
from tasks.store.queue import schedules, tasks
from tasks.store.queue.tasks import NewTask
from tasks.store.sql.tables import subtasks, virtual_tasks

MILK = "光明高钙牛奶"


@pytest.mark.parametrize(
    "name", ["特仑苏", "蒙牛早餐奶 250ml", "Ａ２　牛奶🥛", "𠮷野家", "e\u0301 é", "O'Brien; --"]
)
def test_a_product_is_added_once(world, name):
    assert world.add_product(name, keywords=("蒙牛",), own_keywords=("蒙牛",), aliases=("别名",))
    assert not world.add_product(name, keywords=("其他",))
    (row,) = world.look(list_products)
    assert (row.name, row.keywords, row.aliases) == (name, ("蒙牛",), ("别名",))
    assert len(world.rows(virtual_tasks)) == 1


def test_a_virtual_task_is_planned_once(world):
    world.add_product("特仑苏")
    (wanted,) = world.look(tasks.list_unplanned, 10)
    planned = [NewTask(SITE, "baidu", "meta", (NewPartition(("特仑苏",), 1, 1),))]
    assert world.do(tasks.plan, wanted, planned, lambda *_: ["http://search/1"]) == 1
    assert world.do(tasks.plan, wanted, planned, lambda *_: ["http://search/1"]) == 0
    assert world.look(tasks.list_unplanned, 10) == []
    assert len(world.rows(subtasks)) == 1


def finish(world, subtask_id, *, more):
    """Crawl a subtask to its end; `more`: its result page shows that there is more."""
    lease, work = world.begin(subtask_id)
    hits = world.read_results(lease, work.targets[0], [hit(f"{lease.subtask_id}")], more=more)
    for target in hits.todo:
        world.save(lease, target)
    assert world.close(lease, Counters(offered=1, tried=1, collected=1))


@pytest.mark.parametrize(
    ("chunks", "more", "released"),
    [
        ((True, False, True, False), (False, True), [1, 3, 4]),
        ((True, True), (True, True), [1, 2]),
    ],
    ids=["not of another keyword set", "not beyond the end"],
)
def test_every_keyword_set_releases_its_own_chunks(world, chunks, more, released):
    firsts = world.add("特仑苏", chunks=chunks)
    assert [world.state(one) for one in firsts] == [State.PRIORITY] * 2, "the first chunk of each at once"
    world.admit()
    for subtask_id, shows_more in zip(firsts, more, strict=True):
        finish(world, subtask_id, more=shows_more)
    world.wake()
    assert sorted(row.chunk for row in world.rows(subtasks)) == released


# --- changed and removed --------------------------------------------------------------------------------------


def states(world):
    return [row.state for row in world.rows(subtasks)]


def test_a_removed_product_is_not_crawled_any_more_and_may_be_added_again(world):
    world.begun(MILK)
    world.waiting("特仑苏")
    world.pass_s(5)
    was = world.do(products.remove, MILK)
    assert (was.open, was.is_crawled) == (1, True)
    assert states(world) == ["CANCELLED", "WAIT"]
    assert not world.look(products.find, MILK).is_crawled
    assert world.do(products.remove, MILK).open == 0
    assert world.look(tasks.list_unplanned, 10) == []
    assert world.verification().violations == ()
    assert world.add_product(MILK, keywords=("光明", "牛奶"))
    assert [one.keywords for one in world.look(tasks.list_unplanned, 10)] == [("光明", "牛奶")]


def test_a_removed_product_that_has_no_tasks_yet_gets_none(world):
    world.add_product("每周", recrawl_every=timedelta(days=7))
    world.do(products.remove, "每周")
    world.pass_s(8 * 86400)
    assert world.do(schedules.recrawl_due) == 0
    assert world.look(tasks.list_unplanned, 10) == []


def test_other_words_begin_a_new_round(world):
    world.waiting(MILK)
    world.pass_s(5)
    words, aliases = ("光明", "牛奶"), ("高钙奶",)
    again = NewProduct(
        name=MILK, keywords=words, own_keywords=words, aliases=aliases, alias_keywords=(aliases,)
    )
    change = ProductEdit(priority=4, recrawl_every=timedelta(days=1), keywords=words, aliases=aliases)
    assert world.do(products.edit, MILK, change, again) == 1
    [task] = world.look(tasks.list_unplanned, 10)
    assert (task.keywords, task.aliases, task.priority) == (words, (aliases,), 4)
    assert states(world) == ["CANCELLED"]
    assert world.verification().violations == ()
    world.pass_s(86400)
    assert world.do(schedules.recrawl_due) == 1


def test_a_new_priority_holds_for_the_work_there_is(world):
    world.waiting(MILK)
    assert world.do(products.edit, MILK, ProductEdit(priority=7)) == 0
    assert [(row.state, row.priority) for row in world.rows(subtasks)] == [("WAIT", 7)]


def test_recrawling_is_switched_on_and_off(world):
    world.add_product(MILK)
    world.do(products.edit, MILK, ProductEdit(recrawl_every=timedelta(days=1)))
    assert len(world.look(schedules.list_schedules)) == 1
    world.do(products.edit, MILK, ProductEdit(recrawl_every=timedelta()))
    assert world.look(schedules.list_schedules) == []


def test_an_unknown_name_is_refused_with_similar_names(world):
    world.add_product(MILK)
    with pytest.raises(InputError, match=MILK):
        world.do(products.remove, "光明")


def test_a_name_is_found_as_it_is_written_before_one_that_differs_by_case(world):
    """Stores of earlier versions may hold both."""
    for name in ("Dyson V8", "dyson v8"):
        world.add_product(name)
    found = [world.look(products.find, name).name for name in ("Dyson V8", "dyson v8", "DYSON V8")]
    assert found == ["Dyson V8", "dyson v8", "Dyson V8"]
    world.do(products.edit, "dyson v8", ProductEdit(name="Dyson V9"))
    assert world.look(products.find, "DYSONV9").id == 2
    assert world.look(products.find, "dyson v8").id == 1
    with pytest.raises(InputError, match="'Dyson V9'"):
        world.do(products.edit, "Dyson V8", ProductEdit(name="dyson v9"))


def test_coverage_is_stored_over_found_or_the_engines_cap_if_found_is_known(world):
    def covered():
        (found,) = world.look(get_coverages, lambda _: 12).values()
        return found

    (subtask,) = world.add("特仑苏")
    assert covered() == Coverage(0, 0, 1, 0, {"unknown": 1})
    hits = [(f"http://a.cn/{n}", n.to_bytes(16), "stored" if n < 6 else "todo") for n in range(8)]
    of_task = {"task_id": 1, "subtask_id": subtask, "kind": "hit"}
    world.do(lambda tx: tx.insert("targets", ("url", "url_key", "state"), hits, shared=of_task))
    world.run("UPDATE tasks SET found = 1000, found_provenance = 'reported'")
    assert covered() == Coverage(6, 12, 1, 1, {"reported": 1})
    assert covered().share == 0.5
    world.run("UPDATE tasks SET found = 4")
    assert covered().share == 1.0
    assert Coverage().share is None
    world.run("DELETE FROM targets WHERE kind = 'hit'")  # `verify` knows nothing of them
    world.run("UPDATE tasks SET found = NULL, found_provenance = 'unknown'")
