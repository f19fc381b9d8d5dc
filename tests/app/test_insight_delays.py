"""How late reviews are seen, and which days are incomplete because of it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
import pytest
from insight_world import GROUPS, SPOILT, TODAY, fill

from app.insight.counts import Selection
from app.insight.delays import DELAY_DAYS, estimate_incomplete_days
from app.insight.product import read_product
from app.insight.themes import list_themes
from app.insight.weekly import count_incomplete_weeks
from tasks.store.queries.themes import Period, SeenReviews, count_delays, number_of_day

_TODAY = number_of_day(TODAY)


def draw(delays, *, days=DELAY_DAYS, per_day=5):
    """Yield the reviews that are seen until today of days whose reviews have these delays in turn."""
    n = 0
    for age in range(days + 1):
        for _ in range(per_day):
            delay = delays[n % len(delays)]
            n += 1
            if delay <= age:
                yield SeenReviews(1, "a.cn", _TODAY - age, delay, 1)


@pytest.mark.parametrize(
    ("delays", "incomplete"),
    [([0], 0), ([3], 3), (range(10), 8), ([*([0] * 9), 40], 0), ([*([0] * 8), 40, 41], 40), ([1, 200], 1)],
)
def test_a_day_is_incomplete_until_nine_tenths_of_its_reviews_are_seen(delays, incomplete):
    assert estimate_incomplete_days(draw(delays), _TODAY) == incomplete


def test_unseen_reviews_of_the_newest_days_do_not_hide_the_delay():
    """A delay of 0 to 29 days in equal parts: of the reviews that are seen by now, far more than 1 / 30 are early."""
    delays = list(np.random.default_rng(4).integers(0, 30, 5000))
    found = estimate_incomplete_days(draw(delays, days=45, per_day=40), _TODAY)
    assert 25 <= found <= 27


def test_few_reviews_or_a_young_crawl_tell_nothing():
    assert estimate_incomplete_days([], _TODAY) is None
    assert estimate_incomplete_days(draw([0], days=18, per_day=1), _TODAY) is None
    assert estimate_incomplete_days(draw([0], days=27), _TODAY) is None
    assert estimate_incomplete_days(draw([0], days=28), _TODAY) == 0


@pytest.mark.parametrize(
    ("today", "days", "weeks"),
    [
        (date(2026, 11, 30), None, 0),
        (date(2026, 11, 30), 1, 0),
        (date(2026, 11, 30), 2, 1),
        (date(2026, 11, 29), 7, 0),
        (date(2026, 11, 29), 8, 1),
        (date(2026, 11, 29), 14, 1),
        (date(2026, 11, 29), 56, 7),
    ],
)
def test_a_week_is_incomplete_if_its_last_day_is(today, days, weeks):
    assert count_incomplete_weeks(days, today) == weeks


_BEGUN = TODAY - timedelta(days=100)
_DELAY = 9
_UTC = timedelta()


def delay_reviews(store, hour=3):
    """Let the crawl begin at `_BEGUN`, and have each later review seen `_DELAY` UTC days after it was written."""
    fill(store)
    with store.begin() as tx:
        tx.run("UPDATE page_products SET linked_at = :at", at=datetime(2026, 8, 20, 4, tzinfo=UTC))
        for age in range(100):
            day = TODAY - timedelta(days=age)
            seen = datetime(day.year, day.month, day.day, hour, tzinfo=UTC) + timedelta(days=_DELAY)
            tx.run("UPDATE reviews SET collected_at = :at WHERE day = :day", at=seen, day=day)
        for table in ("review_days", "review_themes"):
            tx.run(f"DELETE FROM {table} WHERE day > :last", last=_TODAY - _DELAY)


def test_only_reviews_written_after_the_first_page_of_a_site_tell_the_delay(store):
    delay_reviews(store)
    with store.read() as tx:
        found = count_delays(tx, [2], _TODAY - DELAY_DAYS, _UTC)
        assert {one.delay for one in found} == {_DELAY}
        assert min(one.day for one in found) == number_of_day(_BEGUN) + 1
        assert count_delays(tx, [], 0, _UTC) == []
        view = read_product(tx, (2, SPOILT), Selection(Period()), TODAY, GROUPS)
        assert view.incomplete_days == _DELAY
        assert view.incomplete_from == TODAY - timedelta(days=_DELAY - 1)
        states = {row.theme: row for row in list_themes(tx, {2: SPOILT}, Period(), TODAY, GROUPS).themes}
    assert states["foreign_matter"].state == "rising", "the week without reviews ends no rise"


@pytest.mark.parametrize(
    ("hour", "offset_h", "delay"),
    [(3, 0, 9), (15, 8, 9), (16, 8, 10), (18, 8, 10), (3, -3, 9), (3, -4, 8)],
)
def test_a_review_is_seen_on_a_day_of_the_zone(store, hour, offset_h, delay):
    delay_reviews(store, hour)
    with store.read() as tx:
        found = count_delays(tx, [2], _TODAY - DELAY_DAYS, timedelta(hours=offset_h))
        view = read_product(tx, (2, SPOILT), Selection(Period()), TODAY, GROUPS)
    assert {one.delay for one in found} == {delay}
    assert view.incomplete_days == (9 if hour < 16 else 10), "by the days of Asia/Shanghai"


def test_history_that_was_imported_at_once_tells_nothing(store):
    fill(store)
    with store.read() as tx:
        assert count_delays(tx, [1, 2], _TODAY - DELAY_DAYS, _UTC) == []
        view = read_product(tx, (2, SPOILT), Selection(Period()), TODAY, GROUPS)
    assert (view.incomplete_days, view.incomplete_from) == (None, None)
