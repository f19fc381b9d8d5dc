"""Retention drops what is old in batches, and never what is still needed."""

from datetime import timedelta

from world import START, undone

from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.store.queue import upkeep
from tasks.store.queue.upkeep import drop_old
from tasks.store.sql.tables import attempts, events, host_rests, subtasks
from tasks.store.verify.verify import verify

YEAR = timedelta(days=365)


def done(world, name):
    """A subtask that has gone the usual way."""
    subtask_id = world.crawled(name, name).subtask_id
    world.wake()
    return subtask_id


def test_old_details_go_and_transitions_stay(world):
    done(world, "一")
    last = done(world, "二")
    before = len(world.rows(events))
    newest = world.rows(events)[-1]
    world.now = START + upkeep.KEEP_DETAIL
    assert drop_old(world.do, None) == 0
    world.pass_s(1)
    assert drop_old(world.do, None) == before - 1 + 1  # but the newest event; the first attempt
    assert len(world.rows(events)) == before
    with_detail = world.rows(events, events.c.detail.is_not(None))
    assert [row.id for row in with_detail] == [newest.id], "the newest row is never touched"
    assert newest.subtask_id == last
    assert drop_old(world.do, None) == 0, "nothing is looked at twice"


def test_rests_that_nobody_probed_go(world):
    world.rest("n1", Rest("a.cn", "captcha", lambda _times: 60.0))
    world.now = START + timedelta(seconds=60) + upkeep.KEEP_BREAKER
    assert drop_old(world.do, None) == 0
    world.pass_s(1)
    assert drop_old(world.do, None) == 1
    assert len(world.rows(host_rests)) == 0


def test_the_log_of_what_ended_long_ago_goes_as_a_whole(world, monkeypatch):
    monkeypatch.setattr(upkeep, "BATCH", 3)  # a log is cut by the batches
    old = [done(world, name) for name in ("一", "二", "三")]
    failed = world.failed(FailureReason.BLOCKED, "四")  # as old, and not settled
    world.pass_s(2 * YEAR.total_seconds())
    young = done(world, "五")
    drop_old(world.do, None)
    assert len(world.rows(subtasks, subtasks.c.log_dropped)) == 0, "kept for ever"
    drop_old(world.do, YEAR)
    for subtask_id in old:
        assert len(world.rows(events, events.c.subtask_id == subtask_id)) == 0
        assert len(world.rows(attempts, attempts.c.subtask_id == subtask_id)) == 1
    for subtask_id in (failed, young):
        assert len(world.rows(events, events.c.subtask_id == subtask_id)) > 0
    assert [row.id for row in world.rows(subtasks, subtasks.c.log_dropped)] == old
    found = world.verification()
    assert found.violations == ()
    assert found.counts["logs_dropped"] == len(old)


def test_what_a_dropped_log_leaves_is_proved(world):
    old = done(world, "一")
    world.pass_s(2 * YEAR.total_seconds())
    young = done(world, "二")
    drop_old(world.do, YEAR)
    spoilt = [
        (old, "log_dropped = false", "queue"),
        (old, "state = 'SLEEP'", "queue"),
        (old, "attempts = 2", "attempt"),
        (old, "attempts = 0", "attempt"),
        (young, "log_dropped = true", "chain"),
    ]
    for subtask_id, change, kind in spoilt:
        with undone(world.store, world.now) as tx:
            assert tx.run(f"UPDATE subtasks SET {change} WHERE id = :id", id=subtask_id)
            found = verify(tx, None).violations
        assert kind in {one.kind for one in found if one.subtask_id == subtask_id}, change
