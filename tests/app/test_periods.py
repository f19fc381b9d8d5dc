"""Periods as people give them."""

from __future__ import annotations

from datetime import date

import pytest

from app.insight.periods import ALL, find_period_before, read_period
from splitter.errors import InputError
from tasks.store.queries.themes import Period

TODAY = date(2026, 11, 28)
FIRST, LAST = date(2026, 9, 1), date(2026, 11, 30)


@pytest.mark.parametrize(
    ("given", "period", "query"),
    [
        ((None, None, None), Period(date(2026, 8, 31), TODAY), "days=90"),
        (("7", None, None), Period(date(2026, 11, 22), TODAY), "days=7"),
        (("1", None, None), Period(TODAY, TODAY), "days=1"),
        (("all", None, None), Period(), "days=all"),
        ((None, FIRST, LAST), Period(FIRST, LAST), "from=2026-09-01&to=2026-11-30"),
        (("", None, LAST), Period(None, LAST), "to=2026-11-30"),
    ],
)
def test_a_period_and_its_address(given, period, query):
    choice = read_period(*given)
    assert choice.find(TODAY) == period
    assert choice.query == query
    assert choice.carried == (query if any(given) else "")


@pytest.mark.parametrize("days", ["0", "-7", "7d", "７", "36501", "10000000000000", "week"])
def test_a_wrong_number_of_days_is_refused(days):
    with pytest.raises(InputError, match="no number of days"):
        read_period(days, None, None)


def test_days_that_contradict_each_other_are_refused():
    with pytest.raises(InputError, match="not both"):
        read_period("7", FIRST, None)
    with pytest.raises(InputError, match="before the first"):
        read_period(None, LAST, FIRST)


def test_the_period_before_is_as_long():
    assert find_period_before(Period(FIRST, LAST)) == Period(date(2026, 6, 2), date(2026, 8, 31))
    assert find_period_before(read_period(ALL, None, None).find(TODAY)) is None
    assert find_period_before(Period(FIRST, None)) is None
    assert find_period_before(Period(date(733, 4, 28), date(3006, 7, 21))) is None
    assert find_period_before(Period(date(1, 1, 11), date(1, 1, 20))) == Period(date(1, 1, 1), date(1, 1, 10))
