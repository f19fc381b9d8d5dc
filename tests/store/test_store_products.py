"""Products become tasks and subtasks, each once, the urgent first; they are changed and removed while work goes on."""

import asyncio
from contextlib import closing
from datetime import timedelta

import pytest
from world import CATALOG, SITE, hit

from splitter.catalog.names import Category
from splitter.errors import InputError
from tasks.domain.attempt_end import Counters
from tasks.domain.hit_count import NewPartition
from tasks.domain.reasons import Reason, because
from tasks.domain.states import State
from tasks.fetching.robots import RobotsRules
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.jobs.planning import plan
from tasks.store.content import products
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queries.products import (
    Coverage,
    get_coverages,
    get_name,
    list_numbered,
    list_products,
    list_settings,
)
from tasks.store.queries.queues import has_site
from tasks.store.queue import schedules, tasks
from tasks.store.queue.tasks import NewTask
from tasks.store.sql.tables import subtasks, virtual_tasks
from tasks.store.sql.tables import tasks as task_table
from tasks.store.sql.writer import Writer

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


# --- sites that can't be asked get no task until they can be ----------------------------------------------------

SITES = tuple(CATALOG.sites)
DOWN = (
    Obstacle(kind=ObstacleKind.ENGINE, because=because(Reason.OTHER, text="it is down"), mend="start it"),
)
ALLOWED, REFUSED = RobotsRules.parse("", 404), RobotsRules.parse("User-agent: *\nDisallow: /", 200)


@pytest.fixture
def make_tasks(world):
    """Plan products; `down` are sites that cannot be asked, `refusing` is one whose robots.txt refuses."""

    def make(*down, refusing=None, late=False, catalog=CATALOG):
        async def robots_of(url):
            return REFUSED if f"//{refusing}/" in url else ALLOWED

        obstacles = dict.fromkeys(down, DOWN)
        with closing(Writer(world.store)) as writer:
            return asyncio.run(plan(writer, catalog, robots_of, "reviewloop", lambda: obstacles, late=late))

    return make


def noted(world):
    return {one.site: one.obstacle for one in world.look(tasks.list_late_sites)}


def test_a_site_that_cannot_be_asked_gets_its_task_when_it_can(world, make_tasks):
    world.add_product("特仑苏")
    first, second, refusing, *others = SITES
    assert make_tasks(first, second, refusing=refusing) == len(others)
    assert noted(world) == {first: "engine_down", second: "engine_down", refusing: "robots"}
    assert make_tasks() == 0  # looked at only now and then
    assert make_tasks(first, refusing=refusing, late=True) == 1
    assert noted(world) == {first: "engine_down", refusing: "robots"}
    assert make_tasks(late=True) == 2
    assert make_tasks(late=True) == 0
    assert noted(world) == {}
    assert sorted(row.site for row in world.rows(task_table)) == sorted(SITES)


def test_a_product_gets_tasks_at_its_own_sites_only(world, make_tasks):
    world.add_product("特仑苏", sites=SITES[:2])
    assert make_tasks(SITES[0], SITES[5]) == 1
    assert noted(world) == {SITES[0]: "engine_down"}


def test_a_new_round_waits_instead_of_the_old_one(world, make_tasks):
    world.add_product("特仑苏")
    make_tasks(SITES[0])
    world.run(
        "INSERT INTO virtual_tasks (product_id, keywords, aliases, round, created_at) "
        "SELECT product_id, keywords, aliases, 2, created_at FROM virtual_tasks"
    )
    make_tasks(SITES[0])
    (waiting,) = world.look(tasks.list_late_sites)
    assert waiting.products == 1
    assert make_tasks(late=True) == 1
    (made,) = world.rows(task_table, task_table.c.site == SITES[0])
    assert made.virtual_task_id == 2


def test_a_product_gets_tasks_at_the_sites_of_its_category(world, make_tasks):
    first, *others = SITES
    cars = CATALOG.sites[first].model_copy(update={"categories": (Category.CAR,)})
    catalog = CATALOG.model_copy(update={"sites": {**CATALOG.sites, first: cars}})
    wanted = (("奶", "food", None), ("车", "car", None), ("谁", None, None), ("茶", "food", (first,)))
    for name, category, sites in wanted:
        world.add_product(name, category=category, sites=sites)
    assert make_tasks(catalog=catalog) == 2 * len(others) + len(SITES) + 1
    for number in (1, 3):  # food, and a product of unknown category
        made = world.rows(task_table, task_table.c.product_id == number)
        assert sorted(row.site for row in made) == sorted(others)


def test_products_are_chosen_by_their_settings(world):
    world.add_product("特仑苏", keywords=("蒙牛", "特仑苏"), category="food", priority=3)
    world.add_product("车", keywords=("车",), own_keywords=("车",), sites=(SITE,))
    milk, car = world.look(list_settings)
    assert (milk.own_keywords, milk.keywords, milk.category, milk.sites, milk.priority) == (
        (),
        ("蒙牛", "特仑苏"),
        "food",
        None,
        3,
    )
    assert (car.own_keywords, car.sites) == (("车",), (SITE,))
    assert world.look(list_settings, 1) == []  # no import named them
    assert [row.name for row in world.look(list_numbered, (car.id, 99))] == ["车"]
    assert world.look(list_numbered, ()) == []
    assert world.look(products.has_number, car.id)
    assert not world.look(products.has_number, 99)
    assert world.look(get_name, milk.id) == "特仑苏"
    assert not world.look(has_site, SITE)


def test_a_site_is_known_once_it_has_a_task(world, make_tasks):
    world.add_product("特仑苏")
    make_tasks()
    assert world.look(has_site, SITES[0])
    assert not world.look(has_site, "nowhere.example")
