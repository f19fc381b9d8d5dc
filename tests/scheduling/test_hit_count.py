"""Where a number of hits comes from, and what parts add up to."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.hit_count import (
    EngineLimits,
    HitCount,
    Listing,
    Partition,
    PartitionState,
    Provenance,
    chunk_count,
    chunk_range,
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
    ("listing", "state", "expected"),
    [
        (Listing(1240, 10, 1, ended=False), OPEN, HitCount(1240, REPORTED)),
        (Listing(1240, 52, 6, ended=True), OPEN, HitCount(52, COUNTED)),  # the engine's number was wrong
        (Listing(None, 52, 6, ended=True), OPEN, HitCount(52, COUNTED)),
        (Listing(None, 60, 6, ended=False), OPEN, HitCount()),
        (Listing(100_000_000, 10, 1, ended=False), OPEN, HitCount(100_000_000, CAPPED)),
        (Listing(None, 760, 76, ended=True), OPEN, HitCount(760, CAPPED)),
        (Listing(None, 760, 76, ended=False), OPEN, HitCount(760, CAPPED)),
        (Listing(3000, 760, 76, ended=True), OPEN, HitCount(3000, REPORTED)),
        (Listing(3000, 760, 76, ended=True), FULL, HitCount(3000, CAPPED)),
        (Listing(755, 755, 76, ended=True), OPEN, HitCount(755, COUNTED)),
        (Listing(0, 0, 1, ended=True), OPEN, HitCount(0, COUNTED)),
    ],
)
def test_where_a_number_comes_from(listing, state, expected):
    assert hit_count(listing, LIMITS, state) == expected


def _part(id_: int, parent: int | None, state: PartitionState, of: HitCount) -> Partition:
    return Partition(id_, parent, state, of)


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
    n = chunk_count(pages, chunk_pages, spanned=spanned)
    chunks = [chunk_range(place, pages, chunk_pages, spanned=spanned) for place in range(n)]
    assert list(chain.from_iterable(chunks)) == list(range(1, pages + 1))
    sizes = [len(chunk) for chunk in chunks]
    assert all(sizes)
    assert sizes[1 if spanned else 0 : -1] == [chunk_pages] * (n - 1 - spanned if n > 1 else 0)
    if spanned and pages:
        assert sizes[0] == 1
