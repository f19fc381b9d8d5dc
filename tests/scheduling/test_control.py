import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.model import PairStats
from tasks.domain.pair_stats import ANY, AttemptResult, Outcome, completion, efficiency_s, fade, fold, pool

counts = st.floats(0, 1e6)


def pair(site="s", node="n", **sums):
    return PairStats(site, node, **sums)


def test_fading_halves_every_sum_after_one_half_life_and_leaves_ratios():
    stats = pair(attempts=8, failed=2, silent=1, offered=80, tried=70, collected=60, active_s=90, lost_s=60)
    faded = fade(stats, 3600, 3600)
    assert faded == pair(
        attempts=4, failed=1, silent=0.5, offered=40, tried=35, collected=30, active_s=45, lost_s=30
    )
    assert completion(faded) == completion(stats)
    assert efficiency_s(faded) == efficiency_s(stats)


@given(st.floats(0, 1e4), st.floats(0, 1e4), counts)
def test_fading_twice_is_fading_once_by_the_sum(first_s, second_s, attempts):
    stats = pair(attempts=attempts)
    twice = fade(fade(stats, first_s, 900), second_s, 900)
    assert twice.attempts == pytest.approx(fade(stats, first_s + second_s, 900).attempts, rel=1e-9, abs=1e-12)


def test_a_clock_set_back_does_not_amplify():
    assert fade(pair(attempts=3), -50, 100) == pair(attempts=3)


def test_a_half_life_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="half_life_s must be positive"):
        fade(pair(), 1, 0)


@pytest.mark.parametrize(
    ("outcome", "failed", "silent"),
    [(Outcome.SUCCEEDED, 0, 0), (Outcome.FAILED, 1, 0), (Outcome.SILENT, 0, 1)],
)
def test_an_attempt_is_counted_once_with_its_outcome(outcome, failed, silent):
    result = AttemptResult("s", "n", outcome, 20, 15, 10, 12.5, 3.0)
    assert fold(pair(attempts=1, offered=5), result) == pair(
        attempts=2, failed=failed, silent=silent, offered=25, tried=15, collected=10, active_s=12.5, lost_s=3
    )


def test_a_released_attempt_that_never_started_changes_nothing():
    stats = pair(attempts=3, offered=30)
    assert fold(stats, AttemptResult("s", "n", Outcome.RELEASED, offered=20)) is stats


def test_a_released_attempt_that_collected_counts_over_what_it_tried():
    folded = fold(pair(), AttemptResult("s", "n", Outcome.RELEASED, 20, 4, 3, 5.0))
    assert folded == pair(attempts=1, offered=4, tried=4, collected=3, active_s=5.0)


def test_an_attempt_of_another_pair_is_refused():
    with pytest.raises(ValueError, match=r"attempt of \(s, m\) is no part of \(s, n\)"):
        fold(pair(), AttemptResult("s", "m", Outcome.SUCCEEDED))


def test_rates_are_none_where_there_is_no_data():
    assert completion(pair(attempts=2, failed=2)) is None
    assert efficiency_s(pair(attempts=2, offered=9, active_s=4)) is None
    assert completion(pair(offered=9)) == 0.0


def test_pools_add_up_over_nodes_over_sites_and_over_all():
    pools = pool(
        [pair("a", "m", attempts=1, offered=2), pair("a", "n", attempts=4), pair("b", "n", attempts=8)]
    )
    assert pools.by_site == {
        "a": pair("a", ANY, attempts=5, offered=2),
        "b": pair("b", ANY, attempts=8),
    }
    assert pools.by_node == {
        "m": pair(ANY, "m", attempts=1, offered=2),
        "n": pair(ANY, "n", attempts=12),
    }
    assert pools.total == pair(ANY, ANY, attempts=13, offered=2)
