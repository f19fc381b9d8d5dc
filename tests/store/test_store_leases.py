"""The lease: who runs a subtask until when, to the microsecond, and what somebody without it cannot do."""

from datetime import timedelta

import pytest
from world import SILENT, START, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.failures import FailureReason
from tasks.domain.reasons import Reason, because
from tasks.domain.states import State
from tasks.store.queue import leases
from tasks.store.queue.attempts import release_leases
from tasks.store.sql.tables import attempts, events, pages, subtasks, targets

TICK = timedelta(microseconds=1)


def test_a_subtask_that_has_left_wait_is_not_granted(world):
    lease = world.granted()
    assert world.grant(lease.subtask_id, "n2") is None
    assert len(world.attempts(lease.subtask_id)) == 1


@pytest.mark.parametrize(("at", "in_force"), [(START + SILENT - TICK, True), (START + SILENT, False)])
class TestBoundary:
    """A lease is in force while now < deadline; from the deadline on it may be taken back, and not begun."""

    def test_start(self, world, at, in_force):
        lease = world.granted()
        world.now = at
        assert (world.start(lease) is not None) is in_force
        assert (world.attempts(lease.subtask_id)[0].started_at is not None) is in_force
        assert world.subtask(lease.subtask_id).lease_started is in_force

    def test_progress(self, world, at, in_force):
        """A renewal that comes late counts, unless the lease was taken back before."""
        lease = world.begun()
        world.now = at
        if not in_force:
            assert world.silence(lease)
        assert world.progress(lease, Counters(offered=3, tried=2)) is in_force
        (attempt,) = world.attempts(lease.subtask_id)
        assert (attempt.tried, attempt.progress_at) == ((2, at) if in_force else (0, START))

    def test_progress_of_what_nobody_took_back(self, world, at, in_force):
        lease = world.begun()
        world.now = at
        assert world.progress(lease, Counters())
        assert world.subtask(lease.subtask_id).lease_deadline == at + SILENT

    def test_overdue(self, world, at, in_force):
        lease = world.granted()
        world.now = at
        assert world.look(leases.list_overdue, 10) == ([] if in_force else [(lease, False)])

    def test_silence(self, world, at, in_force):
        lease = world.begun()
        world.now = at
        assert world.silence(lease) is not in_force
        assert world.state(lease.subtask_id) is (State.CRAWL if in_force else State.FAILED)


def test_release_gives_back_what_was_not_started(world):
    lease = world.granted()
    assert world.release(lease)
    row, (attempt,) = world.subtask(lease.subtask_id), world.attempts(lease.subtask_id)
    assert (row.state, row.recalls, row.failed_on, row.lease_token) == (State.WAIT, 0, [], None)
    assert attempt.outcome == "released"
    assert not world.release(lease)
    assert not world.release(world.begun("早餐奶"))


def test_unstarted_leases_of_a_node(world):
    world.begun("甲")
    held = world.granted("乙")
    world.granted("丙", "n2")
    assert world.look(leases.list_unstarted, "n1") == [held]


def test_interrupt_keeps_what_was_collected(world):
    lease, hits = world.found("特仑苏", [hit("1"), hit("2")])
    world.save(lease, hits.todo[0])
    assert world.interrupt(lease, Counters(offered=1, tried=1), "shutdown")
    row, (attempt,) = world.subtask(lease.subtask_id), world.attempts(lease.subtask_id)
    assert (row.state, row.recalls, row.left) == (State.WAIT, 0, 1)
    assert (attempt.outcome, attempt.collected) == ("released", 1)
    _, again = world.begin(lease.subtask_id)
    assert [target.url for target in again.targets] == [hit("2")]


def test_what_a_killed_process_had_under_way_goes_back_without_a_recall(world):
    begun, _, others = world.begun("特仑苏"), world.granted("早餐奶"), world.begun("纯牛奶", "n2")
    world.progress(begun, Counters(offered=4, tried=2))
    assert world.do(release_leases, "n1", because(Reason.WORKER_KILLED)) == 2
    assert [row.state for row in world.rows(subtasks)] == [State.WAIT, State.WAIT, State.CRAWL]
    assert {(row.recalls, *row.failed_on) for row in world.rows(subtasks)} == {(0,)}
    assert [row.outcome for row in world.rows(attempts)] == ["released", "released", None]
    assert not world.progress(begun, Counters())
    assert world.do(release_leases, None, because(Reason.RUN_KILLED)) == 1
    assert not world.progress(others, Counters())


@pytest.mark.parametrize("started", [False, True])
def test_cancel_closes_the_attempt_that_runs(world, started):
    lease = world.begun() if started else world.granted()
    world.cancel(lease.subtask_id)
    assert world.state(lease.subtask_id) is State.CANCELLED
    assert world.attempts(lease.subtask_id)[0].outcome == "cancelled"
    with pytest.raises(IllegalTransition):
        world.cancel(lease.subtask_id)
    with pytest.raises(UnknownSubtask):
        world.cancel(999)


@pytest.fixture(params=["cancelled", "given back", "silent"])
def lost(world, request):
    """A lease that its node believes to hold, and that is over."""
    lease, _ = world.found("特仑苏", [hit("1"), hit("2")])
    match request.param:
        case "cancelled":
            world.cancel(lease.subtask_id)
        case "given back":
            world.interrupt(lease, Counters(), "shutdown")
            world.begin(lease.subtask_id, "n2")
        case _:
            world.pass_s(60)
            assert world.silence(lease)
    return lease


class TestLostLease:
    def test_nothing_it_does_counts(self, world, lost):
        before = [world.rows(table) for table in (attempts, events, targets, subtasks)]
        assert world.start(lost) is None
        assert not world.progress(lost, Counters(tried=9))
        assert not world.close(lost, Counters(tried=9))
        assert not world.close(lost, Counters(tried=9), reason=FailureReason.BAD_RULE)
        assert not world.release(lost)
        assert not world.interrupt(lost, Counters(), "shutdown")
        assert not world.silence(lost)
        (target,) = world.find_targets(url=hit("1"))
        world.end_target(lost, target, "refused", "not_found")
        assert [world.rows(table) for table in (attempts, events, targets, subtasks)] == before

    def test_its_page_is_stored_marked_late_and_not_counted(self, world, lost):
        before = world.pair(), world.subtask(lost.subtask_id)
        (target,) = world.find_targets(url=hit("1"))
        assert world.save(lost, target)
        attempt = world.attempts(lost.subtask_id)[0]
        assert (attempt.collected, attempt.late) == (0, 1)
        (page,) = world.rows(pages)
        assert (page.late, page.attempt_id) == (True, lost.attempt_id)
        assert world.targets(lost.subtask_id)[hit("1")] == "stored"
        assert (world.pair(), world.subtask(lost.subtask_id)) == before

    def test_its_result_page_leaves_no_target_behind(self, world, lost):
        before = world.rows(targets)
        (result,) = world.find_targets(kind="result")
        assert world.read_results(lost, result, [hit("3")], more=True) is None
        assert world.rows(targets) == before


def test_a_lease_that_ran_out_is_closed_by_its_node_as_long_as_nobody_took_it(world):
    """The token fences, not the clock: work that was done counts if it comes before the sweep."""
    lease = world.begun()
    world.pass_s(61)
    assert world.close(lease, Counters())
    assert world.state(lease.subtask_id) is State.SLEEP
