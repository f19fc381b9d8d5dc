"""Dates as Chinese sites write them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.spans import CHINA, get_zone
from tasks.reading.dates import read_date

NOW = datetime(2013, 5, 6, 20, 30, 15, 999, tzinfo=CHINA)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=CHINA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013-05-06 12:30:45", at(2013, 5, 6, 12, 30, 45)),
        ("2013-05-06 12:30", at(2013, 5, 6, 12, 30)),
        ("2013-5-6", at(2013, 5, 6)),
        ("14.05.2013", at(2013, 5, 14)),
        ("14. März 2013, 12:30", at(2013, 3, 14, 12, 30)),
        ("Отзыв написан 4 марта 2015 г.", at(2015, 3, 4)),
        ("3 de mayo de 2013", at(2013, 5, 3)),
        ("1 août 2013", at(2013, 8, 1)),
        ("14. 5. 2013 12:30", at(2013, 5, 14, 12, 30)),
        ("2013/5/6 1:02", at(2013, 5, 6, 1, 2)),
        ("2013.05.06", at(2013, 5, 6)),
        ("2013年5月6日", at(2013, 5, 6)),
        ("2013年05月06日 12时30分", at(2013, 5, 6, 12, 30)),
        ("2013年5月6日下午3:20", at(2013, 5, 6, 15, 20)),
        ("2013年5月6日 上午11:20", at(2013, 5, 6, 11, 20)),
        ("中午11:50 2013-5-6", at(2013, 5, 6, 11, 50)),
        ("发表于：２０１３－５－６　１２：３０", at(2013, 5, 6, 12, 30)),
        ("来自 网友 2013-05-06 12:30:45 回复", at(2013, 5, 6, 12, 30, 45)),
        ("2013-05-06T12:30:45", at(2013, 5, 6, 12, 30, 45)),
        ("2013-05-06T12:30:45Z", at(2013, 5, 6, 20, 30, 45)),
        ("20130506T12:30:45Z", at(2013, 5, 6, 20, 30, 45)),
        ("20130506T123045", at(2013, 5, 6, 12, 30, 45)),
        ("20130506T12:30:45.123+09:00", at(2013, 5, 6, 11, 30, 45, 123000)),
        ("12/01/07", at(2012, 1, 7)),
        ("20131306T123045Z", None),
        ("201305066T123045Z", None),
        (
            "2013-05-06T12:30:45.123+09:00",
            datetime(2013, 5, 6, 12, 30, 45, 123000, timezone(timedelta(hours=9))),
        ),
        ("2013-05-06 12:30:45 +0800", at(2013, 5, 6, 12, 30, 45)),
        ("5月6日 12:30", at(2013, 5, 6, 12, 30)),
        ("12月31日", at(2012, 12, 31)),
        ("5月7日 01:00", at(2012, 5, 7, 1, 0)),
        ("5月6日 21:00", at(2013, 5, 6, 21, 0)),  # clocks differ
        ("5月6日", at(2013, 5, 6)),
        ("05-06", at(2013, 5, 6)),
        ("05-07", at(2012, 5, 7)),
        ("12-31 23:59", at(2012, 12, 31, 23, 59)),
        ("去年5月6日", at(2012, 5, 6)),
        ("13-5-6 12:30", at(2013, 5, 6, 12, 30)),
        ("14:20", at(2013, 5, 6, 14, 20)),
        ("23:50", at(2013, 5, 5, 23, 50)),
        ("2013年5月6日 14:20", at(2013, 5, 6, 14, 20)),
        ("2013年5月6日 星期一 14:20", at(2013, 5, 6, 14, 20)),
        ("2013年5月6日（星期一）14:20", at(2013, 5, 6, 14, 20)),
        ("2013年5月6日 凌晨12:20", at(2013, 5, 6, 0, 20)),
        ("２０１３年５月６日", at(2013, 5, 6)),
        ("星期一", at(2013, 5, 6)),
        ("星期三 14:20", at(2013, 5, 1, 14, 20)),
        ("周日", at(2013, 5, 5)),
        ("上周五 9:00", at(2013, 5, 3, 9, 0)),
        ("今天 14:20", at(2013, 5, 6, 14, 20)),
        ("昨晚 10:20", at(2013, 5, 5, 22, 20)),
        ("前天 14:20", at(2013, 5, 4, 14, 20)),
        ("大前天", at(2013, 5, 3)),
        ("3个月前", at(2013, 2, 6)),
        ("2个多月前", at(2013, 3, 6)),
        ("半个月前", at(2013, 4, 21)),
        ("1年前", at(2012, 5, 6)),
        ("半年前", at(2012, 11, 6)),
        ("15个月前", at(2012, 2, 6)),
        ("2周前", at(2013, 4, 22)),
        ("1星期前", at(2013, 4, 29)),
        ("1个半小时前", NOW - timedelta(minutes=90)),
        ("三天前", at(2013, 5, 3)),
        ("兩小時前", NOW - timedelta(hours=2)),
        ("5分鐘前", NOW - timedelta(minutes=5)),
        ("剛剛", NOW),
        ("发表于 3 小时前 来自手机", NOW - timedelta(hours=3)),
        ("May 6, 2013", at(2013, 5, 6)),
        ("May 6th, 2013 2:20 PM", at(2013, 5, 6, 14, 20)),
        ("6 May 2013", at(2013, 5, 6)),
        ("Posted on 6th of May, 2013 at 14:20", at(2013, 5, 6, 14, 20)),
        ("06-May-2013 14:20", at(2013, 5, 6, 14, 20)),
        ("Sept. 6 2012", at(2012, 9, 6)),
        ("Dec 31", at(2012, 12, 31)),
        ("Mon, 06 May 2013 06:20:00 GMT", at(2013, 5, 6, 14, 20)),
        ("Mon, 06 May 2013 14:20:00 +0800", at(2013, 5, 6, 14, 20)),
        ("2013-05-06T06:20:00Z", at(2013, 5, 6, 14, 20)),
        ("2013-05-06T14:20:00+0800", at(2013, 5, 6, 14, 20)),
        ("05/06/2013", at(2013, 5, 6)),
        ("16/4/2013", at(2013, 4, 16)),
        ("3 hours ago", NOW - timedelta(hours=3)),
        ("an hour ago", NOW - timedelta(hours=1)),
        ("half an hour ago", NOW - timedelta(minutes=30)),
        ("2 months ago", at(2013, 3, 6)),
        ("yesterday", at(2013, 5, 5)),
        ("Yesterday at 2:20 PM", at(2013, 5, 5, 14, 20)),
        ("today 14:20", at(2013, 5, 6, 14, 20)),
        ("just now", NOW),
        ("20130506", at(2013, 5, 6)),
        ("20130506142000", at(2013, 5, 6, 14, 20)),
        ("05-06 12:30", at(2013, 5, 6, 12, 30)),
        ("2月29日", at(2012, 2, 29)),
        ("今天 12:30", at(2013, 5, 6, 12, 30)),
        ("昨天 12:30", at(2013, 5, 5, 12, 30)),
        ("昨天", at(2013, 5, 5)),
        ("前天23:59", at(2013, 5, 4, 23, 59)),
        ("3小时前", NOW - timedelta(hours=3)),
        ("半小时前", NOW - timedelta(minutes=30)),
        ("5 分钟前", NOW - timedelta(minutes=5)),
        ("30秒前", NOW - timedelta(seconds=30)),
        ("2天前", at(2013, 5, 4)),
        ("1周前", at(2013, 4, 29)),
        ("2个星期之前", at(2013, 4, 22)),
        ("刚刚", NOW),
        ("1367811045000", datetime(2013, 5, 6, 3, 30, 45, tzinfo=UTC)),
        ("1367811045", datetime(2013, 5, 6, 3, 30, 45, tzinfo=UTC)),
        ("18-Nov-12", at(2012, 11, 18)),
        ("11/18/12 9:42 AM", at(2012, 11, 18, 9, 42)),
        ("18 Nov, 09:42", at(2012, 11, 18, 9, 42)),
        ("Nov 18 '12 at 9:42", at(2012, 11, 18, 9, 42)),
        ("Posted: Sun Nov 18, 2012 9:42 am", at(2012, 11, 18, 9, 42)),
        ("Friday at 9:42 AM", at(2013, 5, 3, 9, 42)),
        ("two days ago", at(2013, 5, 4)),
        ("1 mo. ago", at(2013, 4, 6)),
        ("a few seconds ago", NOW),
        ("3 may be", None),
        ("decided 12 of them", None),
    ],
)
def test_dates(text, expected):
    assert read_date(text, NOW) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "不详",
        "2013-02-30",
        "0001-01-01",
        "0001-01-01T00:00:00+08:00",
        "2013-05-06 25:61",
        "13月45日",
        "99999天前呢" * 9,
        "0000-00-00",
        "2013",
        "2013年5月",
        "1.5",
        "v2.3.4",
        "400-820-1234",
        "13800138000",
        "9876543210",  # in 2282
        "0000000001",
        "20131301",
        "5分",
        "3天",
        "May",
        "0-0",
        "电话 12345678",
    ],
)
def test_what_cannot_be_read(text):
    found = read_date(text, NOW)
    assert found is None or found < NOW - timedelta(days=90_000)


ZONES = ("Asia/Shanghai", "UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland")
MIDNIGHTS = [  # also of days on which a clock is set: in Berlin, in New York, in Auckland
    datetime(*day)  # noqa: DTZ001  (a wall clock, whatever its zone)
    for day in ((2024, 1, 7), (2024, 3, 31), (2024, 10, 27), (2024, 3, 10), (2024, 11, 3), (2024, 4, 7))
]


@given(
    st.sampled_from(ZONES),
    st.sampled_from(MIDNIGHTS),
    st.integers(-7200, 7200),
    st.sampled_from(
        ["%Y-%m-%d %H:%M:%S", "%Y年%m月%d日 %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d", "%m月%d日"]
    ),
)
def test_a_day_is_the_one_that_is_written_whatever_the_zone_of_the_site(name, midnight, seconds, form):
    written = midnight + timedelta(seconds=seconds)
    read = read_date(f"{written:{form}}", datetime(2024, 12, 31, 12, tzinfo=get_zone(name)))
    assert read.date() == written.date()
    assert read.replace(tzinfo=None) == written if "%S" in form else read.time() == time()


@given(st.sampled_from(ZONES), st.sampled_from(MIDNIGHTS), st.integers(-7200, 7200), st.integers(1, 48))
def test_hours_ago_are_hours_of_a_clock_that_nobody_sets(name, midnight, seconds, hours):
    now = (midnight + timedelta(seconds=seconds)).replace(tzinfo=get_zone(name))
    read = read_date(f"{hours}小时前", now)
    assert read.astimezone(UTC) == now.astimezone(UTC) - timedelta(hours=hours)
    assert read.utcoffset() == read.astimezone(UTC).astimezone(now.tzinfo).utcoffset()


@given(st.sampled_from(ZONES), st.sampled_from(MIDNIGHTS), st.integers(-7200, 7200), st.integers(1, 60))
def test_days_ago_are_days_of_the_site(name, midnight, seconds, days):
    now = (midnight + timedelta(seconds=seconds)).replace(tzinfo=get_zone(name))
    read = read_date(f"{days}天前", now)
    assert read.date() == now.date() - timedelta(days=days)
    assert read.time() == time()


def test_a_zone_that_a_page_writes_is_the_zone_of_its_day():
    now = NOW.astimezone(get_zone("Europe/Berlin"))
    assert read_date("2013-05-05 23:30", now).astimezone(UTC) == datetime(2013, 5, 5, 21, 30, tzinfo=UTC)
    for text in ("2013-05-05T23:30:00Z", "2013-05-05 23:30 GMT", "2013-05-05T23:30:00-05:00"):
        assert read_date(text, now).date() == date(2013, 5, 5)
    assert read_date("1367796600", now).date() == date(2013, 5, 6)  # 01:30 in Berlin, 23:30 UTC


@given(
    st.datetimes(at(1990, 1, 1).replace(tzinfo=None), at(2100, 1, 1).replace(tzinfo=None)),
    st.sampled_from(["%Y-%m-%d %H:%M:%S", "%Y年%m月%d日 %H:%M:%S"]),
)
def test_full_dates_come_back(moment, form):
    moment = moment.replace(microsecond=0)
    assert read_date(f"{moment:{form}}", NOW) == moment.replace(tzinfo=CHINA)


@given(
    st.dates(at(2003, 1, 1).date(), NOW.date()),
    st.sampled_from(["{0.month}月{0.day}日", "{0:%m-%d}", "{0:%B %d}"]),
)
def test_a_date_without_year_is_the_latest_that_is_past(day, form):
    found = read_date(form.format(day), NOW)
    assert found is not None
    assert (found.month, found.day) == (day.month, day.day)
    assert day <= found.date() <= NOW.date()
    assert found.year >= 2012 or (day.month, day.day) == (2, 29)


@given(st.integers(1, 5000), st.sampled_from(["秒", "分钟", "小时", "天", "周", "个月", "年"]))
def test_what_is_ago_is_past_and_more_is_longer_ago(amount, unit):
    one, two = (read_date(f"{n}{unit}前", NOW) for n in (amount, amount + 1))
    if two is not None:  # before the year 1
        assert one is not None
        assert two < one < NOW


@given(st.integers(1, 60))
def test_a_month_ago_is_the_same_day_or_the_last_of_a_shorter_month(months):
    now = NOW.replace(day=31)
    found = read_date(f"{months}个月前", now)
    assert found is not None
    assert (now.year - found.year) * 12 + now.month - found.month == months
    assert found.day == 31 or (found + timedelta(days=1)).day == 1


@given(st.text("0123456789-/.:年月日天周小时分钟前昨今刚半 TZ+上下午", max_size=30))
def test_nothing_is_raised_and_all_is_aware(text):
    found = read_date(text, NOW)
    assert found is None or found.tzinfo is not None


def test_the_date_that_c_writes_with_its_zone():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    read = read_date("Tue Jul 07 23:12:00 +0800 2020", now)
    assert read is not None
    assert read.isoformat() == "2020-07-07T23:12:00+08:00"
    assert read_date("Tue Feb 31 23:12:00 +0800 2020", now) is None
