"""Products that are removed or changed while they are looked for."""

from datetime import timedelta

import pytest
from world import World

from splitter.errors import InputError
from tasks.store.content import products
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queue import schedules, tasks
from tasks.store.sql import tables


@pytest.fixture
def world(store):
    return World(store)


def states(world):
    return [row.state for row in world.rows(tables.subtasks)]


def test_a_removed_product_is_not_looked_for_and_keeps_its_reviews(world):
    world.begin(world.waiting("光明高钙牛奶"))
    world.waiting("特仑苏")
    world.pass_s(5)
    was = world.do(products.remove, "光明高钙牛奶")
    assert (was.open, was.is_crawled) == (1, True)
    assert states(world) == ["CANCELLED", "WAIT"]
    assert not world.look(products.find, "光明高钙牛奶").is_crawled
    assert world.do(products.remove, "光明高钙牛奶").open == 0
    assert world.look(tasks.list_unplanned, 10) == []
    assert world.verification().violations == ()
    assert world.do(products.add, NewProduct(name="光明高钙牛奶", keywords=("光明", "牛奶")))
    assert [one.keywords for one in world.look(tasks.list_unplanned, 10)] == [("光明", "牛奶")]
    assert world.verification().violations == ()


def test_one_whose_tasks_were_never_made_gets_none(world):
    world.do(products.add, NewProduct(name="每周", keywords=("每周",), recrawl_every=timedelta(days=7)))
    world.do(products.remove, "每周")
    world.pass_s(8 * 86400)
    assert world.do(schedules.recrawl_due) == 0
    assert world.look(tasks.list_unplanned, 10) == []
    assert world.verification().violations == ()


def test_other_words_begin_a_new_round(world):
    world.waiting("光明高钙牛奶")
    world.pass_s(5)
    words = ("光明", "牛奶")
    again = NewProduct(
        name="光明高钙牛奶",
        keywords=words,
        own_keywords=words,
        aliases=("高钙奶",),
        alias_keywords=(("高钙奶",),),
    )
    change = ProductEdit(priority=4, recrawl_every=timedelta(days=1), keywords=words, aliases=("高钙奶",))
    assert world.do(products.edit, "光明高钙牛奶", change, again) == 1
    [task] = world.look(tasks.list_unplanned, 10)
    assert (task.keywords, task.aliases, task.priority) == (("光明", "牛奶"), (("高钙奶",),), 4)
    assert states(world) == ["CANCELLED"]
    assert world.verification().violations == ()
    world.pass_s(86400)
    assert world.do(schedules.recrawl_due) == 1


def test_a_priority_goes_to_the_work_and_the_rest_stays(world):
    world.waiting("光明高钙牛奶")
    assert world.do(products.edit, "光明高钙牛奶", ProductEdit(priority=7)) == 0
    assert [(row.state, row.priority) for row in world.rows(tables.subtasks)] == [("WAIT", 7)]
    world.do(products.edit, "光明高钙牛奶", ProductEdit(recrawl_every=timedelta(days=1)))
    world.do(products.edit, "光明高钙牛奶", ProductEdit(recrawl_every=timedelta()))
    assert world.look(schedules.list_schedules) == []
    assert world.verification().violations == ()


def test_a_name_that_is_not_there_is_told_with_some_that_are(world):
    world.waiting("光明高钙牛奶")
    with pytest.raises(InputError, match="光明高钙牛奶"):
        world.do(products.remove, "光明")


def test_a_name_is_found_as_it_is_written_before_one_that_differs_by_case(world):
    """Stores of earlier versions may hold both."""
    for name in ("Dyson V8", "dyson v8"):
        world.do(products.add, NewProduct(name=name, keywords=("Dyson", "V8")))
    found = [world.look(products.find, name).name for name in ("Dyson V8", "dyson v8")]
    assert found == ["Dyson V8", "dyson v8"]
    assert world.look(products.find, "DYSON V8").name == "Dyson V8"
    world.do(products.edit, "dyson v8", ProductEdit(name="Dyson V9"))
    assert world.look(products.find, "DYSONV9").id == 2
    assert world.look(products.find, "dyson v8").id == 1
    with pytest.raises(InputError, match="'Dyson V9'"):
        world.do(products.edit, "Dyson V8", ProductEdit(name="dyson v9"))
