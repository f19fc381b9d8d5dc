import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.pair_stats import SUMS, AttemptOutcome, AttemptResult, PairStats

SEEN = PairStats(
    attempts=8, failed=2, silent=1, offered=80, tried=70, collected=60, active_s=90, lost_s=60
)  # fmt: skip


def attempt(outcome, **counts):
    return AttemptResult(site="s", node="n", outcome=outcome, **counts)


def test_fading_halves_every_sum_after_one_half_life_and_leaves_rates():
    faded = SEEN.fade(3600, 3600)
    assert faded.values() == tuple(value / 2 for value in SEEN.values())
    assert (faded.completion, faded.efficiency_s) == (SEEN.completion, SEEN.efficiency_s) == (0.75, 1.5)


@given(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e6))
def test_fading_twice_is_fading_once_by_the_sum(first_s, second_s, attempts):
    stats = PairStats(attempts=attempts)
    twice = stats.fade(first_s, 900).fade(second_s, 900)
    assert twice.attempts == pytest.approx(stats.fade(first_s + second_s, 900).attempts, rel=1e-9, abs=1e-12)


def test_a_clock_set_back_does_not_amplify():
    assert SEEN.fade(-50, 100) == SEEN


def test_a_half_life_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="half_life_s must be positive"):
        SEEN.fade(1, 0)


@pytest.mark.parametrize(
    ("outcome", "failed", "silent"),
    [
        (AttemptOutcome.SUCCEEDED, 0, 0),
        (AttemptOutcome.FAILED, 1, 0),
        (AttemptOutcome.SILENT, 0, 1),
    ],
)
def test_an_attempt_is_counted_once_with_its_outcome(outcome, failed, silent):
    closed = attempt(outcome, offered=20, tried=15, collected=10, active_s=12.5, lost_s=3.0)
    assert PairStats(attempts=1, offered=5).with_attempt(closed) == PairStats(
        attempts=2, failed=failed, silent=silent, offered=25, tried=15, collected=10, active_s=12.5, lost_s=3
    )


def test_an_attempt_fades_what_was_known_by_the_memory():
    closed = attempt(AttemptOutcome.SUCCEEDED, offered=20, tried=20, collected=20)
    seen = PairStats(attempts=10, offered=100).with_attempt(closed, 10)
    assert seen == PairStats(attempts=10, offered=110, tried=20, collected=20)


def test_a_released_attempt_that_never_started_changes_nothing():
    assert SEEN.with_attempt(attempt(AttemptOutcome.RELEASED, offered=20), 10) is SEEN


def test_a_released_attempt_that_collected_counts_over_what_it_tried():
    closed = attempt(AttemptOutcome.RELEASED, offered=20, tried=4, collected=3, active_s=5.0)
    assert closed.sums() == PairStats(attempts=1, offered=4, tried=4, collected=3, active_s=5.0)


def test_rates_are_none_where_there_is_no_data():
    assert PairStats(attempts=2, failed=2).completion is None
    assert PairStats(attempts=2, offered=9, active_s=4).efficiency_s is None
    assert PairStats(offered=9).completion == 0.0


def test_more_collected_than_offered_is_still_a_rate_of_one():
    assert PairStats(offered=9, collected=10).completion == 1.0


def test_sums_of_pairs_add_up_field_by_field():
    assert (SEEN + SEEN).values() == tuple(2 * value for value in SEEN.values())
    assert PairStats.unpack(SEEN.values()) == SEEN == SEEN + PairStats()
    assert (SUMS[0], SUMS[-1]) == ("attempts", "lost_s")
