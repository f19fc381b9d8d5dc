"""Dividing a query that holds too much: its spans tile, each split gets on, and only a full hour stays too full."""

from __future__ import annotations

from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.spans import CHINA, Span, ceiling
from tasks.domain.hit_count import EngineLimits, Partition
from tasks.scheduling.query_refinement import (
    DropWord,
    SplitByTime,
    choose_refinement,
    ranges,
)

START = datetime(2011, 1, 1, tzinfo=CHINA)
NOW = datetime(2014, 1, 1, 3, 30, tzinfo=UTC)
CAP = 20
LIMITS = EngineLimits(most=CAP, per_page=10)
HOUR = timedelta(hours=1)

minutes = st.integers(0, 60 * 24 * 200 - 1)
spread = st.lists(minutes, max_size=120)
bursts = st.lists(st.tuples(minutes, st.integers(1, 90)), max_size=5)


def _dates(spread: list[int], bursts: list[tuple[int, int]]) -> list[datetime]:
    all_minutes = spread + [minute for minute, n in bursts for _ in range(n)]
    return sorted(START + timedelta(minutes=minute) for minute in all_minutes)


def _within(dates: list[datetime], span: Span) -> list[datetime]:
    return dates[bisect_left(dates, span.start) : bisect_left(dates, span.end)]


@given(spread, bursts, st.sampled_from(["day", "hour"]), st.integers(0, 3))
def test_any_dates_end_in_parts_that_tile_and_are_under_the_cap_or_cannot_be_cut(
    spread, bursts, least, known
):
    dates = _dates(spread, bursts)
    whole = Span(START, START + timedelta(days=200))
    known_dates = dates[::known] if known else []
    todo, done, asked = [whole], [], 0
    while todo:
        span = todo.pop()
        asked += 1
        found = len(_within(dates, span))
        if found <= CAP:
            done.append(span)
            continue
        parts = ranges(found, CAP, span, least, dates=known_dates)
        if not parts:
            assert span.end - span.start <= (timedelta(days=1) if least == "day" else HOUR)
            done.append(span)
            continue
        assert len(parts) >= 2
        assert (parts[0].start, parts[-1].end) == (span.start, span.end)
        assert all(a.end == b.start for a, b in pairwise(parts))
        todo += parts
    done.sort()
    assert (done[0].start, done[-1].end) == (whole.start, whole.end)
    assert all(a.end == b.start for a, b in pairwise(done))
    assert sum(len(_within(dates, span)) for span in done) == len(dates)
    assert asked <= 1 + 40 * (1 + len(dates) // CAP + len(bursts))


def test_as_many_parts_as_the_numbers_ask_for_and_each_under_the_cap_with_a_sample_of_the_dates():
    dates = [START + timedelta(days=1095) * (place / 3000) ** 0.25 for place in range(1, 3000)]
    span = Span(START, START + timedelta(days=1095))
    parts = ranges(3000, 760, span, "day", dates=dates[::4])
    assert len(parts) == 5  # 3000 / (0.8 x 760) = 4.93
    assert max(len(_within(dates, part)) for part in parts) <= 760


def _step(
    reported,
    listed,
    pages_read,
    *,
    ended,
    words=("光明", "高钙", "牛奶"),
    own=False,
    spanned=False,
    least="day",
):
    findings = {"reported": reported, "listed": listed, "pages_read": pages_read, "ended": ended}
    times = (START, NOW) if spanned else (None, None)
    asked = Partition(words, 2, 1, (), own, *times, id=1, **findings)
    return choose_refinement(asked, 1, LIMITS, least, NOW, lambda: [])


def test_an_undivided_query_is_read_up_to_its_cap_before_it_is_divided_and_a_span_is_not():
    assert _step(3000, 10, 1, ended=False) is None
    assert _step(3000, 20, 2, ended=True, least=None) is None
    step = _step(3000, 20, 2, ended=True)
    assert isinstance(step, SplitByTime)
    assert str(step.because) == "at least 3,000 hits, the engine lists 20: by day into 32 parts"
    assert (step.spans[0].start, step.spans[-1].end) == (
        datetime(2000, 1, 1, tzinfo=CHINA),
        ceiling(NOW, timedelta(days=1)),
    )
    assert isinstance(_step(3000, 10, 1, ended=False, spanned=True), SplitByTime)


@pytest.mark.parametrize(
    ("reported", "listed", "pages_read", "ended"),
    [
        (3000, 8, 1, True),  # the number was made up
        (20, 20, 2, True),  # exactly the cap
        (15, 10, 1, False),
    ],
)
def test_what_is_listed_whole_is_not_divided(reported, listed, pages_read, ended):
    assert _step(reported, listed, pages_read, ended=ended) is None


def test_nothing_found_is_asked_with_fewer_words_down_to_two_and_never_against_a_persons_wish():
    nothing = partial(_step, 0, 0, 1, ended=True)
    step = nothing()
    assert isinstance(step, DropWord)
    assert len(step.keywords) == 2
    assert {*step.keywords, step.dropped} == {"光明", "高钙", "牛奶"}
    assert nothing(words=("光明", "牛奶")) is None
    assert nothing(own=True) is None
    assert nothing(spanned=True) is None
