"""Only legal transitions: any other raises and changes nothing."""

from __future__ import annotations

import pytest
from world import World

from tasks.errors import IllegalTransition, LeaseLost, UnknownSubtask
from tasks.jobs import sweeps
from tasks.model import Reason, State
from tasks.queues import LEGAL, Transition, source, target
from tasks.store import endings, transitions
from tasks.store.tables import attempts, events, subtasks
from tasks.store.transitions import Note

_MOVES = [t for t in Transition if t not in (Transition.CREATE, Transition.CANCEL)]


def _in(world: World, state: State) -> int:
    """A subtask brought to `state` by legal steps."""
    if state is State.PRIORITY:
        return world.add("特仑苏")[0]
    subtask_id = world.waiting()
    if state is State.CANCELLED:
        world.do(endings.cancel, subtask_id, "not wanted")
    if state in (State.WAIT, State.CANCELLED):
        return subtask_id
    lease, work = world.begin(subtask_id)
    if state in (State.FAILED, State.MANUAL):
        world.close(lease, reason=Reason.BAD_RULE)
    if state is State.MANUAL:
        world.sweep(sweeps.recall)
    if state in (State.SLEEP, State.DONE):
        world.read_results(lease, work.targets[0], [])
        world.close(lease)
    if state is State.DONE:
        world.sweep(sweeps.wake)
    return subtask_id


@pytest.mark.parametrize("state", list(State))
def test_illegal_transitions_raise_and_change_nothing(world: World, state: State) -> None:
    subtask_id = _in(world, state)
    assert world.state(subtask_id) is state
    before = [world.rows(table) for table in (subtasks, attempts, events)]
    for transition in _MOVES:
        if state not in LEGAL[transition]:
            with pytest.raises(IllegalTransition, match=f"in {state}"):
                world.do(transitions.move, subtask_id, transition, Note())
            assert not world.do(transitions.try_move, subtask_id, transition, Note())
    if state not in LEGAL[Transition.CANCEL]:
        with pytest.raises(IllegalTransition):
            world.do(endings.cancel, subtask_id, "too late")
    assert [world.rows(table) for table in (subtasks, attempts, events)] == before


@pytest.mark.parametrize("state", list(LEGAL[Transition.CANCEL]))
def test_any_state_but_the_last_is_cancelled(world: World, state: State) -> None:
    subtask_id = _in(world, state)
    world.do(endings.cancel, subtask_id, "not wanted")
    assert world.state(subtask_id) is State.CANCELLED
    last = world.rows(events)[-1]
    assert (last.transition, last.from_state, last.to_state) == ("cancel", state, State.CANCELLED)


def test_a_wrong_token_and_an_unknown_subtask_are_told_apart(world: World) -> None:
    subtask_id = _in(world, State.CRAWL)
    with pytest.raises(LeaseLost, match="not-mine"):
        world.do(transitions.move, subtask_id, Transition.SUCCEED, Note(), token="not-mine")
    with pytest.raises(UnknownSubtask, match="999"):
        world.do(transitions.move, 999, Transition.ADMIT, Note())
    assert world.state(subtask_id) is State.CRAWL


def test_every_transition_is_logged_with_its_note(world: World) -> None:
    subtask_id = world.add("特仑苏")[0]
    note = Note("token", 7, "n1", "why", {"數": [1, 2.5, None]})
    world.do(transitions.move, subtask_id, Transition.ADMIT, note)
    row = world.rows(events)[-1]
    assert (row.token, row.attempt_id, row.node, row.reason, row.detail) == (
        "token",
        7,
        "n1",
        "why",
        {"數": [1, 2.5, None]},
    )
    assert (row.at, row.from_state, row.to_state) == (world.now, State.PRIORITY, State.WAIT)


def test_the_table_of_transitions_is_deterministic() -> None:
    for transition in _MOVES:
        assert target(transition, source(transition)) is LEGAL[transition][source(transition)]
    with pytest.raises(KeyError):
        source(Transition.CANCEL)
    with pytest.raises(IllegalTransition, match="starts from PRIORITY"):
        target(Transition.ADMIT, State.DONE)
    assert not LEGAL[Transition.CANCEL].keys() & {State.DONE, State.CANCELLED}
