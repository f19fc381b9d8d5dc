"""Sites that can't be asked get no task; they get theirs, once, when they can be."""

import asyncio
from contextlib import closing

import pytest
from world import CATALOG

from splitter.catalog.names import Category
from tasks.fetching.robots import RobotsRules
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.jobs.planning import plan
from tasks.store.queue import tasks
from tasks.store.sql import tables
from tasks.store.sql.writer import Writer

SITES = tuple(CATALOG.sites)
DOWN = (Obstacle(kind=ObstacleKind.ENGINE, why="it is down", mend="start it"),)
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
    assert sorted(row.site for row in world.rows(tables.tasks)) == sorted(SITES)


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
    (made,) = world.rows(tables.tasks, tables.tasks.c.site == SITES[0])
    assert made.virtual_task_id == 2


def test_a_product_gets_tasks_at_the_sites_of_its_category(world, make_tasks):
    first, *others = SITES
    cars = CATALOG.sites[first].model_copy(update={"categories": (Category.CAR,)})
    catalog = CATALOG.model_copy(update={"sites": {**CATALOG.sites, first: cars}})
    wanted = (("奶", "food", None), ("车", "car", None), ("谁", None, None), ("茶", "food", (first,)))
    for name, category, sites in wanted:
        world.add_product(name, category=category, sites=sites)
    assert make_tasks(catalog=catalog) == len(others) + 2 * len(SITES) + 1
    milk = world.rows(tables.tasks, tables.tasks.c.product_id == 1)
    assert sorted(row.site for row in milk) == sorted(others)
