import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.domain.pair_stats import SUMS, AttemptOutcome, AttemptResult, PairStats
from tasks.scheduling.statistics import Knowledge

HALF_LIFE_S, MEMORY = 900.0, 30.0
NAMES = [f"x{number}" for number in range(12)]

results = st.builds(
    lambda site, node, outcome, counts, active, lost: AttemptResult(
        site=site,
        node=node,
        outcome=outcome,
        offered=sum(counts),
        tried=sum(counts[:2]),
        collected=counts[0],
        active_s=active,
        lost_s=lost,
    ),
    st.sampled_from(NAMES),
    st.sampled_from(NAMES[:5]),
    st.sampled_from(AttemptOutcome),
    st.tuples(*[st.integers(0, 50)] * 3),
    st.floats(0, 1e3),
    st.floats(0, 60),
)
steps_s = st.floats(0, 5_000) | st.sampled_from([0.0, 1e5, 4.4e5, 4.6e5, 1e7])
"""Seconds between attempts; 450,000 are 500 half-lives, where the moment of the sums is moved."""


def knowledge():
    return Knowledge(HALF_LIFE_S, MEMORY)


def attempt(outcome, **counts):
    return AttemptResult(site="s", node="n", outcome=outcome, **counts)


@given(
    begin_s=st.sampled_from([0.0, 1.7e9]),
    closed=st.lists(st.tuples(results, steps_s), max_size=40),
    later_s=st.floats(0, 1e4),
)
def test_folding_is_fading_remembering_and_folding_one_by_one(begin_s, closed, later_s):
    known, expected, written, now_s = knowledge(), {}, {}, begin_s
    for result, step_s in closed:
        now_s += step_s
        pair = result.site, result.node
        old = expected.get(pair, PairStats()).fade(now_s - written.get(pair, now_s), HALF_LIFE_S)
        expected[pair], written[pair] = old.with_attempt(result, MEMORY), now_s
        known.fold(result, now_s)
    now_s += later_s
    for pair, stats in expected.items():
        faded = stats.fade(now_s - written[pair], HALF_LIFE_S)
        assert known.pair(*pair, now_s).values() == pytest.approx(faded.values(), rel=1e-9, abs=1e-100)


@given(
    sums=st.lists(st.floats(0, 1e9), min_size=8, max_size=8),
    at_s=st.floats(0, 2e9),
    other_s=st.floats(0, 2e9),
)
def test_what_is_put_comes_back(sums, at_s, other_s):
    known = knowledge()
    known.put("other", "n", PairStats.unpack(sums), other_s)
    known.put("s", "n", PairStats.unpack(sums), at_s)
    assert known.pair("s", "n", at_s).values() == pytest.approx(sums, rel=1e-9, abs=1e-9)


def test_rows_put_in_any_order_weigh_by_their_age():
    """A pair that nobody crawled for weeks says nothing, whichever row is read first."""
    now_s, half = 5000 * HALF_LIFE_S, 1.0 * HALF_LIFE_S
    for order in (1, -1):
        known = knowledge()
        for age_s in [0.0, half, 3000 * HALF_LIFE_S][::order]:
            known.put(f"s{age_s}", "n", PairStats.unpack([80.0] * 8), now_s - age_s)
        assert known.pair("s0.0", "n", now_s).attempts == pytest.approx(80)
        assert known.pair(f"s{half}", "n", now_s).attempts == pytest.approx(40)
        assert known.pair(f"s{3000 * HALF_LIFE_S}", "n", now_s).attempts == pytest.approx(0, abs=1e-9)


def test_putting_replaces():
    known = knowledge()
    known.fold(attempt(AttemptOutcome.SUCCEEDED, offered=9, tried=9, collected=9), 0.0)
    known.put("s", "n", PairStats(attempts=1, offered=5), 10.0)
    assert known.pair("s", "n", 10.0) == PairStats(attempts=1, offered=5)


def test_nothing_is_known_of_strangers():
    known = knowledge()
    known.fold(attempt(AttemptOutcome.FAILED, offered=9), 0.0)
    assert known.pair("s", "m", 0.0) == PairStats()
    assert known.pair("t", "n", 0.0) == PairStats()
    assert list(known.list_pairs(0.0)) == [("s", "n")]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 70), st.integers(0, 40)), unique=True, min_size=1, max_size=80))
def test_the_arrays_grow_with_names_and_lose_nothing(pairs):
    known = knowledge()
    for site, node in pairs:
        known.put(f"s{site}", f"n{node}", PairStats(attempts=1000 * site + node + 1), 0.0)
    assert {pair: stats.attempts for pair, stats in known.list_pairs(0.0).items()} == {
        (f"s{site}", f"n{node}"): 1000 * site + node + 1 for site, node in pairs
    }
    sums = known.sums(0.0)
    assert sums.shape == (len(known.sites), len(known.nodes), len(SUMS))
    assert np.count_nonzero(sums) == len(pairs)


@given(st.lists(results, min_size=1, max_size=30))
def test_sums_over_an_axis_are_the_sums_of_its_pairs(closed):
    known = knowledge()
    for second, result in enumerate(closed):
        known.fold(result, float(second))
    sums, pairs = known.sums(100.0), known.list_pairs(100.0)
    for site, i in known.sites.items():
        of_site = sum((stats for pair, stats in pairs.items() if pair[0] == site), PairStats())
        assert of_site.values() == pytest.approx(sums.sum(axis=1)[i].tolist())
        assert of_site.values() == pytest.approx(known.site(site, 100.0).values())
    for node, j in known.nodes.items():
        of_node = sum((stats for pair, stats in pairs.items() if pair[1] == node), PairStats())
        assert of_node.values() == pytest.approx(sums.sum(axis=0)[j].tolist())


def test_a_site_after_a_year_is_as_faded_as_its_pairs():
    known, year_s = knowledge(), 365 * 86_400.0
    known.fold(attempt(AttemptOutcome.SUCCEEDED, offered=9, tried=9, collected=9), 0.0)
    assert known.site("s", year_s).tried == pytest.approx(0.0)


@pytest.mark.parametrize(("half_life_s", "memory"), [(0, 60), (-1, 60), (900, 1)])
def test_settings_that_make_no_sense_are_refused(half_life_s, memory):
    with pytest.raises(ValueError, match="half_life_s must be positive and memory above 1"):
        Knowledge(half_life_s, memory)


def test_a_busy_pair_is_known_by_its_last_attempts():
    known = knowledge()
    for stored in (9, 0):
        for _ in range(200):
            known.fold(attempt(AttemptOutcome.SUCCEEDED, offered=9, tried=9, collected=stored), 0.0)
    stats = known.pair("s", "n", 0.0)
    assert 0.8 * MEMORY < stats.attempts < MEMORY
    assert stats.collected < 0.02 * stats.offered


def test_what_running_attempts_reported_counts_until_it_is_replaced():
    seen = knowledge()
    seen.fold(attempt(AttemptOutcome.SUCCEEDED, offered=4, tried=4, collected=4), 0.0)
    running = [
        attempt(AttemptOutcome.RELEASED, offered=9, tried=3, collected=1, active_s=2.0),
        AttemptResult(site="s", node="new", outcome=AttemptOutcome.RELEASED, offered=2, tried=2, collected=2),
    ]
    seen.set_running(running)
    pair = seen.pair("s", "n", 0.0)
    assert (pair.attempts, pair.offered, pair.tried, pair.collected, pair.active_s) == (2, 7, 7, 5, 2.0)
    assert seen.site("s", 0.0).tried == 9
    assert seen.list_pairs(0.0)["s", "new"].collected == 2
    assert seen.sums(0.0)[..., SUMS.index("tried")].sum() == 9
    assert seen.pages_tried == 9
    # One of them closes: folded in once, and no longer among those that run.
    seen.fold(attempt(AttemptOutcome.SUCCEEDED, offered=9, tried=9, collected=5), 0.0)
    seen.set_running(running[1:])
    assert seen.pair("s", "n", 0.0).tried == pytest.approx(
        4 * (1 - 1 / MEMORY) + 9, rel=0.01
    )  # nothing changed
    seen.set_running([])
    assert seen.pair("s", "new", 0.0) == PairStats()
