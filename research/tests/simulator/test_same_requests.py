"""A simulated attempt and a node's own attempt ask the same host at the same times: lanes, permits, pace, refusals."""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush

import pytest

from research.simulator.hosts import Hosts
from research.simulator.outcome import Options
from research.simulator.simulate import simulate
from splitter.catalog.model import Limits
from tasks.domain.failures import ErrorClass, FetchError
from tests.worker.test_attempt import SEARCH, World, complaint, hit, result_page

PAGES, PER_S = 24, 2.0
REFUSED_AFTER = 7
REST_S = 300.0
"""A refused node asks again after it, in another attempt."""

SCENARIO = """
duration_s: 600
nodes: [{{name: a, slots: 4}}]
sites: [{{name: x, per_address_per_s: {per_s}, total_per_s: {per_s}}}]
pairs: [{{seconds_per_page: 0.1{pair}}}]
work: {{products: 1, hits: {{dist: constant, mean: {pages}}}}}
"""


class VirtualTime:
    """A clock that goes on to the next end of a sleep once everything else has happened."""

    def __init__(self):
        self.now = 0.0
        self._sleepers = []
        self._serial = 0

    def __call__(self):
        return self.now

    async def sleep(self, seconds):
        self._serial += 1
        awake = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self.now + seconds, self._serial, awake))
        await awake

    async def go_on(self, _attempt, writer, _lease):
        """Until nobody sleeps any more."""
        while True:
            for _ in range(3):  # what was stored answers, and may store more
                await writer.run(lambda _tx: None)
                for _ in range(20):
                    await asyncio.sleep(0)
            if not self._sleepers:
                return
            self.now, _, awake = heappop(self._sleepers)
            awake.set_result(None)


class Sent(list):
    """Addresses that were asked, and when those of pages were."""

    def __init__(self, clock):
        super().__init__()
        self.times = []
        self._clock = clock

    def append(self, url):
        super().append(url)
        if "/c/" in url:
            self.times.append(self._clock.now)


def real_times(url, answer):
    """When the node's attempt sends its requests for pages, from the first one on."""
    world = World(url)
    world.clock = world.web.clock = VirtualTime()
    limits = Limits(per_address_per_s=PER_S, total_per_s=PER_S)
    sites = {name: site.model_copy(update={"limits": limits}) for name, site in world.catalog.sites.items()}
    world.catalog = world.catalog.model_copy(update={"sites": sites})
    world.web.answers[SEARCH] = result_page(*(hit(n) for n in range(PAGES)))
    world.web.asked = asked = Sent(world.clock)
    for n in range(PAGES):
        world.web.answers[hit(n)] = answer(n)
    try:
        world.run(during=world.clock.go_on)
    finally:
        world.store.close()
    return [at - asked.times[0] for at in asked.times]


def simulated_times(scenario, monkeypatch, pair):
    """The same of the first attempt in the simulator."""
    times = []
    answers = Hosts.answers

    def noted(self, site, node, block, at_s):
        times.append(at_s)
        return answers(self, site, node, block, at_s)

    monkeypatch.setattr(Hosts, "answers", noted)
    text = SCENARIO.format(per_s=PER_S, pair=pair, pages=PAGES)
    simulate(scenario(text), "random", 1, Options(oracle=False, modification=False, recall=False))
    return [at - times[0] for at in times]


def test_answered_well(sqlite_url, scenario, monkeypatch):
    real = real_times(sqlite_url, lambda n: complaint(f"c{n}"))
    assert len(real) == PAGES
    assert simulated_times(scenario, monkeypatch, "") == pytest.approx(real, abs=0.06)


def test_refused(sqlite_url, scenario, monkeypatch):
    def answer(n):
        return complaint(f"c{n}") if n < REFUSED_AFTER else FetchError(ErrorClass.FORBIDDEN, "403")

    real = real_times(sqlite_url, answer)
    pair = f", block_after_pages: {REFUSED_AFTER}, block_window_s: 60, block_for_s: 3600"
    simulated = [at for at in simulated_times(scenario, monkeypatch, pair) if at < REST_S]
    assert REFUSED_AFTER < len(real) < PAGES, "it stops"
    assert simulated == pytest.approx(real, abs=0.06)


def test_faults_slow_both_down_alike(sqlite_url, scenario, monkeypatch):
    real = real_times(sqlite_url, lambda _: FetchError(ErrorClass.SERVER_ERROR, "500"))
    simulated = simulated_times(scenario, monkeypatch, ", completion: 0, fault: 1")[:PAGES]
    assert real[-1] > 1.5 * (PAGES - 1) / PER_S, "slower than the limit"
    assert simulated[-1] == pytest.approx(real[-1], rel=0.1)
