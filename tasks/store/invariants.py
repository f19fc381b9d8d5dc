"""The invariants that one query each proves: a row of its result is a violation. `tasks.store.verify` checks them all.

Leases are exactly where attempts run; every attempt is numbered; no page and no review is stored twice; nothing lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, text

_QUERIES = """
-- lease: is in CRAWL without a whole lease (token, node, deadline, attempt)
SELECT id AS subtask_id FROM subtasks WHERE state = 'CRAWL'
    AND (lease_token IS NULL OR lease_node IS NULL OR lease_deadline IS NULL OR attempt_id IS NULL)
-- lease: is in {state} with a part of a lease (token, node, deadline, attempt)
SELECT id AS subtask_id, state FROM subtasks WHERE state <> 'CRAWL' AND (lease_started
    OR lease_token IS NOT NULL OR lease_node IS NOT NULL OR lease_deadline IS NOT NULL OR attempt_id IS NOT NULL)
-- attempt: attempt {id} is open, but does not hold the lease of its subtask ({state})
SELECT a.id, a.subtask_id, s.state FROM attempts a JOIN subtasks s ON s.id = a.subtask_id
WHERE a.outcome IS NULL AND NOT (s.state = 'CRAWL'
    AND coalesce(s.attempt_id = a.id AND s.lease_token = a.token AND s.lease_node = a.node, false))
-- attempt: is in CRAWL without an open attempt
SELECT s.id AS subtask_id FROM subtasks s LEFT JOIN attempts a ON a.id = s.attempt_id AND a.outcome IS NULL
WHERE s.state = 'CRAWL' AND a.id IS NULL
-- wait: is in {state} and waits for {waits_for} until {not_before}
SELECT id AS subtask_id, state, waits_for, not_before FROM subtasks
WHERE waits_for IS NOT NULL AND (state <> 'WAIT' OR not_before IS NULL)
-- wait: counts {idle_releases} attempts in a row that nobody answered, of {attempts} attempts
SELECT id AS subtask_id, idle_releases, attempts FROM subtasks WHERE idle_releases < 0 OR idle_releases > attempts
-- attempt: counts {attempts} attempts, has {n}, numbered {lowest} to {highest}
SELECT s.id AS subtask_id, s.attempts, coalesce(made.n, 0) AS n, lowest, highest FROM subtasks s
LEFT JOIN (SELECT subtask_id, count(*) AS n, min(no) AS lowest, max(no) AS highest
    FROM attempts GROUP BY subtask_id) made ON made.subtask_id = s.id
WHERE s.attempts <> coalesce(made.n, 0) OR lowest <> 1 OR highest <> made.n
-- counters: attempt {id}: offered {offered}, tried {tried}, collected {collected} must not rise; {stored}
SELECT id, subtask_id, offered, tried, collected,
    'it stored ' || in_time || ' pages and ' || came_late || ' late ones (' || late || ' noted)' AS stored
FROM (SELECT a.*, coalesce(p.in_time, 0) AS in_time, coalesce(p.came_late, 0) AS came_late FROM attempts a
    LEFT JOIN (SELECT attempt_id, sum(CASE WHEN late THEN 0 ELSE 1 END) AS in_time,
        sum(CASE WHEN late THEN 1 ELSE 0 END) AS came_late FROM pages GROUP BY attempt_id) p
    ON p.attempt_id = a.id WHERE a.outcome IS NOT NULL) closed
WHERE collected <> in_time OR late <> came_late OR collected > tried OR tried > offered
-- twice: page {url} is stored {n} times
SELECT min(url) AS url, count(*) AS n FROM pages GROUP BY url_key HAVING count(*) > 1
-- twice: review {key!r} of page {page_id} is stored {n} times
SELECT page_id, key, count(*) AS n FROM reviews GROUP BY page_id, key HAVING count(*) > 1
-- lost: is DONE, but {n} of its targets are still to do
SELECT t.subtask_id, count(*) AS n FROM targets t JOIN subtasks s ON s.id = t.subtask_id
WHERE t.state = 'todo' AND s.state = 'DONE' GROUP BY t.subtask_id
-- lost: target {id} is stored, but there is no page {url}
SELECT t.id, t.subtask_id, t.url FROM targets t LEFT JOIN pages p ON p.url_key = t.url_key
WHERE t.kind = 'hit' AND t.state = 'stored' AND p.id IS NULL
-- lost: page {id} ({url}) belongs to no product
SELECT id, url FROM pages p WHERE NOT EXISTS (SELECT 1 FROM page_products WHERE page_id = p.id)
-- lost: page {id} had {reviews} reviews, {n} are stored
SELECT p.id, p.reviews, coalesce(read.n, 0) AS n FROM pages p
LEFT JOIN (SELECT page_id, count(*) AS n FROM reviews GROUP BY page_id) read ON read.page_id = p.id
WHERE p.reviews <> coalesce(read.n, 0)
-- lost: task {id} ({site}) has no subtask
SELECT id, site FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM subtasks WHERE task_id = t.id)
-- lost: product {id} ({name}) has no virtual task
SELECT id, name FROM products p WHERE NOT EXISTS (SELECT 1 FROM virtual_tasks WHERE product_id = p.id)
-- lost: virtual task {id} has tasks, but counts as still to be planned
SELECT id FROM virtual_tasks v WHERE planned_at IS NULL
    AND EXISTS (SELECT 1 FROM tasks WHERE virtual_task_id = v.id)
-- partitions: partition {id} of task {task_id} has no subtask
SELECT id, task_id FROM task_parts p WHERE NOT EXISTS (SELECT 1 FROM subtasks WHERE part_id = p.id)
-- partitions: is of partition {part_id}, which is none of its task
SELECT s.id AS subtask_id, s.part_id FROM subtasks s LEFT JOIN task_parts p ON p.id = s.part_id
WHERE p.id IS NULL OR p.task_id <> s.task_id
"""
"""Of each: the kind and the message of its violations, with columns in braces, and the rows that break it, in the SQL
that SQLite and PostgreSQL share. A column `subtask_id` says whose the violation is."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold.

    Attributes:
        kind: queue, chain, transition, recalls, lease, wait, attempt, counters, statistics, twice, lost or partitions.
        subtask_id: whose it is; None where it is no single subtask's.
        message: which rows, their values, and what would be right.
    """

    kind: str
    subtask_id: int | None
    message: str


def row_violations(conn: Connection) -> Iterator[Violation]:
    """The rows that break an invariant, found by one query an invariant."""
    for invariant in _QUERIES.split("\n-- ")[1:]:
        heading, query = invariant.split("\n", 1)
        kind, message = heading.split(": ", 1)
        for row in conn.execute(text(query)).mappings():
            yield Violation(kind, row.get("subtask_id"), message.format(**row))
