"""Invariants of tasks and their partitions: numbering, keywords, spans, hit counts, and that no hit was lost.

Conservation: every hit that result pages brought (`task_parts.new_hits`) is a target of the task that is to do, stored
(fetched, or known before), refused or given up. The hit count of a task with several partitions, and what relaxed
queries ask for, follow from the tree of its partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from tasks.domain.hit_count import Partition, PartitionState, Provenance, task_hit_count
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import Violation, row_violations

_FIRST = "CASE WHEN {0}.start_at IS NULL THEN {0}.chunk_pages ELSE 1 END"
"""Result pages of a partition's first chunk."""
_END = f"""{{0}}.first_chunk + CASE WHEN {{0}}.pages = 0 THEN 0 WHEN {{0}}.pages <= {_FIRST} THEN 1
    ELSE 1 + ({{0}}.pages - {_FIRST} + {{0}}.chunk_pages - 1) / nullif({{0}}.chunk_pages, 0) END"""
"""The number behind a partition's last chunk."""
_BEGUN = "SELECT part_id, count(*) AS n, min(chunk) AS low, max(chunk) AS high FROM subtasks WHERE parent_id IS NULL"

_PARTITIONS = f"""
SELECT q.*, {_END.format("q")} AS behind, s.n, s.low, s.high, c.first, c.last, CASE
WHEN s.n IS NULL THEN 'partitions: partition {{id}} of task {{task_id}} has no subtask'
WHEN q.first_chunk <> 1 AND NOT EXISTS (SELECT 1 FROM task_parts b
    WHERE b.task_id = q.task_id AND b.id <> q.id AND {_END.format("b")} = q.first_chunk)
THEN 'partitions: partition {{id}} of task {{task_id}} begins with chunk {{first_chunk}}, where no other one ends'
WHEN s.low <> q.first_chunk OR s.high >= {_END.format("q")} OR s.n <> s.high + 1 - s.low
THEN 'partitions: partition {{id}} has chunks {{first_chunk}} to before {{behind}}; begun: {{n}}, {{low}} to {{high}}'
WHEN q.parent_id IS NULL AND (CAST(q.dropped AS text) <> '[]' OR q.start_at IS NOT NULL
    OR (CAST(q.keywords AS text) <> CAST(v.keywords AS text)
        AND replace(CAST(v.aliases AS text), CAST(q.keywords AS text), '') = CAST(v.aliases AS text))
    OR (q.own_words <> (CAST(p.keywords AS text) <> '[]' AND CAST(q.keywords AS text) = CAST(v.keywords AS text))
        -- a person may have changed a product's words since an earlier round
        AND v.round = (SELECT max(round) FROM virtual_tasks WHERE product_id = p.id)))
THEN 'partitions: partition {{id}} asks for {{keywords}} (own: {{own_words}}), less {{dropped}}, from {{start_at}}'
WHEN (q.state IN ('split', 'relaxed')) <> (c.parent_id IS NOT NULL)
THEN 'partitions: partition {{id}} is {{state}}: if it was split or relaxed, others replace it, else none does'
WHEN r.task_id <> q.task_id THEN 'partitions: partition {{id}} replaces {{parent_id}}, which is none of its task'
WHEN (q.start_at IS NULL) <> (q.end_at IS NULL)
THEN 'partitions: partition {{id}} begins at {{start_at}} and ends at {{end_at}}: either both or none'
WHEN q.state = 'split' AND (c.first <> q.start_at OR c.last <> q.end_at)
THEN 'partitions: partition {{id}} from {{start_at}} to {{end_at}} is split into spans from {{first}} to {{last}}'
WHEN (q.provenance = 'counted' AND NOT q.ended) OR q.found IS DISTINCT FROM CASE WHEN q.provenance = 'unknown' THEN NULL
    WHEN q.provenance <> 'counted' AND q.reported > q.listed THEN q.reported ELSE q.listed END
THEN 'partitions: partition {{id}} has found {{found}} ({{provenance}}), listed {{listed}}, reported {{reported}}, '
    || 'ended {{ended}}' END AS wrong
FROM task_parts q JOIN tasks t ON t.id = q.task_id JOIN products p ON p.id = t.product_id
JOIN virtual_tasks v ON v.id = t.virtual_task_id LEFT JOIN task_parts r ON r.id = q.parent_id
LEFT JOIN ({_BEGUN} GROUP BY part_id) s ON s.part_id = q.id
LEFT JOIN (SELECT parent_id, min(start_at) AS first, max(end_at) AS last FROM task_parts
    WHERE parent_id IS NOT NULL GROUP BY parent_id) c ON c.parent_id = q.id
"""
_SPANS = """
SELECT parent_id, start_at, CASE WHEN before <> start_at
THEN 'partitions: partition {parent_id} is split into spans that overlap or leave a gap at {start_at}' END AS wrong
FROM (SELECT parent_id, start_at, lag(end_at) OVER (PARTITION BY parent_id ORDER BY start_at) AS before
    FROM task_parts WHERE parent_id IS NOT NULL AND start_at IS NOT NULL) spans
"""
_PAGES_ASKED = f"{_FIRST.format('q')} + (s.n - 1) * q.chunk_pages"
_LOST = """(SELECT min(g.id) FROM targets g LEFT JOIN pages p ON p.url_key = g.url_key
    LEFT JOIN page_products l ON l.page_id = p.id AND l.product_id = t.product_id
    WHERE g.task_id = t.id AND g.kind = 'hit' AND g.state = 'stored' AND (l.page_id IS NULL OR (p.url <> g.url
        AND replace(p.url, 'https://', 'http://') <> replace(g.url, 'https://', 'http://'))))"""
_TASKS = f"""
SELECT t.*, q.*, CASE
-- Each page of its attempts has a target (`tasks.store.verify.invariants`): as many stored targets are no others.
WHEN t.stored <> (SELECT count(*) FROM subtasks s JOIN attempts a ON a.subtask_id = s.id
    JOIN pages p ON p.attempt_id = a.id WHERE s.task_id = t.id) AND {_LOST} IS NOT NULL
THEN 'lost: target ' || {_LOST} || ' of task {{id}} is stored, but no such page is stored and linked to its product'
WHEN q.asked <> t.results OR q.pages_read <> t.read OR q.new_hits <> t.hits OR t.hits <> t.legal
THEN 'partitions: task {{id}}: chunks of {{asked}} search URLs were begun, {{results}} are targets; {{pages_read}} '
    || 'were read, {{read}} targets say so; they listed {{new_hits}} different hits, {{hits}} are targets, {{legal}} '
    || 'of them to do, stored, refused or given up'
WHEN t.found_reported IS DISTINCT FROM q.reported
THEN 'partitions: task {{id}} has {{found_reported}} hits reported, its first partitions {{reported}}'
WHEN q.parts = 1 AND (t.found_provenance <> q.provenance
    OR t.found IS DISTINCT FROM CASE q.provenance WHEN 'counted' THEN t.hits ELSE q.part_found END)
THEN 'partitions: task {{id}} has found {{found}} ({{found_provenance}}), its partition {{part_found}} ({{provenance}})'
WHEN NOT EXISTS (SELECT 1 FROM task_parts f JOIN virtual_tasks v ON v.id = t.virtual_task_id
    WHERE f.task_id = t.id AND f.parent_id IS NULL AND CAST(f.keywords AS text) = CAST(v.keywords AS text))
THEN 'partitions: task {{id}} has no partition that asks for the keywords of its virtual task' END AS wrong
FROM (SELECT t.id, t.product_id, t.virtual_task_id, t.found, t.found_provenance, t.found_reported,
    count(*) FILTER (WHERE g.kind = 'result') AS results,
    count(*) FILTER (WHERE g.kind = 'result' AND g.state = 'stored') AS read,
    count(*) FILTER (WHERE g.kind = 'hit') AS hits,
    count(*) FILTER (WHERE g.kind = 'hit' AND g.state = 'stored') AS stored,
    count(*) FILTER (WHERE g.kind = 'hit' AND g.state IN ('todo', 'stored', 'refused', 'given_up')) AS legal
    FROM tasks t LEFT JOIN targets g ON g.task_id = t.id GROUP BY t.id) t
LEFT JOIN (SELECT q.task_id, count(*) AS parts, sum(q.new_hits) AS new_hits, sum(q.pages_read) AS pages_read,
    sum(CASE WHEN {_PAGES_ASKED} < q.pages THEN {_PAGES_ASKED} ELSE q.pages END - q.asked_before) AS asked,
    sum(CASE WHEN q.parent_id IS NULL THEN q.reported END) AS reported,
    min(q.found) AS part_found, min(q.provenance) AS provenance
    FROM task_parts q JOIN ({_BEGUN} GROUP BY part_id) s ON s.part_id = q.id GROUP BY q.task_id) q ON q.task_id = t.id
"""


class _TreePart(NamedTuple):
    """A partition of a task that has several, with what the task says."""

    task_id: int
    id: int
    parent_id: int | None
    state: PartitionState
    found: int | None
    provenance: Provenance
    own_words: bool
    keywords: list[str]
    dropped: list[str]
    task_found: int | None
    task_provenance: str
    hits: int


_TREES = """
    SELECT q.task_id, q.id, q.parent_id, q.state, q.found, q.provenance, q.own_words, q.keywords, q.dropped,
        t.found AS task_found, t.found_provenance AS task_provenance,
        (SELECT count(*) FROM targets WHERE task_id = t.id AND kind = 'hit') AS hits
    FROM task_parts q JOIN tasks t ON t.id = q.task_id
    WHERE q.task_id IN (SELECT task_id FROM task_parts WHERE parent_id IS NOT NULL OR first_chunk > 1)
    ORDER BY q.task_id, q.id
"""


def plan_violations(tx: Transaction) -> Iterator[Violation]:
    """Check every task against its partitions, subtasks and targets."""
    yield from row_violations(tx, (_PARTITIONS, _SPANS, _TASKS))
    for task_id, tree in groupby(tx.stream(_TreePart, _TREES), key=attrgetter("task_id")):
        parts = list(tree)
        should = _hit_count(parts)
        is_ = parts[0].task_found, parts[0].task_provenance
        if is_ != should:
            message = f"task {task_id} has found {is_}, its partitions add up to {should}"
            yield Violation("partitions", None, message)
        for message in _differing_queries(parts):
            yield Violation("partitions", None, message)


def _hit_count(parts: Sequence[_TreePart]) -> tuple[int | None, str]:
    """Return the hit count that a task should have."""
    try:
        tree = [
            Partition(
                keywords=(),
                pages=0,
                chunk_pages=1,
                id=one.id,
                parent_id=one.parent_id,
                state=one.state,
                found=one.found if one.provenance != Provenance.UNKNOWN else None,
                provenance=one.provenance,
            )
            for one in parts
        ]
    except ValueError as error:
        return None, str(error)
    found = task_hit_count(tree, parts[0].hits)
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
