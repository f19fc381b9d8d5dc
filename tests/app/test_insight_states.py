"""States of themes and rises, on series whose truth is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from app.insight import rises
from app.insight.rises import cutoff, log_likelihood_ratio, measure_baseline
from app.insight.rows import ThemeState
from app.insight.states import CutoffSearch, Judgement, ThemeSeries, judge_weeks

WEEKS = 200
NO_WEEK = np.zeros(1, int)
"""Number of incomplete weeks of one series."""


def series(
    counts: np.ndarray, *, others: float = 40.0, pages: float = 2.0, first_week: int = 0
) -> ThemeSeries:
    """Return one theme of a product that has the same number of other reviews each week from its first on."""
    row = counts.reshape(1, -1).astype(float)
    has_reviews = np.arange(row.shape[1])[None, :] >= first_week
    return ThemeSeries(row, np.where(has_reviews, others, 0.0), has_reviews, np.full(1, pages), NO_WEEK)


def regular(every: int, weeks: int = WEEKS) -> np.ndarray:
    """Return one complaint in each `every` weeks."""
    return (np.arange(weeks) % every == 0).astype(float)


def find_cutoffs(parts: Iterable[ThemeSeries]) -> list[float]:
    search = CutoffSearch()
    for part in parts:
        search.add(part)
    return search.list_cutoffs()


def judge(whole: ThemeSeries) -> Judgement:
    """Judge series that are all there are."""
    return judge_weeks(whole, find_cutoffs([whole]))


def states(counts: np.ndarray, **options: float) -> list[ThemeState]:
    judged = judge(series(counts, **options))
    return [judged.state_of(0, week) for week in range(counts.size)]


def test_a_product_is_watched_before_its_themes_are_judged() -> None:
    found = states(regular(2), first_week=10)
    assert found[:35] == [ThemeState.WATCHING] * 35
    assert ThemeState.WATCHING not in found[35:]


def test_a_product_without_reviews_in_most_of_the_last_weeks_is_watched_only() -> None:
    one = series(regular(4))
    has_reviews = np.arange(WEEKS)[None, :] % 3 == 0
    judged = judge(ThemeSeries(one.counts, one.others, has_reviews | (one.counts > 0), one.pages, NO_WEEK))
    assert judged.state_of(0) is ThemeState.ONGOING
    sparse = judge(
        ThemeSeries(one.counts, one.others, np.arange(WEEKS)[None, :] % 4 == 0, one.pages, NO_WEEK)
    )
    assert sparse.state_of(0) is ThemeState.WATCHING


@pytest.mark.parametrize("every", [1, 2, 4, 8])
def test_a_regular_theme_stays_ongoing(every: int) -> None:
    assert set(states(regular(every))[60:]) == {ThemeState.ONGOING}


def test_a_tripled_theme_rises_and_ends_when_it_is_usual_again() -> None:
    counts = np.full(WEEKS, 3.0)
    counts[150:160] = 9
    found = states(counts)
    assert ThemeState.RISING not in found[:150]
    begins = found.index(ThemeState.RISING)
    assert 150 <= begins <= 153
    assert set(found[begins:160]) == {ThemeState.RISING}
    # Weeks 163 to 166 see 12 complaints in their last four: not more than 5 m + 1 = 16.
    assert found.index(ThemeState.ONGOING, begins) == 166
    assert set(found[166:]) == {ThemeState.ONGOING}


def test_a_doubled_crawl_is_no_rise() -> None:
    counts = np.full((1, WEEKS), 3.0)
    others = np.full((1, WEEKS), 40.0)
    counts[:, 150:] *= 2
    has_reviews = np.ones((1, WEEKS), bool)
    pages = np.full(1, 2.0)
    others_too = others.copy()
    others_too[:, 150:] *= 2
    assert (
        judge(ThemeSeries(counts, others_too, has_reviews, pages, NO_WEEK)).state_of(0) is ThemeState.ONGOING
    )
    assert judge(ThemeSeries(counts, others, has_reviews, pages, NO_WEEK)).state_of(0) is ThemeState.RISING


@pytest.mark.parametrize(("pages", "expected"), [(2.0, ThemeState.NEW), (1.0, ThemeState.ONGOING)])
def test_a_theme_first_seen_lately_is_new_if_it_is_on_two_pages(pages: float, expected: ThemeState) -> None:
    counts = np.zeros(WEEKS)
    counts[[192, 195, 198]] = 1
    judged = judge_weeks(series(counts, pages=pages), cutoffs=[0.0] * WEEKS)
    assert judged.state_of(0) is expected


def test_a_new_theme_with_many_complaints_rises() -> None:
    counts = np.zeros(WEEKS)
    counts[196:] = 5
    assert states(counts)[-1] is ThemeState.RISING


def test_a_theme_that_ends_is_quiet_and_back_when_it_returns() -> None:
    counts = np.ones(WEEKS)
    counts[120:150] = 0
    counts[150:] = [1, 1] + [0] * 48
    found = states(counts)
    quiet = found.index(ThemeState.QUIET)
    assert 127 <= quiet <= 131
    assert set(found[quiet:151]) == {ThemeState.QUIET}
    assert set(found[151:159]) == {ThemeState.BACK}
    assert found[159] is not ThemeState.BACK


def test_a_theme_whose_complaints_are_older_than_the_baseline_is_quiet() -> None:
    counts = np.zeros(WEEKS)
    counts[30] = 1
    assert states(counts)[-1] is ThemeState.QUIET


def test_given_cutoffs_judge_as_the_whole_did() -> None:
    rng = np.random.default_rng(7)
    counts = rng.poisson(2.0, (40, WEEKS)).astype(float)
    counts[3, -6:] *= 4
    whole = ThemeSeries(
        counts, np.full_like(counts, 50.0), np.ones(counts.shape, bool), np.full(40, 2.0), np.zeros(40, int)
    )
    cutoffs = find_cutoffs([whole])
    judged = judge_weeks(whole, cutoffs)
    one = ThemeSeries(counts[3:4], whole.others[3:4], whole.has_reviews[3:4], whole.pages[3:4], NO_WEEK)
    alone = judge_weeks(one, cutoffs)
    assert judged.state_of(3) is ThemeState.RISING
    assert np.array_equal(alone.states[0], judged.states[3])


@pytest.mark.parametrize("incomplete", [1, 3])
def test_incomplete_weeks_neither_raise_a_theme_nor_end_a_rise(incomplete: int) -> None:
    rises_late, ends_late = np.full(WEEKS, 3.0), np.full(WEEKS, 3.0)
    rises_late[-incomplete:] = 30
    ends_late[150:-incomplete] = 9
    ends_late[-incomplete:] = 0
    for counts, expected in ((rises_late, ThemeState.ONGOING), (ends_late, ThemeState.RISING)):
        late = replace(series(counts), incomplete=np.full(1, incomplete))
        before = series(counts[:-incomplete])
        judged = judge(late)
        assert judged.state_of(0) is judge(before).state_of(0) is expected
        assert set(judged.states[0, -incomplete:]) == {judged.states[0, -incomplete - 1]}
        assert np.array_equal(judged.p[0, :-incomplete], judge(before).p[0])
    assert judge(series(rises_late)).state_of(0) is ThemeState.RISING


def test_the_likelihood_ratio_is_that_of_the_negative_binomial() -> None:
    """With a small dispersion it is nearly that of Poisson: x ln k - (k - 1) mean."""
    counts, mean = np.array([[0.0, 3.0, 9.0]]), np.full((1, 3), 3.0)
    baseline = rises.Expectation(mean=mean, dispersion=np.full((1, 3), 1 + 1e-6), weekly=mean, weeks=mean)
    found = log_likelihood_ratio(counts, baseline, 2.0)
    assert found == pytest.approx(counts * np.log(2) - mean, abs=1e-4)


def test_the_newest_weeks_are_no_part_of_the_baseline() -> None:
    counts = np.full((1, WEEKS), 2.0)
    counts[:, -rises.NEWEST_WEEKS :] = 50
    baseline = measure_baseline(counts, np.full((1, WEEKS), 40.0), np.ones((1, WEEKS), bool))
    assert baseline.weekly[0, -1] == 2
    assert baseline.weeks[0, -1] == rises.BASELINE_WEEKS - rises.NEWEST_WEEKS


def test_cutoffs_are_the_same_in_parts() -> None:
    rng = np.random.default_rng(9)
    counts = rng.poisson(1.0, (400, WEEKS)).astype(float)
    counts[::9, -20:] *= 3

    def part(rows: slice) -> ThemeSeries:
        some = counts[rows]
        return ThemeSeries(
            some,
            np.full_like(some, 30.0),
            np.ones(some.shape, bool),
            np.full(len(some), 2.0),
            np.zeros(len(some), int),
        )

    whole = find_cutoffs([part(slice(None))])
    assert max(whole[-10:]) > 0
    assert find_cutoffs([part(slice(0, 150)), part(slice(150, 151)), part(slice(151, None))]) == whole


@given(arrays.arrays(float, st.integers(0, 500), elements=st.floats(0, 1)))
def test_the_cutoff_is_the_one_of_benjamini_and_hochberg(p: np.ndarray) -> None:
    limit = cutoff(p[p <= rises.FALSE_DISCOVERIES], p.size)
    tested = max(p.size, rises.LEAST_SERIES)
    passed = [k for k, value in enumerate(sorted(p), 1) if value <= rises.FALSE_DISCOVERIES * k / tested]
    assert limit == pytest.approx(rises.FALSE_DISCOVERIES * max(passed, default=0) / tested)
    assert (p <= limit).sum() == max(passed, default=0)
