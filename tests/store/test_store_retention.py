"""Retention drops what is old in batches, and never what is still needed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select, update
from world import START, World, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.jobs import sweeps
from tasks.store.queue import hosts, upkeep
from tasks.store.queue.attempts import silence
from tasks.store.queue.upkeep import drop_old
from tasks.store.sql.tables import attempts, events, host_rests, subtasks

YEAR = timedelta(days=365)


def writing(world: World) -> Callable[[Any], int]:
    return lambda operation: int(world.do(operation))


def done(world: World, name: str) -> int:
    """A subtask that has gone the usual way."""
    subtask_id = world.waiting(name)
    lease, work = world.begin(subtask_id)
    (target,) = world.read_results(lease, work.targets[0], [hit(name)]).todo
    world.save(lease, target)
    assert world.close(lease, Counters(offered=1, tried=1, collected=1))
    world.sweep(sweeps.wake)
    return subtask_id


def count(world: World, table: Any, *where: Any) -> int:
    return int(
        world.look(
            lambda tx: tx.engine_connection.scalar(select(func.count()).select_from(table).where(*where))
        )
    )


def test_old_details_go_and_transitions_stay(world: World) -> None:
    done(world, "一")
    last = done(world, "二")
    before = count(world, events)
    newest = world.rows(events)[-1]
    world.now = START + upkeep.KEEP_DETAIL
    assert drop_old(writing(world), None) == 0
    world.pass_s(1)
    assert drop_old(writing(world), None) == before - 1 + 1  # but the newest event; the first attempt
    assert count(world, events) == before
    with_detail = world.rows(events, events.c.detail.is_not(None))
    assert [row.id for row in with_detail] == [newest.id], "the newest row is never touched"
    assert newest.subtask_id == last
    assert drop_old(writing(world), None) == 0, "nothing is looked at twice"


def test_rests_that_nobody_probed_go(world: World) -> None:
    world.do(hosts.rest_host, "n1", Rest("a.cn", "captcha", lambda _times: 60.0))
    world.now = START + timedelta(seconds=60) + upkeep.KEEP_BREAKER - timedelta(seconds=1)
    assert drop_old(writing(world), None) == 0
    world.pass_s(1)
    assert drop_old(writing(world), None) == 1
    assert count(world, host_rests) == 0


def test_the_log_of_what_ended_long_ago_goes_as_a_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "BATCH", 3)  # a log is cut by the batches
    old = [done(world, name) for name in ("一", "二", "三")]
    failed = world.waiting("四")  # as old, and not settled
    lease, _ = world.begin(failed)
    world.pass_s(60)
    world.do(silence, {lease: FailureReason.SILENT})
    world.pass_s(2 * YEAR.total_seconds())
    young = done(world, "五")
    drop_old(writing(world), None)
    assert count(world, subtasks, subtasks.c.log_dropped) == 0, "kept for ever"
    drop_old(writing(world), YEAR)
    for subtask_id in old:
        assert count(world, events, events.c.subtask_id == subtask_id) == 0
        assert count(world, attempts, attempts.c.subtask_id == subtask_id) == 1
    for subtask_id in (failed, young):
        assert count(world, events, events.c.subtask_id == subtask_id) > 0
    assert [row.id for row in world.rows(subtasks, subtasks.c.log_dropped)] == old
    found = world.verification()
    assert found.violations == ()
    assert found.counts["logs_dropped"] == len(old)


@pytest.mark.parametrize(
    ("spoilt", "kind"),
    [
        ({"log_dropped": False}, "queue"),
        ({"state": "SLEEP"}, "queue"),
        ({"attempts": 2}, "attempt"),
        ({"attempts": 0}, "attempt"),
    ],
)
def test_what_a_dropped_log_leaves_is_proved(world: World, spoilt: dict[str, Any], kind: str) -> None:
    subtask_id = done(world, "一")
    world.pass_s(2 * YEAR.total_seconds())
    done(world, "二")
    drop_old(writing(world), YEAR)
    own = subtasks.c.id == subtask_id
    (before,) = world.rows(subtasks, own)
    world.do(lambda tx: tx.engine_connection.execute(update(subtasks).where(own).values(spoilt)))
    assert kind in {one.kind for one in world.verification().violations if one.subtask_id == subtask_id}
    given = {name: before._mapping[name] for name in spoilt}
    world.do(lambda tx: tx.engine_connection.execute(update(subtasks).where(own).values(given)))


def test_a_log_that_is_said_to_be_dropped_and_is_there_is_told(world: World) -> None:
    subtask_id = done(world, "一")
    own = subtasks.c.id == subtask_id
    world.do(lambda tx: tx.engine_connection.execute(update(subtasks).where(own).values(log_dropped=True)))
    assert [one.kind for one in world.verification().violations] == ["chain"]
    world.do(lambda tx: tx.engine_connection.execute(update(subtasks).where(own).values(log_dropped=False)))
