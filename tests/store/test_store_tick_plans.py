"""No query of a tick reads a large table from end to end: PostgreSQL's own plans of each, as it is sent.

The store is filled by SQL, most of it with what is done, as after weeks. REVIEWLOOP_TEST_SUBTASKS=1000000 fills it
with as many subtasks (some minutes).
"""

import os
import re
import time
from datetime import UTC, datetime, timedelta

import pytest
from world import CATALOG, context_of, statements, undone

from splitter.catalog.names import Kind
from tasks.jobs import repost_linking
from tasks.jobs.ticks import tick
from tasks.store.queries.pairs import list_node_parameters
from tasks.store.queue import manual, nodes, snapshot, tasks, transitions, upkeep
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store, lift_limits

SIZE = int(os.environ.get("REVIEWLOOP_TEST_SUBTASKS", "40000"))
LARGE = ("subtasks", "targets", "events", "attempts")
SITES = sorted(site for site in CATALOG.sites if CATALOG.kind_of(site) is Kind.META)[:20]

MANY = SIZE // 16
"""As many rows of a large table, or more, no query of a tick is to read: more than any batch."""

ALLOWED = {
    """count(*) AS queued, CAST(sum("left") AS BIGINT)""": "every 30 s, and for 2 % of the time at most: it counts "
    "what is in PRIORITY, from an index alone (`SchedulerState.count_queued`)",
}
"""Parts of the statements that may read more, and why."""

FILLED = (
    # One product of them all, and a task for every 50 subtasks.
    """INSERT INTO products (id, name, keywords, aliases, created_at) VALUES (1, '牛奶', '["牛奶"]', '[]', now())""",
    """INSERT INTO virtual_tasks (id, product_id, keywords, aliases, round, created_at, planned_at)
    SELECT n, 1, '["牛奶"]', '[]', n, now(), now() FROM generate_series(1, {tasks} / {sites}) n""",
    """INSERT INTO tasks (id, virtual_task_id, product_id, site, engine, kind, created_at)
    SELECT n, 1 + (n - 1) / {sites}, 1, ('{names}'::text[])[1 + n % {sites}], 'baidu', 'meta', now()
    FROM generate_series(1, {tasks}) n""",
    """INSERT INTO task_parts (id, task_id, first_chunk, pages, keywords, dropped)
    SELECT n, n, 1, 1, '["牛奶"]', '[]' FROM generate_series(1, {tasks}) n""",
    """INSERT INTO subtasks (id, task_id, product_id, site, kind, chunk, part_id, state, failed_on, "left", reason,
        lease_token, lease_node, lease_deadline, lease_started, attempt_id, attempts, created_at, changed_at)
    SELECT n, t, 1, ('{names}'::text[])[1 + t % {sites}], 'meta', n % 50, t, state,
        CASE WHEN state = 'FAILED' THEN '["n1"]' ELSE '[]' END::jsonb, 10,
        CASE WHEN state = 'FAILED' THEN 'blocked' END,
        CASE WHEN state = 'CRAWL' THEN lpad(n::text, 32, '0') END, CASE WHEN state = 'CRAWL' THEN 'n' || n % 4 END,
        CASE WHEN state = 'CRAWL' THEN now() + (n % 7 - 2) * interval '20 s' END, state = 'CRAWL' AND n % 2 = 0,
        CASE WHEN state = 'CRAWL' THEN n END, 1, now() - interval '1 day', now() - interval '1 day'
    FROM (SELECT n, 1 + n % {tasks} AS t, CASE WHEN n % 1000 < 900 THEN 'DONE' WHEN n % 1000 < 980 THEN 'PRIORITY'
        WHEN n > {size} - 2000 AND n % 1000 < 990 THEN 'WAIT' WHEN n > {size} - 2000 AND n % 1000 < 993 THEN 'CRAWL'
        WHEN n > {size} - 2000 AND n % 1000 < 995 THEN 'FAILED' WHEN n > {size} - 2000 AND n % 1000 < 997 THEN 'SLEEP'
        WHEN n % 1000 = 997 THEN 'MANUAL' ELSE 'DONE' END AS state
        FROM generate_series(1, {size}) n) made""",
    """INSERT INTO targets (task_id, subtask_id, kind, url, url_key, state)
    SELECT 1 + n % {tasks}, n, CASE WHEN k = 0 THEN 'result' ELSE 'hit' END, 'http://e/' || n || '/' || k,
        decode(md5(n || '/' || k), 'hex'), CASE WHEN n % 1000 < 900 OR k = 0 THEN 'stored' ELSE 'todo' END
    FROM generate_series(1, {size}) n, generate_series(0, 1) k""",
    """INSERT INTO attempts (id, subtask_id, product_id, no, round, site, node, token, quota, budget_s, allocated_at,
        started_at, progress_at, ended_at, outcome, errors, more)
    SELECT id, id, 1, 1, 1, site, 'n' || id % 4, lpad(id::text, 32, '0'), 20, 60, changed_at, changed_at, changed_at,
        CASE WHEN state <> 'CRAWL' THEN changed_at END, CASE WHEN state <> 'CRAWL' THEN 'succeeded' END, '{{}}', false
    FROM subtasks""",
    """INSERT INTO events (id, at, subtask_id, transition, from_state, to_state, detail)
    SELECT (k - 1) * {size} + id, changed_at - (2 - k) * interval '1 hour', id,
        CASE WHEN k = 1 THEN 'create' ELSE 'wake' END,
        CASE WHEN k = 2 THEN 'SLEEP' END, CASE WHEN k = 2 THEN 'DONE' ELSE 'PRIORITY' END, '{{"left": 0}}'
    FROM subtasks, generate_series(1, 2) k ORDER BY 1""",
    """INSERT INTO queue_counts (state, n) SELECT state, count(*) FROM subtasks
    WHERE state IN ('PRIORITY', 'MANUAL', 'DONE', 'CANCELLED') GROUP BY state""",
)
_NUMBERED = ("products", "virtual_tasks", "tasks", "task_parts", "subtasks", "attempts", "events")


def _fill(store, size):
    given = {"size": size, "tasks": size // 50, "sites": len(SITES), "names": "{" + ",".join(SITES) + "}"}
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        driver = conn.connection.driver_connection
        driver.patient = True
        conn.exec_driver_sql("SET statement_timeout = 0")
        conn.exec_driver_sql("SET session_replication_role = replica")  # no look-up of each foreign key
        for statement in FILLED:
            conn.exec_driver_sql(statement.format(**given).replace("%", "%%"))
        for name in _NUMBERED:
            newest = f"(SELECT max(id) FROM {name})"
            conn.exec_driver_sql(f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), {newest})")
        conn.exec_driver_sql("VACUUM ANALYZE")
        conn.exec_driver_sql("RESET ALL")
        driver.patient = False
    with store.begin() as conn:
        for n in range(4):
            nodes.register(conn, Node(f"n{n}", frozenset(Kind), 8, None), {})


def _find_scans(store, sent, page_cost=4.0):
    """Return the table and the text of each of these statements that reads a large table whole."""
    texts = {
        re.sub(r"\d+", "?", one): one
        for one in sent
        if re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b", one)
    }
    found = []
    with store.begin() as tx:
        tx.run(f"SET LOCAL random_page_cost = {page_cost}")
        for one in texts.values():
            explain = f"EXPLAIN (FORMAT JSON) {one}".replace("%", "%%")
            (plan,) = tx.engine_connection.exec_driver_sql(explain).scalar_one()
            if not any(part in one for part in ALLOWED):
                found.extend(f"{table}: {one[:600]}" for table in _scanned(plan["Plan"]))
    print(len(texts), "statements explained")
    return found


def _scanned(plan, above=""):
    """Large tables that a plan reads whole, or much of; a LIMIT or EXISTS above ends what is estimated without it."""
    if plan.get("Relation Name") in LARGE and plan["Node Type"] != "ModifyTable":
        ended = above == "Limit" or plan.get("Parent Relationship") == "InitPlan"
        if plan["Node Type"] == "Seq Scan" or (plan["Plan Rows"] >= MANY and not ended):
            yield plan["Relation Name"]
    for below in plan.get("Plans", ()):
        yield from _scanned(below, plan["Node Type"])


@pytest.fixture(scope="module")
def filled(postgres_databases, _postgres_template):
    import servers

    url = postgres_databases.create(_postgres_template)
    store = Store.open(servers.url_of(url))
    _fill(store, SIZE)
    yield store
    store.close()
    postgres_databases.drop(url)


def test_a_whole_scan_is_seen(filled):
    (scan,) = _find_scans(filled, ["SELECT count(*) FROM targets WHERE reason = 'none'"])
    assert scan.startswith("targets: ")


@pytest.mark.parametrize("name", ["turn", "admit", "wake", "recall", "allocate", "rebalance", "recrawl_due"])
def test_no_sweep_reads_a_large_table_whole(filled, name):
    context = context_of(CATALOG)
    with statements(filled) as sent:
        for _ in range(2):  # the first one reads what a new process does not know yet
            begin_s = time.monotonic()
            with filled.begin() as tx, lift_limits(tx):
                for n in range(4):
                    nodes.record_heartbeat(tx, f"n{n}", nodes.Heartbeat(attempts_per_s=1.0))
                tick(tx, context, (name,))
            print(f"{name}: {time.monotonic() - begin_s:.3f} s")
    assert _find_scans(filled, sent) == []


def test_nothing_else_that_comes_again_and_again_does(filled):
    with statements(filled) as sent, filled.begin() as tx, lift_limits(tx):
        snapshot.all_settled(tx)
        assert sum(transitions.count_queues(tx).values()) >= SIZE
        manual.list_causes(tx)
        manual.list_manual(tx, most=10, reason="blocked")
        manual.list_ids(tx)
        tasks.list_unplanned(tx, 100)
        tasks.list_late_sites(tx)
        repost_linking.find(tx, 100)
        upkeep.load_value(tx, upkeep.RUN_TIME_MODEL)
        list_node_parameters(tx)
    assert _find_scans(filled, sent) == []


def test_retention_does_not_either(filled):
    with (
        statements(filled) as sent,
        undone(filled, datetime.now(UTC) + timedelta(days=400)) as tx,
        lift_limits(tx),
    ):
        upkeep.drop_old(lambda step: step(tx), timedelta(days=365))
    # A batch is 2 % of these tables: servers whose disks seek slowly may rather read all of so small a one.
    assert _find_scans(filled, sent, page_cost=1.1) == []
