"""Breakers in the store: opened by refusals, kept over restarts, half-open after the rest, closed by a page."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from world import SILENT, SITE, START, World, hit, host_views

from splitter.catalog.model import Limits
from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Breaker, BreakerState, Rest
from tasks.domain.grants import AddressGrants, Grants, HostGrants
from tasks.domain.states import State
from tasks.domain.views import HostView
from tasks.jobs import sweeps
from tasks.scheduling.capacity import HostCapacity
from tasks.store.queue import hosts, leases, nodes
from tasks.store.queue.leases import Renewal
from tasks.store.sql.database import Store
from tasks.store.sql.tables import host_rests, subtasks

NOTHING_KNOWN: Grants = {}


def refusal(cause: str = "captcha", first_s: float = 600.0, host: str = "h.cn") -> Rest:
    return Rest(host, cause, lambda times: first_s * 2 ** (times - 1))


def resting(world: World) -> dict[str, dict[str, float]]:
    """Return by host and node the seconds until an open breaker's rest is over."""
    found: dict[str, dict[str, float]] = {}
    for one in world.look(hosts.list_rests):
        if one.state is BreakerState.OPEN:
            found.setdefault(one.host, {})[one.node] = (one.until - world.now).total_seconds()
    return found


def probing(world: World) -> dict[str, dict[str, str]]:
    """Return by host and node the cause of a half-open breaker."""
    found: dict[str, dict[str, str]] = {}
    for one in world.look(hosts.list_rests):
        if one.state is BreakerState.HALF_OPEN:
            found.setdefault(one.host, {})[one.node] = one.cause
    return found


def test_a_refusal_opens_the_breaker_of_that_pair_alone(world: World) -> None:
    assert world.do(hosts.rest_host, "n1", refusal()) == 600.0
    assert resting(world) == {"h.cn": {"n1": 600.0}}
    assert probing(world) == {}
    until = START + timedelta(seconds=600)
    assert world.look(hosts.list_rests) == [
        Breaker(host="h.cn", node="n1", cause="captcha", state=BreakerState.OPEN, until=until, times=1)
    ]


def test_the_rest_ends_on_the_second_and_leaves_it_half_open(world: World) -> None:
    world.do(hosts.rest_host, "n1", refusal())
    world.pass_s(599)
    assert probing(world) == {}
    world.pass_s(1)
    assert resting(world) == {}
    assert probing(world) == {"h.cn": {"n1": "captcha"}}
    assert [one.state for one in world.look(hosts.list_rests)] == [BreakerState.HALF_OPEN]


def test_refusals_in_a_row_rest_longer_and_a_page_starts_anew(world: World) -> None:
    for expected_s in (600.0, 1200.0, 2400.0):
        assert world.do(hosts.rest_host, "n1", refusal()) == expected_s
        world.pass_s(expected_s)
    world.do(hosts.close_breakers, [("h.cn", "n1")])
    assert world.rows(host_rests) == []
    world.do(hosts.close_breakers, [("h.cn", "n1")])
    assert world.do(hosts.rest_host, "n1", refusal()) == 600.0


def test_requests_in_flight_count_as_one_refusal(world: World) -> None:
    world.do(hosts.rest_host, "n1", refusal())
    world.pass_s(20)
    assert world.do(hosts.rest_host, "n1", refusal()) == 600.0  # from the last refusal on
    (row,) = world.rows(host_rests)
    assert row.times == 1


def test_a_page_that_was_in_flight_closes_nothing(world: World) -> None:
    world.do(hosts.rest_host, "n1", refusal())
    world.do(hosts.close_breakers, [("h.cn", "n1")])
    assert resting(world) == {"h.cn": {"n1": 600.0}}


def test_an_attempt_that_got_pages_closes_the_breakers_of_their_hosts(world: World) -> None:
    world.do(hosts.rest_host, "n1", refusal(host=SITE))
    world.do(hosts.rest_host, "n2", refusal(host=SITE))
    world.pass_s(600)
    lease, _ = world.begin(world.waiting())
    again = refusal("forbidden", 60.0)
    assert world.close(lease, Counters(offered=1), page_hosts=frozenset({SITE}), rests=(again,))
    assert probing(world) == {SITE: {"n2": "captcha"}}
    assert resting(world) == {"h.cn": {"n1": 60.0}}


def test_the_first_pages_of_an_attempt_close_a_breaker_before_it_ends(world: World) -> None:
    world.do(hosts.rest_host, "n1", refusal(host=SITE))
    world.pass_s(600)
    lease, _ = world.begin(world.waiting())
    assert world.do(leases.progress_many, [Renewal(lease, SILENT, Counters(tried=3))]) == [True]
    assert probing(world) == {SITE: {"n1": "captcha"}}
    told = Renewal(lease, SILENT, Counters(tried=6), page_hosts=frozenset({SITE}))
    assert world.do(leases.progress_many, [replace(told, lease=replace(lease, token="old"))]) == [False]
    assert probing(world) == {SITE: {"n1": "captcha"}}
    assert world.do(leases.progress_many, [told]) == [True]
    assert probing(world) == {}


def test_allocation_sees_who_probes(world: World) -> None:
    world.do(hosts.rest_host, "n1", refusal(host=SITE))
    world.pass_s(600)
    world.begin(world.waiting())
    seen = world.look(host_views, world.context.hosts_of, world.context.hosts.limits, {}, 4, [SITE], {})
    assert seen[SITE].probing == {"n1"}
    assert seen[SITE].resting == frozenset()
    assert seen[SITE].held == {"n1": 1}


@pytest.mark.parametrize(
    ("request_s", "room"),
    [
        (0.2, 4),  # 4 lanes would ask 20 a second, one address may 2: 8 in all are used up by 4
        (4.0, 8),  # 4 lanes ask once a second
    ],
)
def test_a_host_has_room_for_as_many_attempts_as_use_up_its_rate(
    world: World, request_s: float, room: int
) -> None:
    limits = {"engine.cn": Limits(per_address_per_s=4, total_per_s=16)}
    of_site = Limits(per_address_per_s=2, total_per_s=8)

    def seen(grants: Grants = NOTHING_KNOWN) -> dict[str, HostView]:
        return world.look(
            host_views,
            lambda site: ("engine.cn", site),
            lambda host: limits.get(host, of_site),
            {SITE: request_s},
            4,
            [SITE],
            grants,
        )

    pace = min(2.0, 4 / request_s)
    before = seen()
    assert (before[SITE].room, before[SITE].address_limit) == (room, room // 4)
    assert before["engine.cn"].room == 16 / (pace / 11)  # one result page in so many pages
    assert before["engine.cn"].address_limit == 4 / (
        pace / 11
    )  # more would wait for each other's result pages
    assert (before[SITE].pages_per_s, before[SITE].address_pages_per_s) == (8, 2)
    assert (before["engine.cn"].pages_per_s, before["engine.cn"].address_pages_per_s) == (16 * 11, 4 * 11)
    world.begin(world.waiting())
    after = seen()
    assert after[SITE].room == room - 1
    assert after["engine.cn"].room == before["engine.cn"].room - 1
    world.pass_s(2)  # it is well under way, and still permits go unused: one more may try
    assert seen()[SITE].address_limit == room // 4 + 1


def test_capacity_is_what_hosts_grant_now(world: World) -> None:
    def seen(granted: HostGrants) -> HostView:
        grants = {SITE: granted}
        limits = Limits(per_address_per_s=2, total_per_s=8)
        of = (lambda site: (site, site), lambda _: limits, {SITE: 0.2}, 4, [SITE], grants)
        return world.look(host_views, *of)[SITE]

    assert seen(HostGrants(share=0.25)).room == 1
    assert seen(HostGrants(share=0.25)).pages_per_s == 2.0
    assert seen(HostGrants(next_s=6.0)).room == 0
    world.node("n1")
    address = nodes.Node("n1", frozenset(), 1).permit_address
    slow = seen(HostGrants(addresses={address: AddressGrants(share=0.25)}))
    assert (slow.shares, slow.waits_s, slow.room) == ({"n1": 0.25}, {}, 4)
    rests = seen(HostGrants(addresses={address: AddressGrants(next_s=60.0)}))
    assert rests.waits_s == {"n1": 60.0}
    assert HostCapacity([rests]).left_for([SITE], "n1") == 0
    assert HostCapacity([rests]).left_for([SITE], "n2") == 1


def test_one_site_that_answers_at_once_holds_back_no_other_of_its_engine(world: World) -> None:
    """What an attempt to come asks of the engine is the mean of its sites, not the fastest of them."""
    sites = [SITE, *(f"slow{n}.cn" for n in range(9))]
    limits = Limits(per_address_per_s=1000, total_per_s=10_000)

    def of_one_address(request_s: dict[str, float]) -> int | None:
        seen = world.look(
            host_views,
            lambda site: ("engine.cn", site),
            lambda _: limits,
            request_s,
            4,
            sites,
            {},
        )
        limit: int | None = seen["engine.cn"].address_limit
        return limit

    alike, one_fast = of_one_address({}), of_one_address({SITE: 0.01})
    assert alike is not None
    assert one_fast is not None
    assert one_fast > alike / 4  # its own attempts ask twenty times as fast


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["refuse", "page"]), st.integers(0, 1500)), max_size=12))
def test_times_count_the_refusals_since_the_last_page(
    sqlite_store: Store, story: list[tuple[str, int]]
) -> None:
    now, times, until = START, 0, START
    with sqlite_store.begin() as tx:
        tx.run("DELETE FROM host_rests")
    for what, passed_s in story:
        now += timedelta(seconds=passed_s)
        with sqlite_store.begin(now=now) as tx:
            if what == "refuse":
                times += until <= now
                until = max(until, now + timedelta(seconds=600 * 2 ** (times - 1)))
                assert hosts.rest_host(tx, "n1", refusal()) == (until - now).total_seconds()
            else:
                closes = times > 0 and until <= now
                hosts.close_breakers(tx, [("h.cn", "n1")])
                assert (hosts.list_rests(tx) == []) == (closes or times == 0)
                times = 0 if closes else times
            assert [b.times for b in hosts.list_rests(tx)] == ([times] if times else [])


def test_an_attempt_that_was_given_only_hits_asks_its_engine_nothing(world: World) -> None:
    engine, site = world.context.hosts_of(SITE)
    of = world.context.hosts_of, world.context.hosts.limits, {}, 4, [SITE], {}

    def held(host: str) -> int:
        return sum(world.look(host_views, *of)[host].held.values())

    lease, work = world.begin(world.waiting())
    assert (held(engine), held(site)) == (1, 1)
    world.read_results(lease, work.targets[0], [hit("1"), hit("2")])
    assert (held(engine), held(site)) == (1, 1)  # over its whole time it asks for a result page
    world.close(lease)
    world.sweep(sweeps.wake)
    world.sweep(sweeps.admit)
    (follow_up,) = world.rows(subtasks, subtasks.c.state == State.WAIT)
    world.begin(follow_up.id)
    assert (held(engine), held(site)) == (0, 1)
