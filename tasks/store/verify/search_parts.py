"""Invariants of tasks and their partitions: numbering, keywords, spans, hit counts, and that no hit was lost.

Conservation: every hit that result pages brought (`task_parts.new_hits`) is a target of the task that is to do, stored
(fetched, or known before), refused or given up. One streaming pass over the tasks; times and JSON stay as the driver
returns them until a task needs a closer look (`_is_plain`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tasks.domain.hit_count import (
    HitCount,
    Partition,
    PartitionState,
    Provenance,
    chunk_count,
    chunk_range,
    task_hit_count,
)
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import Violation, as_time
from tasks.store.verify.replay import Groups


class _TaskRow(NamedTuple):
    """A task with the keyword sets of its round; `own`: the product's keywords, in its last round."""

    id: int
    found: int | None
    provenance: str
    reported: int | None
    words: str
    aliases: str
    own: str | None


_TASKS = """
    SELECT t.id, t.found, t.found_provenance AS provenance, t.found_reported AS reported,
        CAST(v.keywords AS TEXT) AS words, CAST(v.aliases AS TEXT) AS aliases,
        CASE WHEN v.round = (SELECT max(round) FROM virtual_tasks WHERE product_id = p.id)
            THEN CAST(p.keywords AS TEXT) END AS own
    FROM tasks t JOIN virtual_tasks v ON v.id = t.virtual_task_id JOIN products p ON p.id = t.product_id ORDER BY t.id
"""


class _PartRow(NamedTuple):
    """A partition; `keywords` and `dropped` are JSON until `_parsed`."""

    task_id: int
    id: int
    reported: int | None
    pages_read: int
    listed: int
    new_hits: int
    ended: int
    own_words: int
    found: int | None
    provenance: str
    pages: int
    chunk_pages: int
    asked_before: int
    keywords: Any
    parent_id: int | None
    first_chunk: int
    dropped: Any
    start_at: Any
    end_at: Any
    state: str

    @property
    def end(self) -> int:
        """The number behind its last chunk."""
        spanned = self.start_at is not None
        return self.first_chunk + chunk_count(self.pages, self.chunk_pages, spanned=spanned)

    def pages_of(self, chunk: int) -> range:
        """Return the numbers of the result pages of a chunk."""
        spanned = self.start_at is not None
        return chunk_range(chunk - self.first_chunk, self.pages, self.chunk_pages, spanned=spanned)


_PARTS = """
    SELECT task_id, id, reported, pages_read, listed, new_hits, ended, own_words, found, provenance,
        pages, chunk_pages, asked_before, CAST(keywords AS TEXT) AS keywords, parent_id, first_chunk,
        CAST(dropped AS TEXT) AS dropped, start_at, end_at, state
    FROM task_parts ORDER BY task_id, first_chunk
"""
_WHOLE = (None, 1, "[]", None, None, PartitionState.OPEN)
"""The last columns, from `parent_id` on, of a partition that is its task's only one."""


class _ChunkRow(NamedTuple):
    task_id: int
    chunk: int
    part_id: int
    subtask_id: int


_CHUNKS = """
    SELECT task_id, chunk, part_id, id AS subtask_id FROM subtasks WHERE parent_id IS NULL ORDER BY task_id
"""


class _TargetsOfTask(NamedTuple):
    """Targets of a task: result pages, those that were read, hits, and those in a legal state."""

    results: int = 0
    read: int = 0
    hits: int = 0
    legal: int = 0


def plan_violations(tx: Transaction, of_tasks: Sequence[int]) -> Iterator[Violation]:
    """Check every task against its partitions, subtasks and targets.

    Args:
        of_tasks: four numbers a task, the sums of its targets (`tasks.store.verify.replay`).
    """
    parts, chunks = Groups(tx.stream(_PartRow, _PARTS)), Groups(tx.stream(_ChunkRow, _CHUNKS))
    for task in tx.stream(_TaskRow, _TASKS):
        its, begun = parts.rows_of(task.id), chunks.rows_of(task.id)
        targets = _TargetsOfTask(*of_tasks[4 * task.id : 4 * task.id + 4])
        if not _is_plain(task, its, begun, targets):
            for message in _of_task(task, [_parsed(one) for one in its], begun, targets):
                yield Violation("partitions", None, message)


def _is_plain(
    task: _TaskRow, parts: Sequence[_PartRow], begun: Sequence[_ChunkRow], targets: _TargetsOfTask
) -> bool:
    """Return True for a task of one query and one chunk in which `_of_task` finds nothing wrong; most are."""
    if len(parts) != 1 or len(begun) != 1 or parts[0][-len(_WHOLE) :] != _WHOLE:
        return False
    (one,) = parts
    if one.provenance == Provenance.COUNTED:
        fits = bool(one.ended) and one.found == one.listed and task[1:3] == (targets.hits, one.provenance)
    else:
        fits = one[8:10] == task[1:3] == (None, Provenance.UNKNOWN)
    return (
        fits
        and one.keywords == task.words
        and bool(one.own_words) == (task.own != "[]")
        and task.reported == one.reported
        and one.new_hits == targets.hits == targets.legal
        and one.pages_read == targets.read
        and begun[0][1:3] == (1, one.id)
        and one.asked_before == 0
        and min(one.pages, one.chunk_pages) == targets.results
    )


def _parsed(part: _PartRow) -> _PartRow:
    return part._replace(keywords=json.loads(part.keywords), dropped=json.loads(part.dropped))


def _of_task(
    task: _TaskRow, its: Sequence[_PartRow], chunks: Sequence[_ChunkRow], targets: _TargetsOfTask
) -> Iterator[str]:
    """Yield what is wrong with a task."""
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
    for problem in _of_chunks(chunks, by_id, targets.results):
        yield f"{name}: {problem}"
    new_hits, pages_read = sum(one.new_hits for one in its), sum(one.pages_read for one in its)
    if not new_hits == targets.hits == targets.legal:
        yield (
            f"{name} listed {new_hits} different hits; {targets.hits} are targets, {targets.legal} of them to do, "
            "stored, refused or given up"
        )
    if pages_read != targets.read:
        yield f"{name} has read {pages_read} result pages, {targets.read} of its targets say so"
    yield from _hit_count(name, found, provenance, its, targets.hits)


def _hit_count(
    name: str, found: int | None, provenance: str, its: Sequence[_PartRow], different: int
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
    one: _PartRow, by_id: dict[int, _PartRow], words: Sequence[str], own: Sequence[str] | None
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


def _listing(one: _PartRow) -> Iterator[str]:
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


def _replacing(one: _PartRow, parent: _PartRow) -> Iterator[str]:
    relaxed = parent.state == PartitionState.RELAXED
    dropped = one.dropped[: len(parent.dropped)] if relaxed else one.dropped
    less = [*one.keywords, *one.dropped[len(parent.dropped) :]] if relaxed else one.keywords
    same = sorted(less) == sorted(parent.keywords) and dropped == parent.dropped
    if not same or len(one.dropped) != len(parent.dropped) + relaxed or one.own_words != parent.own_words:
        yield f"asks for {one.keywords} without {one.dropped}, where partition {parent.id} was {parent.state}"


def _spans(one: _PartRow, below: Sequence[_PartRow]) -> Iterator[str]:
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


def _of_chunks(chunks: Sequence[_ChunkRow], by_id: dict[int, _PartRow], result_targets: int) -> Iterator[str]:
    """Chunks that were begun against their partitions: one after the other, with all their search URLs."""
    begun: dict[int, set[int]] = {}
    for _, chunk, part_id, subtask_id in chunks:
        part = by_id.get(part_id)
        if part is not None and not part.first_chunk <= chunk < part.end:
            yield f"subtask {subtask_id} is of chunk {chunk}, its partition has {part.first_chunk} to {part.end - 1}"
        elif part is not None:
            begun.setdefault(part_id, set()).add(chunk)
    pages = -sum(part.asked_before for part in by_id.values())
    for part_id, numbers in begun.items():
        part = by_id[part_id]
        if numbers != set(range(part.first_chunk, part.first_chunk + len(numbers))):
            yield f"of partition {part_id}, chunks {sorted(numbers)} were begun: not the first ones"
        pages += sum(len(part.pages_of(number)) for number in numbers)
    if pages != result_targets:
        yield f"the chunks that were begun have {pages} search URLs of their own, {result_targets} are targets"
