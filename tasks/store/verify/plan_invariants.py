"""Invariants of tasks and their partitions: numbering, keywords, spans, hit counts, and that no hit was lost.

Conservation: every hit that result pages brought (`task_parts.new_hits`) is a target of the task that is to do, stored
(fetched, or known before), refused or given up. One streaming pass over the tasks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tasks.domain.hit_count import HitCount, Partition, PartitionState, Provenance, task_hit_count
from tasks.store.sql.database import stream
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.grouped import Groups, TargetSums
from tasks.store.verify.invariants import Violation, as_time

_TASKS = """
SELECT t.id, t.found, t.found_provenance, t.found_reported, CAST(v.keywords AS TEXT), CAST(v.aliases AS TEXT),
    CASE WHEN v.round = (SELECT max(round) FROM virtual_tasks WHERE product_id = p.id) THEN CAST(p.keywords AS TEXT) END
FROM tasks t JOIN virtual_tasks v ON v.id = t.virtual_task_id JOIN products p ON p.id = t.product_id ORDER BY t.id
"""
_PARTS = """
SELECT task_id, id, parent_id, first_chunk, CAST(chunks AS TEXT), CAST(keywords AS TEXT), CAST(dropped AS TEXT),
    own_words, start_at, end_at, state, pages_read, listed, new_hits, ended, reported, found, provenance
FROM task_parts ORDER BY task_id, first_chunk
"""
_CHUNKS = "SELECT task_id, chunk, part_id, id FROM subtasks WHERE parent_id IS NULL ORDER BY task_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A row of `_PARTS`."""

    id: int
    parent_id: int | None
    first_chunk: int
    chunks: Sequence[Sequence[str]]
    keywords: Sequence[str]
    dropped: Sequence[str]
    own_words: bool
    start_at: Any
    end_at: Any
    state: str
    pages_read: int
    listed: int
    new_hits: int
    ended: bool
    reported: int | None
    found: int | None
    provenance: str

    @property
    def end(self) -> int:
        """The number behind its last chunk."""
        return self.first_chunk + len(self.chunks)


def plan_violations(conn: Transaction, of_tasks: TargetSums) -> Iterator[Violation]:
    """Check every task against its partitions, subtasks and targets.

    Args:
        of_tasks: the targets of each (`tasks.store.verify.replay` has counted them).
    """
    parts, chunks = Groups(stream(conn, _PARTS)), Groups(stream(conn, _CHUNKS))
    for task in stream(conn, _TASKS):
        rows, begun, counted = parts.of(task[0]), chunks.of(task[0]), of_tasks.of(task[0])
        if _plain(task, rows, begun, counted):
            continue
        for message in _of_task(task, [_part(row) for row in rows], begun, counted):
            yield Violation("partitions", None, message)


def _plain(
    task: Sequence[Any], rows: Sequence[Sequence[Any]], begun: Sequence[Sequence[Any]], counted: Sequence[int]
) -> bool:
    """Whether a task is of one query and one chunk, as most are, of which `_of_task` would find nothing."""
    if len(rows) != 1 or len(begun) != 1:
        return False
    _, found, provenance, reported, words, _, own = task
    _, part_id, parent_id, first_chunk, chunks, keywords, dropped, own_words, start_at, end_at, *rest = rows[
        0
    ]
    state, pages_read, listed, new_hits, ended, its_reported, its_found, its_provenance = rest
    if its_provenance == "counted":
        fits = bool(ended) and its_found == listed and (found, provenance) == (counted[2], "counted")
    else:
        fits = its_provenance == "unknown" and its_found is found is None and provenance == "unknown"
    return bool(
        fits
        and (parent_id, first_chunk, dropped, start_at, end_at, state) == (None, 1, "[]", None, None, "open")
        and keywords == words
        and bool(own_words) == (own != "[]")
        and reported == its_reported
        and new_hits == counted[2] == counted[3]
        and pages_read == counted[1]
        and begun[0][1:3] == (1, part_id)
        and [len(set(urls)) for urls in json.loads(chunks)[:1]] == [counted[0]]
    )


def _part(row: Sequence[Any]) -> _Part:
    values = dict(zip(_Part.__slots__, row[1:], strict=True))
    for name in ("chunks", "keywords", "dropped"):
        values[name] = json.loads(values[name])
    return _Part(**values)


def _of_task(
    task: Sequence[Any], its: Sequence[_Part], chunks: Sequence[Sequence[Any]], counted: Sequence[int]
) -> Iterator[str]:
    task_id, found, provenance, reported, words, aliases, own = task
    name = f"task {task_id}"
    if [one.first_chunk for one in its] != [1, *(one.end for one in its)][: len(its)]:
        yield f"{name}: its partitions are not numbered through: {[(one.first_chunk, one.end) for one in its]}"
    roots = [one for one in its if one.parent_id is None]
    sets = [json.loads(words), *json.loads(aliases)]
    asked = [one.keywords for one in roots]
    if any(one not in sets for one in asked) or sets[0] not in asked:
        yield f"{name} asks for {asked}, its virtual task for {sets}"
    said = [one.reported for one in roots if one.reported is not None]
    if reported != (sum(said) if said else None):
        yield f"{name} has {reported} hits reported, its partitions {said}"
    by_id = {one.id: one for one in its}
    for one in its:
        for problem in _of_part(one, by_id, sets[0], None if own is None else json.loads(own)):
            yield f"partition {one.id} of {name} {problem}"
    for problem in _of_chunks(chunks, by_id, counted[0]):
        yield f"{name}: {problem}"
    new_hits, pages_read = sum(one.new_hits for one in its), sum(one.pages_read for one in its)
    if not new_hits == counted[2] == counted[3]:
        yield (
            f"{name} listed {new_hits} different hits; {counted[2]} are targets, {counted[3]} of them to do, stored, "
            "refused or given up"
        )
    if pages_read != counted[1]:
        yield f"{name} has read {pages_read} result pages, {counted[1]} of its targets say so"
    yield from _hit_count(name, found, provenance, its, counted[2])


def _hit_count(
    name: str, found: int | None, provenance: str, its: Sequence[_Part], different: int
) -> Iterator[str]:
    if any((one.found is None) != (one.provenance == Provenance.UNKNOWN) for one in its):
        return  # that is told of the partition
    try:
        parts = [
            Partition(
                one.id,
                one.parent_id,
                PartitionState(one.state),
                HitCount(one.found, Provenance(one.provenance)),
            )
            for one in its
        ]
    except ValueError as error:
        yield f"{name}: {error}"
        return
    should = task_hit_count(parts, different)
    if (found, provenance) != (should.found, should.provenance):
        yield (
            f"{name} has found {found} ({provenance}), its partitions add up to {should.found} ({should.provenance})"
        )


def _of_part(
    one: _Part, by_id: dict[int, _Part], words: Sequence[str], own: Sequence[str] | None
) -> Iterator[str]:
    below = [other for other in by_id.values() if other.parent_id == one.id]
    if (one.state in (PartitionState.SPLIT, PartitionState.RELAXED)) != bool(below):
        yield f"is {one.state} and is replaced by {len(below)}"
    if (one.start_at is None) != (one.end_at is None):
        yield f"begins at {one.start_at} and ends at {one.end_at}: either both or none"
    yield from _listing(one)
    if one.parent_id is None:
        # A person may have changed a product's words since an earlier round.
        owned = one.own_words if own is None else bool(own) and one.keywords == words
        if one.dropped or one.start_at is not None or one.own_words != owned:
            yield f"is a first one, with dropped {one.dropped}, span {one.start_at}, own words {one.own_words}"
    elif one.parent_id not in by_id:
        yield f"replaces partition {one.parent_id}, which is none of its task"
    else:
        yield from _replacing(one, by_id[one.parent_id])
    if one.state == PartitionState.SPLIT:
        yield from _spans(one, below)


def _listing(one: _Part) -> Iterator[str]:
    """Its hit count, as far as its listing alone tells: what the engine lists is known to the catalog only."""
    of = {
        Provenance.COUNTED: one.listed,
        Provenance.REPORTED: max(one.reported or 0, one.listed),
        Provenance.CAPPED: max(one.reported or 0, one.listed),
    }
    should = of.get(one.provenance)  # type: ignore[call-overload]
    if one.found != should or (one.provenance == Provenance.COUNTED and not one.ended):
        yield (
            f"has found {one.found} ({one.provenance}), and listed {one.listed}, reported {one.reported}, "
            f"to its end: {bool(one.ended)}"
        )


def _replacing(one: _Part, parent: _Part) -> Iterator[str]:
    relaxed = parent.state == PartitionState.RELAXED
    dropped = one.dropped[: len(parent.dropped)] if relaxed else one.dropped
    less = [*one.keywords, *one.dropped[len(parent.dropped) :]] if relaxed else one.keywords
    same = sorted(less) == sorted(parent.keywords) and dropped == parent.dropped
    if not same or len(one.dropped) != len(parent.dropped) + relaxed or one.own_words != parent.own_words:
        yield f"asks for {one.keywords} without {one.dropped}, where partition {parent.id} was {parent.state}"


def _spans(one: _Part, below: Sequence[_Part]) -> Iterator[str]:
    """Spans share no moment and leave none out."""
    spans = [
        (as_time(other.start_at), as_time(other.end_at)) for other in below if other.start_at is not None
    ]
    inside = sorted(spans)
    if not inside:
        return
    meet = all(before[1] == after[0] for before, after in pairwise(inside))
    whole = one.start_at is None or (as_time(one.start_at), as_time(one.end_at)) == (
        inside[0][0],
        inside[-1][1],
    )
    if not (meet and whole):
        yield "is split into spans that overlap or leave a gap"


def _of_chunks(
    chunks: Sequence[Sequence[Any]], by_id: dict[int, _Part], result_targets: int
) -> Iterator[str]:
    """Chunks that were begun against their partitions: one after the other, with all their search URLs."""
    begun: dict[int, set[int]] = {}
    for _, chunk, part_id, subtask_id in chunks:
        part = by_id.get(part_id)
        if part is not None and not part.first_chunk <= chunk < part.end:
            yield f"subtask {subtask_id} is of chunk {chunk}, its partition has {part.first_chunk} to {part.end - 1}"
        elif part is not None:
            begun.setdefault(part_id, set()).add(chunk)
    urls: set[str] = set()
    for part_id, numbers in begun.items():
        part = by_id[part_id]
        if numbers != set(range(part.first_chunk, part.first_chunk + len(numbers))):
            yield f"of partition {part_id}, chunks {sorted(numbers)} were begun: not the first ones"
        urls.update(url for n in numbers for url in part.chunks[n - part.first_chunk])
    if len(urls) != result_targets:
        yield f"the chunks that were begun have {len(urls)} search URLs, {result_targets} are targets"
