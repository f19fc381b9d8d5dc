"""`verify` reports each invariant that is broken by hand, and names the subtask."""

from __future__ import annotations

from datetime import timedelta

import pytest
from world import World, hit, statements

from tasks.domain.attempt_end import Counters
from tasks.domain.failures import FailureReason
from tasks.domain.states import MAX_RECALLS, State
from tasks.jobs import recalling, sweeps
from tasks.store.queue import manual, nodes
from tasks.store.sql.database import Store
from tasks.store.sql.tables import events, subtasks
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.verify import BOUNDS, Overdue, verify

DONE, CRAWLING, WAITING, FAILED_ONCE = 1, 2, 3, 4


@pytest.fixture
def filled(store: Store) -> World:
    """A store in which everything has happened: subtasks in DONE, CRAWL, WAIT (after a recall) and WAIT."""
    world = World(store)
    for number in (DONE, CRAWLING, WAITING, FAILED_ONCE):
        assert world.waiting(f"产品{number}", chunks=(True, False)) == number
    lease, work = world.begin(DONE)
    todo = world.read_results(lease, work.targets[0], [hit("1"), hit("2")]).todo
    for target in todo:
        world.save(lease, target)
    world.close(lease, Counters(offered=2, tried=2, collected=2, active_s=1.25, wait_s=0.5))
    world.sweep(sweeps.wake)
    world.begin(CRAWLING)
    lease, _ = world.begin(FAILED_ONCE)
    world.close(lease, Counters(offered=1), reason=FailureReason.BLOCKED)
    world.sweep(recalling.recall)
    assert [world.state(n) for n in (1, 2, 3, 4)] == [State.DONE, State.CRAWL, State.WAIT, State.WAIT]
    assert world.verification().violations == ()
    return world


def _found(world: World) -> list[tuple[str, int | None]]:
    return [(violation.kind, violation.subtask_id) for violation in world.verification().violations]


BROKEN = [
    # what is waited for
    ("UPDATE subtasks SET wait_host = 'a.cn', wait_reason = 'unreachable' WHERE id = 3", ("wait", WAITING)),
    (
        "UPDATE subtasks SET wait_host = 'a.cn', wait_reason = 'unreachable', not_before = changed_at WHERE id = 1",
        ("wait", DONE),
    ),
    ("UPDATE subtasks SET idle_releases = 2 WHERE id = 4", ("wait", FAILED_ONCE)),
    # the event log
    ("UPDATE subtasks SET state = 'WAIT' WHERE id = 1", ("queue", DONE)),
    ("DELETE FROM events WHERE subtask_id = 3", ("queue", WAITING)),
    ("DELETE FROM events WHERE subtask_id = 1 AND transition = 'admit'", ("chain", DONE)),
    ("DELETE FROM events WHERE subtask_id = 1 AND transition = 'create'", ("chain", DONE)),
    (
        "UPDATE events SET transition = 'recall' WHERE subtask_id = 3 AND transition = 'admit'",
        ("transition", 3),
    ),
    (
        "UPDATE events SET transition = 'teleport' WHERE subtask_id = 3 AND transition = 'admit'",
        ("transition", 3),
    ),
    ("UPDATE subtasks SET recalls = 0 WHERE id = 4", ("recalls", FAILED_ONCE)),
    # what events set
    ("UPDATE events SET sets = NULL WHERE subtask_id = 1 AND transition = 'wake'", ("event", DONE)),
    ("UPDATE events SET sets = '{\"left\": 7}' WHERE subtask_id = 1 AND transition = 'wake'", ("left", DONE)),
    (
        "UPDATE events SET sets = '{}' WHERE subtask_id = 4 AND transition = 'recall'",
        ("recalls", FAILED_ONCE),
    ),
    ("UPDATE events SET sets = '{\"x\": 1}' WHERE subtask_id = 4 AND transition = 'recall'", ("event", 4)),
    (
        "UPDATE events SET sets = '{\"recalls\": 2}' WHERE subtask_id = 4 AND transition = 'recall'",
        ("recalls", FAILED_ONCE),
    ),
    (
        "UPDATE events SET sets = '{\"attempts\": 2}' WHERE subtask_id = 1 AND transition = 'allocate'",
        ("attempt", DONE),
    ),
    ("UPDATE subtasks SET assigned_quota = 5 WHERE id = 1", ("recalls", DONE)),
    # leases
    ("UPDATE subtasks SET lease_deadline = NULL WHERE id = 2", ("lease", CRAWLING)),
    ("UPDATE subtasks SET lease_token = NULL WHERE id = 2", ("lease", CRAWLING)),
    ("UPDATE subtasks SET lease_node = 'n1' WHERE id = 3", ("lease", WAITING)),
    ("UPDATE subtasks SET lease_started = true WHERE id = 3", ("lease", WAITING)),
    # attempts
    ("UPDATE subtasks SET lease_token = 'other' WHERE id = 2", ("lease", CRAWLING)),
    ("UPDATE attempts SET outcome = NULL WHERE subtask_id = 1", ("attempt", DONE)),
    ("UPDATE attempts SET outcome = 'succeeded' WHERE subtask_id = 2", ("attempt", CRAWLING)),
    ("UPDATE attempts SET no = 2 WHERE subtask_id = 4", ("attempt", FAILED_ONCE)),
    ("UPDATE subtasks SET attempts = 2 WHERE id = 4", ("attempt", FAILED_ONCE)),
    ("UPDATE subtasks SET attempts = 1 WHERE id = 3", ("attempt", WAITING)),
    # counters
    ("UPDATE attempts SET collected = 1 WHERE subtask_id = 1", ("counters", DONE)),
    ("UPDATE attempts SET tried = 3 WHERE subtask_id = 1", ("counters", DONE)),
    ("UPDATE attempts SET tried = 1 WHERE subtask_id = 1", ("counters", DONE)),
    ("UPDATE attempts SET late = 1 WHERE subtask_id = 1", ("counters", DONE)),
    ("UPDATE pages SET late = true WHERE id = 1", ("counters", DONE)),
    # statistics
    *[
        (f"UPDATE pair_stats SET {name} = {name} + 1", ("statistics", None))
        for name in [
            "attempts",
            "failed",
            "silent",
            "offered",
            "tried",
            "collected",
            "active_s",
            "wait_s",
            "lost_s",
            "requests",
        ]
    ],
    ("DELETE FROM pair_stats", ("statistics", None)),
    # nothing lost
    ("UPDATE targets SET state = 'todo' WHERE subtask_id = 1 AND kind = 'hit'", ("lost", DONE)),
    ("UPDATE targets SET state = 'todo' WHERE subtask_id = 1 AND kind = 'result'", ("lost", DONE)),
    ("UPDATE targets SET kind = 'hit', state = 'stored' WHERE subtask_id = 3", ("lost", None)),
    ("DELETE FROM page_products WHERE page_id = 1", ("lost", None)),
    ("DELETE FROM reviews WHERE page_id = 1", ("lost", None)),
    ("UPDATE attempts SET more = true WHERE subtask_id = 1", ("lost", DONE)),
    (
        "INSERT INTO stored_values (name, at, data) VALUES ('reposts', '2026-01-01', '{\"last_id\": 9}')",
        ("links", None),
    ),
    (
        "INSERT INTO task_parts (task_id, first_chunk, keywords, dropped) VALUES (1, 3, '[]', '[]')",
        ("partitions", None),
    ),
    ("UPDATE virtual_tasks SET planned_at = NULL WHERE id = 3", ("lost", None)),
    (
        "INSERT INTO products (name, keywords, aliases, created_at) VALUES ('x', '[]', '[]', '2026-01-01')",
        ("lost", None),
    ),
    (
        "INSERT INTO tasks (virtual_task_id, product_id, site, engine, kind, created_at) "
        "VALUES (1, 1, 'x', 'baidu', 'meta', '2026-01-01')",
        ("lost", None),
    ),
]


@pytest.mark.parametrize(
    "column", ["round = 7", "recalls = 3", "not_before = created_at", "reason = 'blocked'"]
)
def test_what_older_events_set_is_not_known_and_the_rest_is_proved(filled: World, column: str) -> None:
    with filled.store.begin() as tx:
        tx.run("UPDATE events SET sets = NULL")
        tx.run(f"UPDATE subtasks SET {column} WHERE id = 3")
    assert _found(filled) == []
    filled.begin(WAITING)
    assert _found(filled) == []
    with filled.store.begin() as tx:
        tx.run("UPDATE subtasks SET lease_node = 'n9' WHERE id = 3")
    assert _found(filled) == [("lease", WAITING)]


@pytest.mark.parametrize(("statement", "expected"), BROKEN)
def test_a_broken_invariant_is_reported(
    filled: World, statement: str, expected: tuple[str, int | None]
) -> None:
    with filled.store.begin() as tx:
        assert tx.engine_connection.exec_driver_sql(statement).rowcount > 0
    assert expected in _found(filled)


def test_more_than_five_recalls_in_a_round_are_seen_and_a_retry_begins_another(filled: World) -> None:
    for _ in range(MAX_RECALLS + 1):
        lease, _work = filled.begin(WAITING)
        filled.close(lease, reason=FailureReason.BLOCKED)
        filled.sweep(recalling.recall)
    assert filled.state(WAITING) is State.MANUAL
    filled.do(manual.retry, WAITING)
    lease, _work = filled.begin(WAITING)
    filled.close(lease, reason=FailureReason.BLOCKED)
    filled.sweep(recalling.recall)
    assert filled.subtask(WAITING).recalls == 1
    assert _found(filled) == []

    def recalled_instead(tx: Transaction) -> None:
        its = (events.c.subtask_id == WAITING) & (events.c.transition == "give_up")
        tx.engine_connection.execute(events.update().where(its).values(transition="recall", to_state="WAIT"))

    filled.do(recalled_instead)
    told = [v.message for v in filled.verification().violations if v.kind == "recalls"]
    assert any(f"more than recall {MAX_RECALLS}" in one for one in told)


def test_counts_and_overdue_leases(filled: World) -> None:
    counts = filled.verification().counts
    assert (counts["subtasks"], counts["attempts"], counts["pages"], counts["reviews"]) == (4, 3, 2, 2)
    assert counts["overdue"] == 0
    filled.pass_s(60)
    assert filled.verification().counts["overdue"] == 1
    assert filled.verification().violations == (), "a lease that has run out breaks no invariant"


def test_the_number_of_statements_does_not_grow_with_the_store(filled: World) -> None:
    with statements(filled.store) as asked:
        filled.verification()
    few = len(asked)
    for number in range(5, 25):
        lease, work = filled.begin(filled.waiting(f"产品{number}"))
        filled.read_results(lease, work.targets[0], [hit(f"p{number}")])
        filled.close(lease, Counters(offered=1))
    with statements(filled.store) as asked:
        assert filled.verification().violations == ()
    assert len(asked) == few


def test_a_run_that_was_stopped_is_not_overdue_and_one_that_goes_on_is(filled: World) -> None:
    def told(world: World) -> list[str]:
        with world.store.read() as tx:
            return [v.message for v in verify(tx).violations]

    filled.pass_s(86_400)
    assert told(filled) == [], "nothing has happened since"
    filled.node("n1")
    assert told(filled) == [], "a node has just come back"
    filled.pass_s(BOUNDS["lease"].total_seconds() - 1)
    filled.do(nodes.record_heartbeat, "n1", nodes.Heartbeat())
    assert told(filled) == []
    filled.pass_s(2)
    filled.do(nodes.record_heartbeat, "n1", nodes.Heartbeat())
    (message,) = told(filled)
    assert message.startswith("lease: 1 are overdue"), message
    found = filled.verification()
    assert (found.as_of, found.overdue["lease"]) == (filled.now, Overdue(1, 301.0))
    filled.sweep(recalling.recall)
    assert told(filled) == []


def test_a_lease_far_ahead_of_its_last_sign_of_life_is_seen(filled: World) -> None:
    filled.do(
        lambda tx: tx.engine_connection.execute(
            subtasks.update()
            .where(subtasks.c.id == CRAWLING)
            .values(lease_deadline=tx.now + timedelta(hours=2))
        )
    )
    with filled.store.read() as tx:
        assert [(v.kind, v.subtask_id) for v in verify(tx).violations] == [("lease", CRAWLING)]
