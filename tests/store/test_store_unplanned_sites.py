"""Sites that can't be asked get no task; they get theirs, once, when they can be."""

import asyncio

from world import CATALOG

from splitter.catalog.names import Category
from tasks.fetching.robots import RobotsRules
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.jobs.planning import plan
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import tasks
from tasks.store.sql import tables
from tasks.store.sql.tables import virtual_tasks
from tasks.store.sql.writer import Writer

SITES = tuple(CATALOG.sites)
DOWN = Obstacle(kind=ObstacleKind.ENGINE, why="it is down", mend="start it")
ALLOWED, REFUSED = RobotsRules.parse("", 404), RobotsRules.parse("User-agent: *\nDisallow: /", 200)


def planned(world, unasked, *, refusing="", late=False, catalog=CATALOG):
    async def robots_of(url):
        return REFUSED if refusing and refusing in url else ALLOWED

    async def run():
        writer = Writer(world.store)
        try:
            return await plan(writer, catalog, robots_of, "reviewloop", lambda: unasked, late=late)
        finally:
            writer.close()

    return asyncio.run(run())


def noted(world):
    return {one.site: one.obstacle for one in world.look(tasks.list_late_sites)}


def test_a_site_that_cannot_be_asked_gets_its_task_when_it_can(world):
    world.do(products.add, NewProduct(name="特仑苏", keywords=("特仑苏",)))
    down, refusing = SITES[:2], SITES[2]
    assert planned(world, dict.fromkeys(down, (DOWN,)), refusing=f"//{refusing}/") == len(SITES) - 3
    assert noted(world) == {**dict.fromkeys(down, "engine_down"), refusing: "robots"}
    assert planned(world, {}) == 0  # looked at only now and then
    assert planned(world, {down[0]: (DOWN,)}, refusing=f"//{refusing}/", late=True) == 1
    assert noted(world) == {down[0]: "engine_down", refusing: "robots"}
    assert planned(world, {}, late=True) == 2
    assert planned(world, {}, late=True) == 0
    assert noted(world) == {}
    assert sorted(row.site for row in world.rows(tables.tasks)) == sorted(SITES)


def test_a_product_is_looked_for_at_its_own_sites_only(world):
    world.do(products.add, NewProduct(name="特仑苏", keywords=("特仑苏",), sites=SITES[:2]))
    assert planned(world, {SITES[0]: (DOWN,), SITES[5]: (DOWN,)}) == 1
    assert noted(world) == {SITES[0]: "engine_down"}


def test_a_new_round_waits_instead_of_the_old_one(world):
    world.do(products.add, NewProduct(name="特仑苏", keywords=("特仑苏",)))
    planned(world, {SITES[0]: (DOWN,)})
    (first,) = world.rows(virtual_tasks)
    with world.store.begin() as tx:
        values = {"product_id": first.product_id, "keywords": ["特仑苏"], "aliases": [], "round": 2}
        tx.engine_connection.execute(virtual_tasks.insert().values(**values, created_at=world.now))
    planned(world, {SITES[0]: (DOWN,)})
    (waiting,) = world.look(tasks.list_late_sites)
    assert waiting.products == 1
    assert planned(world, {}, late=True) == 1
    assert {row.virtual_task_id for row in world.rows(tables.tasks, tables.tasks.c.site == SITES[0])} == {
        first.id + 1
    }


def test_a_product_is_looked_for_at_the_sites_of_its_category(world):
    first, *others = SITES
    cars = CATALOG.sites[first].model_copy(update={"categories": (Category.CAR,)})
    catalog = CATALOG.model_copy(update={"sites": {**CATALOG.sites, first: cars}})
    wanted = (("奶", "food", None), ("车", "car", None), ("谁", None, None), ("茶", "food", (first,)))
    for name, category, sites in wanted:
        world.do(products.add, NewProduct(name=name, keywords=(name,), category=category, sites=sites))
    assert planned(world, {}, catalog=catalog) == len(others) + 2 * len(SITES) + 1
    milk = [row.site for row in world.rows(tables.tasks) if row.product_id == 1]
    assert sorted(milk) == sorted(others)
