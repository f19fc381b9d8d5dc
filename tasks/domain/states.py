"""The state machine of a subtask: its states (queues), and the transitions between them.

The table is the only definition of legal moves; `tasks.store.queue.transitions` performs it and `verify` proves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from tasks.domain.errors import IllegalTransition

MAX_RECALLS = 5
"""Recalls in one round before a subtask waits for a person (2014 product paper, 'recall')."""


class State(StrEnum):
    """The queue a subtask is in: each subtask is in exactly one."""

    PRIORITY = "PRIORITY"
    WAIT = "WAIT"
    CRAWL = "CRAWL"
    SLEEP = "SLEEP"
    FAILED = "FAILED"
    MANUAL = "MANUAL"
    DONE = "DONE"
    CANCELLED = "CANCELLED"

    @property
    def settled(self) -> bool:
        """Return True if nothing more happens without a person (DONE, CANCELLED, MANUAL)."""
        return self in (State.DONE, State.CANCELLED, State.MANUAL)


def count_open(queues: Mapping[str, int]) -> int:
    """Return the number of subtasks, given by state, that are not settled."""
    return sum(n for name, n in queues.items() if not State(name).settled)


class Transition(StrEnum):
    """The cause of a subtask's change of queue."""

    CREATE = "create"
    ADMIT = "admit"
    ALLOCATE = "allocate"
    RELEASE = "release"
    SUCCEED = "succeed"
    FAIL = "fail"
    SILENT = "silent"
    RECALL = "recall"
    GIVE_UP = "give_up"
    WAKE = "wake"
    RETRY = "retry"
    CANCEL = "cancel"
    SET_ASIDE = "set_aside"  # no sweep can do anything with it: its site left the catalog


_CANCELLABLE = (State.PRIORITY, State.WAIT, State.CRAWL, State.SLEEP, State.FAILED, State.MANUAL)

_UNLEASED = (State.PRIORITY, State.WAIT, State.SLEEP, State.FAILED)

LEGAL: Mapping[Transition, Mapping[State | None, State]] = MappingProxyType(
    {
        Transition.CREATE: {None: State.PRIORITY},
        Transition.ADMIT: {State.PRIORITY: State.WAIT},
        Transition.ALLOCATE: {State.WAIT: State.CRAWL},
        Transition.RELEASE: {State.CRAWL: State.WAIT},
        Transition.SUCCEED: {State.CRAWL: State.SLEEP},
        Transition.FAIL: {State.CRAWL: State.FAILED},
        Transition.SILENT: {State.CRAWL: State.FAILED},
        Transition.RECALL: {State.FAILED: State.WAIT},
        Transition.GIVE_UP: {State.FAILED: State.MANUAL},
        Transition.WAKE: {State.SLEEP: State.DONE},
        Transition.RETRY: {State.MANUAL: State.WAIT},
        Transition.CANCEL: dict.fromkeys(_CANCELLABLE, State.CANCELLED),
        Transition.SET_ASIDE: dict.fromkeys(_UNLEASED, State.MANUAL),
    }
)


def source(transition: Transition) -> State | None:
    """The one queue a transition starts from. Raises KeyError for CANCEL and SET_ASIDE, which have several."""
    froms = LEGAL[transition]
    if len(froms) != 1:
        raise KeyError(transition)
    return next(iter(froms))


def target(transition: Transition, state: State | None) -> State:
    """Return the queue a transition leads to. Raises IllegalTransition if it does not start from `state`."""
    try:
        return LEGAL[transition][state]
    except KeyError:
        legal = ", ".join(str(s) for s in LEGAL[transition])
        raise IllegalTransition(
            "{transition} does not start from {state}: it starts from {legal}",
            transition=transition,
            state=state,
            legal=legal,
        ) from None
