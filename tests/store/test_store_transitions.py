"""Only legal transitions: any other raises and changes nothing."""

import pytest
from world import undone

from tasks.domain.errors import IllegalTransition
from tasks.domain.failures import FailureReason
from tasks.domain.states import LEGAL, State, Transition, source, target
from tasks.store.queue import transitions
from tasks.store.queue.transitions import Move
from tasks.store.sql.tables import attempts, events, subtasks

FROM_SEVERAL = (Transition.CANCEL, Transition.SET_ASIDE)
MOVES = [t for t in Transition if t not in (Transition.CREATE, *FROM_SEVERAL)]


def bring_to(world, state):
    """Return a subtask that was brought to `state` by legal steps."""
    if state is State.PRIORITY:
        return world.add("特仑苏")[0]
    if state in (State.FAILED, State.MANUAL):
        subtask_id = world.failed(FailureReason.BAD_RULE)
    elif state in (State.WAIT, State.CANCELLED):
        subtask_id = world.waiting()
    else:
        lease, _ = world.found("特仑苏", [])
        subtask_id = lease.subtask_id
        if state is not State.CRAWL:
            world.close(lease)
    match state:
        case State.MANUAL:
            world.recall()
        case State.CANCELLED:
            world.cancel(subtask_id)
        case State.DONE:
            world.wake()
    return subtask_id


@pytest.mark.parametrize("state", list(State))
def test_illegal_transitions_raise_and_change_nothing(world, state):
    subtask_id = bring_to(world, state)
    assert world.state(subtask_id) is state
    before = [world.rows(table) for table in (subtasks, attempts, events)]
    for transition in MOVES:
        if state not in LEGAL[transition]:
            with pytest.raises(IllegalTransition):
                world.do(transitions.move, transition, [Move(subtask_id)], state)
    if state not in LEGAL[Transition.CANCEL]:
        with pytest.raises(IllegalTransition):
            world.cancel(subtask_id)
    assert [world.rows(table) for table in (subtasks, attempts, events)] == before


@pytest.mark.parametrize("state", list(LEGAL[Transition.CANCEL]))
def test_any_state_but_the_last_is_cancelled(world, state):
    subtask_id = bring_to(world, state)
    world.cancel(subtask_id)
    assert world.state(subtask_id) is State.CANCELLED
    last = world.rows(events)[-1]
    assert (last.transition, last.from_state, last.to_state) == ("cancel", state, State.CANCELLED)


def rows_after(world, transition, moves, table):
    """Return the rows of a table after these moves, which are rolled back: no real move says all this."""
    with undone(world.store, world.now) as tx:
        transitions.move(tx, transition, moves)
        return tx.engine_connection.execute(table.select().order_by(table.c.id)).all()


def test_every_transition_is_logged_with_its_note(world):
    ids = world.add("特仑苏", chunks=(True, True, True))
    moves = [
        Move(ids[0], {}, "a'b\\c", 7, 'n"1', "%s", {"數": [1, 2.5, None], "why": 'it\'s {"so"}\n\\'}),
        Move(ids[1], detail={"budget_s": 0.1 + 0.2}),
        Move(ids[2]),
    ]
    logged = rows_after(world, Transition.ADMIT, moves, events)[-3:]
    for row, one in zip(logged, moves, strict=True):
        assert Move(row.subtask_id, {}, row.token, row.attempt_id, row.node, row.reason, row.detail) == one
        assert (row.at, row.from_state, row.to_state) == (world.now, State.PRIORITY, State.WAIT)


def admit(world, chunks):
    ids = world.add("特仑苏", chunks=(True,) * chunks)
    world.do(transitions.move, Transition.ADMIT, [Move(one) for one in ids])
    return ids


def test_a_batch_sets_columns_of_every_type(world):
    first, second = admit(world, 2)
    given = {"failed_on": ["n1", '節點"2'], "not_before": world.now, "assigned_node": "n'3", "left": 7}
    empty = {"failed_on": [], "not_before": None, "assigned_node": None, "left": 8}
    moves = [Move(first, given, "a" * 32, None, "n1"), Move(second, empty, "b" * 32, None, "n1")]
    for row, one in zip(rows_after(world, Transition.ALLOCATE, moves, subtasks), moves, strict=True):
        assert {name: getattr(row, name) for name in one.values} == one.values
        assert (row.state, row.lease_token) == (State.CRAWL, one.token)


def test_the_compare_and_set_of_a_batch_stands(world):
    """Another queue, or another token, is left as it is, even by a caller that did not lock."""
    leased = [world.begin(one)[0] for one in admit(world, 3)]
    tokens = [leased[0].token, "not-mine", leased[2].token]
    moves = [Move(one.subtask_id, {}, token) for one, token in zip(leased, tokens, strict=True)]
    for transition, states in (
        (Transition.SUCCEED, [State.SLEEP, State.CRAWL, State.SLEEP]),
        (Transition.ADMIT, [State.CRAWL] * 3),
    ):
        assert [row.state for row in rows_after(world, transition, moves, subtasks)] == states


def test_the_table_of_transitions_is_deterministic():
    for transition in MOVES:
        assert target(transition, source(transition)) is LEGAL[transition][source(transition)]
    for transition in FROM_SEVERAL:
        with pytest.raises(KeyError):
            source(transition)
    with pytest.raises(IllegalTransition, match="starts from PRIORITY"):
        target(Transition.ADMIT, State.DONE)
    assert not LEGAL[Transition.CANCEL].keys() & {State.DONE, State.CANCELLED}
