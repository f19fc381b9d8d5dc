"""Dates as Chinese sites write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.crawl.dates import CHINA, read_date

NOW = datetime(2013, 5, 6, 20, 30, 15, 999, tzinfo=CHINA)


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=CHINA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013-05-06 12:30:45", at(2013, 5, 6, 12, 30, 45)),
        ("2013-05-06 12:30", at(2013, 5, 6, 12, 30)),
        ("2013-5-6", at(2013, 5, 6)),
        ("2013/5/6 1:02", at(2013, 5, 6, 1, 2)),
        ("2013.05.06", at(2013, 5, 6)),
        ("2013年5月6日", at(2013, 5, 6)),
        ("2013年05月06日 12时30分", at(2013, 5, 6, 12, 30)),
        ("2013年5月6日下午3:20", at(2013, 5, 6, 15, 20)),
        ("2013年5月6日 上午11:20", at(2013, 5, 6, 11, 20)),
        ("中午11:50 2013-5-6", at(2013, 5, 6)),
        ("发表于：２０１３－５－６　１２：３０", at(2013, 5, 6, 12, 30)),
        ("来自 网友 2013-05-06 12:30:45 回复", at(2013, 5, 6, 12, 30, 45)),
        ("2013-05-06T12:30:45", at(2013, 5, 6, 12, 30, 45)),
        ("2013-05-06T12:30:45Z", at(2013, 5, 6, 20, 30, 45)),
        (
            "2013-05-06T12:30:45.123+09:00",
            datetime(2013, 5, 6, 12, 30, 45, 123000, timezone(timedelta(hours=9))),
        ),
        ("2013-05-06 12:30:45 +0800", at(2013, 5, 6, 12, 30, 45)),
        ("5月6日 12:30", at(2013, 5, 6, 12, 30)),
        ("12月31日", at(2012, 12, 31)),
        ("5月7日 01:00", at(2013, 5, 7, 1, 0)),
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
        ("2天前", NOW - timedelta(days=2)),
        ("1周前", NOW - timedelta(days=7)),
        ("2个星期之前", NOW - timedelta(days=14)),
        ("刚刚", NOW),
        ("1367811045000", datetime(2013, 5, 6, 3, 30, 45, tzinfo=UTC)),
        ("1367811045", datetime(2013, 5, 6, 3, 30, 45, tzinfo=UTC)),
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
        "2013-05-06 25:61",
        "13月45日",
        "99999天前呢" * 9,
        "0000-00-00",
        "2013",
        "0-0",
        "电话 12345678",
    ],
)
def test_what_cannot_be_read(text):
    found = read_date(text, NOW)
    assert found is None or found < NOW - timedelta(days=90_000)


def test_zone_of_the_site_and_of_now():
    utc_now = NOW.astimezone(UTC)
    assert read_date("今天 20:00", utc_now) == at(2013, 5, 6, 20, 0)
    assert read_date("2013-05-06 12:30", NOW, zone=UTC) == datetime(2013, 5, 6, 12, 30, tzinfo=UTC)


@given(
    st.datetimes(at(1990, 1, 1).replace(tzinfo=None), at(2100, 1, 1).replace(tzinfo=None)),
    st.sampled_from(["%Y-%m-%d %H:%M:%S", "%Y年%m月%d日 %H:%M:%S"]),
)
def test_full_dates_come_back(moment, form):
    moment = moment.replace(microsecond=0)
    assert read_date(f"{moment:{form}}", NOW) == moment.replace(tzinfo=CHINA)


@given(st.text("0123456789-/.:年月日天周小时分钟前昨今刚半 TZ+上下午", max_size=30))
def test_nothing_is_raised_and_all_is_aware(text):
    found = read_date(text, NOW)
    assert found is None or found.tzinfo is not None
