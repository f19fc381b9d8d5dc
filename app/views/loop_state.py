"""The state of the crawl at one moment, with the command that a person should run next.

`status`, `run`, `up`, the overview and the API all show this state. docs/states.md has the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from app.views.durations import seconds
from app.views.words import switch_language, translate
from tasks.domain.states import State, count_open
from tasks.store.queries.queues import (
    HostQueue,
    WaitingSummary,
    count_open_hits,
    get_newest_lease_time,
    get_pace,
    get_waiting_summary,
    list_host_waits,
)
from tasks.store.queue import nodes, snapshot, tasks, transitions, upkeep
from tasks.store.queue.nodes import NodeRow
from tasks.store.queue.tasks import UnplannedSite
from tasks.store.sql.transaction import Transaction

_WINDOW_S = 300.0
_SCHEDULER_SILENT_AFTER = timedelta(seconds=30)
_START = timedelta(minutes=2)
"""Maximum time that the processes of a cluster need to start on a busy machine."""


class Situation(StrEnum):
    """Situations of the system. Each member has an English sentence and the command to run next.

    Names in braces are replaced by fields of `SystemState`. Names that end with `_s` are durations in seconds.
    """

    sentence: str
    command: str

    def __new__(cls, value: str, sentence: str, command: str) -> Situation:
        """Make a member with its sentence and command."""
        situation = str.__new__(cls, value)
        situation._value_ = value
        situation.sentence = sentence
        situation.command = command
        return situation

    EMPTY = "empty", "Nothing is planned.", "reviewloop product add NAME"
    PLANNED = "planned", "Planned, and nothing runs.", "reviewloop run --until-done"
    UNASKED = "unasked", "No site of the products can be asked ({sites} in all).", "reviewloop sites check"
    STARTING = "starting", "Starting: the first subtask has not begun.", "reviewloop status"
    RUNNING = "running", "Running: about {left_s} left.", "reviewloop web"
    UNTIMED = (
        "untimed",
        "Running: no page was stored in the last 5 minutes, so the time left is not known.",
        "reviewloop nodes list",
    )
    RESTING = (
        "resting",
        "All that is left waits; the next request may be sent in {next_s}.",
        "reviewloop status",
    )
    JUDGING = "judging", "Everything is crawled; pages still to be judged: {pages}.", "reviewloop status"
    UNSCHEDULED = (
        "unscheduled",
        "Nodes run, and no scheduler has looked for {silent_s}: its database or Redis may be away.",
        "reviewloop doctor",
    )
    DATABASE_AWAY = "database_away", "The database does not answer.", "reviewloop doctor"
    PEOPLE = "people", "Only a person can continue; subtasks that wait: {manual}.", "reviewloop failed list"
    DONE = "done", "All done; subtasks: {settled}.", "reviewloop export reviews -o reviews.xlsx"
    DONE_BUT_FAILURES = (
        "done_but_failures",
        "Done, except for subtasks that wait for a person: {manual} of {settled}.",
        "reviewloop failed list",
    )


@dataclass(frozen=True, slots=True)
class SystemState:
    """A situation with the numbers for its sentence: counts, and durations in seconds."""

    situation: Situation
    parameters: Mapping[str, float] = field(default_factory=dict)
    in_cluster: bool = field(default=False, compare=False)

    @property
    def command(self) -> str:
        """Return the command to run next."""
        if self.in_cluster and self.situation is Situation.PLANNED:
            return "reviewloop up --until-done"
        return self.situation.command

    @property
    def left_s(self) -> float | None:
        """Seconds until all work will be done; `None` if nothing runs or the rate is unknown."""
        return self.parameters.get("left_s")

    def __str__(self) -> str:
        """Return the English sentence."""
        with switch_language("en"):
            return describe_state(self)


def describe_state(system: SystemState) -> str:
    """Return the sentence about a state in the current language."""
    values = {
        name: seconds(max(1.0, round(value))) if name.endswith("_s") else f"{value:,}"
        for name, value in system.parameters.items()
    }
    return translate(system.situation.sentence, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """The state of the crawl at one moment.

    Attributes:
        now: time of the store's clock.
        system: situation of the system.
        queues: number of subtasks by state.
        load: counts of delayed and waiting subtasks.
        waits: hosts that subtasks wait for.
        unplanned: sites that can't be crawled.
    """

    now: datetime
    system: SystemState
    queues: Mapping[str, int]
    load: WaitingSummary
    waits: Sequence[HostQueue]
    unplanned: Sequence[UnplannedSite]
    nodes: Sequence[NodeRow]


def read_state(tx: Transaction, hosts_of: snapshot.HostsOf, silent_after: timedelta) -> LoopState:
    """Return the current state of the crawl.

    Args:
        silent_after: age of the last heartbeat after which a node counts as not running.
    """
    queues = transitions.count_queues(tx)
    waits = list_host_waits(tx, hosts_of, silent_after)
    load = get_waiting_summary(tx)
    unplanned = tasks.list_late_sites(tx)
    rows = nodes.list_nodes(tx)
    runs = any(row.is_alive(tx.now, silent_after) for row in rows)
    idle = SystemState(
        Situation.STARTING if runs or upkeep.is_starting(tx, _START) else Situation.PLANNED,
        in_cluster=not tx.is_sqlite,
    )
    if count_open(queues):
        system = _describe_work(tx, queues, waits, load) if runs else idle
    elif not snapshot.all_settled(tx):
        unjudged = snapshot.count_unjudged(tx)
        system = SystemState(Situation.JUDGING, {"pages": unjudged}) if runs and unjudged else idle
    else:
        system = _describe_end(queues, len(unplanned))
    return LoopState(
        now=tx.now, system=system, queues=queues, load=load, waits=waits, unplanned=unplanned, nodes=rows
    )


def _describe_end(queues: Mapping[str, int], unplanned: int) -> SystemState:
    """Return the state of the system when all planned work is settled. Cancelled subtasks count as not planned."""
    manual = queues[State.MANUAL]
    settled = queues[State.DONE] + manual
    if not settled:
        return (
            SystemState(Situation.UNASKED, {"sites": unplanned})
            if unplanned
            else SystemState(Situation.EMPTY)
        )
    if manual and manual == settled:
        return SystemState(Situation.PEOPLE, {"manual": manual})
    if manual:
        return SystemState(Situation.DONE_BUT_FAILURES, {"manual": manual, "settled": settled})
    return SystemState(Situation.DONE, {"settled": settled})


def _describe_work(
    tx: Transaction,
    queues: Mapping[str, int],
    waits: Sequence[HostQueue],
    load: WaitingSummary,
) -> SystemState:
    """Return the state of the system while a crawl runs and has open subtasks.

    The time left is the number of open hits divided by the pages per second in the last 5 minutes, or since the
    last pause.
    """
    looked = upkeep.get_steady_since(tx)
    if looked is not None and tx.now - looked[1] > _SCHEDULER_SILENT_AFTER:
        if upkeep.is_starting(tx, _START, looked[1]):  # a node started before the scheduler
            return SystemState(Situation.STARTING)
        return SystemState(Situation.UNSCHEDULED, {"silent_s": (tx.now - looked[1]).total_seconds()})
    unsettled = count_open(queues)
    held = sum(one.subtasks + one.trying for one in waits)
    next_at = [one.until for one in waits] if unsettled <= held else []
    if load.next_at is not None and load.delayed == unsettled:
        next_at.append(load.next_at)
    if next_at:
        return SystemState(Situation.RESTING, {"next_s": max(0.0, (min(next_at) - tx.now).total_seconds())})
    pages_per_s = get_pace(tx, _WINDOW_S).pages_per_s
    if looked is not None:  # pages from before a pause say little
        steady_s = min(_WINDOW_S, max(1.0, (tx.now - looked[0]).total_seconds()))
        pages_per_s = get_pace(tx, steady_s).pages_per_s or pages_per_s
    if not pages_per_s:
        leased_at = get_newest_lease_time(tx)
        has_begun = leased_at is not None and tx.now - leased_at < timedelta(seconds=_WINDOW_S)
        return SystemState(Situation.UNTIMED if has_begun or queues[State.CRAWL] else Situation.STARTING)
    hits = count_open_hits(tx)
    silent = sum(one.left for one in waits if one.unreachable)
    if silent * 2 < hits:  # if most hosts are silent, it is the network, and they will answer again
        hits -= silent
    return SystemState(Situation.RUNNING, {"left_s": hits / pages_per_s})
