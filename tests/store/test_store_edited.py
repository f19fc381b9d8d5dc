"""A person changes a failed subtask and has it tried again; `verify` finds nothing afterwards."""

import pytest
from world import hit

from splitter.errors import InputError
from tasks.domain.attempt_end import Counters
from tasks.domain.errors import IllegalTransition
from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.jobs import recalling, sweeps
from tasks.store.queue import manual
from tasks.store.queue.leases import Lease
from tasks.store.sql.tables import attempts, subtasks, targets


@pytest.fixture
def failed(world):
    """Subtask 1 in MANUAL, with its result page and three hits to do."""
    world.node("n1")
    lease, work = world.begin(world.waiting())
    world.read_results(lease, work.targets[0], [hit("1"), hit("2"), hit("3")])
    world.close(lease, Counters(offered=3, tried=3), reason=FailureReason.BAD_RULE)
    world.sweep(recalling.recall)
    assert world.state(1) is State.MANUAL
    return world.rows(targets, targets.c.kind == "hit")


@pytest.mark.parametrize("edit", [{"quota": 0}, {"pages": 0}, {"pages": 1}])
def test_what_can_not_be_is_refused_and_changes_nothing(world, failed, edit):
    before = world.rows(targets)
    with pytest.raises(InputError):
        world.do(manual.retry, 1, **edit)  # its result page was read
    assert world.rows(targets) == before
    assert len(failed) == 3
    assert world.state(1) is State.MANUAL


def test_a_quota_that_a_person_sets_holds_for_further_attempts_and_what_carries_them_on(world, failed):
    assert world.do(manual.retry, 1, quota=2) == len(failed)
    with pytest.raises(IllegalTransition):
        world.do(manual.retry, 1, quota=3)
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
