"""The estimate of the time left, on a store."""

from datetime import timedelta

import pytest
from world import SILENT, SITE, hit

from app.views.loop_state import Ending, TimeLeft, read_state
from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Rest
from tasks.domain.host_wait import UNREACHABLE
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import attempts, hosts


def left(world):
    return world.look(lambda tx: read_state(tx, world.context.hosts.of_site, SILENT).left)


def answered(world):
    """Store one of five hits; return its subtask, which waits, 5 s after that page."""
    subtask = world.waiting()
    world.node("n1")
    lease, work = world.begin(subtask)
    hits = world.read_results(lease, work.targets[0], [hit(str(n)) for n in range(5)])
    world.save(lease, hits.todo[0])
    world.pass_s(5)
    world.interrupt(lease, Counters(offered=5, tried=1, collected=1), "drained")
    return subtask


def test_it_is_unknown_without_a_page_in_the_last_five_minutes(world):
    assert left(world) == TimeLeft(Ending.NO_WORK)
    answered(world)
    assert left(world).ending is Ending.DONE_IN
    world.now += timedelta(minutes=5)
    assert left(world) == TimeLeft(Ending.UNKNOWN)


def test_hits_left_come_at_the_rate_of_the_last_pages(world):
    answered(world)
    assert left(world) == TimeLeft(Ending.DONE_IN, pytest.approx(4 * 5.0))


def test_a_rest_of_all_that_is_left_is_the_least(world):
    answered(world)
    world.do(hosts.rest_host, "n1", Rest(SITE, "forbidden", lambda _: 300.0))
    assert left(world) == TimeLeft(Ending.DONE_IN, pytest.approx(300.0), waiting=1, next_s=300.0)
    world.now += timedelta(seconds=299)
    assert left(world) == TimeLeft(Ending.HOSTS, pytest.approx(1.0), waiting=1, next_s=pytest.approx(1.0))


def test_hits_of_a_host_that_does_not_answer_are_in_no_estimate(world):
    answered(world)
    world.do(hosts.rest_host, "n1", Rest(SITE, UNREACHABLE, lambda _: 9.0))
    assert left(world) == TimeLeft(Ending.HOSTS, 9.0, waiting=1, silent=1, next_s=9.0)
    world.begin(world.waiting("金领冠"))
    assert left(world) == TimeLeft(Ending.DONE_IN, pytest.approx(10 * 5.0), waiting=1, silent=1)


def test_nothing_is_left_when_all_is_settled(world):
    world.do(attempts.cancel, answered(world), "not wanted")
    assert left(world) == TimeLeft(Ending.NOTHING_LEFT)
    world.do(products.add, NewProduct(name="金领冠", keywords=("金领冠",)))
    assert left(world) == TimeLeft(Ending.NO_WORK)
