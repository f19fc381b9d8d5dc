"""The invariants that one query each proves: a row of its result is a violation. `verify.verify` checks them all.

Leases are whole; what was copied from one row to another is still equal; times are in order; counters add up; no page
and no review is stored twice; nothing is lost. What rows owe to the event log is proved by `tasks.store.verify.replay`,
what tasks owe to their partitions by `tasks.store.verify.plan_invariants`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import text

from tasks.store.sql.transaction import Transaction

CLOCKS: Final = timedelta(minutes=5)
"""How far back time may go between two steps that follow each other: transactions wait for locks, clocks are set."""

_QUERIES = """
-- lease: is in CRAWL without a whole lease (token, node, deadline, attempt)
SELECT id AS subtask_id FROM subtasks WHERE state = 'CRAWL'
    AND (lease_token IS NULL OR lease_node IS NULL OR lease_deadline IS NULL OR attempt_id IS NULL)
-- lease: is in {state} with a part of a lease (token, node, deadline, attempt)
SELECT id AS subtask_id, state FROM subtasks WHERE state <> 'CRAWL' AND (lease_started
    OR lease_token IS NOT NULL OR lease_node IS NOT NULL OR lease_deadline IS NOT NULL OR attempt_id IS NOT NULL)
-- wait: is in {state} and waits for {waits_for} until {not_before}
SELECT id AS subtask_id, state, waits_for, not_before FROM subtasks
WHERE waits_for IS NOT NULL AND (state <> 'WAIT' OR not_before IS NULL)
-- copy: is of {site}, {kind}, product {product_id}, priority {priority}; its task and product say otherwise
SELECT s.id AS subtask_id, s.site, s.kind, s.product_id, s.priority FROM subtasks s
JOIN tasks t ON t.id = s.task_id JOIN products p ON p.id = s.product_id
WHERE s.site <> t.site OR s.kind <> t.kind OR s.product_id <> t.product_id OR s.priority <> p.priority
-- copy: carries on subtask {parent_id}, which is not of its chunk, or not DONE, or no earlier one
SELECT s.id AS subtask_id, s.parent_id FROM subtasks s JOIN subtasks p ON p.id = s.parent_id
WHERE p.id >= s.id OR p.task_id <> s.task_id OR p.part_id <> s.part_id OR p.chunk <> s.chunk OR p.state <> 'DONE'
-- copy: attempt {id} is of {site}, product {product_id}; its subtask is not
SELECT a.id, a.subtask_id, a.site, a.product_id FROM attempts a JOIN subtasks s ON s.id = a.subtask_id
WHERE a.site <> s.site OR a.product_id <> s.product_id
-- copy: task {id} is of product {product_id}, made at {created_at}; its virtual task or first subtask says otherwise
SELECT t.id, t.product_id, t.created_at FROM tasks t JOIN virtual_tasks v ON v.id = t.virtual_task_id
WHERE t.product_id <> v.product_id
    OR t.created_at <> (SELECT min(s.created_at) FROM subtasks s WHERE s.task_id = t.id)
-- copy: virtual task {id} (round {round}) is of {created_at}, planned {planned_at}; its product is of {of_product}
SELECT v.id, v.round, v.created_at, v.planned_at, p.created_at AS of_product
FROM virtual_tasks v JOIN products p ON p.id = v.product_id
WHERE v.created_at < p.created_at OR (v.round = 1 AND v.created_at <> p.created_at)
-- copy: product {product_id} has {n} virtual tasks, of rounds {first} to {last}
SELECT product_id, count(*) AS n, min(round) AS first, max(round) AS last FROM virtual_tasks
GROUP BY product_id HAVING min(round) <> 1 OR max(round) <> count(*)
-- copy: schedule {id} ({what}) comes by {cron}, {zone}, {every_s} s, next at {next_at}, which is no rule
SELECT id, what, cron, zone, every_s, next_at FROM schedules
WHERE (cron IS NULL) = (every_s IS NULL) OR (cron IS NULL) <> (zone IS NULL) OR (next_at IS NULL AND NOT paused)
    OR what NOT IN ('recrawl', 'report', 'failed-report', 'export') OR (what <> 'recrawl' AND product_id IS NOT NULL)
-- counters: attempt {id}: offered {offered}, tried {tried}, collected {collected} must not rise; {stored}
SELECT id, subtask_id, offered, tried, collected,
    'it stored ' || in_time || ' pages and ' || came_late || ' late ones (' || late || ' noted)' AS stored
FROM (SELECT a.*, coalesce(p.in_time, 0) AS in_time, coalesce(p.came_late, 0) AS came_late FROM attempts a
    LEFT JOIN (SELECT attempt_id, sum(CASE WHEN late THEN 0 ELSE 1 END) AS in_time,
        sum(CASE WHEN late THEN 1 ELSE 0 END) AS came_late FROM pages GROUP BY attempt_id) p
    ON p.attempt_id = a.id WHERE a.outcome IS NOT NULL) closed
WHERE collected <> in_time OR late <> came_late OR collected > tried OR tried > offered
-- twice: page {url} is stored {n} times
SELECT (SELECT min(url) FROM pages WHERE url_key = again.url_key) AS url, n
FROM (SELECT url_key, count(*) AS n FROM pages GROUP BY url_key HAVING count(*) > 1) again
-- twice: review {key!r} of page {page_id} is stored {n} times
SELECT page_id, key, count(*) AS n FROM reviews GROUP BY page_id, key HAVING count(*) > 1
-- twice: chunk {chunk} of partition {part_id} was begun by {n} subtasks
SELECT part_id, chunk, count(*) AS n FROM subtasks WHERE parent_id IS NULL
GROUP BY part_id, chunk HAVING count(*) > 1
-- lost: target {id} is stored, but no page {url} is stored and linked to its product
SELECT t.id, t.subtask_id, t.url FROM targets t JOIN tasks k ON k.id = t.task_id
LEFT JOIN pages p ON p.url_key = t.url_key
LEFT JOIN page_products l ON l.page_id = p.id AND l.product_id = k.product_id
WHERE t.kind = 'hit' AND t.state = 'stored'
    AND (l.page_id IS NULL OR (p.url <> t.url
        AND replace(p.url, 'https://', 'http://') <> replace(t.url, 'https://', 'http://')))
-- lost: page {id} ({url}) was fetched for task {task_id}, which has no such target that is stored
SELECT p.id, p.url, s.task_id FROM pages p JOIN attempts a ON a.id = p.attempt_id
JOIN subtasks s ON s.id = a.subtask_id
LEFT JOIN targets t ON t.task_id = s.task_id AND t.url_key = p.url_key AND t.state = 'stored'
WHERE t.id IS NULL
-- lost: page {id} had {reviews} reviews, {n} are stored
SELECT p.id, p.reviews, read.n FROM (SELECT page_id, count(*) AS n FROM reviews GROUP BY page_id) read
JOIN pages p ON p.id = read.page_id WHERE p.reviews <> read.n
UNION ALL SELECT id, reviews, 0 AS n FROM pages p WHERE reviews <> 0
    AND NOT EXISTS (SELECT 1 FROM reviews WHERE page_id = p.id)
-- links: page {page_id} is {verdict} to product {product_id}, lacks "{missing}", and {refused} reviews are not its own
SELECT page_id, product_id, verdict, missing, refused FROM page_products
WHERE (verdict IN ('review', 'no_review') AND (missing <> '' OR refused <> 0))
    OR (verdict = 'removed' AND missing <> '')
    OR (verdict = 'wrong_product' AND refused < 1)
    OR (verdict = 'near_product' AND (missing <> '' OR refused < 1 OR NOT EXISTS (SELECT 1 FROM page_products l
        WHERE l.page_id = page_products.page_id AND l.verdict = 'review')))
    OR verdict NOT IN ('review', 'no_review', 'wrong_product', 'near_product', 'removed')
-- links: page {id} (fetched {fetched_at}, {reviews} reviews) is {verdict} to product {product_id} since {linked_at}
SELECT p.id, p.fetched_at, p.reviews, l.verdict, l.product_id, l.linked_at
FROM page_products l JOIN pages p ON p.id = l.page_id
WHERE l.linked_at < p.fetched_at OR (p.checked_at IS NULL AND l.verdict = 'no_review' AND l.linked_at = p.fetched_at
    AND p.reviews + p.withheld > 0)
-- lost: page {id} ({url}) was fetched at {fetched_at}, and linked to no product then
SELECT p.id, p.url, p.fetched_at FROM pages p
WHERE NOT EXISTS (SELECT 1 FROM page_products l WHERE l.page_id = p.id AND l.linked_at = p.fetched_at)
-- links: page {id} withholds {withheld} reviews, which are not those of a link, or it is about a product
SELECT p.id, p.withheld FROM pages p WHERE p.withheld <> 0 AND (p.reviews <> 0
    OR EXISTS (SELECT 1 FROM page_products l WHERE l.page_id = p.id AND l.verdict = 'review')
    OR NOT EXISTS (SELECT 1 FROM page_products l WHERE l.page_id = p.id AND l.refused = p.withheld))
-- copy: page {id} is of {site}, attempt {attempt_id}, node "{node}", source {source}: as its attempt is, or imported
SELECT p.id, p.site, p.attempt_id, p.node, p.source
FROM pages p LEFT JOIN attempts a ON a.id = p.attempt_id LEFT JOIN import_sources i ON i.name = p.source
WHERE p.site <> a.site OR p.node <> a.node OR (a.id IS NOT NULL AND p.checked_at < p.fetched_at)
    OR CASE WHEN p.source IS NULL THEN p.attempt_id IS NULL OR p.node = ''
    ELSE p.attempt_id IS NOT NULL OR i.name IS NULL OR p.node <> '' OR p.late OR p.withheld <> 0 END
-- copy: review {id} is of {site}, {url}, by "{node}", attempt {attempt_id}, at {collected_at}; page {page_id} is not
SELECT r.id, r.site, r.url, r.node, r.attempt_id, r.collected_at, r.page_id
FROM reviews r JOIN pages p ON p.id = r.page_id
WHERE r.site <> p.site
    OR (r.url <> p.url AND replace(r.url, 'https://', 'http://') <> replace(p.url, 'https://', 'http://'))
    OR r.collected_at < p.fetched_at OR (p.checked_at IS NULL
        AND (r.attempt_id <> p.attempt_id OR r.node <> p.node OR r.collected_at <> p.fetched_at))
    OR (r.attempt_id IS NULL) <> (p.source IS NOT NULL) OR (p.source IS NOT NULL AND r.node <> '')
-- links: review {id} equals review {same_as}, which has another text, is no earlier one, or is a copy itself
SELECT r.id, r.same_as FROM reviews r JOIN reviews o ON o.id = r.same_as
WHERE o.id >= r.id OR o.text_hash <> r.text_hash OR o.same_as IS NOT NULL
-- links: review {review_id} is like {original_id} by {similarity}, which is no share, or the original is no earlier one
SELECT l.review_id, l.original_id, l.similarity FROM review_links l
LEFT JOIN review_links o ON o.review_id = l.original_id
WHERE o.review_id IS NOT NULL OR l.original_id >= l.review_id OR l.similarity < 0 OR l.similarity > 1
-- links: sweep {sweep} has looked at review {last_id}, the last one is {last}
SELECT sweep, last_id, (SELECT coalesce(max(id), 0) FROM reviews) AS last FROM sweep_marks
WHERE sweep = 'reposts' AND (last_id < 0 OR last_id > (SELECT coalesce(max(id), 0) FROM reviews))
-- lost: task {id} ({site}) has no subtask
SELECT id, site FROM tasks t WHERE NOT EXISTS (SELECT 1 FROM subtasks WHERE task_id = t.id)
-- lost: product {id} ({name}) has no virtual task
SELECT id, name FROM products p WHERE NOT EXISTS (SELECT 1 FROM virtual_tasks WHERE product_id = p.id)
-- lost: virtual task {id} has tasks, but counts as still to be planned
SELECT id FROM virtual_tasks v WHERE planned_at IS NULL
    AND EXISTS (SELECT 1 FROM tasks WHERE virtual_task_id = v.id)
-- partitions: partition {id} of task {task_id} has no subtask
SELECT id, task_id FROM task_parts p
WHERE NOT EXISTS (SELECT 1 FROM subtasks s WHERE s.task_id = p.task_id AND s.part_id = p.id)
-- partitions: is of partition {part_id}, which is none of its task
SELECT s.id AS subtask_id, s.part_id FROM subtasks s LEFT JOIN task_parts p ON p.id = s.part_id
WHERE p.id IS NULL OR p.task_id <> s.task_id
"""
"""Of each: the kind and the message of its violations, with columns in braces, and the rows that break it, in the SQL
that SQLite and PostgreSQL share. A column `subtask_id` says whose the violation is."""

_IN_ORDER = """
-- attempt {id}: allocated {earlier}, started {later}
SELECT id, subtask_id, allocated_at AS earlier, started_at AS later FROM attempts WHERE started_at < allocated_at
-- attempt {id}: started {earlier}, last sign of life {later}
SELECT id, subtask_id, started_at AS earlier, progress_at AS later FROM attempts
WHERE progress_at < started_at OR (started_at IS NULL) <> (progress_at IS NULL)
-- attempt {id}: last sign of life {earlier}, ended {later}
SELECT id, subtask_id, progress_at AS earlier, ended_at AS later FROM attempts WHERE ended_at < progress_at
-- attempt {attempt_id}: its page {id} was fetched {fetched_at}; {earlier} must be before {later}
SELECT p.id, p.attempt_id, a.subtask_id, p.fetched_at,
    CASE WHEN p.fetched_at < a.allocated_at THEN a.allocated_at ELSE p.fetched_at END AS earlier,
    CASE WHEN p.fetched_at < a.allocated_at THEN p.fetched_at ELSE a.ended_at END AS later
FROM pages p JOIN attempts a ON a.id = p.attempt_id
WHERE p.fetched_at < a.allocated_at OR (NOT p.late AND a.ended_at < p.fetched_at)
-- virtual task {virtual_task_id}: planned {earlier}, its task {id} made {later}
SELECT t.id, t.virtual_task_id, v.planned_at AS earlier, t.created_at AS later
FROM tasks t JOIN virtual_tasks v ON v.id = t.virtual_task_id WHERE t.created_at < v.planned_at
-- virtual task {id}: made {earlier}, planned {later}
SELECT id, created_at AS earlier, planned_at AS later FROM virtual_tasks WHERE planned_at < created_at
"""
"""Of each: what is out of order, and the rows, with both times. Those within `CLOCKS` are none."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold.

    Attributes:
        kind: queue, chain, transition, order, event, recalls, lease, wait, attempt, counters, statistics, copy, links,
            twice, lost, partitions or overdue (docs/verify.md).
        subtask_id: whose it is; None where it is no single subtask's.
        message: which rows, their values, and what would be right.
    """

    kind: str
    subtask_id: int | None
    message: str


def row_violations(conn: Transaction) -> Iterator[Violation]:
    """The rows that break an invariant, found by one query an invariant."""
    for heading, query in _each(_QUERIES):
        kind, message = heading.split(": ", 1)
        for row in conn.execute(text(query)).mappings():
            yield Violation(kind, row.get("subtask_id"), message.format(**row))


def order_violations(conn: Transaction) -> Iterator[Violation]:
    """Times that are not in the order in which things happen."""
    for message, query in _each(_IN_ORDER):
        for row in conn.execute(text(query)).mappings():
            earlier, later = as_time(row["earlier"]), as_time(row["later"])
            if earlier is None or later is None or later < earlier - CLOCKS:
                yield Violation("order", row.get("subtask_id"), message.format(**row))


def _each(queries: str) -> Iterator[tuple[str, str]]:
    for one in queries.split("\n-- ")[1:]:
        heading, query = one.split("\n", 1)
        yield heading, query


def as_time(value: Any) -> Any:
    """A time as either database's driver gives it, as an aware one; None stays."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
