"""Any legal order of operations, with nodes that crash and a clock that jumps, keeps every invariant."""

from itertools import product

import pytest
from contents import empty
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from world import World, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.failures import FailureReason
from tasks.domain.states import MAX_RECALLS, State
from tasks.jobs import recalling, sweeps
from tasks.store.queue import manual, nodes
from tasks.store.sql.tables import subtasks

NODES = ("n1", "n2", "n3")
PLACES = st.integers(0, 5)
NAMES = st.lists(st.sampled_from("abcdef"), unique=True)
ENDS = st.sampled_from(["todo", "refused", "given_up"])
CHUNKS = [[True, *rest] for n in range(3) for rest in product([True, False], repeat=n)]


class Loop(RuleBasedStateMachine):
    """Leases stay in the bundle after they are lost: late nodes go on with what they hold."""

    held = Bundle("held")
    store = None

    def __init__(self):
        super().__init__()
        empty(self.store)
        self.world = World(self.store)
        self.products = 0

    @initialize(target=held)
    def begin(self):
        """Two attempts at work, so that the first steps lead somewhere already."""
        self.world.node("n1")
        for priority in (0, 1):
            self.add(chunks=[True, False], priority=priority)
        self.world.admit()
        return multiple(self.attempt(0, "n1"), self.attempt(0, "n2"))

    @rule(chunks=st.sampled_from(CHUNKS), priority=st.integers(0, 2))
    def add(self, chunks, priority):
        if self.products < 4:
            self.products += 1
            self.world.add(f"产品{self.products}", chunks=chunks, priority=priority)

    @rule(seconds=st.sampled_from([0.000001, 1.0, 29.0, 59.999999, 60.0, 3600.0]))
    def pass_time(self, seconds):
        self.world.pass_s(seconds)

    @rule(node=st.sampled_from(NODES), alive=st.booleans())
    def node_comes_or_goes(self, node, alive):
        if alive:
            self.world.node(node)
        else:
            self.world.do(nodes.leave, node)

    # --- sweeps ---------------------------------------------------------------------------------------------

    @rule(sweep=st.sampled_from([sweeps.admit, recalling.recall, sweeps.wake]))
    def sweep(self, sweep):
        self.world.sweep(sweep)

    @rule(target=held)
    def allocate(self):
        return multiple(*self.world.allocate())

    @rule(target=held)
    def rebalance(self):
        return multiple(*self.world.sweep(sweeps.rebalance))

    @rule(target=held, place=PLACES, node=st.sampled_from(NODES))
    def grant(self, place, node):
        waiting = self._in(State.WAIT, place)
        lease = self.world.grant(waiting, node) if waiting else None
        return multiple() if lease is None else lease

    # --- a node and its lease; doing nothing is a crash -----------------------------------------------------

    def attempt(self, place, node):
        """An attempt that has read its result page."""
        lease, work = self.world.begin(self._in(State.WAIT, place), node)
        self.world.read_results(lease, work.targets[0], [hit(name) for name in "abc"])
        return lease

    @rule(lease=held)
    def start(self, lease):
        self.world.start(lease)

    @rule(lease=held, tried=st.integers(0, 3))
    def progress(self, lease, tried):
        self.world.progress(lease, Counters(offered=tried + 1, tried=tried, active_s=tried * 0.1))

    @rule(lease=held, place=PLACES, names=NAMES, more=st.booleans())
    def read_results(self, lease, place, names, more):
        if (found := self._target(lease, place, "result")) is not None:
            self.world.read_results(lease, found, [hit(name) for name in names], more=more)

    @rule(lease=held, place=PLACES)
    def save_page(self, lease, place):
        if (found := self._target(lease, place, "hit")) is not None:
            self.world.save(lease, found)

    @rule(lease=held, place=PLACES, state=ENDS, counts=st.booleans())
    def end_target(self, lease, place, state, counts):
        if (found := self._target(lease, place, "hit")) is not None:
            self.world.end_target(lease, found, state, "timeout", counts=counts)

    @rule(lease=held, reason=st.none() | st.sampled_from(list(FailureReason)), tried=st.integers(0, 3))
    def close(self, lease, reason, tried):
        self.world.close(lease, Counters(offered=tried + 1, tried=tried, active_s=0.3), reason=reason)

    @rule(lease=held)
    def release(self, lease):
        self.world.release(lease)

    @rule(lease=held, tried=st.integers(0, 3))
    def interrupt(self, lease, tried):
        self.world.interrupt(lease, Counters(offered=tried, tried=tried, wait_s=0.7), "shutdown")

    @rule(lease=held, place=PLACES)
    def go_silent(self, lease, place):
        """A minute passes, the lease is taken back, and then a page of it arrives."""
        self.world.pass_s(60)
        self.world.silence(lease)
        self.save_page(lease, place)

    @rule(target=held, lease=held, node=st.sampled_from(NODES))
    def is_replaced(self, lease, node):
        """The lease is taken back and another node works on the subtask."""
        self.world.pass_s(60)
        self.world.silence(lease)
        self.world.recall()
        again = self.world.grant(lease.subtask_id, node)
        return multiple() if again is None else again

    @rule(lease=held)
    def finish(self, lease):
        """The attempt ends well and its subtask is done; more of it may still arrive."""
        self.world.close(lease, Counters(offered=2, tried=1))
        self.world.wake()

    # --- a person -------------------------------------------------------------------------------------------

    @rule(state=st.sampled_from([s for s in State if s not in (State.DONE, State.CANCELLED)]), place=PLACES)
    def cancel(self, state, place):
        if subtask_id := self._in(state, place):
            self.world.cancel(subtask_id)

    @rule(place=PLACES)
    def retry(self, place):
        if subtask_id := self._in(State.MANUAL, place):
            self.world.do(manual.retry, subtask_id)

    # --- what must hold -------------------------------------------------------------------------------------

    @invariant()
    def every_promise_is_kept(self):
        assert self.world.verification().violations == ()

    @invariant()
    def nobody_is_recalled_for_ever(self):
        assert all(row.recalls <= MAX_RECALLS for row in self.world.rows(subtasks))

    def teardown(self):
        """Whatever happened, the loop comes to its end once a node works and time passes."""
        for _ in range(200):
            if all(State(row.state).settled for row in self.world.rows(subtasks)):
                return
            self._turn()
        raise AssertionError("the loop does not come to an end")

    def _turn(self):
        world = self.world
        world.pass_s(130)
        for node in NODES:
            world.node(node)
        for sweep in (recalling.recall, sweeps.wake, sweeps.admit):
            world.sweep(sweep)
        for lease in world.allocate():
            work = world.start(lease)
            assert work is not None
            for found in work.targets:
                is_listed = found.kind == "result"
                for page in world.read_results(lease, found, [hit("a")]).todo if is_listed else [found]:
                    world.save(lease, page)
            assert world.close(lease, Counters(offered=1, tried=1))

    def _in(self, state, place):
        """A subtask in that queue; 0 if there is none."""
        rows = self.world.rows(subtasks, subtasks.c.state == state)
        return rows[place % len(rows)].id if rows else 0

    def _target(self, lease, place, kind):
        """A target that the attempt took up when it was still to do, or might have; None if there is none."""
        task_id = self.world.subtask(lease.subtask_id).task_id
        found = self.world.find_targets(task_id=task_id, kind=kind)
        return found[place % len(found)] if found else None


@pytest.mark.slow
def test_any_order_of_operations_keeps_every_promise(sqlite_store):
    class LoopInStore(Loop):
        store = sqlite_store  # one for all examples: making one takes longer than an example

    run_state_machine_as_test(
        LoopInStore,
        settings=settings(stateful_step_count=20, database=None, suppress_health_check=list(HealthCheck)),
    )
