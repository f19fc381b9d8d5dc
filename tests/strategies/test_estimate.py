from random import Random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.model import PairStats
from tasks.strategies.estimate import Belief, Estimates, EstimateSettings

SETTINGS = EstimateSettings()


def stats(*, attempts, completion=0.9, seconds=1.0, failed=0.0, silent=0.0, site="s", node="n"):
    """20 pages an attempt; failed and silent attempts were offered theirs but tried none."""
    went = attempts - failed - silent
    tried = 20 * went
    active = attempts * SETTINGS.overhead_s + tried * seconds
    return PairStats(
        site, node, attempts, failed, silent, 20 * attempts, tried, completion * tried, active, 60 * silent
    )


def estimates(*known):
    return Estimates({(one.site, one.node): one for one in known}, SETTINGS)


def test_nothing_known_gives_the_first_guesses():
    belief = estimates().posterior("s", "n").mean()
    assert belief.page_chance == pytest.approx(SETTINGS.page_chance)
    assert belief.seconds_per_page == pytest.approx(SETTINGS.seconds_per_page)
    assert belief.reach == pytest.approx(1 - SETTINGS.bad_share)
    assert belief.silent == pytest.approx(SETTINGS.bad_share * SETTINGS.silent_of_bad)


def test_much_data_outvotes_the_prior():
    belief = estimates(stats(attempts=200, completion=0.4, seconds=2.5)).posterior("s", "n").mean()
    assert belief.page_chance == pytest.approx(0.4, abs=0.02)
    assert belief.seconds_per_page == pytest.approx(2.5, abs=0.05)


def test_one_attempt_moves_a_pair_but_not_all_the_way():
    many = stats(attempts=100, completion=0.9, node="m")
    belief = estimates(many, stats(attempts=1, completion=0.0)).posterior("s", "n").mean()
    assert 0.2 < belief.page_chance < 0.8


def test_an_unknown_pair_starts_from_its_site_and_its_node():
    known = estimates(
        stats(attempts=60, completion=0.9, site="good", node="m"),
        stats(attempts=60, completion=0.3, site="bad", node="m"),
        stats(attempts=60, seconds=4.0, site="other", node="slow"),
        stats(attempts=60, seconds=0.5, site="other", node="m"),
    )
    assert known.posterior("good", "new").mean().page_chance > 0.8
    assert known.posterior("bad", "new").mean().page_chance < 0.5
    slow, swift = known.posterior("good", "slow").mean(), known.posterior("good", "new").mean()
    assert slow.seconds_per_page > 2 * swift.seconds_per_page


def test_the_rate_is_the_stated_formula():
    belief = Belief(0.8, 0.9, 0.05, 0.5, 1.0, 60.0)
    assert belief.rate(20) == pytest.approx(0.8 * 0.9 * 20 / (1.0 + 0.9 * 20 * 0.5 + 0.05 * 60))


def test_failures_and_silence_lower_the_rate_silence_more():
    sound, failing, silent = (
        estimates(stats(attempts=30, **bad)).posterior("s", "n").mean().rate(20)
        for bad in ({}, {"failed": 10}, {"silent": 10})
    )
    assert sound > failing > silent


def test_failures_count_whether_their_hits_were_known_or_not():
    known = stats(attempts=40, failed=20)
    unknown = PairStats("s", "n", 40, 20, 0, known.tried, known.tried, known.collected, known.active_s, 0)
    rates = [estimates(one).posterior("s", "n").mean().rate(20) for one in (known, unknown)]
    assert rates[0] == pytest.approx(rates[1], rel=0.05)


def test_draws_lie_around_the_mean_and_narrow_with_data():
    def draws(attempts):
        posterior = estimates(stats(attempts=attempts)).posterior("s", "n")
        rng = Random(3)
        return posterior.mean().rate(20), [posterior.draw(rng).rate(20) for _ in range(2000)]

    def spread(values):
        return fmean(abs(value - fmean(values)) for value in values)

    few_mean, few = draws(1)
    many_mean, many = draws(100)
    assert fmean(few) == pytest.approx(few_mean, rel=0.15)
    assert fmean(many) == pytest.approx(many_mean, rel=0.02)
    assert spread(many) < 0.3 * spread(few)


@settings(max_examples=60)
@given(
    attempts=st.floats(0, 1e4),
    failed=st.floats(0, 1),
    offered=st.floats(0, 1e3),
    tried=st.floats(0, 1),
    collected=st.floats(0, 1),
    active=st.floats(0, 1e4),
    seed=st.integers(0, 100),
)
def test_any_statistics_give_a_finite_rate_above_zero(
    attempts, failed, offered, tried, collected, active, seed
):
    hits = offered * attempts
    seen = PairStats(
        "s",
        "n",
        attempts,
        failed * attempts,
        0,
        hits,
        tried * hits,
        collected * tried * hits,
        active * attempts,
    )
    posterior = estimates(seen).posterior("s", "n")
    for belief in (posterior.mean(), posterior.draw(Random(seed))):
        assert 0 <= belief.rate(20) < 1e6
        assert 0 <= belief.page_chance * belief.reach <= 1
    assert posterior.mean().rate(20) > 0
