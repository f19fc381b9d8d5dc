"""Replays the event log: a subtask's row must hold the values that its events set, applied in turn.

Each event lists the columns that it set (`events.sets`). One query returns a row per subtask. It joins each column of
all its events to one text, so memory does not grow with the log. Most subtasks have the same story and the
same values, so the result of each story is cached.

Events of 0.10.0 and earlier do not list what they set. After such an event a value is unknown until an event sets it.
`tasks.store.verify.invariants` checks each event that begins or ends a lease against its attempt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from tasks.domain.states import LEGAL, MAX_RECALLS, State, Transition
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.clocks import Clock, as_time
from tasks.store.verify.invariants import Violation

_LEGAL = {(name, begin or "", end) for name, ways in LEGAL.items() for begin, end in ways.items()}
_NONE_AT_FIRST = ("assigned_node", "assigned_quota", "not_before", "wait_host", "wait_reason", "reason")
_NEW: Final[Mapping[str, Any]] = {
    **dict.fromkeys(_NONE_AT_FIRST),
    "round": 1,
    "recalls": 0,
    "failed_on": [],
    "idle_releases": 0,
}
"""Values of a new subtask; `left` is counted once more when its targets are there."""
_KINDS: Final[Mapping[str, str]] = {
    "state": "queue",
    "attempts": "attempt",
    "left": "left",
    **dict.fromkeys(_NEW, "recalls"),
    **dict.fromkeys(("not_before", "idle_releases", "wait_host", "wait_reason"), "wait"),
}
"""Columns that follow from the events, each with the kind of a violation there."""
_SETS_NODES: Final[Mapping[str, bool]] = {Transition.GIVE_UP: False, Transition.SET_ASIDE: True}
"""Whether a transition to MANUAL sets the nodes that failed."""
_JOINED: Final = (
    "CAST(e.at AS TEXT)",
    "e.transition",
    "coalesce(e.from_state, '')",
    "e.to_state",
    "coalesce(a.no || '.' || a.round, '')",
    "coalesce(CAST(e.sets AS TEXT), 'null')",
)
"""Columns of an event that the replay reads. The fifth is the number and the round of its attempt."""
_LOGS = f"""
    SELECT s.id, CAST(s.created_at AS TEXT), CAST(s.changed_at AS TEXT), {{joined}},
        {", ".join("CAST(s.failed_on AS TEXT)" if name == "failed_on" else f"s.{name}" for name in _KINDS)}
    FROM subtasks s LEFT JOIN events e ON e.subtask_id = s.id LEFT JOIN attempts a ON a.id = e.attempt_id
    WHERE NOT s.log_dropped GROUP BY s.id
"""
# Of a subtask whose log was dropped, another invariant sees the events.
_COUNT_EVENTS = """
    SELECT (SELECT count(*) FROM events)
        - (SELECT count(*) FROM subtasks s JOIN events e ON e.subtask_id = s.id WHERE s.log_dropped)
"""


def replay(tx: Transaction, clock: Clock) -> Iterator[Violation]:
    """Check every subtask against its events, unless its log was dropped."""
    # SQLite meets the events of a subtask in the order of their index.
    join = "group_concat({})" if tx.is_sqlite else "string_agg({}, ',' ORDER BY e.id)"
    logs = _LOGS.format(joined=", ".join(map(join.format, _JOINED)))
    n_events = 0
    for subtask_id, created_at, changed_at, at, *story in tx.stream(tuple, logs):
        for kind, message in _problems(*story):
            yield Violation(kind, subtask_id, message)
        times = at.split(",") if at else [created_at, changed_at]
        n_events += len(times) if at else 0
        if times != sorted(times):
            back = clock.went_back([as_time(one) for one in times])
            if back is not None:
                yield Violation("order", subtask_id, f"an event is of {back[1]}, the one before of {back[0]}")
        if (created_at, changed_at) != (times[0], times[-1]):
            message = f"was created {created_at}, changed {changed_at}; its events are from {times[0]} to {times[-1]}"
            yield Violation("time", subtask_id, message)
    others = tx.value(_COUNT_EVENTS) - n_events
    if others:
        yield Violation("lost", None, f"{others} events are of subtasks that are gone")


@lru_cache(maxsize=1024)
def _problems(
    transitions: str | None, begins: str, ends: str, attempts: str, sets: str, *row: Any
) -> list[tuple[str, str]]:
    """Return the violations of a subtask, each as kind and message.

    Args:
        transitions, begins, ends, attempts, sets: columns of its events (`_JOINED`). Without events, `transitions`
            is None.
        row: the subtask's values of the columns in `_KINDS`.
    """
    is_ = dict(zip(_KINDS, row, strict=True))
    if transitions is None:
        return [("queue", f"is in {is_['state']}, and has no event")]
    found: list[tuple[str, str]] = []
    known: dict[str, Any] = {}
    state, opened, recalls = "", 0, 0
    texts = (text.split(",") for text in (transitions, begins, ends, attempts))
    events = list(zip(*texts, json.loads(f"[{sets}]"), strict=False))
    for transition, begin, end, attempt, values in events:
        problems = []
        if begin != state:
            problems.append(("chain", f"does not start from {state}, where it was"))
        if (transition, begin, end) not in _LEGAL:
            problems.append(("transition", "is no legal transition"))
        state = end
        if transition == Transition.CREATE:
            known |= _NEW
        elif transition == Transition.ALLOCATE:
            opened += 1
        elif transition == Transition.RETRY:
            recalls = 0
        elif transition == Transition.RECALL:
            recalls += 1
            if recalls > MAX_RECALLS:
                problems.append(("recalls", f"is more than recall {MAX_RECALLS} of a round"))
        if State.CRAWL in (begin, end):
            should = f"{opened}.{known.get('round', attempt.partition('.')[2])}"
            if attempt != should:
                problems.append(("attempt", f"is of attempt {attempt} (number and round), not {should}"))
        if isinstance(values, dict) and _SETS_NODES.get(transition) is ("failed_on" not in values):
            problems.append(("transition", "sets what the other transition to MANUAL sets"))
        if values is None:
            known.clear()
        elif not isinstance(values, dict):
            problems.append(("event", f"sets {values}, which are no columns"))
        else:
            known |= values
            for name, counted in (("attempts", opened), ("recalls", recalls)):
                if values.get(name, counted) != counted:
                    problems.append(
                        (_KINDS[name], f"sets {name} to {values[name]}, and it is number {counted}")
                    )
        found += [(kind, f"an event ({transition}: {begin} to {end}) {text}") for kind, text in problems]
    known |= {"state": state, "attempts": opened}
    return [*found, *_differences(known, is_)]


def _differences(known: Mapping[str, Any], is_: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the columns that differ from what events set, each as kind and message.

    Args:
        known: values that the events led to.
        is_: the values of the subtask.
    """
    failed_on = json.loads(is_["failed_on"])
    for name, should in known.items():
        if name not in is_:
            yield "event", f"an event sets {name}, which no event sets"
            continue
        value = failed_on if name == "failed_on" else is_[name]
        if value != should and (name != "not_before" or as_time(value) != as_time(should)):
            yield _KINDS[name], f"{name} is {value}, its events led to {should}"
