"""Where a number of hits comes from, and what parts add up to."""

from __future__ import annotations

import pytest

from tasks.domain.hit_count import Known, Listing, Lists, Part, PartState, Provenance, known, total

LISTS = Lists(most=760, per_page=10, count_cap=100_000_000)
REPORTED, COUNTED, CAPPED = Provenance.REPORTED, Provenance.COUNTED, Provenance.CAPPED
OPEN, SPLIT, RELAXED, FULL = PartState.OPEN, PartState.SPLIT, PartState.RELAXED, PartState.FULL


@pytest.mark.parametrize(
    ("listing", "state", "expected"),
    [
        (Listing(1240, 10, 1, ended=False), OPEN, Known(1240, REPORTED)),
        (Listing(1240, 52, 6, ended=True), OPEN, Known(52, COUNTED)),  # the engine's number was wrong
        (Listing(None, 52, 6, ended=True), OPEN, Known(52, COUNTED)),
        (Listing(None, 60, 6, ended=False), OPEN, Known()),
        (Listing(100_000_000, 10, 1, ended=False), OPEN, Known(100_000_000, CAPPED)),
        (Listing(None, 760, 76, ended=True), OPEN, Known(760, CAPPED)),
        (Listing(None, 760, 76, ended=False), OPEN, Known(760, CAPPED)),
        (Listing(3000, 760, 76, ended=True), OPEN, Known(3000, REPORTED)),
        (Listing(3000, 760, 76, ended=True), FULL, Known(3000, CAPPED)),
        (Listing(755, 755, 76, ended=True), OPEN, Known(755, COUNTED)),
        (Listing(0, 0, 1, ended=True), OPEN, Known(0, COUNTED)),
    ],
)
def test_where_a_number_comes_from(listing, state, expected):
    assert known(listing, LISTS, state) == expected


def _part(id_: int, parent: int | None, state: PartState, of: Known) -> Part:
    return Part(id_, parent, state, of)


def test_a_split_query_counts_by_itself_until_all_of_its_parts_are_known():
    root = _part(1, None, SPLIT, Known(3000, REPORTED))
    first = _part(2, 1, OPEN, Known(1400, REPORTED))
    assert total([root, first, _part(3, 1, OPEN, Known())], 0) == Known(3000, REPORTED)
    assert total([root, first, _part(3, 1, OPEN, Known(1700, COUNTED))], 0) == Known(3100, REPORTED)
    assert total([root, first, _part(3, 1, FULL, Known(1700, CAPPED))], 0) == Known(3100, CAPPED)
    deeper = [_part(3, 1, SPLIT, Known(1700, REPORTED)), _part(4, 3, OPEN, Known(1650, COUNTED))]
    assert total([root, first, *deeper], 0) == Known(3050, REPORTED)


def test_what_was_listed_whole_has_its_different_hits():
    parts = [_part(1, None, SPLIT, Known(3000, REPORTED))]
    parts += [_part(n, 1, OPEN, Known(1510, COUNTED)) for n in (2, 3)]
    assert total(parts, 2990) == Known(2990, COUNTED)


def test_a_relaxed_query_has_what_its_fewer_words_find():
    parts = [_part(1, None, RELAXED, Known(0, COUNTED)), _part(2, 1, OPEN, Known())]
    assert total(parts, 0) == Known()
    assert total([parts[0], _part(2, 1, OPEN, Known(40, REPORTED))], 0) == Known(40, REPORTED)


def test_a_task_of_several_keyword_sets_is_known_when_all_are():
    first = _part(1, None, OPEN, Known(10, COUNTED))
    assert total([first, _part(2, None, OPEN, Known())], 10) == Known()
    assert total([first, _part(2, None, OPEN, Known(7, REPORTED))], 10) == Known(17, REPORTED)
