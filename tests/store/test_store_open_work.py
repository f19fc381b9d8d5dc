"""The time left as the store tells it: what is open at each site, and every ending there is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from world import CATALOG, SILENT, SITE, World, hit

from app.run.ending import time_left
from app.run.work_left import Ending, TimeLeft
from tasks.domain.host_wait import UNREACHABLE
from tasks.store import closing, hosts, open_work, products, queue_counts
from tasks.store.host_waits import host_waits
from tasks.store.hosts import Rest, Robots
from tasks.store.leases import Counters
from tasks.store.open_work import OpenWork
from tasks.store.products import NewProduct

OTHER = "12315.com"


def left(world: World) -> TimeLeft:
    of = world.context.hosts
    return world.look(
        lambda conn: time_left(
            conn,
            world.now,
            queue_counts.counts(conn),
            host_waits(conn, world.now, of.of_site, SILENT),
            CATALOG,
            of,
            SILENT,
        )
    )


def answered(world: World) -> int:
    """A subtask with four hits to do, of whose site a node has got one page; 5 s after the first of them."""
    subtask = world.waiting()
    world.node("n1")
    lease, work = world.begin(subtask)
    hits = world.read_results(lease, work.targets[0], [hit(str(n)) for n in range(5)])
    world.save(lease, hits.todo[0])
    world.pass_s(5)
    world.interrupt(lease, Counters(offered=5, tried=1, collected=1), "drained")
    return subtask


def test_open_work_is_counted_by_site(world: World) -> None:
    answered(world)
    world.add("金领冠", sites=(OTHER,))
    found = world.look(open_work.open_work, world.now)
    assert sorted(found, key=lambda one: one.site) == [
        OpenWork(site=OTHER, results=1.0),
        OpenWork(site=SITE, hits=4),
    ]
    assert world.look(open_work.pages_per_s, world.now) == pytest.approx(1 / 5)
    assert world.look(open_work.hits_per_result) == pytest.approx((5 + 30) / 4)
    assert world.look(open_work.pages_per_s, world.now + timedelta(hours=1)) is None


def test_nothing_is_known_before_a_host_has_answered_or_while_no_node_is_at_work(world: World) -> None:
    assert left(world).ending is Ending.NO_WORK
    subtask = world.waiting()
    assert left(world).ending is Ending.UNKNOWN
    world.node("n1")
    assert left(world).ending is Ending.UNKNOWN
    world.begin(subtask)
    world.now += timedelta(hours=1)
    assert left(world).ending is Ending.UNKNOWN


def test_the_time_follows_from_what_is_left_and_a_robots_txt_may_make_it_longer(world: World) -> None:
    answered(world)
    # Four hits where one came in five seconds.
    assert left(world) == TimeLeft(Ending.DONE_IN, pytest.approx(20.0))
    slow = Robots(SITE, 200, "User-agent: *\nCrawl-delay: 10", world.now)
    world.do(lambda conn, _now: hosts.save_robots(conn, slow))
    assert left(world) == TimeLeft(Ending.DONE_IN, pytest.approx(40 / 0.95))


def test_a_rest_until_a_known_time_is_part_of_it(world: World) -> None:
    answered(world)
    world.do(hosts.rest_host, "n1", Rest(SITE, "forbidden", lambda _: 300.0))
    assert left(world) == TimeLeft(Ending.DONE_IN, pytest.approx(320.0), waiting=1, next_s=300.0)


def test_of_a_host_that_does_not_answer_nobody_knows(world: World) -> None:
    answered(world)
    world.do(hosts.rest_host, "n1", Rest(SITE, UNREACHABLE, lambda _: 9.0))
    assert left(world) == TimeLeft(Ending.HOSTS, 9.0, waiting=1, silent=1, next_s=9.0)


def test_nor_while_a_node_asks_whether_it_answers_again(world: World) -> None:
    answered(world)
    world.begin(world.waiting("金领冠"))
    world.do(hosts.rest_host, "n1", Rest(SITE, UNREACHABLE, lambda _: 9.0))
    assert left(world) == TimeLeft(Ending.UNKNOWN, waiting=1, silent=1)


def test_nothing_is_left_where_all_is_settled(world: World) -> None:
    subtask = answered(world)
    world.do(closing.cancel, subtask, "not wanted")
    assert left(world) == TimeLeft(Ending.NOTHING_LEFT)
    # A product that has no task yet makes work.
    world.do(products.add, NewProduct(name="金领冠", keywords=("金领冠",)))
    assert left(world) == TimeLeft(Ending.NO_WORK)
