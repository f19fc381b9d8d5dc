import subprocess
import sys
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from patience import PATIENCE_S

from tasks.scheduling import fluid
from tasks.scheduling.fluid import EARLY, Demand, divide


def demand(rates, pages, slots, per_s=(), alone=None, share=1.0):
    """Without limits of hosts where none are given.

    Args:
        per_s: of hosts, each with its sites.
        share: of the pages asked for that are collected.
    """
    rates = np.array(rates, float)
    return Demand(
        rates=rates,
        pages=np.array(pages, float),
        slots=np.array(slots, float),
        asks=rates / share,
        hosts=per_s,
        alone=np.full(np.shape(rates), inf)
        if alone is None
        else np.tile(np.array(alone, float)[:, None], len(rates[0])),
    )


def collected(wanted, seconds):
    return (seconds * wanted.rates).sum(axis=1)


def drained(wanted):
    """x of the first program."""
    program = fluid._LinearProgram(wanted, *fluid._columns(wanted))
    return program.drain()


some_rate = st.sampled_from([0.0, 0.1, 0.3, 0.7, 1.0, 1.5, 4.0])
some_limit = st.sampled_from([inf, 0.5, 1.0, 3.0])


@st.composite
def some_demand(draw):
    sites, nodes = draw(st.integers(1, 5)), draw(st.integers(1, 4))

    def listed(values, count):
        return draw(st.lists(values, min_size=count, max_size=count))

    return demand(
        [listed(some_rate, nodes) for _ in range(sites)],
        listed(st.integers(0, 500), sites),
        listed(st.integers(0, 4), nodes),
        draw(
            st.lists(
                st.tuples(st.lists(st.integers(0, sites - 1), unique=True), st.sampled_from([0.5, 1.0, 3.0])),
                max_size=3,
            )
        ),
        listed(some_limit, sites),
        draw(st.sampled_from([1.0, 0.6])),
    )


@pytest.mark.parametrize(
    ("wanted", "drain_s"),
    [
        (demand([[2.0]], [100], [5]), 10),  # pages / (rate x slots)
        (demand([[2.0, 1.0]], [120], [1, 2]), 30),  # rates of all nodes add up
        (demand([[1.0], [0.5]], [10, 10], [1]), 30),  # times of all sites add up
        (demand([[2.0, 0.1], [0.1, 2.0]], [20, 20], [1, 1]), 10),  # each to its best
        (demand([[2.0, 1.8], [1.9, 0.0]], [18, 19], [1, 1]), 10),  # the best leaves what others can do
        (demand([[1.0, 1.0]], [100], [10, 10], [([0], 4)]), 25),  # no more than its host may be asked for
        (
            demand([[1.0, 1.0]], [100], [10, 10], [([0], 4)], share=0.5),
            50,
        ),  # what is not collected was asked for
        (demand([[9.0, 9.0], [9.0, 9.0]], [60, 40], [9, 9], [([0, 1], 4)]), 25),  # two sites share a host
        (demand([[1.0, 1.0]], [100], [10, 10], alone=[2]), 25),  # no more than an address may
        (demand([[1.0, 0.0]], [100], [10, 10], alone=[2]), 50),
    ],
)
def test_small_cases_end_when_they_must(wanted, drain_s):
    assert divide(wanted).drain_s == pytest.approx(drain_s)


@given(
    rates=st.lists(st.lists(st.floats(0.1, 5), min_size=2, max_size=2), min_size=2, max_size=2),
    pages=st.lists(st.floats(1, 100), min_size=2, max_size=2),
)
def test_two_sites_on_two_nodes_end_as_early_as_any_division_does(rates, pages):
    """Brute force: of the first site a share u goes to the first node; the rest of its time serves the second site."""
    (a, b), (c, d) = rates
    best = inf
    for u in np.linspace(0, 1, 2001):
        first_s, second_s = u * pages[0] / a, (1 - u) * pages[0] / b
        # the second site fills both up to T: c (T - first_s) + d (T - second_s) = pages[1]
        end_s = (pages[1] + c * first_s + d * second_s) / (c + d)
        if end_s < first_s:
            end_s = max(first_s, second_s + pages[1] / d)
        elif end_s < second_s:
            end_s = max(second_s, first_s + pages[1] / c)
        best = min(best, end_s)
    found = divide(demand(rates, pages, [1, 1])).drain_s
    assert found <= best + 1e-6
    assert found >= best * 0.99


@given(some_demand())
def test_a_plan_keeps_all_bounds_and_collects_no_more_than_there_is(wanted):
    found = divide(wanted)
    most_s = EARLY * found.drain_s
    near = 1 + 1e-4
    assert np.all(found.seconds >= 0)
    assert np.all(found.seconds.sum(axis=0) <= wanted.slots * most_s * near + 1e-6)
    assert np.all(collected(wanted, found.seconds) <= wanted.pages * near + 1e-6)
    for places, per_s in wanted.hosts:
        assert (found.seconds * wanted.asks)[places].sum() <= per_s * most_s * near + 1e-6
    alone = np.minimum(wanted.alone, wanted.slots[None, :])
    assert np.all(found.seconds <= alone * most_s * near + 1e-6)


@given(some_demand())
def test_only_where_a_node_may_and_something_waits(wanted):
    found = divide(wanted).seconds
    assert not found[wanted.rates == 0].any()
    assert not found[wanted.pages == 0].any()
    assert not found[:, wanted.slots == 0].any()


@given(some_demand())
def test_by_half_time_at_least_as_much_is_collected_as_by_the_plan_that_only_ends_early(wanted):
    found = divide(wanted)
    assume(found.seconds.any())
    drain = drained(wanted)
    assert drain is not None
    site, node = fluid._columns(wanted)
    even = np.zeros(wanted.rates.shape)
    even[site, node] = drain[1]
    half = EARLY * collected(wanted, even).clip(max=wanted.pages).sum()
    assert collected(wanted, found.seconds).sum() >= half * (1 - 1e-5)


@given(some_demand())
def test_what_waits_ends_when_all_slots_work_as_planned(wanted):
    """The first program's x collects everything in T*, and less than T* does not do."""
    found = drained(wanted) if fluid._columns(wanted)[0].size else None
    assume(found is not None)
    drain_s, seconds = found
    site, node = fluid._columns(wanted)
    whole = np.zeros(wanted.rates.shape)
    whole[site, node] = seconds
    able = np.isin(np.arange(len(wanted.pages)), site)
    assert np.all(collected(wanted, whole)[able] >= wanted.pages[able] * (1 - 1e-6))
    fastest = (wanted.rates * np.minimum(wanted.alone, wanted.slots[None, :])).sum(axis=1)[able]
    assert drain_s >= (wanted.pages[able] / fastest).max() * (1 - 1e-6)
    for places, per_s in wanted.hosts:
        pages = wanted.pages[[place for place in places if able[place]]].sum()
        assert drain_s >= pages / per_s * (1 - 1e-6)  # each page collected was asked for


@pytest.mark.parametrize(
    "wanted",
    [
        demand([[1.0]], [0], [1]),
        demand([[0.0]], [10], [1]),
        demand([[1.0]], [10], [0]),
        demand([[1.0]], [10], [1], alone=[0]),
        demand(np.zeros((0, 3)), [], [1, 1, 1]),
    ],
)
def test_where_nothing_can_be_done_nothing_is_planned(wanted):
    found = divide(wanted)
    assert not found.seconds.any()
    assert found.drain_s == 0


@pytest.mark.parametrize("hopeless", [{"alone": [inf, 0]}, {}])
def test_a_site_that_nobody_can_crawl_does_not_spoil_the_plan_of_the_others(hopeless):
    rates = [[2.0, 1.0], [1.0, 1.0]] if hopeless else [[2.0, 1.0], [0.0, 0.0]]
    found = divide(demand(rates, [60, 10], [1, 1], **hopeless))
    assert found.drain_s == pytest.approx(20)
    assert found.seconds[0].tolist() == pytest.approx([10, 10])
    assert not found.seconds[1].any()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("limits", [False, True])
def test_looking_at_the_best_pairs_only_loses_next_to_nothing(monkeypatch, seed, limits):
    rng = np.random.default_rng(seed)
    sites, nodes = 40, 30
    wanted = demand(
        np.exp(rng.normal(0, 0.6, (sites, nodes))),
        np.exp(rng.normal(0, 1, sites)) * 1000,
        rng.integers(1, 5, nodes),
        [([site], per_s) for site, per_s in enumerate(rng.integers(3, 9, sites))] if limits else (),
    )
    monkeypatch.setattr(fluid, "_ALL_PAIRS", 10**9)
    of_all = divide(wanted)
    monkeypatch.setattr(fluid, "_ALL_PAIRS", 0)
    of_best = divide(wanted)
    assert np.count_nonzero(of_best.seconds) < sites * nodes / 5
    assert of_all.drain_s * (1 - 1e-6) <= of_best.drain_s <= of_all.drain_s * 1.01
    assert collected(wanted, of_best.seconds).sum() >= 0.985 * collected(wanted, of_all.seconds).sum()


def test_a_permit_is_worth_what_one_more_of_them_would_add():
    """One host, two nodes: its permits rule, and slots are worth nothing; without its limit it is the other way."""
    scarce = divide(demand([[1.0, 1.0]], [100], [4, 4], per_s=[((0,), 2.0)], share=0.5))
    assert scarce.permit_worth[0] == pytest.approx(
        0.5 - fluid.REQUEST_COST
    )  # half of the requests give a page
    assert scarce.slot_worth == pytest.approx([0.0, 0.0])
    roomy = divide(demand([[1.0, 0.5]], [100], [4, 4], per_s=[((0,), 1000.0)]))
    assert roomy.permit_worth == pytest.approx([0.0])
    cost = fluid.REQUEST_COST
    assert roomy.slot_worth == pytest.approx([1.0 - cost, 0.5 - 0.5 * cost])


def test_requests_to_a_host_without_a_limit_cost_nothing():
    """What yields most comes first, though each of its pages takes two requests."""
    rates = np.array([[1.0], [0.99]])
    free = demand(rates, [100, 100], [1])
    asks = rates * [[2.0], [1.0]]
    seconds = divide(replace(free, asks=asks)).seconds
    assert seconds[0, 0] > 90 > 10 > seconds[1, 0]
    limited = replace(free, asks=asks, hosts=[([0, 1], 1000.0)])
    assert divide(limited).seconds[1, 0] > 90


def test_of_two_nodes_that_collect_the_same_the_one_with_fewer_requests_is_taken():
    wanted = demand([[1.0, 1.0]], [2], [4, 4], per_s=[((0,), 4.0)])
    asks = np.array([[1.0, 3.0]])
    seconds = divide(
        Demand(**{name: getattr(wanted, name) for name in wanted.__slots__} | {"asks": asks})
    ).seconds
    assert seconds[0, 1] == pytest.approx(0.0, abs=1e-6)


def test_the_solver_prints_nothing(capfd):
    code = (
        "import numpy as np; from tasks.scheduling import fluid; one = np.ones((1, 1)); "
        "fluid.divide(fluid.Demand(rates=one, pages=one[0], slots=one[0], asks=one, hosts=[], alone=one))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)
    assert capfd.readouterr() == ("", "")
