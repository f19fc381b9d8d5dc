"""How long answers ask to wait, in every form that they have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.breaker import LONGEST_ASKED_S
from tasks.domain.patience import retry_wait_s

NOW = datetime(2024, 5, 6, 12, 0, tzinfo=UTC)
SOON = NOW + timedelta(seconds=90)
EPOCH_S = SOON.timestamp()


@pytest.mark.parametrize("name", ["retry-after", "x-retry-after"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0),
        (" 0 ", 0.0),
        ("00000000000000000060", 60.0),
        ("1.5", 1.5),
        ("30, 120", 120.0),
        (format_datetime(SOON, usegmt=True), 90.0),  # IMF-fixdate
        (SOON.strftime("%A, %d-%b-%y %H:%M:%S GMT"), 90.0),  # RFC 850
        (SOON.strftime("%a %b %e %H:%M:%S %Y"), 90.0),  # asctime
        (SOON.strftime("%a, %d %b %Y %H:%M:%S -0000"), 90.0),
        ("Mon, 06 May 2024 20:01:30 +0800", 90.0),
        ("2024-05-06T12:01:30Z", 90.0),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0.0),
        (f"{EPOCH_S:.0f}", 90.0),
        ("9" * 400, LONGEST_ASKED_S),
        ("9" * 5000, LONGEST_ASKED_S),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_ASKED_S),
        ("soon", None),
        ("", None),
        ("-5", None),
        ("١٢٠", None),
        ("Mon, 99 Foo 2024 99:99:99 GMT", None),
    ],
)
def test_retry_after(name, value, expected):
    assert retry_wait_s({name: value}, 503, NOW) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after-ms": "2500"}, 2.5),
        ({"x-ms-retry-after-ms": "2500"}, 2.5),
        # The IETF's drafts, from the oldest to the newest.
        ({"ratelimit-limit": "10", "ratelimit-remaining": "0", "ratelimit-reset": "7"}, 7.0),
        ({"ratelimit": "limit=10, remaining=0, reset=7"}, 7.0),
        ({"ratelimit": '"default";r=0;t=7', "ratelimit-policy": '"default";q=10;w=60'}, 7.0),
        ({"ratelimit": '"burst";r=0;t=7, "daily";r=5;t=9000'}, 7.0),
        ({"ratelimit": '"burst";r=0;t=7, "daily";r=0;t=9000'}, 9000.0),
        ({"ratelimit": '"default";t=7;r=0'}, 7.0),
        # As APIs had them before: seconds, a time in seconds or milliseconds, a date.
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "7"}, 7.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{EPOCH_S:.0f}"}, 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{EPOCH_S * 1000:.0f}"}, 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2024-05-06T12:01:30+00:00"}, 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": format_datetime(SOON, usegmt=True)}, 90.0),
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": f"{EPOCH_S:.0f}"}, 90.0),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset-after": "1.25"}, 1.25),
        ({"x-ratelimit-remaining": "0, 5", "x-ratelimit-reset": "7, 60"}, 60.0),
        # The longest counts.
        ({"retry-after": "3", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "7"}, 7.0),
        # Something remains: the limit is not why.
        ({"ratelimit-remaining": "3", "ratelimit-reset": "7"}, None),
        ({"ratelimit": '"default";r=50;t=7'}, None),
        ({"retry-after": "3", "x-ratelimit-remaining": "10", "x-ratelimit-reset": "7"}, 3.0),
        ({"x-ratelimit-limit": "10"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
def test_limits(headers, status, expected):
    assert retry_wait_s(headers, status, NOW) == expected


@pytest.mark.parametrize(("status", "expected"), [(429, 7.0), (503, 7.0), (404, None), (403, None)])
def test_a_limit_that_does_not_say_what_remains(status, expected):
    assert retry_wait_s({"ratelimit-reset": "7"}, status, NOW) == expected
    assert retry_wait_s({"ratelimit": '"default";t=7'}, status, NOW) == expected


NAMES = [
    "retry-after",
    "retry-after-ms",
    "ratelimit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-reset",
]


@given(st.dictionaries(st.sampled_from(NAMES), st.text() | st.from_regex(r"[-+0-9a-z=;:,.TZ\" ]{0,40}")))
def test_no_value_asks_for_more_than_a_day_or_breaks(headers):
    wait_s = retry_wait_s(headers, 429, NOW)
    assert wait_s is None or 0.0 <= wait_s <= LONGEST_ASKED_S
