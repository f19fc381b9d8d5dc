"""Invariants of tasks and their partitions: numbering, keywords, spans, hit counts, and that no hit was lost.

Conservation: every hit that result pages brought (`task_parts.new_hits`) is a target of the task, and this target is
still to do, stored (fetched, or known before), refused or given up. Queries prove this, and the facts of a partition.
Python compares the partitions of a task that has several.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter

from tasks.domain.hit_count import HitCount, Partition, PartitionState, Provenance, task_hit_count
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.clocks import Clock
from tasks.store.verify.invariants import Violation, row_violations

_ASKED = "CASE WHEN q.start_at IS NULL THEN q.chunk_pages ELSE 1 END + (s.n - 1) * q.chunk_pages"
"""Result pages of a partition's first `s.n` chunks, if it has as many: the first chunk of a span has one."""
_BEGUN = """(
    SELECT part_id, count(*) AS n, min(chunk) AS low, max(chunk) AS high
    FROM subtasks WHERE parent_id IS NULL GROUP BY part_id
)"""
_LOST = """(
    SELECT min(g.id) FROM targets g LEFT JOIN pages p ON p.url_key = g.url_key
    LEFT JOIN page_products l ON l.page_id = p.id AND l.product_id = t.product_id
    WHERE g.task_id = t.id AND g.kind = 'hit' AND g.state = 'stored' AND (l.page_id IS NULL OR (p.url <> g.url
        AND replace(p.url, 'https://', 'http://') <> replace(g.url, 'https://', 'http://')))
)"""
"""A stored target of task `t` whose page is not stored, or not linked to the task's product."""
_STATES = ", ".join(f"'{state}'" for state in PartitionState)
_QUERIES = f"""
SELECT q.*, s.n, s.low, s.high
FROM task_parts q LEFT JOIN tasks t ON t.id = q.task_id LEFT JOIN products p ON p.id = t.product_id
LEFT JOIN virtual_tasks v ON v.id = t.virtual_task_id LEFT JOIN {_BEGUN} s ON s.part_id = q.id
WHEN t.id IS NULL THEN 'lost: partition {{id}} is of task {{task_id}}, which is gone'
WHEN q.state NOT IN ({_STATES}) THEN 'partitions: partition {{id}} is {{state}}, which is no state'
WHEN s.n IS NULL THEN 'partitions: partition {{id}} of task {{task_id}} has no subtask'
WHEN s.low <> q.first_chunk OR s.n <> s.high + 1 - s.low OR q.pages = 0
    OR (s.n > 1 AND {_ASKED} - q.chunk_pages >= q.pages)
THEN 'partitions: partition {{id}} has {{pages}} pages from chunk {{first_chunk}}; {{n}} began, {{low}} to {{high}}'
WHEN q.parent_id IS NULL AND (CAST(q.dropped AS text) <> '[]' OR q.start_at IS NOT NULL
    OR (CAST(q.keywords AS text) <> CAST(v.keywords AS text) AND (
        replace(CAST(v.aliases AS text), CAST(q.keywords AS text), '') = CAST(v.aliases AS text)
        OR NOT EXISTS (SELECT 1 FROM task_parts o WHERE o.task_id = q.task_id AND o.parent_id IS NULL
            AND CAST(o.keywords AS text) = CAST(v.keywords AS text))))
    OR (q.own_words <> (CAST(p.keywords AS text) <> '[]' AND CAST(q.keywords AS text) = CAST(v.keywords AS text))
        -- a person may have changed a product's words since an earlier round
        AND v.round = (SELECT max(round) FROM virtual_tasks WHERE product_id = p.id)))
THEN 'partitions: partition {{id}} asks for {{keywords}} (own: {{own_words}}), less {{dropped}}, from {{start_at}}'
WHEN (q.start_at IS NULL) <> (q.end_at IS NULL)
THEN 'partitions: partition {{id}} begins at {{start_at}} and ends at {{end_at}}: either both or none'
WHEN (q.provenance = 'counted' AND NOT q.ended) OR q.found IS DISTINCT FROM CASE WHEN q.provenance = 'unknown' THEN NULL
    WHEN q.provenance <> 'counted' AND q.reported > q.listed THEN q.reported ELSE q.listed END
THEN 'partitions: partition {{id}} has found {{found}} ({{provenance}}), listed {{listed}}, reported {{reported}}'

SELECT t.*, q.*
FROM (SELECT t.id, t.product_id, t.found, t.found_provenance, t.found_reported,
    count(*) FILTER (WHERE g.kind = 'result') AS results,
    count(*) FILTER (WHERE g.kind = 'result' AND g.state = 'stored') AS read,
    count(*) FILTER (WHERE g.kind = 'hit') AS hits,
    count(*) FILTER (WHERE g.kind = 'hit' AND g.state = 'stored') AS stored,
    count(*) FILTER (WHERE g.kind = 'hit' AND g.state IN ('todo', 'stored', 'refused', 'given_up')) AS legal
    FROM tasks t LEFT JOIN targets g ON g.task_id = t.id GROUP BY t.id) t
LEFT JOIN (SELECT q.task_id, count(*) AS parts, sum(q.new_hits) AS new_hits, sum(q.pages_read) AS pages_read,
    sum(CASE WHEN {_ASKED} < q.pages THEN {_ASKED} ELSE q.pages END - q.asked_before) AS asked,
    sum(CASE WHEN q.parent_id IS NULL THEN q.reported END) AS reported,
    min(q.found) AS part_found, min(q.provenance) AS provenance
    FROM task_parts q JOIN {_BEGUN} s ON s.part_id = q.id GROUP BY q.task_id) q ON q.task_id = t.id
-- Each page of its attempts has a target (`tasks.store.verify.invariants`): as many stored targets are no others.
WHEN t.stored <> (SELECT count(*) FROM subtasks s JOIN attempts a ON a.subtask_id = s.id
    JOIN pages p ON p.attempt_id = a.id WHERE s.task_id = t.id) AND {_LOST} IS NOT NULL
THEN 'lost: target ' || {_LOST} || ' of task {{id}} is stored, but no such page is stored and linked to its product'
WHEN q.asked <> t.results OR q.pages_read <> t.read OR q.new_hits <> t.hits OR t.hits <> t.legal
THEN 'partitions: task {{id}}: {{asked}} search URLs of its chunks were begun, {{results}} are targets; {{pages_read}} '
    || 'were read, {{read}} targets say so; they listed {{new_hits}} different hits, {{hits}} are targets, {{legal}} '
    || 'of them to do, stored, refused or given up'
WHEN t.found_reported IS DISTINCT FROM q.reported
THEN 'partitions: task {{id}} has {{found_reported}} hits reported, its first partitions {{reported}}'
WHEN q.parts = 1 AND (t.found_provenance <> q.provenance
    OR t.found IS DISTINCT FROM CASE q.provenance WHEN 'counted' THEN t.hits ELSE q.part_found END)
THEN 'partitions: task {{id}} found {{found}} ({{found_provenance}}), its partition {{part_found}} ({{provenance}})'
"""


@dataclass(frozen=True, kw_only=True)
class _TreePart(Partition):
    """A partition of a task, with the task's hit count and number of different hits."""

    of_task: int | None
    of_task_provenance: str
    hits: int


_TREES = """
    SELECT q.id, q.task_id, q.first_chunk, q.pages, q.chunk_pages, q.keywords, q.dropped, q.own_words, q.start_at,
        q.end_at, q.parent_id, q.state, q.found, q.provenance, t.found AS of_task,
        t.found_provenance AS of_task_provenance,
        (SELECT count(*) FROM targets WHERE task_id = t.id AND kind = 'hit') AS hits
    FROM task_parts q JOIN tasks t ON t.id = q.task_id WHERE q.task_id IN (
        SELECT task_id FROM task_parts WHERE first_chunk <> 1 OR parent_id IS NOT NULL OR state IN ('split', 'relaxed'))
    ORDER BY q.task_id, q.first_chunk
"""


def plan_violations(tx: Transaction, clock: Clock) -> Iterator[Violation]:
    """Check every task against its partitions, subtasks and targets."""
    yield from row_violations(tx, _QUERIES, clock)
    try:
        for _, tree in groupby(tx.stream(_TreePart, _TREES), key=attrgetter("task_id")):
            for message in _problems(list(tree)):
                yield Violation("partitions", None, message)
    except ValueError as error:  # an unknown state or provenance
        yield Violation("partitions", None, str(error))


def _problems(parts: Sequence[_TreePart]) -> Iterator[str]:
    """Yield the violations of a task; its partitions are given in the order of their chunks."""
    task = parts[0]
    found, should = (
        HitCount(task.of_task, Provenance(task.of_task_provenance)),
        task_hit_count(parts, task.hits),
    )
    if found != should:
        yield f"task {task.task_id} has {found}, its partitions add up to {should}"
    next_chunk = 1
    for one in parts:
        if one.first_chunk != next_chunk:
            yield f"partition {one.id} of task {one.task_id} begins with chunk {one.first_chunk}, not {next_chunk}"
        next_chunk = one.end
    by_id = {one.id: one for one in parts}
    below: dict[int, list[_TreePart]] = {one.id: [] for one in parts}
    for one in parts:
        if one.parent_id is not None and one.parent_id not in by_id:
            yield f"partition {one.id} replaces {one.parent_id}, which is none of task {one.task_id}"
        elif one.parent_id is not None:
            below[one.parent_id].append(one)
            if not _asks_for_the_rest(one, by_id[one.parent_id]):
                yield f"partition {one.id} asks for {one.keywords} without {one.dropped}; it replaces {one.parent_id}"
    for one in parts:
        if (one.state in (PartitionState.SPLIT, PartitionState.RELAXED)) != bool(below[one.id]):
            yield f"partition {one.id} is {one.state}: if it was split or relaxed, others replace it, else none does"
        spans = sorted(
            (part.start_at, part.end_at) for part in below[one.id] if part.start_at and part.end_at
        )
        if any(earlier[1] != later[0] for earlier, later in pairwise(spans)):
            yield f"partition {one.id} is split into spans that overlap or leave a gap: {spans}"
        is_split = one.state == PartitionState.SPLIT and one.start_at and spans
        if is_split and (spans[0][0], spans[-1][1]) != (one.start_at, one.end_at):
            yield f"partition {one.id} from {one.start_at} to {one.end_at} is split into other spans: {spans}"


def _asks_for_the_rest(part: Partition, parent: Partition) -> bool:
    """Return True if a partition asks for the words of the one that it replaces, less one that was dropped."""
    n = len(parent.dropped)
    return (
        sorted([*part.keywords, *part.dropped[n:]]) == sorted(parent.keywords)
        and part.dropped[:n] == parent.dropped
        and len(part.dropped) == n + (parent.state == PartitionState.RELAXED)
        and part.own_words == parent.own_words
    )
