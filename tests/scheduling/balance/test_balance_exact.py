import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.scheduling.balance.curves import CurveError, Curves, evaluate, even, linear, piecewise
from tasks.scheduling.balance.exact import exact

# Few values, so that ties and plateaus are common.
few_seconds = st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0, 3.3])
lines = st.builds(linear, few_seconds, few_seconds)


@st.composite
def bent(draw):
    n = sorted(draw(st.sets(st.integers(0, 9), min_size=1, max_size=4)) | {draw(st.integers(1, 12))})
    seconds = sorted(draw(st.lists(few_seconds, min_size=len(n), max_size=len(n))))
    return piecewise(list(zip(n, seconds, strict=True)))


fleets = st.lists(lines | bent(), min_size=1, max_size=3).map(Curves)


def every_split(nodes, total):
    for cuts in itertools.combinations_with_replacement(range(total + 1), nodes - 1):
        yield np.diff((0, *cuts, total))


@given(fleets, st.integers(0, 9))
def test_no_split_ends_earlier(curves, total):
    found = exact(curves, total)
    assert found.sum() == total
    assert (found >= 0).all()
    best = min(evaluate(curves, split).makespan_s for split in every_split(len(curves), total))
    assert evaluate(curves, found).makespan_s == best


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=4), st.integers(0, 10))
def test_of_equally_early_splits_with_one_step_given_up_the_variance_is_least(numbers, total):
    """Strictly rising curves: nodes below the makespan are full, and those at it give up one URL at most."""
    curves = Curves([linear(float(setup), float(slope)) for setup, slope in numbers])
    found = evaluate(curves, exact(curves, total))
    full = [
        max(n for n in range(total + 1) if n == 0 or setup + n * slope <= found.makespan_s)
        for setup, slope in numbers
    ]
    at_it = [
        n > 0 and setup + n * slope == found.makespan_s
        for n, (setup, slope) in zip(full, numbers, strict=True)
    ]
    allowed = [
        evaluate(curves, np.array(split))
        for split in itertools.product(
            *((n - 1, n) if gives else (n,) for n, gives in zip(full, at_it, strict=True))
        )
        if sum(split) == total
    ]
    assert found.variance == pytest.approx(min(split.variance for split in allowed), abs=1e-9)


def test_less_variance_can_end_later():
    curves = Curves([piecewise([(1, 4), (2, 4)]), piecewise([(1, 5), (2, 9)])])
    fair, early = evaluate(curves, np.array([1, 1])), evaluate(curves, exact(curves, 2))
    assert (fair.variance, fair.makespan_s) == (0.25, 5)
    assert (early.variance, early.makespan_s) == (4, 4)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([], "above 0"),
        ([(0, 1)], "above 0"),
        ([(1, 2), (1, 3)], "point 1: n 1 does not rise"),
        ([(1, 2), (3, 1)], "point 1: 1 s falls below 2 s"),
        ([(1.5, 2)], "whole number"),
        ([(1, math.nan)], "seconds of point 0"),
        ([(-1, 2)], "n of point 0"),
        ([(1, 2, 3)], "point 0 has 3 numbers"),
    ],
)
def test_what_no_curve_is(points, said):
    with pytest.raises(CurveError, match=said):
        piecewise(points)


@given(st.integers(1, 9), st.integers(0, 99))
def test_the_even_split_is_even(nodes, total):
    split = even(nodes, total)
    assert split.sum() == total
    assert split.max() - split.min() <= 1
