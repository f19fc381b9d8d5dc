"""Queries that hold too much or nothing: divided and relaxed once, with what every part found, on both databases."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest
from world import CATALOG, SITE, hit

from splitter.catalog.load import builtin
from splitter.catalog.model import TimeFilter
from splitter.keywords import ProductQuery
from splitter.split import SearchScope, task_chunks
from tasks.domain.attempt_end import Counters
from tasks.domain.hit_count import EngineLimits, NewPartition, Provenance
from tasks.jobs.partitioning import search_urls
from tasks.jobs.planning import plan_tasks
from tasks.scheduling import query_refinement
from tasks.store.queries import products as product_queries
from tasks.store.queries.products import Relaxed
from tasks.store.queue import tasks
from tasks.store.queue.tasks import NewTask
from tasks.store.sql import tables
from tasks.store.sql.tables import events, subtasks, task_parts

LIMITS = EngineLimits(most=20, per_page=10)
WORDS = ("光明", "高钙", "牛奶")


def with_engine(catalog, **changes):
    """Return a catalog whose engine baidu has these fields."""
    engine = catalog.engines["baidu"].model_copy(update=changes)
    return catalog.model_copy(update={"engines": {**catalog.engines, "baidu": engine}})


@pytest.fixture
def small(world, monkeypatch):
    """A world whose engine lists 20 hits and knows ranges of time."""
    times = TimeFilter(params={"gpc": "stf={from_s},{to_s}|stftype=1"}, least="hour")
    monkeypatch.setattr(query_refinement, "MOST_RANGES", 3)
    world.context = replace(world.context, catalog=with_engine(CATALOG, max_hits=20, times=times))
    return world


def _task(world, *partitions):
    """Add a product with one task; `partitions`: by default one of two result pages."""
    assert world.add_product("甲", keywords=WORDS)
    (wanted,) = world.look(tasks.list_unplanned, 10)
    its = partitions or (NewPartition(WORDS, 2, 1),)
    urls = partial(search_urls, world.context.catalog)
    assert world.do(tasks.plan, wanted, [NewTask(SITE, "baidu", "meta", its)], urls) == 1


def _turn(world, *answers):
    """Crawl what waits, the oldest first: each answer is the one result page of a subtask; then wake."""
    world.admit()
    waiting = world.rows(subtasks, subtasks.c.state == "WAIT")
    for subtask, (names, found, more) in zip(waiting, answers, strict=True):
        lease, work = world.begin(subtask.id)
        urls = [hit(str(n)) for n in names]
        hits = world.read_results(lease, work.targets[0], urls, found=found, more=more, limits=LIMITS)
        n = sum(world.save(lease, one) for one in hits.todo)
        assert world.close(lease, Counters(offered=n, tried=n, collected=n))
    world.wake()


def _found(world):
    (task,) = world.rows(tables.tasks)
    return task.found, task.found_provenance, task.found_reported


def _split(world):
    _task(world)
    _turn(world, (range(10), 45, True))
    _turn(world, (range(10, 20), 45, False))


def test_a_query_over_the_cap_is_divided_once_and_its_parts_add_up(small):
    _split(small)
    root, *parts = small.rows(task_parts)
    assert (root.state, root.listed, root.pages_read, len(parts)) == ("split", 20, 2, 3)
    assert [part.parent_id for part in parts] == [root.id] * 3
    assert [part.first_chunk for part in parts] == [3, 5, 7]
    assert all(a.end_at == b.start_at for a, b in pairwise(parts))
    assert _found(small) == (45, Provenance.REPORTED, 45)
    small.wake()
    assert len(small.rows(task_parts)) == 4
    (woken,) = [e for e in small.rows(events, events.c.transition == "wake") if "split" in e.detail]
    assert woken.detail["split"]["because"] == {
        "reason": "split_by_time",
        "parameters": {"hits": 45, "most": 20, "unit": "day", "parts": 3},
    }
    asked = small.rows(subtasks, subtasks.c.state == "PRIORITY")
    assert [row.part_id for row in asked] == [part.id for part in parts]
    first, *_ = small.targets(asked[0].id)
    assert "gpc=stf%3D" in first
    _turn(small, (range(10), 9, False), (range(20, 30), 10, False), (range(30, 44), 14, False))
    # 44 different ones: the 45 of the engine was wrong, and is kept as its report.
    assert _found(small) == (44, Provenance.COUNTED, 45)
    (covered,) = small.look(product_queries.get_coverages, lambda _: 20).values()
    assert (covered.stored, covered.reachable, covered.rests_on) == (44, 44, {"counted": 1})


def test_a_span_that_is_over_the_cap_is_divided_again_and_not_read_on(small):
    _split(small)
    _turn(small, (range(10), 30, True), (range(20, 25), 5, False), ([], 0, False))
    parts = small.rows(task_parts)
    again = parts[1]
    assert (again.state, again.pages_read) == ("split", 1)
    inside = [part for part in parts if part.parent_id == again.id]
    assert (inside[0].start_at, inside[-1].end_at) == (again.start_at, again.end_at)
    chunks = {row.chunk for row in small.rows(subtasks)}
    assert again.first_chunk + 1 not in chunks
    assert {part.first_chunk for part in inside} <= chunks


def test_an_hour_that_is_over_the_cap_is_said_to_be_full_and_read_up_to_it(small):
    _split(small)
    part = small.rows(task_parts)[1]
    end = part.start_at + timedelta(hours=1)
    small.run("UPDATE task_parts SET end_at = :end WHERE id = :id", id=part.id, end=end)
    small.run("UPDATE task_parts SET start_at = :end WHERE id = :id", id=part.id + 1, end=end)
    _turn(small, (range(10), 30, True), (range(20, 25), 5, False), ([], 0, False))
    full = small.rows(task_parts)[1]
    assert (full.state, full.provenance, full.found) == ("full", Provenance.CAPPED, 30)
    assert _found(small) == (35, Provenance.CAPPED, 45)
    _turn(small, (range(30, 40), 30, False))
    assert small.rows(task_parts)[1].listed == 20
    (covered,) = small.look(product_queries.get_coverages, lambda _: 20).values()
    assert (covered.reachable, covered.at_least) == (25, True)


def test_an_engine_that_reports_nothing_has_at_least_what_it_lists(world):
    _task(world)
    _turn(world, (range(10), None, True))
    assert _found(world) == (None, Provenance.UNKNOWN, None)
    _turn(world, (range(10, 20), None, True))
    assert _found(world) == (20, Provenance.CAPPED, None)
    assert len(world.rows(task_parts)) == 1


def test_a_query_without_a_hit_is_asked_with_fewer_words_and_says_so(small):
    _task(small)
    _turn(small, ([], None, False))
    root, fewer = small.rows(task_parts)
    assert (root.state, fewer.state, fewer.parent_id) == ("relaxed", "open", root.id)
    assert len(fewer.keywords) == 2
    assert fewer.dropped == [word for word in WORDS if word not in fewer.keywords]
    created = small.rows(events, events.c.transition == "create")[-1].detail
    assert (created["keywords"], created["dropped"]) == (fewer.keywords, fewer.dropped)
    assert _found(small) == (None, Provenance.UNKNOWN, None)
    _turn(small, ([1, 2], None, False))
    assert _found(small) == (2, Provenance.COUNTED, None)
    told = small.look(product_queries.list_relaxed)
    assert told == [Relaxed(1, SITE, tuple(fewer.keywords), tuple(fewer.dropped), 2)]
    assert all(row.state == "DONE" for row in small.rows(subtasks))


def _asked(world, catalog):
    """The search URLs of each partition's chunks, by site and partition, as they would be released."""
    parts = [row.id for row in world.rows(task_parts)]
    queries = world.look(tasks.list_partitions, parts).values()
    return {
        (one.site, one.id): [
            search_urls(catalog, one, one.pages_of(number)) for number in range(one.first_chunk, one.end)
        ]
        for one in queries
    }


@pytest.mark.parametrize("name", ["paper-2014", "today"])
def test_the_chunks_of_a_plan_have_the_search_urls_of_the_splitter(world, name):
    given = builtin(name)
    sites = {key: one.model_copy(update={"chunk_pages": 2}) for key, one in given.sites.items()}
    first = next(iter(given.sites))
    index = given.engines[given.sites[first].engine].model_copy(
        update={"discover": "list", "url": "http://list.cn/{page}"}
    )
    sites[first] = sites[first].model_copy(update={"engine": "index"})
    catalog = given.model_copy(update={"sites": sites, "engines": {**given.engines, "index": index}})
    query = ProductQuery("甲", WORDS, (("光明", "牛奶"), ("牛奶", "光明", "高钙")))
    assert world.add_product("甲", keywords=query.keywords, aliases=("光明牛奶",), pages=5)
    (wanted,) = world.look(tasks.list_unplanned, 10)
    query = ProductQuery("甲", wanted.keywords, wanted.aliases)
    planned = plan_tasks(catalog, wanted, tuple(sites))
    assert world.do(tasks.plan, wanted, planned, partial(search_urls, catalog)) == len(sites)
    made = _asked(world, catalog)
    scope = SearchScope(catalog, tuple(sites), pages=5)
    for site in sites:
        chunks = [chunk for (of, _), its in made.items() if of == site for chunk in its]
        assert chunks == [[page.url for page in chunk] for chunk in task_chunks(scope, site, query)]
    assert {len(chunk) for its in made.values() for chunk in its} == {1, 2}


def test_a_changed_url_of_an_engine_is_used_from_the_next_chunk_on(small):
    _task(small)
    catalog = with_engine(small.context.catalog, url="http://www.baidu.com/new")
    small.context = replace(small.context, catalog=catalog)
    _turn(small, (range(10), None, True))
    first, second = (next(iter(small.targets(row.id))) for row in small.rows(subtasks))
    assert first.startswith("http://www.baidu.com/s?")
    assert second == first.replace("/s?", "/new?").replace("pn=0", "pn=10")


def test_a_span_is_asked_without_its_range_if_the_engine_has_no_ranges_any_more(small):
    _split(small)
    catalog = with_engine(small.context.catalog, times=None)
    *_, urls = [its for (_, part), its in sorted(_asked(small, catalog).items())]
    assert [len(chunk) for chunk in urls] == [1, 1]
    assert "gpc" not in urls[0][0]


def test_queries_that_ask_for_the_same_urls_share_them(world):
    """Aliases may be relaxed to the same words."""
    _task(world, NewPartition(WORDS, 2, 2), NewPartition(WORDS, 2, 2))
    first, second = world.rows(subtasks)
    assert (len(world.targets(first.id)), first.left) == (2, 20)
    assert (len(world.targets(second.id)), second.left) == (0, 0)
    assert [row.asked_before for row in world.rows(task_parts)] == [0, 2]
