"""Breakers in the store: opened by refusals, kept over restarts, half-open after the rest, closed by a page."""

from dataclasses import replace

import pytest
from world import SILENT, SITE, hit

from splitter.catalog.model import Limits
from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import BreakerState, Rest
from tasks.domain.states import State
from tasks.store.queue import hosts, leases
from tasks.store.queue.leases import Renewal
from tasks.store.sql.tables import subtasks

OPEN, HALF_OPEN = BreakerState.OPEN, BreakerState.HALF_OPEN


def refusal(cause="captcha", first_s=600.0, host="h.cn"):
    return Rest(host, cause, lambda times: first_s * 2 ** (times - 1))


def rests(world):
    return [
        (one.host, one.node, one.cause, one.state, (one.until - world.now).total_seconds(), one.times)
        for one in world.look(hosts.list_rests)
    ]


def test_a_breaker_opens_rests_longer_with_each_refusal_and_is_closed_by_a_page(world):
    page = [("h.cn", "n1")]
    rested_s = 600.0
    for times in (1, 2, 3):
        world.rest("n1", refusal())
        world.do(hosts.close_breakers, page)  # a page that was in flight
        assert rests(world) == [("h.cn", "n1", "captcha", OPEN, rested_s, times)]
        world.pass_s(20)
        world.rest("n1", refusal())  # so was this one: not counted again
        world.pass_s(rested_s - 1)
        assert rests(world) == [("h.cn", "n1", "captcha", OPEN, 1.0, times)]
        shorter = refusal("forbidden", 0.1)  # it does not end the longer one
        world.rest("n1", shorter)
        world.pass_s(1)
        assert rests(world) == [("h.cn", "n1", "captcha", HALF_OPEN, 0.0, times)]
        rested_s *= 2
    world.do(hosts.close_breakers, page)
    assert rests(world) == []
    world.rest("n1", refusal())
    assert rests(world) == [("h.cn", "n1", "captcha", OPEN, 600.0, 1)]


def test_an_attempt_that_got_pages_closes_the_breakers_of_their_hosts(world):
    world.rest("n1", refusal(host=SITE))
    world.rest("n2", refusal(host=SITE))
    world.pass_s(600)
    again = refusal("forbidden", 60.0)
    assert world.close(world.begun(), Counters(offered=1), page_hosts=frozenset({SITE}), rests=(again,))
    assert rests(world) == [
        ("h.cn", "n1", "forbidden", OPEN, 60.0, 1),
        (SITE, "n2", "captcha", HALF_OPEN, 0.0, 1),
    ]


def test_the_first_pages_of_an_attempt_close_a_breaker_before_it_ends(world):
    world.rest("n1", refusal(host=SITE))
    world.pass_s(600)
    lease = world.begun()
    told = Renewal(lease, SILENT, Counters(tried=6), page_hosts=frozenset({SITE}))
    for one, is_kept in (
        (replace(told, page_hosts=frozenset()), True),
        (replace(told, lease=replace(lease, token="old")), False),
    ):
        assert world.do(leases.progress_many, [one]) == [is_kept]
        assert [state for *_, state, _, _ in rests(world)] == [HALF_OPEN]
    view = views(world)[SITE]
    assert (view.probing, view.resting, view.held) == ({"n1"}, frozenset(), {"n1": 1})
    assert world.do(leases.progress_many, [told]) == [True]
    assert rests(world) == []


def views(world, request_s=0.2):
    """The hosts of sites whose engine's host is engine.cn."""
    limits = {"engine.cn": Limits(per_address_per_s=4, total_per_s=16)}
    of_site = Limits(per_address_per_s=2, total_per_s=8)
    hosts_of, limits_of = lambda site: ("engine.cn", site), lambda host: limits.get(host, of_site)
    return world.host_views(hosts_of, limits_of, request_s)


@pytest.mark.parametrize(
    ("request_s", "room"),
    [
        (0.2, 4),  # 4 lanes would ask 20 a second, one address may 2: 8 in all are used up by 4
        (4.0, 8),  # 4 lanes ask once a second
    ],
)
def test_a_host_has_room_for_as_many_attempts_as_use_up_its_rate(world, request_s, room):
    pace = min(2.0, 4 / request_s)
    before = views(world, request_s)
    assert (before[SITE].room, before[SITE].address_limit) == (room, room // 4)
    assert before["engine.cn"].room == 16 / (pace / 11)  # one page in eleven is a result page
    assert before["engine.cn"].address_limit == 4 / (pace / 11)  # more would wait for each other's pages
    assert (before[SITE].pages_per_s, before[SITE].address_pages_per_s) == (8, 2)
    assert (before["engine.cn"].pages_per_s, before["engine.cn"].address_pages_per_s) == (16 * 11, 4 * 11)
    world.begun()
    after = views(world, request_s)
    assert after[SITE].room == room - 1
    assert after["engine.cn"].room == before["engine.cn"].room - 1
    world.pass_s(2)  # it is well under way, and still permits go unused: one more may try
    assert views(world, request_s)[SITE].address_limit == room // 4 + 1


def test_an_attempt_that_was_given_only_hits_asks_its_engine_nothing(world):
    def held():
        return [sum(views(world)[host].held.values()) for host in ("engine.cn", SITE)]

    lease, _ = world.found("特仑苏", [hit("1"), hit("2")])
    assert held() == [1, 1]  # over its whole time it asks for a result page
    world.close(lease)
    world.wake()
    world.admit()
    (follow_up,) = world.rows(subtasks, subtasks.c.state == State.WAIT)
    world.begin(follow_up.id)
    assert held() == [0, 1]
