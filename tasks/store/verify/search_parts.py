"""Invariants of tasks and their partitions: numbering, keywords, spans, hit counts, and that no hit was lost.

Conservation: every hit that result pages brought (`task_parts.new_hits`) is a target of the task that is to do, stored
(fetched, or known before), refused or given up. One query proves each invariant of single partitions and chunks; the
hit count of a task, and what relaxed queries ask for, follow from the tree of its partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tasks.domain.hit_count import Partition, PartitionState, Provenance, task_hit_count
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import Violation, invariants_of, row_violations
from tasks.store.verify.replay import Groups

_FIRST = "CASE WHEN q.start_at IS NULL THEN q.chunk_pages ELSE 1 END"
"""Result pages of a partition's first chunk."""
_END = f"""q.first_chunk + CASE WHEN q.pages = 0 THEN 0 WHEN q.pages <= {_FIRST} THEN 1
    ELSE 1 + (q.pages - {_FIRST} + q.chunk_pages - 1) / nullif(q.chunk_pages, 0) END"""
"""The number behind a partition's last chunk."""

_QUERIES = """
-- partitions: partition {id} of task {task_id} begins with chunk {first_chunk}, not {should}
SELECT id, task_id, first_chunk, should FROM (SELECT q.id, q.task_id, q.first_chunk,
    coalesce(lag(END_OF_Q) OVER (PARTITION BY q.task_id ORDER BY q.first_chunk), 1) AS should FROM task_parts q) n
WHERE first_chunk <> should
-- partitions: partition {id} has chunks from {first_chunk} to before {behind}; {n} of {low} to {high} were begun
SELECT q.id, q.first_chunk, END_OF_Q AS behind, s.n, s.low, s.high FROM task_parts q JOIN (
    SELECT part_id, count(*) AS n, min(chunk) AS low, max(chunk) AS high FROM subtasks WHERE parent_id IS NULL
    GROUP BY part_id) s ON s.part_id = q.id
WHERE s.low <> q.first_chunk OR s.high >= END_OF_Q OR s.n <> s.high + 1 - s.low
-- partitions: task {id} has no partition that asks for {keywords}, as its virtual task does
SELECT t.id, v.keywords FROM tasks t JOIN virtual_tasks v ON v.id = t.virtual_task_id WHERE NOT EXISTS (
    SELECT 1 FROM task_parts q
    WHERE q.task_id = t.id AND q.parent_id IS NULL AND CAST(q.keywords AS text) = CAST(v.keywords AS text))
-- partitions: first partition {id} asks for {keywords}, dropped {dropped}, from {start_at}, own words {own_words}
SELECT q.id, q.keywords, q.dropped, q.start_at, q.own_words
FROM (SELECT q.*, CAST(q.keywords AS text) AS asked FROM task_parts q WHERE q.parent_id IS NULL) q
JOIN tasks t ON t.id = q.task_id JOIN products p ON p.id = t.product_id
JOIN (SELECT id, product_id, round, CAST(keywords AS text) AS words, CAST(aliases AS text) AS aliases
    FROM virtual_tasks) v ON v.id = t.virtual_task_id
WHERE CAST(q.dropped AS text) <> '[]' OR q.start_at IS NOT NULL
    OR (q.asked <> v.words AND replace(v.aliases, q.asked, '') = v.aliases)
    OR (q.own_words <> (CAST(p.keywords AS text) <> '[]' AND q.asked = v.words)
    -- a person may have changed a product's words since an earlier round
    AND v.round = (SELECT max(round) FROM virtual_tasks WHERE product_id = p.id))
-- partitions: partition {id} is {state}: if it was split or relaxed, others replace it, else none does
SELECT id, state FROM task_parts WHERE (state IN ('split', 'relaxed'))
    <> (id IN (SELECT parent_id FROM task_parts WHERE parent_id IS NOT NULL))
-- partitions: partition {id} replaces partition {parent_id}, which is none of its task
SELECT q.id, q.parent_id FROM task_parts q JOIN task_parts r ON r.id = q.parent_id WHERE r.task_id <> q.task_id
-- partitions: partition {id} begins at {start_at} and ends at {end_at}: either both or none
SELECT id, start_at, end_at FROM task_parts WHERE (start_at IS NULL) <> (end_at IS NULL)
-- partitions: partition {parent_id} is split into spans that overlap or leave a gap at {start_at}
SELECT parent_id, start_at FROM (SELECT parent_id, start_at, lag(end_at) OVER (
    PARTITION BY parent_id ORDER BY start_at) AS before FROM task_parts
    WHERE parent_id IS NOT NULL AND start_at IS NOT NULL) spans WHERE before <> start_at
-- partitions: partition {id} from {start_at} to {end_at} is split into spans from {first} to {last}
SELECT q.id, q.start_at, q.end_at, s.first, s.last FROM task_parts q JOIN (
    SELECT parent_id, min(start_at) AS first, max(end_at) AS last FROM task_parts
    WHERE parent_id IS NOT NULL GROUP BY parent_id) s ON s.parent_id = q.id
WHERE q.state = 'split' AND (s.first <> q.start_at OR s.last <> q.end_at)
-- partitions: partition {id} has found {found} ({provenance}), listed {listed}, reported {reported}, ended {ended}
SELECT id, found, provenance, listed, reported, ended FROM task_parts
WHERE (provenance = 'counted' AND NOT ended) OR found IS DISTINCT FROM CASE provenance WHEN 'counted' THEN listed
    WHEN 'unknown' THEN NULL ELSE CASE WHEN reported > listed THEN reported ELSE listed END END
-- partitions: task {id} has {found_reported} hits reported, its first partitions {reported}
SELECT t.id, t.found_reported, q.reported FROM tasks t JOIN (SELECT task_id, sum(reported) AS reported
    FROM task_parts WHERE parent_id IS NULL GROUP BY task_id) q ON q.task_id = t.id
WHERE t.found_reported IS DISTINCT FROM q.reported
"""
_INVARIANTS = invariants_of(_QUERIES.replace("END_OF_Q", _END))


class _TaskSums(NamedTuple):
    """A task, with the sums of its partitions; `pages`: result pages of chunks that were begun, each asked for once."""

    id: int
    found: int | None
    provenance: str
    parts: int
    new_hits: int
    pages_read: int
    pages: int
    one_found: int | None
    one_provenance: str


_TASKS = f"""
    SELECT t.id, t.found, t.found_provenance AS provenance, count(*) AS parts, sum(q.new_hits) AS new_hits,
        sum(q.pages_read) AS pages_read, sum(CASE WHEN {_FIRST} + (s.n - 1) * q.chunk_pages < q.pages
            THEN {_FIRST} + (s.n - 1) * q.chunk_pages ELSE q.pages END - q.asked_before) AS pages,
        min(q.found) AS one_found, min(q.provenance) AS one_provenance
    FROM tasks t JOIN task_parts q ON q.task_id = t.id
    JOIN (SELECT part_id, count(*) AS n FROM subtasks WHERE parent_id IS NULL GROUP BY part_id) s ON s.part_id = q.id
    GROUP BY t.id, t.found, t.found_provenance ORDER BY t.id
"""


class _TreePart(NamedTuple):
    task_id: int
    id: int
    parent_id: int | None
    state: str
    found: int | None
    provenance: str
    own_words: bool
    keywords: list[str]
    dropped: list[str]


_PARTS = """
    SELECT task_id, id, parent_id, state, found, provenance, own_words, keywords, dropped FROM task_parts
    WHERE task_id IN (SELECT task_id FROM task_parts WHERE parent_id IS NOT NULL OR first_chunk > 1)
    ORDER BY task_id, id
"""


def plan_violations(tx: Transaction, of_tasks: Sequence[int]) -> Iterator[Violation]:
    """Check every task against its partitions, subtasks and targets.

    Args:
        of_tasks: four numbers a task, the sums of its targets (`tasks.store.verify.replay`): result pages, those that
            were read, hits, and those in a legal state.
    """
    yield from row_violations(tx, _INVARIANTS)
    trees = Groups(tx.stream(_TreePart, _PARTS))
    for task in tx.stream(_TaskSums, _TASKS):
        results, read, hits, legal = of_tasks[4 * task.id : 4 * task.id + 4] or (0, 0, 0, 0)
        parts = trees.rows_of(task.id) if task.parts > 1 else []
        should = _hit_count(task, parts, hits)
        is_ = (task.pages, task.pages_read, task.new_hits, task.found, task.provenance)
        if is_ != (results, read, hits, *should) or hits != legal:
            message = (
                f"task {task.id}: chunks of {task.pages} search URLs were begun, {results} are targets; "
                f"{task.pages_read} were read, {read} targets say so; they listed {task.new_hits} different hits, "
                f"{hits} are targets, {legal} of them to do, stored, refused or given up; "
                f"it has found {task.found} ({task.provenance}), its partitions add up to {should}"
            )
            yield Violation("partitions", None, message)
        for message in _differing_queries(parts):
            yield Violation("partitions", None, message)


def _hit_count(task: _TaskSums, parts: Sequence[_TreePart], hits: int) -> tuple[int | None, str]:
    """Return the hit count that a task should have; `hits`: its different ones."""
    if not parts:
        counted = task.one_provenance == Provenance.COUNTED
        return (hits if counted else task.one_found), task.one_provenance
    try:
        tree = [
            Partition(
                keywords=(),
                pages=0,
                chunk_pages=1,
                id=one.id,
                parent_id=one.parent_id,
                state=PartitionState(one.state),
                found=one.found if one.provenance != Provenance.UNKNOWN else None,
                provenance=Provenance(one.provenance),
            )
            for one in parts
        ]
    except ValueError as error:
        return None, str(error)
    found = task_hit_count(tree, hits)
    return found.found, found.provenance


def _differing_queries(parts: Sequence[_TreePart]) -> Iterator[str]:
    """Yield partitions that do not ask for the words of the one that they replace, less those that were dropped."""
    by_id = {one.id: one for one in parts}
    for one in parts:
        parent = by_id.get(one.parent_id or 0)
        if parent is None:
            continue
        relaxed, n = parent.state == PartitionState.RELAXED, len(parent.dropped)
        same = (
            sorted([*one.keywords, *one.dropped[n:]]) == sorted(parent.keywords)
            and one.dropped[:n] == parent.dropped
            and len(one.dropped) == n + relaxed
            and one.own_words == parent.own_words
        )
        if not same:
            yield f"partition {one.id} asks for {one.keywords} without {one.dropped}, {parent.id} for {parent.keywords}"
