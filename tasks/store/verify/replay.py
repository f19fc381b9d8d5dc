"""The event log, replayed: the values that rows of subtasks and attempts must have after their events.

One streaming pass over events, attempts and subtasks, all in the order of their subtasks: the events of one subtask are
held at a time, so memory does not grow with the log. Each event lists the columns it set (`events.sets`), so a row
must hold the values of its events applied in turn. Each allocation opens the next attempt, under its token (fencing);
the event that ends it names the same token, node and attempt, at the same moment. A subtask that went straight to DONE
is checked at a glance (`_is_plain`); all others event by event.

Events of 0.10.0 and earlier do not say what they set: then a value is unknown until an event sets it again. Times stay
as the driver returns them (text with SQLite): they compare in either form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, MutableSequence, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from tasks.domain.states import LEGAL, MAX_RECALLS, State, Transition
from tasks.store.queue.attempts import TRANSITIONS
from tasks.store.queue.leases import HITS_UNREAD
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import CLOCKS, Violation, as_time

R = TypeVar("R", bound=tuple[Any, ...])


def _rows_of(row_type: Any, ordered_table: str) -> str:
    """Return the query of all rows of a table as this type; JSON comes as text."""
    columns = (
        f"CAST({name} AS TEXT) AS {name}" if name in _JSON else f'"{name}"' for name in row_type._fields
    )
    return f"SELECT {', '.join(columns)} FROM {ordered_table}"


_JSON = ("sets", "failed_on")


class _EventRow(NamedTuple):
    subtask_id: int
    id: int
    transition: str
    from_state: str | None
    to_state: str
    at: Any
    token: str | None
    attempt_id: int | None
    node: str | None
    reason: str | None
    sets: str | None


_EVENTS = _rows_of(_EventRow, "events ORDER BY subtask_id, id")
_FIRST_THAT_SETS = "SELECT id FROM events WHERE sets IS NOT NULL ORDER BY id LIMIT 1"


class _AttemptRow(NamedTuple):
    subtask_id: int
    id: int
    no: int
    round: int
    token: str
    node: str
    allocated_at: Any
    started_at: Any
    ended_at: Any
    outcome: str | None
    reason: str | None


_ATTEMPTS = _rows_of(_AttemptRow, "attempts ORDER BY subtask_id, no")


class _SubtaskRow(NamedTuple):
    id: int
    task_id: int
    log_dropped: int
    state: str
    attempts: int
    lease_token: str | None
    lease_node: str | None
    attempt_id: int | None
    lease_started: int
    created_at: Any
    changed_at: Any
    left: int
    round: int
    recalls: int
    failed_on: str
    assigned_node: str | None
    assigned_quota: int | None
    not_before: Any
    idle_releases: int
    wait_host: str | None
    wait_reason: str | None
    reason: str | None


_SUBTASKS = _rows_of(_SubtaskRow, "subtasks ORDER BY id")


class _TargetsOfSubtask(NamedTuple):
    """Targets of a subtask: their first and last task, the work to do or late, and its share of its task's sums."""

    subtask_id: int
    first_task: int
    last_task: int
    todo_hits: int
    todo_results: int
    late: int
    results: int
    read: int
    hits: int
    legal: int


_TARGETS = """
    SELECT subtask_id, min(task_id) AS first_task, max(task_id) AS last_task,
        count(*) FILTER (WHERE state = 'todo' AND kind = 'hit') AS todo_hits,
        count(*) FILTER (WHERE state = 'todo' AND kind = 'result') AS todo_results,
        count(*) FILTER (WHERE state = 'stored' AND reason = 'late') AS late,
        count(*) FILTER (WHERE kind = 'result') AS results,
        count(*) FILTER (WHERE kind = 'result' AND state = 'stored') AS read,
        count(*) FILTER (WHERE kind = 'hit') AS hits,
        count(*) FILTER (WHERE kind = 'hit' AND state IN ('todo', 'stored', 'refused', 'given_up')) AS legal
    FROM targets GROUP BY subtask_id ORDER BY subtask_id
"""
_LEGAL = {(name, begin, end) for name, ways in LEGAL.items() for begin, end in ways.items()}
_OUTCOMES = {transition.value: outcome.value for outcome, transition in TRANSITIONS.items()}
"""How an attempt ended, by the transition that ended it."""
_NEW: Final[Mapping[str, Any]] = {
    "round": 1,
    "recalls": 0,
    "failed_on": [],
    "assigned_node": None,
    "assigned_quota": None,
    "not_before": None,
    "idle_releases": 0,
    "wait_host": None,
    "wait_reason": None,
    "reason": None,
}
"""Values of a new subtask; `left` is counted once more when its targets are there."""
_KINDS: Final[Mapping[str, str]] = {
    "left": "left",
    **dict.fromkeys(_NEW, "recalls"),
    **dict.fromkeys(("not_before", "idle_releases", "wait_host", "wait_reason"), "wait"),
    "attempts": "attempt",
}
"""Columns that events set, each with the kind of a violation there."""


class Groups(Generic[R]):
    """Rows that are ordered by their first column, taken by its values in order."""

    def __init__(self, rows: Iterator[R]) -> None:
        self._groups = groupby(rows, key=itemgetter(0))
        self._next = next(self._groups, None)

    def rows_of(self, key: int) -> list[R]:
        """Return the rows with this value; those with smaller values are passed over."""
        there = self._next
        while there is not None and there[0] < key:
            there = next(self._groups, None)
        found: list[R] = []
        if there is not None and there[0] == key:
            found = list(there[1])
            there = next(self._groups, None)
        self._next = there
        return found


def replay(tx: Transaction, of_tasks: MutableSequence[int]) -> Iterator[Violation]:
    """Check the event log, and every subtask and attempt against it.

    Args:
        of_tasks: four numbers a task; the sums of its subtasks' targets are added to them.
    """
    log, made = Groups(tx.stream(_EventRow, _EVENTS)), Groups(tx.stream(_AttemptRow, _ATTEMPTS))
    work = Groups(tx.stream(_TargetsOfSubtask, _TARGETS))
    first = tx.value(_FIRST_THAT_SETS)
    for subtask in tx.stream(_SubtaskRow, _SUBTASKS):
        events, attempts = log.rows_of(subtask.id), made.rows_of(subtask.id)
        targets = next(iter(work.rows_of(subtask.id)), None)
        if subtask.log_dropped:
            yield from _check_without_log(subtask, events, attempts)
        elif not _is_plain(subtask, events, attempts):
            yield from _check_events(subtask, events, attempts, first)
        if targets:
            for place, n in enumerate(targets[-4:], 4 * subtask.task_id):
                of_tasks[place] += n
        done = subtask.state == "DONE" and subtask.left == 0
        if not (done and targets and targets[1:6] == (subtask.task_id, subtask.task_id, 0, 0, 0)):
            yield from _check_left(subtask, targets)


_STEPS: Final = (
    ("create", None, "PRIORITY"),
    ("admit", "PRIORITY", "WAIT"),
    ("allocate", "WAIT", "CRAWL"),
    ("succeed", "CRAWL", "SLEEP"),
    ("wake", "SLEEP", "DONE"),
)
_STATE, _CREATED = _SubtaskRow._fields.index("state"), _SubtaskRow._fields.index("created_at")
_LEFT = _SubtaskRow._fields.index("left")
_ENDED: Final = ("DONE", 1, None, None, None, False)
"""Values of a plain subtask, from `state` to `lease_started`."""


def _is_plain(row: _SubtaskRow, log: Sequence[_EventRow], made: Sequence[_AttemptRow]) -> bool:
    """Return True if a subtask was created, admitted, given to a node once and done, and all its rows say so.

    Most subtasks are. `_check_events` finds nothing wrong in these; it is slower.
    """
    if len(log) != 5 or len(made) != 1 or row[_STATE:_CREATED] != _ENDED:
        return False
    created, admitted, given, ended, woken = log
    (it,) = made
    return (
        (created[2:5], admitted[2:5], given[2:5], ended[2:5], woken[2:5]) == _STEPS
        and (it.no, it.round, it.outcome) == (1, 1, "succeeded")
        and given[5:10] == (it.allocated_at, it.token, it.id, it.node, None)
        and ended[5:10] == (it.ended_at, it.token, it.id, it.node, it.reason)
        and created.at <= admitted.at <= given.at <= ended.at <= woken.at
        and (row.created_at, row.changed_at) == (created.at, woken.at)
        and _plain_values(created.sets, admitted.sets, given.sets, ended.sets, woken.sets) == row[_LEFT:]
    )


@lru_cache(maxsize=4096)
def _plain_values(*sets: str | None) -> tuple[Any, ...]:
    """Return what events led to, from `left` to `reason`; empty if that is not simply known. Few texts differ."""
    if None in sets:
        return ()
    values = dict(_NEW)
    for text in sets:
        values |= _read(text or "{}")
    if not values.keys() <= _KINDS.keys() or values["failed_on"] or values["not_before"]:
        return ()
    if values.pop("attempts", None) != 1:
        return ()
    values["failed_on"] = "[]"
    return tuple(values.get(name) for name in _SubtaskRow._fields[_LEFT:])


@lru_cache(maxsize=4096)
def _read(text: str) -> Any:
    """Return the value of a JSON text; few texts differ, and no caller changes a value."""
    return json.loads(text)


def _check_left(subtask: _SubtaskRow, targets: _TargetsOfSubtask | None) -> Iterator[Violation]:
    """Check the targets of a subtask against its number of hits left to do."""
    hits = results = late = 0
    if targets:
        _, first, last, hits, results, late, *_ = targets
        if (first, last) != (subtask.task_id, subtask.task_id):
            message = f"is of task {subtask.task_id}, its targets of tasks {first} to {last}"
            yield Violation("copy", subtask.id, message)
    if subtask.state == State.DONE and hits + results:
        yield Violation("lost", subtask.id, f"is DONE, but {hits + results} of its targets are still to do")
    todo = hits + results * HITS_UNREAD
    # Counted when its last attempt ended: targets whose pages came late are done since.
    if subtask.state not in (State.CRAWL, State.CANCELLED) and not todo <= subtask.left <= todo + late:
        message = (
            f"says that {subtask.left} hits are left, its targets to do count {todo}, and {late} came late"
        )
        yield Violation("left", subtask.id, message)


def _check_without_log(
    subtask: _SubtaskRow, log: Sequence[_EventRow], made: Sequence[_AttemptRow]
) -> Iterator[Violation]:
    """Check a subtask whose log was dropped: it is settled, its attempts are all there, and closed."""
    if log:
        yield Violation("chain", subtask.id, f"has {len(log)} events, and says that its log was dropped")
    if subtask.state not in (State.DONE, State.CANCELLED):
        yield Violation("queue", subtask.id, f"is in {subtask.state}, and its log was dropped")
    if [one.no for one in made] != list(range(1, subtask.attempts + 1)) or any(
        one.outcome is None for one in made
    ):
        message = f"says {subtask.attempts} attempts, and has {[(one.no, one.outcome) for one in made]}"
        yield Violation("attempt", subtask.id, message)


def _check_events(
    subtask: _SubtaskRow, log: Sequence[_EventRow], made: Sequence[_AttemptRow], first: int | None
) -> Iterator[Violation]:
    """Check a subtask and its attempts against its events, one by one.

    Args:
        first: the first event of the store that lists the columns it set; all later ones do.
    """
    state: str | None = None
    held: tuple[Any, ...] = (None, None, None)
    known: dict[str, Any] = {}
    attempt: _AttemptRow | None = None
    opened = recalls = 0
    last_at: Any = None
    for event in log:
        transition, begin, end, at = event[2:6]
        if begin != state:
            message = f"does not start from {state}, where it was"
            yield Violation("chain", subtask.id, f"{_label(event)} {message}")
        if (transition, begin, end) not in _LEGAL:
            yield Violation("transition", subtask.id, f"{_label(event)} is no legal transition")
        state = end
        if last_at is not None and at < last_at and as_time(at) < as_time(last_at) - CLOCKS:
            yield Violation("order", subtask.id, f"{_label(event)} is of {at}, the one before of {last_at}")
        last_at = at
        if transition == Transition.ALLOCATE:
            attempt = made[opened] if opened < len(made) else None
            opened += 1
            held = event[6:9]
            if attempt is None or not _opens(event, attempt, opened, known.get("round", attempt.round)):
                yield _pairing_violation(subtask.id, event, attempt)
        elif begin == State.CRAWL:
            if attempt is None or not _ends(event, attempt, held):
                yield _pairing_violation(subtask.id, event, attempt)
            attempt, held = None, (None, None, None)
        recalls = 0 if transition == Transition.RETRY else recalls + (transition == Transition.RECALL)
        if recalls == MAX_RECALLS + 1 and transition == Transition.RECALL:
            more = f"{_label(event)} is more than recall {MAX_RECALLS} of a round"
            yield Violation("recalls", subtask.id, more)
        yield from _set(event, known, opened, recalls, first)
    if attempt is not None and (attempt.ended_at, attempt.outcome, attempt.reason) != (None, None, None):
        yield _pairing_violation(subtask.id, log[-1], attempt)
    for one in made[opened:]:
        yield Violation("attempt", subtask.id, f"attempt {one.id} was never allocated")
    if subtask.state != state:
        message = f"is in {subtask.state}, but its last event led to {state}"
        yield Violation("queue", subtask.id, message)
    if log:
        begun = attempt is not None and attempt.started_at is not None
        known |= {
            "lease_token": held[0],
            "attempt_id": held[1],
            "lease_node": held[2],
            "lease_started": begun,
        }
        known |= {"created_at": log[0].at, "changed_at": last_at, "attempts": opened}
    yield from _different(subtask, known)


def _opens(event: _EventRow, attempt: _AttemptRow, no: int, of_round: int) -> bool:
    """Return True if an allocation and the attempt it opened say the same."""
    opened = no, of_round, attempt.allocated_at, attempt.token, attempt.id, attempt.node, None
    return (attempt.no, attempt.round, *event[5:10]) == opened


def _ends(event: _EventRow, attempt: _AttemptRow, held: tuple[Any, ...]) -> bool:
    """Return True if the end of a lease, the lease and its attempt say the same."""
    reason, lease = event.reason, event[6:9]
    if event.transition == Transition.CANCEL:
        reason = None  # the attempt has none
        if event.sets is None and event.token is None:
            lease = held[0], event.attempt_id, held[2]  # 0.10.0 named the attempt alone
    ended = event.attempt_id, _OUTCOMES.get(event.transition), reason, event.at
    return lease == held and ended == (attempt.id, attempt.outcome, attempt.reason, attempt.ended_at)


def _set(
    event: _EventRow, known: dict[str, Any], opened: int, recalls: int, first: int | None
) -> Iterator[Violation]:
    """Apply the values that an event set to those that are known of its subtask."""
    if event.transition == Transition.CREATE:
        known |= _NEW
    if event.sets is None:
        known.clear()
        if first is not None and event.id > first:
            yield Violation("event", event.subtask_id, f"{_label(event)} does not say what it set")
        return
    sets = _read(event.sets)
    for name in sets.keys() - _KINDS.keys():
        yield Violation("event", event.subtask_id, f"{_label(event)} sets {name}, which no event sets")
    known |= sets
    for name, counted in (("attempts", opened), ("recalls", recalls)):
        if sets.get(name, counted) != counted:
            message = f"{_label(event)} sets {name} to {sets[name]}, and it is number {counted}"
            yield Violation(_KINDS[name], event.subtask_id, message)


def _different(subtask: _SubtaskRow, known: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield the columns of a subtask that are not what its events led to."""
    for name, should in known.items():
        is_ = getattr(subtask, name, None)
        if name == "failed_on":
            is_ = _read(subtask.failed_on)
        elif name == "not_before":
            is_, should = as_time(is_), as_time(should)
        if is_ != should and name in subtask._fields:
            message = f"{name} is {is_}, its events led to {should}"
            yield Violation(_KINDS.get(name, "lease" if "lease" in name else "time"), subtask.id, message)


def _pairing_violation(subtask_id: int, event: _EventRow, attempt: _AttemptRow | None) -> Violation:
    of = f"(attempt {event.attempt_id}, token {event.token}, node {event.node}, reason {event.reason}, at {event.at})"
    if attempt is None:
        return Violation("attempt", subtask_id, f"{_label(event)} {of} has no attempt")
    who = f"token {attempt.token}, node {attempt.node}"
    is_ = f"attempt {attempt.id} (number {attempt.no}, round {attempt.round}, {who}"
    times = (
        f"allocated {attempt.allocated_at}, ended {attempt.ended_at}: {attempt.outcome}, {attempt.reason})"
    )
    return Violation("attempt", subtask_id, f"{_label(event)} {of} does not pair with {is_}, {times}")


def _label(event: _EventRow) -> str:
    return f"event {event.id} ({event.transition}: {event.from_state} to {event.to_state})"
