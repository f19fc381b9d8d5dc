"""A person changes the addresses of a failed subtask and has it tried again; `verify` finds nothing afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from world import World, hit

from splitter.errors import InputError
from tasks.domain.errors import IllegalTransition
from tasks.domain.failures import FailureReason
from tasks.domain.page_key import page_key
from tasks.domain.states import State
from tasks.jobs import recalling, sweeps
from tasks.store.queue import manual
from tasks.store.queue.leases import Counters, Lease
from tasks.store.queue.manual import Edit
from tasks.store.sql.tables import attempts, subtasks, targets


@pytest.fixture
def failed(world: World) -> Sequence[Any]:
    """Subtask 1 in MANUAL, with its result page and three hits to do."""
    world.node("n1")
    lease, work = world.begin(world.waiting())
    world.read_results(lease, work.targets[0], [hit("1"), hit("2"), hit("3")])
    world.close(lease, Counters(offered=3, tried=3), reason=FailureReason.BAD_RULE)
    world.sweep(recalling.recall)
    assert world.state(1) is State.MANUAL
    return world.rows(targets, targets.c.kind == "hit")


def test_changed_addresses_are_asked_in_the_next_round(world: World, failed: Sequence[Any]) -> None:
    first, second, third = failed
    left = world.do(manual.retry, 1, edit=Edit(urls={first.id: hit("new"), second.id: ""}))
    assert left == 2
    assert world.state(1) is State.WAIT
    rows = {row.id: row for row in world.rows(targets)}
    assert (rows[first.id].url, rows[first.id].url_key) == (hit("new"), page_key(hit("new")))
    assert (rows[second.id].state, rows[second.id].reason) == ("refused", "left_out")
    lease, work = world.begin(1)
    assert [one.url for one in work.targets] == [hit("new"), hit("3")]
    for target in work.targets:
        world.save(lease, target)
    world.close(lease, Counters(offered=2, tried=2, collected=2))
    assert third.url == hit("3")


@pytest.mark.parametrize(
    ("urls", "why"),
    [
        (["http://other.cn/1"], "not at cca.org.cn"),
        (["file:///etc/passwd"], "target"),
        ([hit("2")], "already"),
        ([hit("x"), hit("x")], "already"),
        (["", "", ""], "abandon it"),
    ],
)
def test_what_can_not_be_is_refused_and_changes_nothing(
    world: World, failed: Sequence[Any], urls: list[str], why: str
) -> None:
    before = world.rows(targets)
    wanted = Edit(urls=dict(zip((row.id for row in failed), urls, strict=False)))
    with pytest.raises(InputError, match=why):
        world.do(manual.retry, 1, edit=wanted)
    assert world.rows(targets) == before
    assert world.state(1) is State.MANUAL


def test_only_targets_of_a_subtask_that_waits_for_a_person_are_changed(
    world: World, failed: Sequence[Any]
) -> None:
    with pytest.raises(InputError, match="no target 999"):
        world.do(manual.retry, 1, edit=Edit(urls={999: hit("x")}))
    world.do(manual.retry, 1)
    with pytest.raises(IllegalTransition):
        world.do(manual.retry, 1, edit=Edit(urls={failed[0].id: hit("x")}))


def test_a_quota_that_a_person_sets_holds_for_further_attempts_and_what_carries_them_on(
    world: World, failed: Sequence[Any]
) -> None:
    world.do(manual.retry, 1, edit=Edit(quota=2))
    world.sweep(sweeps.allocate)
    (attempt,) = world.rows(attempts, attempts.c.subtask_id == 1, attempts.c.no == 2)
    assert attempt.quota == 2
    lease = Lease(
        subtask_id=1,
        attempt_id=attempt.id,
        token=attempt.token,
        node="n1",
        site=attempt.site,
        quota=2,
        budget_s=1.0,
    )
    work = world.start(lease)
    assert work is not None
    for target in work.targets[:2]:
        world.save(lease, target)
    world.close(lease, Counters(offered=2, tried=2, collected=2))
    world.sweep(sweeps.wake)
    (follow_up,) = world.rows(subtasks, subtasks.c.parent_id == 1)
    assert (follow_up.left, follow_up.assigned_quota) == (1, 2)
    assert len(failed) == 3
