"""Send times: one contract for both keepers of them, and what Redis adds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from random import Random
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from splitter.catalog.model import Limits
from tasks.domain.breaker import LONGEST_ASKED_S
from tasks.domain.failures import ErrorClass
from tasks.domain.grants import AddressGrants
from tasks.fetching.pace import (
    NEW_ADDRESS,
    AnswerSample,
    address_pace_after,
    host_share,
)
from tasks.fetching.permits import (
    MAX_AHEAD_S,
    MOST_DEBT_S,
    LocalPermits,
    PermitBook,
    Permits,
    first_gap,
    spacings_s,
)
from tasks.fetching.redis_permits import RedisPermits
from tasks.fetching.thresholds import FLOOR, PROBE

START = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now

    def us(self) -> int:
        return round(self.now * 1e6)


Scenario = Callable[[Callable[[], Permits], Clock, str], Awaitable[None]]


@pytest.fixture(params=["local", pytest.param("redis", marks=pytest.mark.slow)])
def play(request) -> Callable[[Scenario], None]:
    """Runs a scenario with a maker of nodes' send times (all of one cluster), a clock and a host of its own."""

    def run(scenario: Scenario) -> None:
        async def local() -> None:
            clock = Clock()
            shared = LocalPermits(clock)
            await scenario(lambda: shared, clock, "h.cn")

        async def redis() -> None:
            clock = Clock()
            async with Redis.from_url(request.getfixturevalue("redis_url")) as client:
                await scenario(
                    lambda: RedisPermits(client, clock, redis_now_us=clock.us), clock, f"{uuid4().hex}.cn"
                )

        asyncio.run(local() if request.param == "local" else redis())

    return run


def in_any_10_s(times: list[float]) -> int:
    times = sorted(times)
    return max(sum(start <= t <= start + 10 for t in times[n:]) for n, start in enumerate(times))


def closest(times: list[float]) -> float:
    times = sorted(times)
    return min(b - a for a, b in pairwise(times))


def test_first_request_goes_at_once_and_one_address_keeps_its_spacing(play):
    async def scenario(node, clock, host):
        times, limits = node(), Limits(per_address_per_s=2, total_per_s=100)
        waits = [await times.reserve(host, "n1", limits) for _ in range(5)]
        assert waits == pytest.approx([n * 0.51 for n in range(5)], abs=1e-4)

    play(scenario)


def test_addresses_share_the_limit_of_the_host(play):
    async def scenario(node, clock, host):
        limits = Limits(per_address_per_s=4, total_per_s=4)
        waits = [await node().reserve(host, f"n{n}", limits) for n in range(5)]
        assert waits == pytest.approx([n * 0.255 for n in range(5)], abs=1e-4)

    play(scenario)


def test_gaps_between_the_times_of_one_address_are_given_to_others(play):
    async def scenario(node, clock, host):
        first, second, limits = node(), node(), Limits(per_address_per_s=1, total_per_s=4)
        mine = [await first.reserve(host, "n1", limits) for _ in range(3)]
        other = [await second.reserve(host, "n2", limits) for _ in range(3)]
        assert mine == pytest.approx([0, 1.02, 2.04], abs=1e-4)
        assert other == pytest.approx([0.255, 1.275, 2.295], abs=1e-4)

    play(scenario)


def test_hosts_do_not_wait_for_each_other(play):
    async def scenario(node, clock, host):
        times, limits = node(), Limits(per_address_per_s=0.1, total_per_s=0.1)
        assert await times.reserve(host, "n1", limits) == 0
        assert await times.reserve(f"x.{host}", "n1", limits) == 0

    play(scenario)


def test_time_that_passed_is_not_saved_up(play):
    async def scenario(node, clock, host):
        times, limits = node(), Limits(per_address_per_s=1, total_per_s=1)
        await times.reserve(host, "n1", limits)
        clock.now += 3600
        waits = [await times.reserve(host, "n1", limits) for _ in range(2)]
        assert waits == pytest.approx([0, 1.02], abs=1e-4)

    play(scenario)


def test_push_back_rests_one_address_and_reserves_nothing_meanwhile(play):
    async def scenario(node, clock, host):
        times, other, limits = node(), node(), Limits(per_address_per_s=1, total_per_s=10)
        await times.reserve(host, "n1", limits)
        await times.push_back(host, "n1", 300)
        for _ in range(3):  # asking again does not push the end of the rest further away
            assert await times.reserve(host, "n1", limits) == pytest.approx(300, abs=1e-4)
        assert await other.reserve(host, "n2", limits) < 1
        await times.push_back(host, "n1", 5)  # a shorter rest does not shorten the longer one
        assert await times.reserve(host, "n1", limits) == pytest.approx(300, abs=1e-4)
        clock.now += 300
        assert await times.reserve(host, "n1", limits) == pytest.approx(0, abs=1e-4)

    play(scenario)


def test_push_back_takes_back_times_not_yet_handed_out(play):
    async def scenario(node, clock, host):
        times, limits = node(), Limits(per_address_per_s=50, total_per_s=50)
        for _ in range(8):
            clock.now += await times.reserve(host, "n1", limits)
        await times.push_back(host, "n1", 10)
        assert await times.reserve(host, "n1", limits) == pytest.approx(10, abs=1e-4)

    play(scenario)


def test_no_time_is_kept_further_ahead_than_a_lease_bridges(play):
    async def scenario(node, clock, host):
        times, limits = node(), Limits(per_address_per_s=0.05, total_per_s=1)
        waits = [await times.reserve(host, "n1", limits) for _ in range(4)]
        assert waits == pytest.approx([0, 20.4, 40.8, 40.8], abs=1e-4)
        assert waits[2] > MAX_AHEAD_S

    play(scenario)


PAGE = AnswerSample(0.1)
TOO_OFTEN = AnswerSample(0.1, ErrorClass.RATE_LIMITED)
OVERLOADED = AnswerSample(0.1, ErrorClass.SERVER_ERROR, 7.0)


async def spacing_of(times: Permits, clock: Clock, host: str, address: str, limits: Limits) -> float:
    """Seconds between the send times that an address gets now; the first ones may be of an earlier pace."""
    for _ in range(20):
        clock.now += await times.reserve(host, address, limits)
    before = clock.now
    for _ in range(10):
        clock.now += await times.reserve(host, address, limits)
    return (clock.now - before) / 10


def test_a_refused_rate_slows_that_address_alone(play):
    async def scenario(node, clock, host):
        first, second, limits = node(), node(), Limits(per_address_per_s=10, total_per_s=1000)
        await first.observe(host, "n1", limits, TOO_OFTEN)
        assert await spacing_of(first, clock, host, "n1", limits) == pytest.approx(0.204, abs=1e-4)
        assert await spacing_of(second, clock, host, "n2", limits) == pytest.approx(0.102, abs=1e-4)
        assert await spacing_of(first, clock, f"x.{host}", "n1", limits) == pytest.approx(0.102, abs=1e-4)

    play(scenario)


def test_an_overload_of_the_host_slows_every_node(play):
    async def scenario(node, clock, host):
        first, second, limits = node(), node(), Limits(per_address_per_s=10, total_per_s=10)
        await first.observe(host, "n1", limits, OVERLOADED)
        assert await spacing_of(second, clock, host, "n2", limits) == pytest.approx(0.204, abs=1e-4)

    play(scenario)


def test_faults_of_one_address_leave_the_others_their_limits(play):
    async def scenario(node, clock, host):
        bad, good, limits = node(), node(), Limits(per_address_per_s=10, total_per_s=10)
        for _ in range(100):
            clock.now += await bad.reserve(host, "n1", limits)
            await bad.observe(host, "n1", limits, AnswerSample(0.1, ErrorClass.SERVER_ERROR))
            clock.now += await good.reserve(host, "n2", limits)
            await good.observe(host, "n2", limits, PAGE)
        assert await spacing_of(good, clock, host, "n2", limits) == pytest.approx(0.102, abs=1e-4)
        assert await spacing_of(bad, clock, host, "n1", limits) == pytest.approx(0.408, abs=1e-3)
        granted = (await good.get_grants([host, f"x.{host}"]))[host]
        assert (granted.share, granted.grant_for("n1").share, granted.grant_for("n2")) == (
            1.0,
            0.25,
            AddressGrants(),
        )

    play(scenario)


def test_the_scheduler_is_told_what_permits_are_granted_by(play):
    async def scenario(node, clock, host):
        first, second, limits = node(), node(), Limits(per_address_per_s=10, total_per_s=10)
        assert await first.get_grants([host]) == {}
        await first.observe(host, "n1", limits, OVERLOADED)
        await first.push_back(host, "n1", 30.0)
        for _ in range(3):
            await second.reserve(host, "n2", limits)
        granted = (await second.get_grants([host]))[host]
        assert granted.share == 0.5
        assert granted.next_s == pytest.approx(0.408, abs=1e-3)
        assert granted.grant_for("n1").next_s == pytest.approx(30.0, abs=1e-3)
        assert granted.grant_for("n1").share == pytest.approx(0.25)  # refused its rate, and faults
        assert granted.grant_for("n3") == AddressGrants()

    play(scenario)


def test_an_address_that_was_refused_for_its_frequency_stays_below_it_alone(play):
    async def scenario(node, clock, host):
        first, second, limits = node(), node(), Limits(per_address_per_s=2, total_per_s=20)
        for _ in range(30):  # 15 s at its limit
            clock.now += await first.reserve(host, "n1", limits)
            await first.observe(host, "n1", limits, PAGE)
        await first.observe(host, "n1", limits, AnswerSample(0.1, ErrorClass.FORBIDDEN))
        share = (await second.get_grants([host]))[host].grant_for("n1").share
        assert FLOOR < share < 30 / 15 / 2
        assert await spacing_of(first, clock, host, "n1", limits) == pytest.approx(0.51 / share, rel=0.01)
        assert await spacing_of(second, clock, host, "n2", limits) == pytest.approx(0.51, rel=0.01)
        assert (await second.get_grants([host]))[host].grant_for("n2").share == 1.0

    play(scenario)


def test_a_milder_host_is_noticed(play):
    async def scenario(node, clock, host):
        times, limits = node(), Limits(per_address_per_s=2, total_per_s=20)
        for _ in range(30):
            clock.now += await times.reserve(host, "n1", limits)
            await times.observe(host, "n1", limits, PAGE)
        await times.observe(host, "n1", limits, AnswerSample(0.1, ErrorClass.FORBIDDEN))
        shares = [(await times.get_grants([host]))[host].grant_for("n1").share]
        while shares[-1] < 1.0 and clock.now < START + 3600:
            clock.now += await times.reserve(host, "n1", limits)
            await times.observe(host, "n1", limits, PAGE)
            await times.reserve(f"x.{host}", "n1", limits)
            shares.append((await times.get_grants([host]))[host].grant_for("n1").share)
        assert shares[-1] == 1.0
        assert all(later <= PROBE * sooner + 1e-6 for sooner, later in pairwise(shares))
        assert clock.now - START > 120  # step by step

    play(scenario)


def test_nothing_goes_before_what_retry_after_asks(play):
    async def scenario(node, clock, host):
        times, limits = node(), Limits(per_address_per_s=10, total_per_s=10)
        await times.observe(host, "n1", limits, OVERLOADED)
        assert await times.reserve(host, "n1", limits) == pytest.approx(7, abs=1e-4)
        await times.observe(host, "n1", limits, AnswerSample(0.1, ErrorClass.RATE_LIMITED, 1e12))
        assert await times.reserve(host, "n1", limits) == pytest.approx(LONGEST_ASKED_S, abs=1e-3)

    play(scenario)


def test_good_answers_bring_the_configured_pace_back_and_no_more(play):
    async def scenario(node, clock, host):
        nodes, limits = {f"n{n}": node() for n in range(2)}, Limits(per_address_per_s=10, total_per_s=10)
        for name, times in nodes.items():
            await times.observe(host, name, limits, OVERLOADED)
        clock.now += 7
        spacings = []
        for _ in range(200):
            for name, times in nodes.items():
                clock.now += await times.reserve(host, name, limits)
                await times.observe(host, name, limits, PAGE)
            spacings.append(await spacing_of(nodes["n0"], clock, host, "n0", limits))
        assert spacings[0] > 0.25
        assert all(later <= sooner + 1e-4 for sooner, later in pairwise(spacings))
        assert spacings[-1] == pytest.approx(0.102, abs=1e-4)

    play(scenario)


@pytest.mark.parametrize("seed", range(3))
def test_many_nodes_stay_below_the_limits_and_use_most_of_them(play, seed):
    async def scenario(node, clock, host):
        chance, limits = Random(seed), Limits(per_address_per_s=3, total_per_s=10)
        nodes = {f"n{n}": node() for n in range(5)}
        ready = dict.fromkeys(nodes, START)
        sent: dict[str, list[float]] = {name: [] for name in nodes}
        while min(ready.values()) < START + 30:
            name = min(ready, key=ready.__getitem__)
            clock.now = ready[name]
            at = clock.now + await nodes[name].reserve(host, name, limits)
            sent[name].append(at)
            # Most ask again at once, some take their time, so that held times go stale.
            ready[name] = max(at, clock.now) + (chance.random() if chance.random() < 0.05 else 0)
        everything = [at for times in sent.values() for at in times]
        assert in_any_10_s(everything) <= 101
        assert all(in_any_10_s(times) <= 31 for times in sent.values())
        assert len([at for at in everything if at < START + 30]) >= 0.9 * 300

    play(scenario)


@pytest.mark.parametrize(("own", "total"), [(20, 50), (3, 50), (2, 5), (20, 130)])
def test_lanes_of_many_nodes_leave_no_gaps_too_small_to_use(play, own, total):
    async def scenario(node, clock, host):
        chance, limits = Random(1), Limits(per_address_per_s=own, total_per_s=total)
        nodes = [node() for _ in range(8)]
        lanes = [(START + chance.random() / 10, number % 8) for number in range(32)]
        sent: list[list[float]] = [[] for _ in nodes]
        while min(lanes)[0] < START + 20:
            ready, number = lanes.pop(lanes.index(min(lanes)))
            clock.now = max(clock.now, ready)
            at = clock.now + await nodes[number].reserve(host, f"n{number}", limits)
            sent[number].append(at)
            lanes.append((at + chance.uniform(0.02, 0.08), number))
        everything = [at for times in sent for at in times]
        assert in_any_10_s(everything) <= 10 * total + 1
        assert all(in_any_10_s(times) <= 10 * own + 1 for times in sent)
        assert len([at for at in everything if at < START + 20]) >= 0.96 * 20 * min(total, 8 * own)

    play(scenario)


@given(
    st.lists(st.integers(1, 40), max_size=12, unique=True),
    st.integers(0, 40),
    st.integers(1, 5),
)
def test_first_gap_is_free_and_the_first(granted, earliest, spacing):
    granted.sort()
    at = first_gap([float(t) for t in granted], float(earliest), float(spacing))
    free = [t for t in range(earliest, 200) if all(abs(t - taken) >= spacing for taken in granted)]
    assert at == free[0]


@given(
    st.floats(0.1, 20),
    st.floats(0.1, 50),
    st.lists(st.tuples(st.integers(0, 3), st.floats(0, 2)), min_size=2, max_size=60),
)
def test_local_times_keep_both_spacings(own, total, asked):
    async def run() -> dict[str, list[float]]:
        clock, limits = Clock(), Limits(per_address_per_s=own, total_per_s=total)
        times = LocalPermits(clock)
        sent: dict[str, list[float]] = {}
        for node, passed_s in asked:
            clock.now += passed_s
            wait_s = await times.reserve("h.cn", f"n{node}", limits)
            if wait_s <= MAX_AHEAD_S:
                sent.setdefault(f"n{node}", []).append(clock.now + wait_s)
        return sent

    sent = asyncio.run(run())
    between_own_s, between_all_s = spacings_s(Limits(per_address_per_s=own, total_per_s=total))
    everything = [at for times in sent.values() for at in times]
    assert len(everything) < 2 or closest(everything) >= between_all_s - 1e-6
    for times in sent.values():
        assert len(times) < 2 or closest(times) >= between_own_s - MOST_DEBT_S - 1e-6
        assert in_any_10_s(times) <= 10 * own + 1


def test_local_times_forget_hosts_of_the_past():
    times, limits = PermitBook(), Limits(per_address_per_s=1, total_per_s=1)
    for n in range(5000):
        times.reserve(f"h{n}.cn", "n1", limits, n * 0.01)
    assert len(times) < 2500


def test_local_times_remember_what_a_host_bears_over_its_rest():
    times, limits = PermitBook(), Limits(per_address_per_s=1, total_per_s=1)
    for n in range(20):
        times.observe("strict.cn", "n1", limits, PAGE, float(n))
    times.observe("strict.cn", "n1", limits, AnswerSample(0.1, ErrorClass.CAPTCHA), 20.0)
    share = times.get_grants(["strict.cn"], 20.0)["strict.cn"].grant_for("n1").share
    for n in range(5000):
        times.reserve(f"h{n}.cn", "n1", limits, 20.0 + n)
    assert times.get_grants(["strict.cn"], 5020.0)["strict.cn"].grant_for("n1").share == share < 1.0


def test_local_times_remember_a_host_in_trouble():
    async def run() -> float:
        clock = Clock()
        times, limits = LocalPermits(clock), Limits(per_address_per_s=10, total_per_s=10)
        await times.observe("slow.cn", "n1", limits, TOO_OFTEN)
        for n in range(5000):
            clock.now += 0.01
            await times.reserve(f"h{n}.cn", "n1", limits)
        await times.reserve("slow.cn", "n1", limits)
        return await times.reserve("slow.cn", "n1", limits)

    assert asyncio.run(run()) == pytest.approx(0.204, abs=1e-4)


def with_redis(redis_url: str, scenario: Callable[[Redis, str], Awaitable[None]]) -> None:
    async def run() -> None:
        async with Redis.from_url(redis_url) as client:
            await scenario(client, f"{uuid4().hex}.cn")

    asyncio.run(run())


def commands_of(client) -> list[str]:
    """The commands that this client sends from now on; a server counts those of others, too."""
    sent, ask = [], client.execute_command

    async def execute(*words, **options):
        sent.append(words[0])
        return await ask(*words, **options)

    client.execute_command = execute
    return sent


def test_redis_is_asked_for_several_times_at_once(redis_url):
    async def scenario(client, host):
        clock, limits = Clock(), Limits(per_address_per_s=100, total_per_s=100)
        times = RedisPermits(client, clock, redis_now_us=clock.us)
        sent = commands_of(client)
        for _ in range(100):
            clock.now += await times.reserve(host, "n1", limits)
        assert 1 <= sent.count("EVALSHA") <= 10
        assert clock.now - START == pytest.approx(99 * 0.0102, abs=1e-3)

    with_redis(redis_url, scenario)


def test_ordinary_answers_do_not_ask_redis(redis_url):
    async def scenario(client, host):
        clock, limits = Clock(), Limits(per_address_per_s=100, total_per_s=100)
        times = RedisPermits(client, clock, redis_now_us=clock.us)
        sent = commands_of(client)
        await times.reserve(host, "n1", limits)
        reserved = len(sent)
        for error in (None, ErrorClass.NOT_FOUND, None, ErrorClass.SERVER_ERROR, None) * 20:
            await times.observe(host, "n1", limits, AnswerSample(0.1, error))
        assert len(sent) == reserved > 0

    with_redis(redis_url, scenario)


@pytest.mark.parametrize("seed", range(5))
def test_redis_keeps_the_pace_of_the_law(redis_url, seed):
    """Two processes: the host's share in Redis is that of the pure law over what its addresses told last."""

    async def scenario(client, host):
        chance, clock = Random(seed), Clock()
        limits = Limits(per_address_per_s=20, total_per_s=20)
        nodes = {name: RedisPermits(client, clock, redis_now_us=clock.us) for name in ("n1", "n2")}
        known = dict.fromkeys(nodes, NEW_ADDRESS)
        failing = AnswerSample(0.1, ErrorClass.SERVER_ERROR, 0.0)
        refused = AnswerSample(0.1, ErrorClass.FORBIDDEN)
        for _ in range(300):
            clock.now += chance.expovariate(1.0)
            name = chance.choice(list(nodes))
            answer = chance.choices((PAGE, failing, refused), (0.67, 0.3, 0.03))[0]
            known[name] = address_pace_after(known[name], answer, clock.now, 1 / 20)
            await nodes[name].observe(host, name, limits, answer)
            for each, times in nodes.items():
                await times.push_back(host, each, 0.0)  # nothing reserved at an earlier pace is left
                await times.reserve(host, each, limits)
            granted = (await nodes["n1"].get_grants([host])).get(host)
            share = host_share(known.values(), clock.now)
            assert granted is not None
            assert granted.share == pytest.approx(share)
            assert granted.grant_for("n1").share == pytest.approx(known["n1"].share(share))
        assert any(one.faults.share < 1 for one in known.values())
        assert any(one.threshold.share < 1 for one in known.values())

    with_redis(redis_url, scenario)


def test_redis_waiters_of_one_process_share_a_round_trip(redis_url):
    async def scenario(client, host):
        clock, limits = Clock(), Limits(per_address_per_s=10, total_per_s=10)
        times = RedisPermits(client, clock, redis_now_us=clock.us)
        waits = await asyncio.gather(*(times.reserve(host, "n1", limits) for _ in range(10)))
        assert waits == pytest.approx([n * 0.102 for n in range(10)], abs=1e-4)

    with_redis(redis_url, scenario)


def test_held_times_that_went_stale_are_not_used(redis_url):
    async def scenario(client, host):
        clock, limits = Clock(), Limits(per_address_per_s=10, total_per_s=10)
        times = RedisPermits(client, clock, redis_now_us=clock.us)
        for _ in range(4):
            clock.now += await times.reserve(host, "n1", limits)
        clock.now += 60
        waits = [await times.reserve(host, "n1", limits) for _ in range(3)]
        assert waits == pytest.approx([0, 0.102, 0.204], abs=1e-4)

    with_redis(redis_url, scenario)


def test_redis_keeps_its_own_time_and_forgets(redis_url):
    async def scenario(client, host):
        clock, limits = Clock(), Limits(per_address_per_s=1, total_per_s=2)
        times = RedisPermits(client, clock)
        assert await times.reserve(host, "n1", limits) == 0
        assert 0.5 < await times.reserve(host, "n1", limits) <= 1.02
        keys = [key async for key in client.scan_iter(f"*{host}*")]
        assert len(keys) == 2
        assert all([0 < await client.ttl(key) <= 70 for key in keys])

    with_redis(redis_url, scenario)
