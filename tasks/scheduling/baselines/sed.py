"""The `sed` allocation: shortest expected delay (after Linux Virtual Server's scheduler), on observed rates.

A subtask goes to the node i, busy or not, where

    (attempts held + subtasks waiting for it + 1) x seconds expected of the subtask there / slots

is smallest; where that one is busy, the subtask waits. In LVS a request that must queue does so at its server and
counts among its connections; here all wait in one place, so those that wait for a busy node are counted when the
ready is gone through, and not bound to it: what was learnt since, and nodes that come and go, count the next
time. Without them, half of the slower nodes would idle before any backlog. A level is gone through in rounds,
each in queue order, that count one, two, four ... more of each group: nearly as they queue, but the cost
does not grow with their number (only with its logarithm).

Seconds expected are pages / rate (`tasks.scheduling.posterior`, posterior means): those it takes to collect the pages,
not those of one attempt, or the node that fails at once would look fastest. There is no exploring: a node that looks
slow gets work only once the others are that much fuller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from tasks.scheduling import posterior as estimate
from tasks.scheduling.baselines.dispatch import Choice, DecisionContext, push_level
from tasks.scheduling.baselines.least_loaded import taken
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge

Array = NDArray[np.float64]

_FRESH = 0.25
"""Share of `replan_s` after which estimates are made anew ..."""

_MANY_PAIRS = 10_000
"""... or later in proportion, where there are more pairs than this: their cost grows with the number."""


@dataclass(slots=True)
class _Expected:
    """Estimates in force.

    Attributes:
        seconds: of a subtask on a slot of each node, over the node's slots: a row for each site.
        place: of each node in a row.
        seen: the ready queue's version they were made for.
        rows: the same for what may not run everywhere (infinite where it may not), by what that depends on.
    """

    at_s: float
    seconds: dict[str, Array]
    place: dict[str, int]
    seen: int
    rows: dict[tuple[object, ...], Array] = field(default_factory=dict)


@dataclass(slots=True)
class _Loads:
    """What nodes hold while a ready queue is gone through: attempts, and subtasks that wait for a busy one.

    Attributes:
        waiting: by group, how many of its subtasks are counted already.
        chunk: how many of a group are counted before the next group has its turn.
        rest: a group has more than were counted.
    """

    held: Array
    waiting: dict[Group, int] = field(default_factory=dict)
    chunk: int = 1
    rest: bool = False


class ShortestDelay:
    """The strategy; it remembers its estimates, which it can make anew at any time."""

    split = None

    def __init__(self, settings: AllocationSettings) -> None:
        self._settings = settings
        self._expected: _Expected | None = None

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        if not ready.free or not ready.waiting:
            return []
        expected, loads = self._estimates(ready, knowledge, now_s), _loads(ready)
        context, given = DecisionContext(ready, knowledge, now_s, rng, tell), list[Assignment]()
        for level in ready.levels():
            loads.chunk, loads.rest = 1, True
            while ready.free and loads.rest:
                loads.rest = False
                given += push_level(context, level, lambda group: _choose(ready, expected, loads, group))
                loads.chunk *= 2
        return given

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Which busy node is worth waiting for."""
        expected = self._expected
        if expected is None or group.first.site not in expected.seconds or expected.seen != ready.version:
            return None
        delays = (_loads(ready).held + 1.0) * _row(ready, expected, group)
        name = list(expected.place)[int(np.argmin(delays))]
        if ready.takes(group, name):
            return f"others wait longer for the free nodes than it will for {name}"
        return f"waits for {name}: {delays.min():.3g} s there, the shortest expected delay"

    def _estimates(self, ready: ReadyQueue, knowledge: Knowledge, now_s: float) -> _Expected:
        known = self._expected
        pairs = len(ready.sites) * len(ready.nodes)
        lasts_s = self._settings.replan_s * _FRESH * max(1.0, pairs / _MANY_PAIRS)
        if known is not None and known.seen == ready.version and 0 <= now_s - known.at_s < lasts_s:
            return known
        sites, nodes = list(ready.sites), list(ready.nodes)
        belief = estimate.posterior(knowledge, now_s, sites, nodes, self._settings.estimate).mean()
        pages = np.array([[_pages(ready, site, self._settings.typical_pages)] for site in sites])
        slots = np.array([max(1, ready.nodes[name].slots) for name in nodes])
        seconds = pages / np.maximum(belief.rates(pages), 1e-9) / slots
        self._expected = _Expected(
            now_s,
            dict(zip(sites, seconds, strict=True)),
            {name: place for place, name in enumerate(nodes)},
            ready.version,
        )
        return self._expected


def _pages(ready: ReadyQueue, site: str, most: int) -> float:
    """Mean targets left of what waits of a site, up to so many."""
    waits = ready.backlog.get(site)
    return min(float(most), waits.left / waits.subtasks) if waits is not None else float(most)


def _loads(ready: ReadyQueue) -> _Loads:
    return _Loads(np.array([float(max(0, taken(ready, name))) for name in ready.nodes]))


def _choose(ready: ReadyQueue, expected: _Expected, loads: _Loads, group: Group) -> Choice | None:
    """The node of the shortest delay for the group's next, once those before it are counted; None: all wait."""
    row = _row(ready, expected, group)
    if not np.isfinite(row).any():
        return None
    names, counted = list(ready.nodes), loads.waiting.get(group, 0)
    most = min(len(group.queue), counted + loads.chunk)
    loads.rest |= most < len(group.queue)
    while counted < most:
        delays = (loads.held + 1.0) * row
        best = int(np.argmin(delays))
        if ready.takes(group, names[best]):
            loads.held[best] += 1.0
            loads.waiting[group] = counted
            return _shortest(names[best], dict(zip(names, delays.tolist(), strict=True)))
        delays[best] = np.inf
        before = (
            float(delays.min()) / row[best] - loads.held[best]
        )  # so many go there before the next best is as good
        joining = max(1, int(min(before, most - counted)))
        loads.held[best] += joining
        counted += joining
    loads.waiting[group] = counted
    return None


def _shortest(chosen: str, delays: dict[str, float]) -> Choice:
    def reason(name: str) -> str:
        told = f"{delays[name]:.3g} s until it is done"
        return f"shortest expected delay: {told}" if name == chosen else told

    return Choice(chosen, reason, delays.get)


def _row(ready: ReadyQueue, expected: _Expected, group: Group) -> Array:
    """Seconds by node over slots, infinite where it may not run."""
    wanted = group.first
    key = (wanted.site, wanted.kind, wanted.hosts, wanted.failed_on, wanted.assigned)
    row = expected.rows.get(key)
    if row is None:
        may = [ready.may(group, name) for name in expected.place]
        row = expected.rows[key] = np.where(may, expected.seconds[wanted.site], np.inf)
    return row
