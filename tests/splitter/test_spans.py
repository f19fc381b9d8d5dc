from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.catalog.load import builtin
from splitter.catalog.model import TimeFilter
from splitter.spans import CHINA, Span
from splitter.urls import search_url, time_params

BAIDU = builtin("paper-2014").engines["baidu"]
HOURS = TimeFilter(params={"scope": "custom:{from_hour}:{to_hour}"}, least="hour")
DAYS = TimeFilter(params={"a": "{from_day}", "b": "{to_day}"}, least="day")
MOMENT = st.integers(946_684_800, 1_893_456_000).map(lambda s: datetime.fromtimestamp(s, UTC))


def china(*moment):
    return datetime(*moment, tzinfo=CHINA)


def spans():
    lengths = st.timedeltas(timedelta(seconds=1), timedelta(days=4000))
    return st.builds(lambda start, length: Span(start, start + length), MOMENT, lengths)


@given(spans(), st.sampled_from(["day", "hour"]))
def test_halves_share_no_moment_and_leave_none_out(span, least):
    halves = span.halves(least)
    unit = timedelta(days=1) if least == "day" else timedelta(hours=1)
    if halves is None:
        assert span.end - span.start <= 2 * unit, "what is longer has a full unit within"
        return
    left, right = halves
    assert (left.start, left.end, right.end) == (span.start, right.start, span.end)
    cut = left.end.astimezone(CHINA)
    assert (cut.minute, cut.second, cut.microsecond) == (0, 0, 0)
    if least == "day" or span.end - span.start > timedelta(days=2):
        assert cut.hour == 0


def test_a_span_is_cut_at_the_midnight_nearest_to_its_middle():
    week = Span(china(2024, 3, 1), china(2024, 3, 8))
    left, right = week.halves("day")
    assert left == Span(week.start, china(2024, 3, 4))
    assert right == Span(china(2024, 3, 4), week.end)
    day = Span(china(2024, 3, 1), china(2024, 3, 2))
    assert day.halves("day") is None
    assert day.halves("hour") == (
        Span(day.start, china(2024, 3, 1, 12)),
        Span(china(2024, 3, 1, 12), day.end),
    )
    assert Span(china(2024, 3, 1, 5), china(2024, 3, 1, 6)).halves("hour") is None


def test_what_is_no_span():
    with pytest.raises(ValueError, match="ends after its start"):
        Span(china(2024, 3, 1), china(2024, 3, 1))
    with pytest.raises(ValueError, match="aware"):
        Span(datetime(2024, 3, 1), datetime(2024, 3, 2))  # noqa: DTZ001


def test_a_range_in_a_url():
    span = Span(china(2024, 3, 1), china(2024, 3, 8))
    engine = BAIDU.model_copy(
        update={
            "times": TimeFilter(params={"gpc": "stf={from_s},{to_s}|stftype=1"}, least="day", inclusive=True)
        }
    )
    url = search_url(engine, ["牛奶"], site="cca.org.cn", page=2, span=span)
    assert url.startswith(search_url(engine, ["牛奶"], site="cca.org.cn", page=2))
    query = parse_qs(urlsplit(url).query)
    assert query["gpc"] == [f"stf={int(span.start.timestamp())},{int(span.end.timestamp()) - 1}|stftype=1"]
    with pytest.raises(ValueError, match="range of time"):
        search_url(BAIDU, ["牛奶"], site=None, page=1, span=span)


def test_hours_and_days_of_china():
    span = Span(datetime(2024, 2, 29, 16, tzinfo=UTC), datetime(2024, 3, 1, 18, tzinfo=UTC))
    assert time_params(HOURS, span) == {"scope": "custom:2024-03-01-0:2024-03-02-2"}
    assert time_params(DAYS, span) == {"a": "2024-03-01", "b": "2024-03-03"}
    ends_in = DAYS.model_copy(update={"inclusive": True})
    assert time_params(ends_in, span) == {"a": "2024-03-01", "b": "2024-03-02"}
    hours_in = HOURS.model_copy(update={"inclusive": True})
    assert time_params(hours_in, Span(china(2024, 3, 1, 5), china(2024, 3, 1, 6))) == {
        "scope": "custom:2024-03-01-5:2024-03-01-5"
    }
