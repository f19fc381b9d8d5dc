"""The lease: who runs a subtask until when, to the microsecond, and what somebody without it cannot do."""

from datetime import timedelta

import pytest
from world import SILENT, START, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.errors import IllegalTransition, UnknownSubtask
from tasks.domain.failures import FailureReason
from tasks.domain.states import State
from tasks.store.queue import leases
from tasks.store.queue.attempts import cancel, release, silence
from tasks.store.sql import tables
from tasks.store.sql.tables import attempts, events, targets

TICK = timedelta(microseconds=1)


def test_what_has_left_wait_is_passed_over(world):
    subtask_id = world.waiting()
    assert world.grant(subtask_id) is not None
    assert world.grant(subtask_id, "n2") is None
    assert len(world.attempts(subtask_id)) == 1


@pytest.mark.parametrize(("at", "in_force"), [(START + SILENT - TICK, True), (START + SILENT, False)])
class TestBoundary:
    """A lease is in force while now < deadline; from the deadline on it may be taken back, and not begun."""

    def test_start(self, world, at, in_force):
        lease = world.grant(world.waiting())
        world.now = at
        assert (world.start(lease) is not None) is in_force
        assert (world.attempts(lease.subtask_id)[0].started_at is not None) is in_force
        assert world.subtask(lease.subtask_id).lease_started is in_force

    def test_progress(self, world, at, in_force):
        """A renewal that comes late counts, unless the lease was taken back before."""
        lease, _ = world.begin(world.waiting())
        world.now = at
        if not in_force:
            world.do(silence, {lease: FailureReason.SILENT})
        counters = Counters(offered=3, tried=2)
        assert world.progress(lease, counters) is in_force
        (attempt,) = world.attempts(lease.subtask_id)
        assert (attempt.tried, attempt.progress_at) == ((2, at) if in_force else (0, START))

    def test_progress_of_what_nobody_took_back(self, world, at, in_force):
        lease, _ = world.begin(world.waiting())
        world.now = at
        assert world.progress(lease, Counters())
        assert world.subtask(lease.subtask_id).lease_deadline == at + SILENT

    def test_overdue(self, world, at, in_force):
        lease = world.grant(world.waiting())
        world.now = at
        assert world.look(leases.list_overdue, 10) == ([] if in_force else [(lease, False)])

    def test_silence(self, world, at, in_force):
        lease, _ = world.begin(world.waiting())
        world.now = at
        assert bool(world.do(silence, {lease: FailureReason.SILENT})) is not in_force
        assert world.state(lease.subtask_id) is (State.CRAWL if in_force else State.FAILED)


def test_release_gives_back_what_was_not_started(world):
    lease = world.grant(world.waiting())
    assert world.do(release, {lease: "drained"})
    row, (attempt,) = world.subtask(lease.subtask_id), world.attempts(lease.subtask_id)
    assert (row.state, row.recalls, row.failed_on, row.lease_token) == (State.WAIT, 0, [], None)
    assert attempt.outcome == "released"
    assert not world.do(release, {lease: "again"})


def test_release_does_not_take_what_was_started(world):
    lease, _ = world.begin(world.waiting())
    assert not world.do(release, {lease: "drained"})
    assert world.state(lease.subtask_id) is State.CRAWL


def test_unstarted_leases_of_a_node(world):
    started, _ = world.begin(world.waiting("甲"))
    held = world.grant(world.waiting("乙"))
    world.grant(world.waiting("丙"), "n2")
    assert world.look(leases.list_unstarted, "n1") == [held]
    assert started != held


def test_interrupt_keeps_what_was_collected(world):
    lease, work = world.begin(world.waiting())
    first, _ = world.read_results(lease, work.targets[0], [hit("1"), hit("2")]).todo
    world.save(lease, first)
    assert world.interrupt(lease, Counters(offered=1, tried=1), "shutdown")
    row, (attempt,) = world.subtask(lease.subtask_id), world.attempts(lease.subtask_id)
    assert (row.state, row.recalls, row.left) == (State.WAIT, 0, 1)
    assert (attempt.outcome, attempt.collected) == ("released", 1)
    _, again = world.begin(lease.subtask_id)
    assert [target.url for target in again.targets] == [hit("2")]


@pytest.mark.parametrize("started", [False, True])
def test_cancel_closes_the_attempt_that_runs(world, started):
    lease = world.grant(world.waiting())
    if started:
        world.start(lease)
    world.do(cancel, lease.subtask_id, "not wanted")
    assert world.state(lease.subtask_id) is State.CANCELLED
    assert world.attempts(lease.subtask_id)[0].outcome == "cancelled"
    with pytest.raises(IllegalTransition):
        world.do(cancel, lease.subtask_id, "again")
    with pytest.raises(UnknownSubtask):
        world.do(cancel, 999, "who?")


def _lost(world, how):
    """A lease that its node believes to hold, and that is over."""
    lease, work = world.begin(world.waiting())
    world.read_results(lease, work.targets[0], [hit("1"), hit("2")])
    if how == "cancelled":
        world.do(cancel, lease.subtask_id, "not wanted")
        return lease
    if how == "given back":
        world.interrupt(lease, Counters(), "shutdown")
    else:
        world.pass_s(60)
        world.do(silence, {lease: FailureReason.SILENT})
    if how == "given back":
        world.begin(lease.subtask_id, "n2")
    return lease


@pytest.mark.parametrize("how", ["cancelled", "given back", "silent"])
class TestLostLease:
    def test_nothing_it_does_counts(self, world, how):
        lease = _lost(world, how)
        before = [world.rows(table) for table in (attempts, events, targets)], world.subtask(lease.subtask_id)
        target = world.rows(targets, targets.c.url == hit("1"))[0]
        assert world.start(lease) is None
        assert not world.progress(lease, Counters(tried=9))
        assert not world.close(lease, Counters(tried=9))
        assert not world.close(lease, Counters(tried=9), reason=FailureReason.BAD_RULE)
        assert not world.do(release, {lease: "drained"})
        assert not world.interrupt(lease, Counters(), "shutdown")
        assert not world.do(silence, {lease: FailureReason.SILENT})
        world.end_target(lease, target, "refused", "not_found")
        after = [world.rows(table) for table in (attempts, events, targets)], world.subtask(lease.subtask_id)
        assert after == before

    def test_its_page_is_stored_marked_late_and_not_counted(self, world, how):
        lease = _lost(world, how)
        counted = world.pair()
        moved = world.subtask(lease.subtask_id)
        row = world.rows(targets, targets.c.url == hit("1"))[0]
        assert world.save(
            lease, leases.WorkTarget(id=row.id, kind=row.kind, url=row.url, key=row.url_key, tries=row.tries)
        )
        attempt = world.attempts(lease.subtask_id)[0]
        assert (attempt.collected, attempt.late) == (0, 1)
        (page,) = world.rows(tables.pages)
        assert (page.late, page.attempt_id) == (True, lease.attempt_id)
        assert world.targets(lease.subtask_id)[hit("1")] == "stored"
        assert (world.pair(), world.subtask(lease.subtask_id)) == (counted, moved)

    def test_its_result_page_leaves_no_target_behind(self, world, how):
        lease = _lost(world, how)
        before = world.rows(targets)
        result = world.rows(targets, targets.c.kind == "result")[0]
        target = leases.WorkTarget(
            id=result.id, kind=result.kind, url=result.url, key=result.url_key, tries=result.tries
        )
        assert world.read_results(lease, target, [hit("3")], more=True) is None
        assert world.rows(targets) == before


def test_a_lease_that_ran_out_is_closed_by_its_node_as_long_as_nobody_took_it(world):
    """The token fences, not the clock: work that was done counts if it comes before the sweep."""
    lease, _ = world.begin(world.waiting())
    world.pass_s(61)
    assert world.close(lease, Counters())
    assert world.state(lease.subtask_id) is State.SLEEP
