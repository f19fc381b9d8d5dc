"""The `sed` allocation: shortest expected delay (after Linux Virtual Server's scheduler), on observed rates.

A subtask goes to the node i, busy or not, where

    (attempts held + subtasks waiting for it + 1) x seconds expected of the subtask there / slots

is smallest; where that one is busy, the subtask waits. In LVS a request that must queue does so at its server and
counts among its connections. Here all wait in one place, so those that wait for a busy node are counted while the
ready queue is gone through, and not bound to it: the next decision counts anew. Without them, half of the slower nodes
would idle before any backlog. A level is gone through in rounds, each in queue order, that count one, two, four ...
more of each group: the cost grows only with the logarithm of their number.

Seconds expected are pages / rate (`tasks.scheduling.posterior`, posterior means): those it takes to collect the pages,
not those of one attempt, or the node that fails at once would look fastest. There is no exploring: a node that looks
slow gets work only once the others are that much fuller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext
from tasks.scheduling.baselines.simple import taken
from tasks.scheduling.decision import REPLAN_S, TYPICAL_PAGES, AllocationSettings, Assignment
from tasks.scheduling.posterior import posterior
from tasks.scheduling.ready_queue import Group, ReadyQueue

Array = NDArray[np.float64]

_FRESH_S = 0.25 * REPLAN_S
"""Estimates are made anew after so long ..."""

_MANY_PAIRS = 10_000
"""... or later in proportion, where there are more pairs than this: their cost grows with the number."""


class ShortestDelay(Baseline):
    """The strategy; it remembers its estimates, which it can make anew at any time."""

    def __init__(self, settings: AllocationSettings) -> None:
        super().__init__(settings)
        self._seconds: dict[str, Array] = {}
        self._rows: dict[tuple[object, ...], Array] = {}
        self._made = (-np.inf, -1)

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready = context.ready
        if not ready.free or not ready.waiting:
            return
        self._estimate(context)
        names, held = list(ready.nodes), _held(ready)
        for level in ready.levels():
            counted: dict[Group, int] = {}
            chunk, more = 1, True
            while more and ready.free:
                more = False
                for group in context.groups([level]):
                    seconds, count = self._row(ready, group), counted.get(group, 0)
                    most = min(len(group.queue), count + chunk) if np.isfinite(seconds).any() else 0
                    more |= 0 < most < len(group.queue)
                    while count < most:
                        delays = (held + 1.0) * seconds
                        best = int(np.argmin(delays))
                        if ready.can_take(group, names[best]):
                            held[best] += 1.0
                            scores = dict(zip(names, delays.tolist(), strict=True))
                            yield context.give(group, names[best], partial(_why, scores), scores.get)
                            break
                        delays[best] = np.inf  # so many wait for it before the next best is as good
                        before = float(delays.min()) / seconds[best] - held[best]
                        joining = max(1, int(min(before, most - count)))
                        held[best] += joining
                        count += joining
                    counted[group] = count
                chunk *= 2

    def why_held_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Which busy node is worth waiting for."""
        if group.first.site not in self._seconds or self._made[1] != ready.version:
            return None
        delays = (_held(ready) + 1.0) * self._row(ready, group)
        name = list(ready.nodes)[int(np.argmin(delays))]
        if ready.can_take(group, name):
            return f"others wait longer for the free nodes than it will for {name}"
        return f"waits for {name}: {delays.min():.3g} s there, the shortest expected delay"

    def _estimate(self, context: DecisionContext) -> None:
        """Seconds of a subtask on a slot of each node, over the node's slots: a row for each site."""
        ready, (made_at_s, version) = context.ready, self._made
        lasts_s = _FRESH_S * max(1.0, len(ready.sites) * len(ready.nodes) / _MANY_PAIRS)
        if version == ready.version and 0 <= context.now_s - made_at_s < lasts_s:
            return
        self._made = context.now_s, ready.version
        sites, nodes = list(ready.sites), list(ready.nodes)
        belief = posterior(context.knowledge, context.now_s, sites, nodes).mean()
        pages = np.array([[_pages(ready, site)] for site in sites])
        slots = np.array([max(1, ready.nodes[name].slots) for name in nodes])
        seconds = pages / np.maximum(belief.rates(pages), 1e-9) / slots
        self._seconds = dict(zip(sites, seconds, strict=True))
        self._rows.clear()

    def _row(self, ready: ReadyQueue, group: Group) -> Array:
        """The row of a group's site, infinite for nodes that may not take the group."""
        one = group.first
        key = (one.site, one.kind, one.hosts, one.failed_on, one.assigned)
        if key not in self._rows:
            may = [ready.may_take(group, name) for name in ready.nodes]
            self._rows[key] = np.where(may, self._seconds[one.site], np.inf)
        return self._rows[key]


def _held(ready: ReadyQueue) -> Array:
    return np.array([float(max(0, taken(ready, name))) for name in ready.nodes])


def _pages(ready: ReadyQueue, site: str) -> float:
    """Mean targets left of what waits of a site, up to the typical number."""
    waits = ready.backlog.get(site)
    return (
        min(float(TYPICAL_PAGES), waits.left / waits.subtasks) if waits is not None else float(TYPICAL_PAGES)
    )


def _why(delays: Mapping[str, float], name: str, chosen: bool) -> str:
    until = f"{delays[name]:.3g} s until it is done"
    return f"shortest expected delay: {until}" if chosen else until
