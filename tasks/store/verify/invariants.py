"""The invariants that one query each proves: a row of its result is a violation. `verify.verify` checks them all.

Leases are whole; values copied from one row to another are still equal; times are in order; counters add up; no page
and no review is stored twice; nothing is lost. `tasks.store.verify.replay` checks rows against the event log, and
`tasks.store.verify.search_parts` checks tasks against their partitions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from splitter.normalize import name_key

from tasks.domain.pair_stats import SUMS
from tasks.store.queue.attempts import ATTEMPT_SUMS
from tasks.store.sql.records import read_time
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
-- wait: is in {state} and waits for {wait_host} ({wait_reason}) until {not_before}
SELECT id AS subtask_id, state, wait_host, wait_reason, not_before FROM subtasks
WHERE (wait_host IS NOT NULL AND (state <> 'WAIT' OR not_before IS NULL))
    OR (wait_host IS NULL) <> (wait_reason IS NULL)
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
SELECT p.id, p.reviews, count(r.id) AS n FROM pages p LEFT JOIN reviews r ON r.page_id = p.id AND r.refused IS NULL
GROUP BY p.id HAVING p.reviews <> count(r.id)
-- links: page {page_id} is {verdict} to product {product_id} and lacks "{missing}"
SELECT page_id, product_id, verdict, missing FROM page_products
WHERE (verdict <> 'wrong_product' AND missing <> '')
    OR (verdict = 'near_product' AND NOT EXISTS (SELECT 1 FROM page_products l
        WHERE l.page_id = page_products.page_id AND l.verdict IN ('review', 'unjudged')))
    OR verdict NOT IN ('review', 'no_review', 'wrong_product', 'near_product', 'removed', 'unjudged')
-- links: page {page_id} is {verdict} to product {product_id}, and has no review
SELECT l.page_id, l.verdict, l.product_id FROM page_products l JOIN pages p ON p.id = l.page_id
WHERE l.verdict IN ('wrong_product', 'near_product') AND p.reviews = 0 AND p.content_hash <> ''
    AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.page_id = l.page_id AND r.refused = 'wrong_product')
-- links: page {id} (fetched {fetched_at}, {reviews} reviews) is {verdict} to product {product_id} since {linked_at}
SELECT p.id, p.fetched_at, p.reviews, l.verdict, l.product_id, l.linked_at
FROM page_products l JOIN pages p ON p.id = l.page_id
WHERE l.linked_at < p.fetched_at OR (p.checked_at IS NULL AND l.verdict = 'no_review' AND l.linked_at = p.fetched_at
    AND (p.reviews > 0 OR EXISTS (SELECT 1 FROM reviews r WHERE r.page_id = p.id AND r.refused = 'wrong_product')))
-- lost: page {id} ({url}) was fetched at {fetched_at}, and linked to no product then
SELECT p.id, p.url, p.fetched_at FROM pages p
LEFT JOIN page_products l ON l.page_id = p.id AND l.linked_at = p.fetched_at WHERE l.page_id IS NULL
-- links: review {id} of page {page_id} is refused for no reason, or compared, or its page is about a product
SELECT r.id, r.page_id FROM reviews r JOIN pages p ON p.id = r.page_id WHERE r.refused IS NOT NULL AND (
    r.same_as IS NOT NULL OR EXISTS (SELECT 1 FROM reviews c WHERE c.same_as = r.id)
    OR EXISTS (SELECT 1 FROM review_links n WHERE n.review_id = r.id OR n.original_id = r.id)
    OR r.refused NOT IN ('wrong_product', 'empty', 'short', 'boilerplate', 'list', 'login', 'goods')
    OR (r.refused = 'wrong_product' AND (p.reviews > 0
        OR EXISTS (SELECT 1 FROM page_products l WHERE l.page_id = r.page_id AND l.verdict = 'review'))))
-- copy: page {id} is of {site}, attempt {attempt_id}, node "{node}", source {source}: as its attempt is, or imported
SELECT p.id, p.site, p.attempt_id, p.node, p.source
FROM pages p LEFT JOIN attempts a ON a.id = p.attempt_id
WHERE p.site <> a.site OR p.node <> a.node OR (a.id IS NOT NULL AND p.checked_at < p.fetched_at)
    OR CASE WHEN p.source IS NULL THEN p.attempt_id IS NULL OR p.node = ''
    ELSE p.attempt_id IS NOT NULL OR p.node <> '' OR p.late END
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
-- links: sweep {name} has looked at review {last_id}, the last one is {last}
SELECT name, last_id, last FROM (
    SELECT name, CAST(data ->> 'last_id' AS BIGINT) AS last_id,
        (SELECT coalesce(max(id), 0) FROM reviews WHERE refused IS NULL) AS last
    FROM stored_values WHERE name = 'reposts'
) marks WHERE last_id < 0 OR last_id > last
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
-- lost: showed that there is more, but chunk {next_chunk} was not released
SELECT s.id AS subtask_id, s.chunk + 1 AS next_chunk FROM attempts a JOIN subtasks s ON s.id = a.subtask_id
JOIN task_parts p ON p.id = s.part_id
LEFT JOIN (SELECT DISTINCT task_id, chunk FROM subtasks) released
    ON released.task_id = s.task_id AND released.chunk = s.chunk + 1
WHERE a.more AND s.state = 'DONE' AND released.chunk IS NULL
    AND p.pages > CASE WHEN p.start_at IS NULL THEN p.chunk_pages ELSE 1 END
        + (s.chunk - p.first_chunk) * p.chunk_pages
    AND (p.state <> 'split' OR p.start_at IS NULL) -- a span that holds too much is not read on, but divided
-- lost: chunk {chunk} was released, but the one before showed no more
SELECT s.id AS subtask_id, s.chunk FROM subtasks s JOIN task_parts p ON p.id = s.part_id
WHERE s.parent_id IS NULL AND s.chunk > p.first_chunk AND NOT EXISTS (
    SELECT 1 FROM attempts a JOIN subtasks b ON b.id = a.subtask_id
    WHERE b.part_id = s.part_id AND b.task_id = s.task_id AND b.chunk = s.chunk - 1 AND a.more)
-- copy: result page {id} is of product {product_id}, {site}, {engine}, {node}; partition {part_id} is not
SELECT r.id, r.part_id, r.product_id, r.site, r.engine, r.node
FROM result_pages r JOIN task_parts p ON p.id = r.part_id JOIN tasks t ON t.id = p.task_id
WHERE r.product_id <> t.product_id OR r.site <> t.site OR r.engine <> t.engine OR length(r.hits) % 8 <> 0
    OR NOT EXISTS (SELECT 1 FROM subtasks s JOIN attempts a ON a.subtask_id = s.id
        WHERE s.task_id = t.id AND s.part_id = p.id AND a.node = r.node)
-- counters: partition {part_id} has read {pages_read} result pages with {listed} hits; {n} with {hits} are stored
SELECT r.part_id, p.pages_read, p.listed, r.n, r.hits
FROM (SELECT part_id, count(*) AS n, sum(length(hits)) / 8 AS hits FROM result_pages GROUP BY part_id) r
JOIN task_parts p ON p.id = r.part_id WHERE r.n > p.pages_read OR r.hits > p.listed
-- counters: {state} is kept as {kept} subtasks, and there are {counted}
SELECT state, sum(kept) AS kept, sum(counted) AS counted FROM (
    SELECT state, n AS kept, 0 AS counted FROM queue_counts
    UNION ALL SELECT state, 0, count(*) FROM subtasks
    WHERE state IN ('PRIORITY', 'MANUAL', 'DONE', 'CANCELLED') GROUP BY state) queues
GROUP BY state HAVING sum(kept) <> sum(counted) ORDER BY state
-- statistics: {site} on {node}: response time {rtt_ms} rests on {rtt_n}
SELECT site, node, rtt_ms, rtt_n FROM pair_stats WHERE (rtt_ms IS NULL) <> (rtt_n = 0)
-- statistics: {site} on {node}: faded to {faded_at}, its last attempt ended at {ended_at}
SELECT p.site, p.node, p.faded_at, a.ended_at FROM pair_stats p
LEFT JOIN (SELECT site, node, max(ended_at) AS ended_at FROM attempts GROUP BY site, node) a
    ON a.site = p.site AND a.node = p.node
WHERE p.faded_at IS DISTINCT FROM a.ended_at
-- order: attempt {id}: allocated {earlier}, started {later}
SELECT id, subtask_id, allocated_at AS earlier, started_at AS later FROM attempts WHERE started_at < allocated_at
-- order: attempt {id}: started {earlier}, last sign of life {later}
SELECT id, subtask_id, started_at AS earlier, progress_at AS later FROM attempts
WHERE progress_at < started_at OR (started_at IS NULL) <> (progress_at IS NULL)
-- order: attempt {id}: last sign of life {earlier}, ended {later}
SELECT id, subtask_id, progress_at AS earlier, ended_at AS later FROM attempts WHERE ended_at < progress_at
-- order: attempt {attempt_id}: its page {id} was fetched {fetched_at}; {earlier} must be before {later}
SELECT p.id, p.attempt_id, a.subtask_id, p.fetched_at,
    CASE WHEN p.fetched_at < a.allocated_at THEN a.allocated_at ELSE p.fetched_at END AS earlier,
    CASE WHEN p.fetched_at < a.allocated_at THEN p.fetched_at ELSE a.ended_at END AS later
FROM pages p JOIN attempts a ON a.id = p.attempt_id
WHERE p.fetched_at < a.allocated_at OR (NOT p.late AND a.ended_at < p.fetched_at)
-- order: virtual task {virtual_task_id}: planned {earlier}, its task {id} made {later}
SELECT t.id, t.virtual_task_id, v.planned_at AS earlier, t.created_at AS later
FROM tasks t JOIN virtual_tasks v ON v.id = t.virtual_task_id WHERE t.created_at < v.planned_at
-- order: virtual task {id}: made {earlier}, planned {later}
SELECT id, created_at AS earlier, planned_at AS later FROM virtual_tasks WHERE planned_at < created_at
"""
"""The kind and the message of each one's violations, with columns in braces, and the rows that break it, in the SQL
that SQLite and PostgreSQL share. A column `subtask_id` names the subtask of the violation. Rows with `earlier` and
`later` break it only if these are out of order by more than `CLOCKS`."""


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold.

    Attributes:
        kind: queue, chain, transition, order, event, recalls, lease, wait, attempt, counters, statistics, copy, links,
            twice, lost, partitions or overdue (docs/verify.md).
        subtask_id: the subtask it belongs to; None if it belongs to no single one.
        message: which rows, their values, and what would be right.
    """

    kind: str
    subtask_id: int | None
    message: str


Invariant = tuple[str, str, str]
"""Kind and message of its violations, and the query of the rows that break it."""


def invariants_of(text: str) -> list[Invariant]:
    """Return the invariants of a text as `_QUERIES`."""
    headed = (one.split("\n", 1) for one in text.split("\n-- ")[1:])
    return [(*heading.split(": ", 1), query) for heading, query in headed]  # type: ignore[misc]


def row_violations(tx: Transaction, invariants: Iterable[Invariant], **values: Any) -> Iterator[Violation]:
    """Yield the rows that break an invariant, found by one query an invariant, with these values."""
    for kind, message, query in invariants:
        for row in tx.records(dict, query, **values):
            if "later" not in row or not _is_in_order(as_time(row["earlier"]), as_time(row["later"])):
                yield Violation(kind, row.get("subtask_id"), message.format(**row))


def _is_in_order(earlier: datetime | None, later: datetime | None) -> bool:
    return earlier is not None and later is not None and later >= earlier - CLOCKS


def as_time(value: Any) -> Any:
    """Return a time, as either database's driver gives it, as an aware one; None stays."""
    return read_time(value) if isinstance(value, str) else value


def statistics_violations(tx: Transaction) -> Iterator[Violation]:
    """Yield sums of (site, node) that are not those of its attempts, and products whose key is not that of the name."""
    kept, summed = (
        {(site, node): tuple(map(float, sums)) for site, node, *sums in tx.rows(statement)}
        for statement in (_KEPT_SUMS, _CLOSED_SUMS)
    )
    nothing = (0.0,) * len(_CHECKED)
    for pair in sorted(kept.keys() | summed.keys()):
        sums = zip(_CHECKED, kept.get(pair, nothing), summed.get(pair, nothing), strict=True)
        for name, is_, should in sums:
            if not math.isclose(is_, should, rel_tol=1e-6, abs_tol=1e-6):
                message = (
                    f"{pair[0]} on {pair[1]}: {name} is {is_:g}, its closed attempts sum up to {should:g}"
                )
                yield Violation("statistics", None, message)
    for name, key in tx.rows("SELECT name, name_key FROM products ORDER BY id"):
        if key != name_key(name):
            yield Violation("copy", None, f"product {name!r} has the key {key!r}, not that of its name")


_CHECKED = (*SUMS, "wait_s", "requests")
_KEPT_SUMS = f"SELECT site, node, {', '.join(_CHECKED)} FROM pair_stats"
_CLOSED_SUMS = f"""
    SELECT a.site, a.node, {ATTEMPT_SUMS}, sum(a.wait_s), sum(a.requests)
    FROM attempts a WHERE a.outcome IS NOT NULL GROUP BY a.site, a.node
"""
_FADED_MORE = " UNION ALL ".join(
    f"SELECT site, node, '{name}' AS name, {name} AS plain, f_{name} AS faded FROM pair_stats WHERE f_{name} < -1e-6 "
    f"OR f_{name} > {name} + 1e-6 * CASE WHEN {name} > 1.0 THEN {name} ELSE 1.0 END"
    for name in SUMS
)
_MESSAGE = "{site} on {node}: {name} is {plain}, faded {faded}, which is more"
INVARIANTS = (*invariants_of(_QUERIES), ("statistics", _MESSAGE, _FADED_MORE))
