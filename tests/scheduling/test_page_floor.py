"""Which nodes a host's permits go to, what these are worth, and when an attempt ends early: the floor of a lease."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.domain.pair_stats import PairStats
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.decision import AllocationSettings, Prices, Ruling, as_detail
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.statistics import Knowledge

NODES = ("good", "fair", "poor")
CHANCES = {"good": 0.95, "fair": 0.9, "poor": 0.2}


def decide(*, total_per_s: float, address_per_s: float, free: dict[str, int], seed: int = 0, explain=True):
    """Who is given subtasks of one site, all nodes well known; the host grants so much."""
    knowledge = Knowledge()
    for name, chance in CHANCES.items():
        tried = 400.0
        seen = PairStats(
            attempts=40, offered=tried, tried=tried, collected=chance * tried, active_s=0.3 * tried
        )
        knowledge.put("site", name, seen, 0.0)
    host = HostFacts(host="site", room=9, pages_per_s=total_per_s, address_pages_per_s=address_per_s)
    nodes = [NodeFacts(name, frozenset({"meta"}), free.get(name, 0), 4) for name in NODES]
    ready = ReadyQueue(nodes, {"site": host})
    for number in range(30):
        ready.put(SubtaskFacts(id=number, site="site", kind="meta", hosts=("site",), left=20, priority=0))
    strategy = ALLOCATION["feedback"](AllocationSettings())
    return strategy.decide(ready, knowledge, 0.0, Random(seed), explain=explain)


def test_where_one_address_uses_up_a_host_a_poor_node_gets_none_of_its_permits():
    assert decide(total_per_s=2, address_per_s=2, free={"poor": 3}) == []
    assert decide(total_per_s=2, address_per_s=2, free={"fair": 1})  # nearly as good as the best


def test_where_there_are_permits_for_all_a_poor_node_helps():
    assert len(decide(total_per_s=6, address_per_s=2, free={"poor": 1})) == 1
    assert decide(total_per_s=4, address_per_s=2, free={"poor": 1}) == []


@pytest.mark.parametrize("seed", range(5))
def test_a_better_node_that_is_too_slow_to_take_the_work_keeps_nobody_from_it(seed):
    """Else the last pages of a site would wait for ever: one node may not, and the other does not want to."""
    knowledge = Knowledge()
    for name, chance, seconds in (("slow", 0.97, 0.9), ("fast", 0.6, 0.05)):
        seen = PairStats(attempts=40, offered=400, tried=400, collected=chance * 400, active_s=seconds * 400)
        knowledge.put("site", name, seen, 0.0)
    host = HostFacts(host="site", room=9, pages_per_s=2.0, address_pages_per_s=2.0)
    nodes = [NodeFacts(name, frozenset({"meta"}), 4, 4) for name in ("slow", "fast")]
    ready = ReadyQueue(nodes, {"site": host})
    ready.put(SubtaskFacts(id=1, site="site", kind="meta", hosts=("site",), left=2, priority=0))
    strategy, given = ALLOCATION["feedback"](AllocationSettings()), []
    for turn in range(3):
        given += strategy.decide(ready, knowledge, float(turn), Random(seed))
    assert len(given) == 1


def test_an_attempt_ends_early_where_another_node_would_do_better():
    (given_to_good,) = decide(total_per_s=2, address_per_s=2, free={"good": 1})
    assert given_to_good.floor.least_share == pytest.approx(0.8 * 0.9, abs=0.05)
    assert not given_to_good.floor.is_missed(6, 2)  # it is known well: a bad moment ends nothing
    assert given_to_good.floor.is_missed(300, 0)
    (helper,) = decide(total_per_s=6, address_per_s=2, free={"poor": 1})
    assert helper.floor == NO_FLOOR


def test_where_a_host_rations_requests_its_permits_have_a_price_and_slots_have_none():
    (scarce,) = decide(total_per_s=2, address_per_s=2, free={"good": 1})
    assert scarce.prices.slot == pytest.approx(0.0, abs=1e-6)
    assert scarce.prices.ruled == Ruling.PERMITS
    assert 0.8 < scarce.prices.permit < 1.0  # what a request of the best node gives, less its cost
    assert scarce.prices.page_chance == pytest.approx(CHANCES["good"], abs=0.02)
    (roomy, *_) = decide(total_per_s=1000, address_per_s=500, free={"good": 1})
    assert roomy.prices.permit == pytest.approx(0.0, abs=1e-6)
    assert roomy.prices.slot > 1.0
    assert roomy.prices.ruled == Ruling.SLOTS


def test_prices_are_for_people_who_ask_why():
    (given_to_good,) = decide(total_per_s=2, address_per_s=2, free={"good": 1}, explain=False)
    assert given_to_good.prices is None


def test_what_is_written_of_each_decision_is_short():
    prices = as_detail(Prices(page_chance=2 / 3, permit=1 / 7, slot=0.0, ruled=Ruling.PERMITS))
    assert prices == {"page_chance": 0.6667, "permit": 0.1429, "slot": 0.0, "ruled": "permits"}
    assert as_detail(PageFloor(0.7, 1.23456)) == {"least_share": 0.7, "slack": 1.235}


@given(st.floats(1e-6, 1.0), st.floats(0.0, 1e6))
@example(0.01, 1.4)  # 0.01 * 140 is 1.4000000000000001
@example(0.01, 0.29)  # 0.29 / 0.01 is 28.999999999999996, and 0.01 * 29 is 0.29
def test_how_many_tries_without_a_page_a_floor_bears(least, slack):
    floor = PageFloor(least, slack)
    assert floor.is_missed(floor.tries_without_page, 0)
    assert not floor.is_missed(floor.tries_without_page - 1, 0)


@given(st.integers(1, 100), st.integers(1, 10_000))
def test_a_floor_of_hundredths_bears_as_many_tries_as_it_says(hundredths, tries):
    """Here the quotient is a whole number, and rounding decides."""
    floor = PageFloor(hundredths / 100, hundredths * tries / 100)
    assert floor.is_missed(floor.tries_without_page, 0)
    assert not floor.is_missed(floor.tries_without_page - 1, 0)


def test_a_pair_that_nothing_is_known_of_ends_after_two_failures():
    floor = PageFloor.for_beta(1.2, 0.8, 0.7)
    assert [floor.is_missed(tries, 0) for tries in (0, 1, 2)] == [False, False, True]
    assert [floor.is_missed(tries, tries - 1) for tries in (1, 2, 3, 9)] == [False] * 4


@given(st.floats(0.01, 50), st.floats(0.01, 50), st.floats(0.01, 0.99), st.integers(2, 60), st.data())
def test_it_is_missed_where_the_mean_of_what_is_believed_falls_below(a, b, least, tries, data):
    pages = data.draw(st.integers(0, tries))
    mean = (a + pages) / (a + b + tries)
    floor = PageFloor.for_beta(a, b, least)
    if mean > least + 1e-6 or pages >= tries - 1:
        assert not floor.is_missed(tries, pages) or least * tries - pages > least
    if a >= least * (a + b) + least and mean < least - 1e-6:
        assert floor.is_missed(tries, pages)


def test_without_a_floor_nothing_ends_early():
    assert not NO_FLOOR.is_missed(1000, 0)
    assert NO_FLOOR.tries_without_page is None
