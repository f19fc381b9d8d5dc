"""Where a number of hits comes from, and what parts add up to."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.hit_count import (
    EngineLimits,
    HitCount,
    NewPartition,
    Partition,
    PartitionState,
    Provenance,
    hit_count,
    task_hit_count,
)

LIMITS = EngineLimits(most=760, per_page=10, count_cap=100_000_000)
REPORTED, COUNTED, CAPPED = Provenance.REPORTED, Provenance.COUNTED, Provenance.CAPPED
OPEN, SPLIT, RELAXED, FULL = (
    PartitionState.OPEN,
    PartitionState.SPLIT,
    PartitionState.RELAXED,
    PartitionState.FULL,
)


@pytest.mark.parametrize(
    ("reported", "listed", "pages_read", "ended", "state", "expected"),
    [
        (1240, 10, 1, False, OPEN, HitCount(1240, REPORTED)),
        (1240, 52, 6, True, OPEN, HitCount(52, COUNTED)),  # the engine's number was wrong
        (None, 52, 6, True, OPEN, HitCount(52, COUNTED)),
        (None, 60, 6, False, OPEN, HitCount()),
        (100_000_000, 10, 1, False, OPEN, HitCount(100_000_000, CAPPED)),
        (None, 760, 76, True, OPEN, HitCount(760, CAPPED)),
        (None, 760, 76, False, OPEN, HitCount(760, CAPPED)),
        (3000, 760, 76, True, OPEN, HitCount(3000, REPORTED)),
        (3000, 760, 76, True, FULL, HitCount(3000, CAPPED)),
        (755, 755, 76, True, OPEN, HitCount(755, COUNTED)),
        (0, 0, 1, True, OPEN, HitCount(0, COUNTED)),
    ],
)
def test_where_a_number_comes_from(reported, listed, pages_read, ended, state, expected):
    findings = {"reported": reported, "listed": listed, "pages_read": pages_read, "ended": ended}
    assert hit_count(Partition((), 76, 1, id=1, state=state, **findings), LIMITS) == expected


def _part(id_: int, parent: int | None, state: PartitionState, of: HitCount) -> Partition:
    found = {"found": of.found, "provenance": of.provenance}
    return Partition((), 76, 1, id=id_, parent_id=parent, state=state, **found)


def test_a_split_query_counts_by_itself_until_all_of_its_parts_are_known():
    root = _part(1, None, SPLIT, HitCount(3000, REPORTED))
    first = _part(2, 1, OPEN, HitCount(1400, REPORTED))
    assert task_hit_count([root, first, _part(3, 1, OPEN, HitCount())], 0) == HitCount(3000, REPORTED)
    assert task_hit_count([root, first, _part(3, 1, OPEN, HitCount(1700, COUNTED))], 0) == HitCount(
        3100, REPORTED
    )
    assert task_hit_count([root, first, _part(3, 1, FULL, HitCount(1700, CAPPED))], 0) == HitCount(
        3100, CAPPED
    )
    deeper = [_part(3, 1, SPLIT, HitCount(1700, REPORTED)), _part(4, 3, OPEN, HitCount(1650, COUNTED))]
    assert task_hit_count([root, first, *deeper], 0) == HitCount(3050, REPORTED)


def test_what_was_listed_whole_has_its_different_hits():
    parts = [_part(1, None, SPLIT, HitCount(3000, REPORTED))]
    parts += [_part(n, 1, OPEN, HitCount(1510, COUNTED)) for n in (2, 3)]
    assert task_hit_count(parts, 2990) == HitCount(2990, COUNTED)


def test_a_relaxed_query_has_what_its_fewer_words_find():
    parts = [_part(1, None, RELAXED, HitCount(0, COUNTED)), _part(2, 1, OPEN, HitCount())]
    assert task_hit_count(parts, 0) == HitCount()
    assert task_hit_count([parts[0], _part(2, 1, OPEN, HitCount(40, REPORTED))], 0) == HitCount(40, REPORTED)


def test_a_task_of_several_keyword_sets_is_known_when_all_are():
    first = _part(1, None, OPEN, HitCount(10, COUNTED))
    assert task_hit_count([first, _part(2, None, OPEN, HitCount())], 10) == HitCount()
    assert task_hit_count([first, _part(2, None, OPEN, HitCount(7, REPORTED))], 10) == HitCount(17, REPORTED)


@given(st.integers(0, 60), st.integers(1, 9), st.booleans())
def test_chunks_hold_each_page_once_and_a_span_begins_with_one(pages, chunk_pages, spanned):
    times = (datetime(2014, 1, 1, tzinfo=UTC), datetime(2014, 1, 2, tzinfo=UTC)) if spanned else (None, None)
    chunks = NewPartition((), pages, chunk_pages, (), False, *times).chunks
    assert list(chain.from_iterable(chunks)) == list(range(1, pages + 1))
    sizes = [len(chunk) for chunk in chunks]
    assert all(sizes)
    assert set(sizes[1 if spanned else 0 : -1]) <= {chunk_pages}
    if pages:
        assert sizes[0] == 1 or not spanned
        assert sizes[-1] <= chunk_pages
