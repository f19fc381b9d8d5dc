"""Only legal transitions: any other raises and changes nothing."""

import pytest
from sqlalchemy import select
from world import undone

from tasks.domain.errors import IllegalTransition
from tasks.domain.failures import FailureReason
from tasks.domain.states import LEGAL, State, Transition, source, target
from tasks.jobs import recalling, sweeps
from tasks.store.queue import transitions
from tasks.store.queue.attempts import cancel
from tasks.store.queue.transitions import Move
from tasks.store.sql.tables import attempts, events, subtasks

_FROM_SEVERAL = (Transition.CANCEL, Transition.SET_ASIDE)
_MOVES = [t for t in Transition if t not in (Transition.CREATE, *_FROM_SEVERAL)]


def _in(world, state):
    """A subtask brought to `state` by legal steps."""
    if state is State.PRIORITY:
        return world.add("特仑苏")[0]
    subtask_id = world.waiting()
    if state is State.CANCELLED:
        world.do(cancel, subtask_id, "not wanted")
    if state in (State.WAIT, State.CANCELLED):
        return subtask_id
    lease, work = world.begin(subtask_id)
    if state in (State.FAILED, State.MANUAL):
        world.close(lease, reason=FailureReason.BAD_RULE)
    if state is State.MANUAL:
        world.sweep(recalling.recall)
    if state in (State.SLEEP, State.DONE):
        world.read_results(lease, work.targets[0], [])
        world.close(lease)
    if state is State.DONE:
        world.sweep(sweeps.wake)
    return subtask_id


@pytest.mark.parametrize("state", list(State))
def test_illegal_transitions_raise_and_change_nothing(world, state):
    subtask_id = _in(world, state)
    assert world.state(subtask_id) is state
    before = [world.rows(table) for table in (subtasks, attempts, events)]
    for transition in _MOVES:
        if state not in LEGAL[transition]:
            with pytest.raises(IllegalTransition):
                world.do(transitions.move, transition, [Move(subtask_id)], state)
    if state not in LEGAL[Transition.CANCEL]:
        with pytest.raises(IllegalTransition):
            world.do(cancel, subtask_id, "too late")
    assert [world.rows(table) for table in (subtasks, attempts, events)] == before


@pytest.mark.parametrize("state", list(LEGAL[Transition.CANCEL]))
def test_any_state_but_the_last_is_cancelled(world, state):
    subtask_id = _in(world, state)
    world.do(cancel, subtask_id, "not wanted")
    assert world.state(subtask_id) is State.CANCELLED
    last = world.rows(events)[-1]
    assert (last.transition, last.from_state, last.to_state) == ("cancel", state, State.CANCELLED)


def test_every_transition_is_logged_with_its_note(world):
    ids = world.add("特仑苏", chunks=(True, True, True))
    moves = [
        Move(ids[0], {}, "a'b\\c", 7, 'n"1', "%s", {"數": [1, 2.5, None], "why": 'it\'s {"so"}\n\\'}),
        Move(ids[1], detail={"budget_s": 0.1 + 0.2}),
        Move(ids[2]),
    ]
    with undone(world.store, world.now) as tx:  # no real move says all this
        transitions.move(tx, Transition.ADMIT, moves)
        admitted = select(events).where(events.c.transition == Transition.ADMIT).order_by(events.c.id)
        logged = tx.engine_connection.execute(admitted).all()
    assert [row.subtask_id for row in logged] == ids
    for row, one in zip(logged, moves, strict=True):
        assert Move(row.subtask_id, {}, row.token, row.attempt_id, row.node, row.reason, row.detail) == one
        assert (row.at, row.from_state, row.to_state) == (world.now, State.PRIORITY, State.WAIT)


def test_a_batch_sets_columns_of_every_type(world):
    ids = world.add("特仑苏", chunks=(True, True))
    world.do(transitions.move, Transition.ADMIT, [Move(i) for i in ids])
    values = [
        {"failed_on": ["n1", '節點"2'], "not_before": world.now, "assigned_node": "n'3", "left": 7},
        {"failed_on": [], "not_before": None, "assigned_node": None, "left": 8},
    ]
    tokens = {one: f"{one:032x}" for one in ids}
    moves = [Move(one, changed, tokens[one], None, "n1") for one, changed in zip(ids, values, strict=True)]
    with undone(world.store, world.now) as tx:
        transitions.move(tx, Transition.ALLOCATE, moves)
        rows = {
            row.id: row
            for row in tx.engine_connection.execute(select(subtasks).where(subtasks.c.id.in_(ids)))
        }
    for one, changed in zip(ids, values, strict=True):
        assert {name: getattr(rows[one], name) for name in changed} == changed
        assert (rows[one].state, rows[one].lease_token) == (State.CRAWL, tokens[one])


def test_the_compare_and_set_of_a_batch_stands(world):
    """Another queue, or another token, is left as it is, even by a caller that did not lock."""
    leased = [
        world.begin(one)[0] for one in world.add("特仑苏", chunks=(True, True, True)) if world.do(_admit, one)
    ]
    tokens = [leased[0].token, "not-mine", leased[2].token]
    moves = [Move(one.subtask_id, {}, token) for one, token in zip(leased, tokens, strict=True)]
    with undone(world.store, world.now) as tx:
        transitions.move(tx, Transition.SUCCEED, moves)
        transitions.move(tx, Transition.ADMIT, moves)
        chosen = select(subtasks.c.state).order_by(subtasks.c.id)
        assert list(tx.engine_connection.scalars(chosen)) == [State.SLEEP, State.CRAWL, State.SLEEP]


def _admit(tx, subtask_id):
    transitions.move(tx, Transition.ADMIT, [Move(subtask_id)])
    return True


def test_the_table_of_transitions_is_deterministic():
    for transition in _MOVES:
        assert target(transition, source(transition)) is LEGAL[transition][source(transition)]
    for transition in _FROM_SEVERAL:
        with pytest.raises(KeyError):
            source(transition)
    with pytest.raises(IllegalTransition, match="starts from PRIORITY"):
        target(Transition.ADMIT, State.DONE)
    assert not LEGAL[Transition.CANCEL].keys() & {State.DONE, State.CANCELLED}
