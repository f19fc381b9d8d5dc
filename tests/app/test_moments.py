"""Clock times are shown in the zone of the settings; the day of a review stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.chart_ticks import time_ticks
from app.run.settings import load_settings
from app.views.moments import clock_text, clock_text_with_zone, read_local, use_zone, written_text
from splitter.errors import InputError
from splitter.spans import CHINA_NAME, get_zone
from tasks.store.queries.reviews import ReviewRow

ZONES = (CHINA_NAME, "UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland")
EVENING = datetime(2026, 1, 6, 23, 31, tzinfo=get_zone("America/New_York"))

WALLS = datetime(2000, 1, 1), datetime(2099, 1, 1)  # noqa: DTZ001 - clocks on a wall


@pytest.fixture(autouse=True)
def _zone() -> Iterator[None]:
    yield
    use_zone(CHINA_NAME)


def review(**values: Any) -> ReviewRow:
    row: dict[str, Any] = dict.fromkeys(ReviewRow.__dataclass_fields__, None)
    return ReviewRow(**{**row, "date_text": "as written", **values})


@pytest.mark.parametrize(
    ("zone", "shown", "written"),
    [
        (CHINA_NAME, "2026-01-07 12:31:00", "2026-01-06 (01-07 12:31 Asia/Shanghai)"),
        ("UTC", "2026-01-07 04:31:00", "2026-01-06 (01-07 04:31 UTC)"),
        ("America/New_York", "2026-01-06 23:31:00", "2026-01-06 23:31"),
        ("America/Los_Angeles", "2026-01-06 20:31:00", "2026-01-06 20:31"),
    ],
)
def test_a_zone_changes_clock_times_and_no_day(zone, shown, written):
    use_zone(zone)
    assert clock_text(EVENING) == shown
    assert clock_text_with_zone(EVENING) == f"{shown[:-3]} {zone}"
    assert written_text(review(published_at=EVENING, day=date(2026, 1, 6), has_clock=True)) == written


@given(st.sampled_from(ZONES), st.sampled_from(ZONES), st.datetimes(*WALLS))
def test_a_review_shows_its_day_first_in_every_zone(zone, of_site, wall):
    use_zone(zone)
    at = wall.replace(tzinfo=get_zone(of_site))
    row = review(published_at=at.astimezone(UTC), day=wall.date(), has_clock=True)
    assert written_text(row).startswith(wall.date().isoformat())


def test_a_date_without_an_hour_shows_no_hour():
    midnight = datetime(2026, 1, 5, 16, tzinfo=UTC)
    for zone in ZONES:
        use_zone(zone)
        assert (
            written_text(review(published_at=midnight, day=date(2026, 1, 6), has_clock=False)) == "2026-01-06"
        )
        assert written_text(review()) == "as written"


def test_a_given_time_is_one_of_the_shown_zone_unless_it_names_another():
    use_zone("Europe/Berlin")
    noon = datetime(2026, 7, 1, 12)  # noqa: DTZ001 - a clock on a wall
    assert read_local(noon) == datetime(2026, 7, 1, 10, tzinfo=UTC)
    assert read_local(EVENING) == EVENING


def test_a_chart_has_its_ticks_at_round_times_of_the_shown_zone():
    first = datetime(2026, 1, 6, 3, 10, tzinfo=UTC)
    use_zone(CHINA_NAME)
    days = time_ticks(first.timestamp(), (first + timedelta(days=4)).timestamp())
    assert [text for _, text in days] == ["2026-01-07", "2026-01-08", "2026-01-09", "2026-01-10"]
    assert datetime.fromtimestamp(days[0][0], UTC) == datetime(2026, 1, 6, 16, tzinfo=UTC)
    hours = time_ticks(first.timestamp(), (first + timedelta(hours=4)).timestamp())
    assert [text for _, text in hours] == ["12:00", "13:00", "14:00", "15:00"]


@pytest.mark.parametrize("years", [1, 2, 4, 9, 15, 25])
def test_a_chart_of_years_has_several_ticks(years):
    first = datetime(2001, 3, 4, tzinfo=UTC)
    marks = time_ticks(first.timestamp(), (first + timedelta(days=365.25 * years)).timestamp())
    assert 3 <= len(marks) <= 7


@pytest.mark.parametrize("wrong", ["Mars/Base", "Asia", "../etc/passwd", "/etc/localtime", "UTC+8"])
def test_an_unknown_zone_is_refused_in_words(wrong):
    with pytest.raises(InputError, match=r"REVIEWLOOP_TIMEZONE.*there is no time zone.*Europe/Berlin"):
        load_settings({"REVIEWLOOP_TIMEZONE": wrong})


def test_the_zone_of_china_is_the_default():
    assert load_settings({}).timezone == CHINA_NAME
