"""When something comes again: cron expressions with crontab's weekdays, across changes of the clock, and intervals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.errors import InputError
from tasks.domain.recurrence import Recurrence, cron_rule

THURSDAY = datetime(2026, 1, 1, tzinfo=UTC)


def _next(rule: Recurrence, moment: datetime, times: int = 1) -> list[str]:
    found = []
    for _ in range(times):
        moment = rule.next_time(moment)
        found.append(f"{moment:%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("expression", "then"),
    [
        ("0 8 * * 1", ["01-05 08:00", "01-12 08:00"]),  # 1 is Monday, as in crontab
        ("0 8 * * 0", ["01-04 08:00", "01-11 08:00"]),
        ("0 8 * * 7", ["01-04 08:00", "01-11 08:00"]),
        ("0 8 * * fri-sun", ["01-02 08:00", "01-03 08:00"]),
        ("0 8 * * 5-7/2", ["01-02 08:00", "01-04 08:00"]),
        ("0 0 * * *", ["01-02 00:00", "01-03 00:00"]),  # after a moment, not at it
        ("*/20 3 * * MON-FRI", ["01-01 03:00", "01-01 03:20"]),
        ("0 0 29 2 *", ["02-29 00:00", "02-29 00:00"]),
        ("0 0 13 * 5", ["01-02 00:00", "01-09 00:00", "01-13 00:00"]),  # either day is enough
    ],
)
def test_a_cron_expression(expression: str, then: list[str]) -> None:
    assert _next(cron_rule(expression, now=THURSDAY), THURSDAY, len(then)) == then


def test_a_time_is_read_in_its_zone() -> None:
    assert _next(cron_rule("0 8 * * 1", "Asia/Shanghai"), THURSDAY) == ["01-05 00:00"]


@pytest.mark.parametrize(
    ("expression", "from_", "then"),
    [
        # The night in which 2:30 is left out: at 3:30 summer time; and the one in which it comes twice: once.
        ("30 2 * * *", datetime(2026, 3, 28, 12, tzinfo=UTC), ["03-29 01:30", "03-30 00:30"]),
        ("30 2 * * *", datetime(2026, 10, 24, 12, tzinfo=UTC), ["10-25 00:30", "10-26 01:30"]),
        ("30 * * * *", datetime(2026, 10, 25, 0, tzinfo=UTC), ["10-25 00:30", "10-25 01:30", "10-25 02:30"]),
        ("30 * * * *", datetime(2026, 3, 29, 0, tzinfo=UTC), ["03-29 00:30", "03-29 01:30", "03-29 02:30"]),
    ],
)
def test_when_clocks_are_set(expression: str, from_: datetime, then: list[str]) -> None:
    assert _next(cron_rule(expression, "Europe/Berlin"), from_, len(then)) == then


@given(
    st.builds("{} {} * * *".format, st.integers(0, 59), st.integers(0, 23)),
    st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_a_daily_rule_comes_once_a_day(expression: str, moment: datetime) -> None:
    rule, times = cron_rule(expression, "Europe/Berlin"), [moment]
    for _ in range(3):
        times.append(rule.next_time(times[-1]))
    hours = [(later - earlier) / timedelta(hours=1) for earlier, later in pairwise(times[1:])]
    assert times[1] > moment
    assert all(22 <= n <= 26 for n in hours)


def test_an_interval_counts_from_the_last_time() -> None:
    assert Recurrence(every=timedelta(days=7)).next_time(THURSDAY) == THURSDAY + timedelta(days=7)


@pytest.mark.parametrize(
    ("expression", "zone", "said"),
    [
        ("0 8 * *", "UTC", "has 4 fields instead of 5"),
        ("61 * * * *", "UTC", "minute '61' is wrong"),
        ("0 24 * * *", "UTC", "write 0-23"),
        ("0 8 * jaan *", "UTC", "1-12 or jan-dec"),
        ("0 8 * * 8", "UTC", "day of week '8' is wrong"),
        ("0 8 * * 5-1", "UTC", "day of week '5-1' is wrong"),
        ("0 8 * * 1/2", "UTC", r"a step \*/n"),
        ("*/0 * * * *", "UTC", "minute"),
        ("0 0 30 2 *", "UTC", "never comes"),
        ("0 0 31 4,6 *", "UTC", "never comes"),
        ("0 8 * * *", "Shanghai", "Asia/Shanghai"),
        ("0 8 * * *", "../etc/passwd", "no time zone"),
    ],
)
def test_a_wrong_one_is_refused_with_what_would_be_right(expression: str, zone: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        cron_rule(expression, zone, THURSDAY)
