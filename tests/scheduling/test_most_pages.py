"""Modification: the most pages that fit a budget, found in a few steps."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tasks.scheduling.modification import Spell

positive = st.floats(1e-3, 1e4)


@given(
    positive,
    st.floats(0.0, 50.0),
    st.floats(0.1, 1e5),
    st.floats(0.0, 3.0),
    st.integers(1, 50),
    st.integers(1, 10**6),
)
def test_one_more_would_not_fit(
    seconds: float, overhead_s: float, budget_s: float, page_cv: float, lowest: int, more: int
) -> None:
    spell, highest = Spell(0.01, 1.0, seconds, overhead_s), lowest + more - 1
    most = spell.most_pages(budget_s, page_cv, lowest, highest)
    assert lowest <= most <= highest
    assert most == lowest or spell.budget_s(most, page_cv) <= budget_s
    assert most == highest or spell.budget_s(most + 1, page_cv) > budget_s
