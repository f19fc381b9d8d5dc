"""Invariants that SQL proves. `verify.verify` sends the queries.

Leases are whole. Values copied from one row to another are still equal. Times are in order, and counters add up.
Nothing is lost. `tasks.store.verify.replay` checks rows against the event log, and `tasks.store.verify.search_parts`
checks tasks against their partitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tasks.domain.pair_stats import SUMS
from tasks.store.queue.attempts import ATTEMPT_SUMS, TRANSITIONS
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.clocks import Clock, as_time

_QUERIES = """
SELECT s.*, s.id AS subtask_id, w.todo, w.late
FROM subtasks s LEFT JOIN tasks t ON t.id = s.task_id LEFT JOIN products p ON p.id = s.product_id
LEFT JOIN subtasks b ON b.id = s.parent_id LEFT JOIN task_parts q ON q.id = s.part_id AND q.task_id = s.task_id
LEFT JOIN attempts a ON a.id = s.attempt_id AND a.subtask_id = s.id
LEFT JOIN (SELECT subtask_id, sum(CASE WHEN state = 'stored' THEN 0 WHEN kind = 'hit' THEN 1
    ELSE HITS_UNREAD END) AS todo, sum(CASE WHEN state = 'stored' THEN 1 ELSE 0 END) AS late
    FROM targets WHERE state = 'todo' OR (state = 'stored' AND reason = 'late') GROUP BY subtask_id
) w ON w.subtask_id = s.id
WHEN t.id IS NULL OR p.id IS NULL OR (s.parent_id IS NOT NULL AND b.id IS NULL)
THEN 'lost: is of task {task_id}, product {product_id}, and carries on subtask {parent_id}: one of them is gone'
WHEN s.state = 'CRAWL' AND (s.lease_deadline IS NULL OR a.id IS NULL OR s.lease_token IS DISTINCT FROM a.token
    OR s.lease_node IS DISTINCT FROM a.node OR s.lease_started <> (a.started_at IS NOT NULL))
THEN 'lease: has token {lease_token}, node {lease_node}, until {lease_deadline}: attempt {attempt_id} has not'
WHEN s.lease_deadline > :ahead THEN 'lease: runs until {lease_deadline}, far ahead of the last sign of life'
WHEN s.state <> 'CRAWL' AND (s.lease_started OR s.lease_token IS NOT NULL OR s.lease_node IS NOT NULL
    OR s.lease_deadline IS NOT NULL OR s.attempt_id IS NOT NULL)
THEN 'lease: is in {state} with a part of a lease (token, node, deadline, attempt)'
WHEN s.attempts <> (SELECT count(*) FROM attempts WHERE subtask_id = s.id)
THEN 'attempt: says {attempts} attempts, and there are more or less'
WHEN s.log_dropped AND s.state NOT IN ('DONE', 'CANCELLED') THEN 'queue: is in {state}, and its log was dropped'
WHEN s.log_dropped AND EXISTS (SELECT 1 FROM events WHERE subtask_id = s.id)
THEN 'chain: has events, and says that its log was dropped'
WHEN (s.wait_host IS NOT NULL AND (s.state <> 'WAIT' OR s.not_before IS NULL))
    OR (s.wait_host IS NULL) <> (s.wait_reason IS NULL)
THEN 'wait: is in {state} and waits for {wait_host} ({wait_reason}) until {not_before}'
WHEN s.site <> t.site OR s.kind <> t.kind OR s.product_id <> t.product_id OR s.priority <> p.priority
THEN 'copy: is of {site}, {kind}, product {product_id}, priority {priority}; its task and product say otherwise'
WHEN b.id >= s.id OR b.task_id <> s.task_id OR b.part_id <> s.part_id OR b.chunk <> s.chunk OR b.state <> 'DONE'
THEN 'copy: carries on subtask {parent_id}, which is not of its chunk, or not DONE, or no earlier one'
WHEN q.id IS NULL THEN 'partitions: is of partition {part_id}, which is none of its task'
WHEN s.parent_id IS NULL AND s.chunk > q.first_chunk AND NOT EXISTS (
    SELECT 1 FROM attempts m JOIN subtasks f ON f.id = m.subtask_id
    WHERE f.task_id = s.task_id AND f.part_id = s.part_id AND f.chunk = s.chunk - 1 AND m.more)
THEN 'lost: chunk {chunk} was released, but the one before showed no more'
WHEN s.state = 'DONE' AND w.todo > 0 THEN 'lost: is DONE, but its targets to do count {todo}'
-- Counted when its last attempt ended: targets whose pages came late are done since.
WHEN s.state NOT IN ('CRAWL', 'CANCELLED') AND (s.left < w.todo OR s.left > coalesce(w.todo + w.late, 0))
THEN 'left: says that {left} hits are left, its targets to do count {todo}, and {late} came late'

SELECT a.*, s.attempts, p.n AS pages, p.late AS came_late, s.chunk + 1 AS next_chunk
FROM attempts a LEFT JOIN subtasks s ON s.id = a.subtask_id LEFT JOIN task_parts q ON q.id = s.part_id
LEFT JOIN (SELECT attempt_id, count(*) AS n, sum(CASE WHEN late THEN 1 ELSE 0 END) AS late
    FROM pages GROUP BY attempt_id) p ON p.attempt_id = a.id
WHEN s.id IS NULL THEN 'lost: attempt {id} is of subtask {subtask_id}, which is gone'
WHEN (a.outcome IS NULL) <> (s.attempt_id IS NOT DISTINCT FROM a.id)
    OR (a.outcome IS NULL AND (a.ended_at IS NOT NULL OR a.reason IS NOT NULL))
THEN 'attempt: attempt {id} has ended and its subtask still has its lease, or only one of both says so'
WHEN a.no < 1 OR a.no > s.attempts THEN 'attempt: attempt {id} is number {no} of {attempts}'
WHEN a.site <> s.site OR a.product_id <> s.product_id
THEN 'copy: attempt {id} is of {site}, product {product_id}; its subtask is not'
WHEN a.outcome IS NOT NULL AND (a.collected + a.late <> coalesce(p.n, 0) OR a.late <> coalesce(p.late, 0)
    OR a.collected > a.tried OR a.tried > a.offered)
THEN 'counters: attempt {id}: offered {offered}, tried {tried}, collected {collected} must not rise; {late} pages were '
    || 'noted as late; it stored {pages}, {came_late} of them late'
WHEN a.more AND s.state = 'DONE' AND NOT EXISTS (
    SELECT 1 FROM subtasks r WHERE r.task_id = s.task_id AND r.chunk = s.chunk + 1)
    AND q.pages > CASE WHEN q.start_at IS NULL THEN q.chunk_pages ELSE 1 END
        + (s.chunk - q.first_chunk) * q.chunk_pages
    AND (q.state <> 'split' OR q.start_at IS NULL) -- a span that holds too much is not read on, but divided
THEN 'lost: showed that there is more, but chunk {next_chunk} was not released'
WHEN (a.started_at IS NULL) <> (a.progress_at IS NULL) OR a.progress_at > :ahead
THEN 'time: attempt {id} was started {started_at}, its last sign of life was {progress_at}'
WHEN a.started_at < a.allocated_at OR a.progress_at < a.started_at OR a.ended_at < a.progress_at
THEN 'order: attempt {id} was allocated {allocated_at}, started {started_at}, seen {progress_at}, ended {ended_at}'

SELECT e.*, a.allocated_at, a.ended_at, a.token AS of_token, a.node AS of_node, a.outcome, a.reason AS why
FROM events e LEFT JOIN attempts a ON a.id = e.attempt_id AND a.subtask_id = e.subtask_id
WHEN e.sets IS NULL AND e.id > (SELECT id FROM events WHERE sets IS NOT NULL ORDER BY id LIMIT 1)
THEN 'event: event {id} ({transition}) does not say what it set'
-- When 0.10.0 cancelled an attempt, its event named the attempt alone.
WHEN 'CRAWL' IN (e.from_state, e.to_state) AND (a.id IS NULL
    OR ((e.token IS DISTINCT FROM a.token OR e.node IS DISTINCT FROM a.node)
        AND NOT (e.transition = 'cancel' AND e.token IS NULL AND e.sets IS NULL))
    OR CASE WHEN e.to_state = 'CRAWL' THEN e.at <> a.allocated_at OR e.reason IS NOT NULL
    ELSE e.at IS DISTINCT FROM a.ended_at OR (e.transition, coalesce(a.outcome, '')) NOT IN (VALUES OUTCOMES)
        OR CASE WHEN e.transition = 'cancel' THEN a.reason IS NOT NULL ELSE e.reason IS DISTINCT FROM a.reason END END)
THEN 'attempt: event {id} ({transition}, token {token}, node {node}, reason {reason}, at {at}) does not pair with '
    || 'attempt {attempt_id} (token {of_token}, node {of_node}, from {allocated_at} to {ended_at}: {outcome}, {why})'

SELECT p.id, p.url, p.site, p.node, p.source, s.task_id, p.attempt_id, a.allocated_at, p.fetched_at,
    CASE WHEN NOT p.late THEN a.ended_at END AS ended_at
FROM pages p LEFT JOIN attempts a ON a.id = p.attempt_id LEFT JOIN subtasks s ON s.id = a.subtask_id
LEFT JOIN targets t ON t.task_id = s.task_id AND t.url_key = p.url_key AND t.kind = 'hit' AND t.state = 'stored'
LEFT JOIN page_products l ON l.page_id = p.id AND (l.product_id = a.product_id OR a.id IS NULL)
    AND l.linked_at = p.fetched_at
WHEN p.attempt_id IS NOT NULL AND a.id IS NULL
THEN 'lost: page {id} ({url}) was fetched by attempt {attempt_id}, which is gone'
WHEN p.site <> a.site OR p.node <> a.node OR (a.id IS NOT NULL AND p.checked_at < p.fetched_at)
    OR CASE WHEN p.source IS NULL THEN p.attempt_id IS NULL OR p.node = ''
    ELSE p.attempt_id IS NOT NULL OR p.node <> '' OR p.late END
THEN 'copy: page {id} is of {site}, attempt {attempt_id}, node "{node}", source {source}: as its attempt, or imported'
WHEN a.id IS NOT NULL AND (t.id IS NULL
    OR (p.url <> t.url AND replace(p.url, 'https://', 'http://') <> replace(t.url, 'https://', 'http://')))
THEN 'lost: page {id} ({url}) was fetched for task {task_id}, which has no such target that is stored'
WHEN l.page_id IS NULL THEN 'lost: page {id} ({url}) was fetched at {fetched_at}, and not linked to its product then'
-- The first count reads an index alone. A page that counts refused records as reviews is seen below.
WHEN p.reviews <> (SELECT count(*) FROM reviews r WHERE r.page_id = p.id)
    AND p.reviews <> (SELECT count(*) FROM reviews r WHERE r.page_id = p.id AND r.refused IS NULL)
THEN 'lost: page {id} ({url}) had more or less reviews than are stored'
WHEN p.fetched_at < a.allocated_at OR (NOT p.late AND a.ended_at < p.fetched_at)
THEN 'order: page {id}: its attempt began {allocated_at}, it was fetched {fetched_at}, the attempt ended {ended_at}'

SELECT t.*, s.task_id AS other
FROM targets t LEFT JOIN subtasks s ON s.id = t.subtask_id
WHEN s.id IS NULL THEN 'lost: target {id} is of subtask {subtask_id}, which is gone'
WHEN t.task_id <> s.task_id THEN 'copy: target {id} is of task {task_id}, its subtask of task {other}'

SELECT r.*
FROM reviews r LEFT JOIN pages p ON p.id = r.page_id LEFT JOIN reviews o ON o.id = r.same_as
WHEN p.id IS NULL OR (r.same_as IS NOT NULL AND o.id IS NULL) OR (r.attempt_id <> p.attempt_id
    AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.id = r.attempt_id))
THEN 'lost: review {id} is of page {page_id}, attempt {attempt_id}, and equals {same_as}: one of them is gone'
WHEN r.site <> p.site
    OR (r.url <> p.url AND replace(r.url, 'https://', 'http://') <> replace(p.url, 'https://', 'http://'))
    OR r.collected_at < p.fetched_at OR r.collected_at > coalesce(p.checked_at, p.fetched_at) OR (p.checked_at IS NULL
        AND (r.attempt_id <> p.attempt_id OR r.node <> p.node OR r.collected_at <> p.fetched_at))
    OR (r.attempt_id IS NULL) <> (p.source IS NOT NULL) OR (p.source IS NOT NULL AND r.node <> '')
THEN 'copy: review {id} is of {site}, {url}, "{node}", attempt {attempt_id}, at {collected_at}; page {page_id} is not'
WHEN o.id >= r.id OR o.text_hash <> r.text_hash OR o.same_as IS NOT NULL
THEN 'links: review {id} equals review {same_as}, which has another text, is no earlier one, or is a copy itself'
-- Links of an older version stay until the sweep for reposts has come to them.
WHEN r.id <= :compared AND r.refused IS NULL AND CASE WHEN r.same_as IS NOT NULL
    THEN r.copy_key IS DISTINCT FROM o.copy_key OR r.copy_key IS NULL
    ELSE r.id > (SELECT min(e.id) FROM reviews e WHERE e.copy_key = r.copy_key AND e.refused IS NULL) END
THEN 'links: review {id} is linked as a copy of {same_as}: no copy by its key, or the earliest one is another'
WHEN r.refused IS NOT NULL AND (p.reviews >= (SELECT count(*) FROM reviews c WHERE c.page_id = r.page_id)
    OR r.same_as IS NOT NULL OR EXISTS (SELECT 1 FROM reviews c WHERE c.same_as = r.id)
    OR EXISTS (SELECT 1 FROM review_links n WHERE n.review_id = r.id OR n.original_id = r.id)
    OR r.refused NOT IN ('wrong_product', 'empty', 'short', 'title', 'boilerplate', 'list', 'login', 'goods')
    OR (r.refused = 'wrong_product' AND (p.reviews > 0
        OR EXISTS (SELECT 1 FROM page_products l WHERE l.page_id = r.page_id AND l.verdict = 'review'))))
THEN 'links: review {id} of page {page_id} is refused for no reason, or compared, or its page is about a product'

SELECT t.*, r.id AS review_id
FROM correction_texts t JOIN reviews r ON r.copy_key = t.copy_key
WHEN r.refused IS NULL AND r.id <= :compared AND r.correction_id IS NULL
THEN 'links: review {review_id} has the text of correction {correction_id}, and no correction'

SELECT t.id, t.correction_id
FROM correction_texts t LEFT JOIN corrections c ON c.id = t.correction_id
WHEN c.id IS NULL THEN 'lost: text {id} is of correction {correction_id}, which is gone'

SELECT r.id, r.correction_id
FROM reviews r LEFT JOIN corrections c ON c.id = r.correction_id
WHEN r.id <= :compared AND r.correction_id IS NOT NULL AND c.id IS NULL
THEN 'lost: review {id} is corrected by correction {correction_id}, which is gone'

SELECT n.correction_id, n.product_id
FROM correction_products n LEFT JOIN corrections c ON c.id = n.correction_id
LEFT JOIN products o ON o.id = n.product_id
WHEN c.id IS NULL OR o.id IS NULL
THEN 'lost: correction {correction_id} names product {product_id}: one of them is gone'

SELECT w.product_id, w.word
FROM excluded_words w LEFT JOIN products o ON o.id = w.product_id
WHEN o.id IS NULL THEN 'lost: {word} must not occur for product {product_id}, which is gone'

SELECT v.id, v.counted_as
FROM products v LEFT JOIN products m ON m.id = v.counted_as
WHEN v.counted_as IS NOT NULL AND (m.id IS NULL OR m.id = v.id OR m.counted_as IS NOT NULL)
THEN 'links: product {id} is counted as {counted_as}, which is gone, is itself, or is counted as another one'

SELECT a.product_id, a.theme
FROM archived_themes a LEFT JOIN products o ON o.id = a.product_id
WHEN o.id IS NULL THEN 'lost: {theme} is archived for product {product_id}, which is gone'

SELECT l.*, p.fetched_at, p.reviews
FROM page_products l LEFT JOIN pages p ON p.id = l.page_id LEFT JOIN products o ON o.id = l.product_id
WHEN p.id IS NULL OR o.id IS NULL THEN 'lost: page {page_id} is linked to product {product_id}: one of them is gone'
WHEN l.verdict NOT IN ('review', 'no_review', 'wrong_product', 'near_product', 'removed', 'unjudged')
    OR (l.verdict <> 'wrong_product' AND l.missing <> '')
    OR (l.verdict = 'near_product' AND NOT EXISTS (SELECT 1 FROM page_products o
        WHERE o.page_id = l.page_id AND o.verdict IN ('review', 'unjudged')))
THEN 'links: page {page_id} is {verdict} to product {product_id} and lacks "{missing}"'
WHEN l.linked_at < p.fetched_at
    OR (l.verdict IN ('wrong_product', 'near_product') AND p.reviews = 0 AND p.content_hash <> ''
        AND NOT EXISTS (SELECT 1 FROM reviews r WHERE r.page_id = l.page_id AND r.refused = 'wrong_product'))
    OR (p.checked_at IS NULL AND l.verdict = 'no_review' AND l.linked_at = p.fetched_at AND (p.reviews > 0
        OR EXISTS (SELECT 1 FROM reviews r WHERE r.page_id = p.id AND r.refused = 'wrong_product')))
THEN 'links: page {page_id} ({reviews} reviews at {fetched_at}) is {verdict} to product {product_id} since {linked_at}'

SELECT l.*
FROM review_links l LEFT JOIN review_links o ON o.review_id = l.original_id
LEFT JOIN reviews r ON r.id = l.review_id LEFT JOIN reviews f ON f.id = l.original_id
WHEN r.id IS NULL OR f.id IS NULL THEN 'lost: review {review_id} is like {original_id}: one of them is gone'
WHEN o.review_id IS NOT NULL OR l.original_id >= l.review_id OR l.similarity <= 0 OR l.similarity > 1
THEN 'links: review {review_id} is like {original_id} by {similarity}: it is no share, or the original no earlier one'

SELECT t.id, t.site, t.product_id, v.id AS virtual_task_id, v.planned_at, t.created_at
FROM tasks t LEFT JOIN virtual_tasks v ON v.id = t.virtual_task_id
WHEN v.id IS NULL THEN 'lost: task {id} ({site}) is of a virtual task that is gone'
WHEN t.product_id <> v.product_id THEN 'copy: task {id} is of product {product_id}, its virtual task of another'
WHEN t.created_at IS DISTINCT FROM (SELECT s.created_at FROM subtasks s WHERE s.task_id = t.id ORDER BY s.id LIMIT 1)
THEN 'lost: task {id} ({site}), made {created_at}, has no subtask of that time'
WHEN v.planned_at IS NULL THEN 'lost: virtual task {virtual_task_id} has tasks, but counts as still to be planned'
WHEN t.created_at < v.planned_at
THEN 'order: virtual task {virtual_task_id} was planned {planned_at}, its task {id} made {created_at}'

SELECT v.*
FROM virtual_tasks v LEFT JOIN products p ON p.id = v.product_id
WHEN p.id IS NULL THEN 'lost: virtual task {id} is of product {product_id}, which is gone'
WHEN v.created_at < p.created_at OR (v.round = 1 AND v.created_at <> p.created_at)
THEN 'copy: virtual task {id} (round {round}) was made {created_at}, product {product_id} at another time'
WHEN v.planned_at < v.created_at THEN 'order: virtual task {id} was made {created_at}, planned {planned_at}'

SELECT p.id, p.name, count(v.id) AS n, min(v.round) AS first, max(v.round) AS last
FROM products p LEFT JOIN virtual_tasks v ON v.product_id = p.id GROUP BY p.id
WHEN count(v.id) = 0 OR min(v.round) <> 1 OR max(v.round) <> count(v.id)
THEN 'lost: product {id} ({name}) has {n} virtual tasks, of rounds {first} to {last}'

SELECT schedules.*
FROM schedules LEFT JOIN products p ON p.id = schedules.product_id
WHEN product_id IS NOT NULL AND p.id IS NULL THEN 'lost: schedule {id} is of product {product_id}, which is gone'
WHEN (cron IS NULL) = (every_s IS NULL) OR (cron IS NULL) <> (zone IS NULL) OR (next_at IS NULL AND NOT paused)
    OR what NOT IN ('recrawl', 'report', 'failed-report', 'export') OR (what <> 'recrawl' AND product_id IS NOT NULL)
THEN 'copy: schedule {id} ({what}) comes by {cron}, {zone}, {every_s} s, next at {next_at}, which is no rule'

SELECT u.virtual_task_id, u.site
FROM unplanned_sites u LEFT JOIN virtual_tasks v ON v.id = u.virtual_task_id
WHEN v.id IS NULL THEN 'lost: site {site} is still to be planned for virtual task {virtual_task_id}, which is gone'

SELECT r.*
FROM result_pages r LEFT JOIN task_parts p ON p.id = r.part_id LEFT JOIN tasks t ON t.id = p.task_id
WHEN t.id IS NULL THEN 'lost: result page {id} is of partition {part_id}, which is gone'
WHEN r.product_id <> t.product_id OR r.site <> t.site OR r.engine <> t.engine OR length(r.hits) % 8 <> 0
    OR NOT EXISTS (SELECT 1 FROM subtasks s JOIN attempts a ON a.subtask_id = s.id
        WHERE s.task_id = t.id AND s.part_id = p.id AND a.node = r.node)
THEN 'copy: result page {id} is of product {product_id}, {site}, {engine}, {node}; partition {part_id} is not'

SELECT r.part_id, p.pages_read, p.listed, r.n, r.hits
FROM (SELECT part_id, count(*) AS n, sum(length(hits)) / 8 AS hits FROM result_pages GROUP BY part_id) r
JOIN task_parts p ON p.id = r.part_id
WHEN r.n > p.pages_read OR r.hits > p.listed
THEN 'counters: partition {part_id} has read {pages_read} pages with {listed} hits; {n} with {hits} are stored'

SELECT state, sum(kept) AS kept, sum(counted) AS counted
FROM (SELECT state, n AS kept, 0 AS counted FROM queue_counts UNION ALL SELECT state, 0, count(*) FROM subtasks
    WHERE state IN ('PRIORITY', 'MANUAL', 'DONE', 'CANCELLED') GROUP BY state) queues
GROUP BY state
WHEN sum(kept) <> sum(counted)
THEN 'counters: {state} is kept as {kept} subtasks, and there are {counted}'
"""
_OUTCOMES = ", ".join(f"('{transition}', '{outcome}')" for outcome, transition in TRANSITIONS.items())
_SUMS_DIFFER = "\n".join(
    f"WHEN abs(coalesce(p.{name}, 0) - coalesce(a.{name}, 0)) > 1e-6 * (1 + abs(coalesce(a.{name}, 0))) "
    f"THEN 'statistics: {{site}} on {{node}}: sum of {name} is ' || coalesce(p.{name}, 0) "
    f"|| ', of its closed attempts ' || coalesce(a.{name}, 0)"
    for name in (*SUMS, "wait_s", "requests")
)
_FADED_MORE = "\n".join(
    f"WHEN p.f_{name} < -1e-6 OR p.f_{name} > p.{name} + 1e-6 * (1 + p.{name}) "
    f"THEN 'statistics: {{site}} on {{node}}: faded sum of {name} is ' || p.f_{name} || ', and plain ' || p.{name}"
    for name in SUMS
)
_PAIRS = f"""
SELECT coalesce(p.site, a.site) AS site, coalesce(p.node, a.node) AS node, p.rtt_ms, p.rtt_n, p.faded_at,
    a.ended_at
FROM pair_stats p FULL JOIN (
    SELECT a.site, a.node, max(a.ended_at) AS ended_at, {ATTEMPT_SUMS}, sum(a.wait_s) AS wait_s,
        sum(a.requests) AS requests
    FROM attempts a WHERE a.outcome IS NOT NULL GROUP BY a.site, a.node
) a ON a.site = p.site AND a.node = p.node
WHEN (p.rtt_ms IS NULL) <> (p.rtt_n = 0)
THEN 'statistics: {{site}} on {{node}}: response time {{rtt_ms}} rests on {{rtt_n}}'
WHEN p.faded_at IS DISTINCT FROM a.ended_at
THEN 'statistics: {{site}} on {{node}}: faded to {{faded_at}}, its last attempt ended at {{ended_at}}'
{_SUMS_DIFFER}
{_FADED_MORE}
"""
INVARIANTS = _QUERIES.replace("OUTCOMES", _OUTCOMES).replace("HITS_UNREAD", str(HITS_UNREAD)) + _PAIRS


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold.

    Attributes:
        kind: queue, chain, transition, order, event, recalls, lease, left, wait, time, attempt, counters, statistics,
            copy, links, lost, partitions, counted, overdue or value (docs/verify.md).
        subtask_id: the subtask it belongs to; None if it belongs to no single one.
        message: which rows, their values, and what would be right.
    """

    kind: str
    subtask_id: int | None
    message: str


def row_violations(tx: Transaction, queries: str, clock: Clock, **values: Any) -> Iterator[Violation]:
    """Yield a violation for each row that breaks an invariant.

    Args:
        queries: queries separated by empty lines, in the SQL that SQLite and PostgreSQL share. A query ends with
            conditions, each with the kind and the message of its violation. The first condition that holds for a row
            counts. A message names columns in braces. A column `subtask_id` names the subtask of the violation. An
            `order` violation counts only if the times that its message names, in this order, go back by more than
            clocks may (`tasks.store.verify.clocks`); its condition is the last one.
        values: values that the queries name.
    """
    for query in queries.strip().split("\n\n"):
        columns, rest = query.split("\nFROM ", 1)
        tables, conditions = rest.split("\nWHEN ", 1)
        found = f"{columns}, CASE WHEN {conditions}\nEND AS wrong FROM {tables}"
        for row in tx.records(dict, f"SELECT * FROM ({found}\n) found WHERE wrong IS NOT NULL", **values):
            kind, message = row["wrong"].split(": ", 1)
            if kind == "order":
                times = [as_time(row[name]) for name in _TIME.findall(message) if row[name] is not None]
                if clock.went_back(times) is None:
                    continue
            yield Violation(kind, row.get("subtask_id"), message.format(**row))


_TIME = re.compile(r"\{(\w+_at)\}")
