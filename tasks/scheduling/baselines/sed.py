"""The `sed` allocation: shortest expected delay (after Linux Virtual Server's scheduler), on observed rates.

A subtask goes to the node i, busy or not, for which

    (attempts held + subtasks waiting for it + 1) x seconds expected of the subtask there / slots

is smallest; if that node is busy, the subtask waits. In LVS a request that must queue does so at its server and
counts among its connections. Here all wait in one place, so those that wait for a busy node are counted while the
ready queue is gone through, and not bound to it: the next decision counts again. Without them, half of the slower nodes
would idle before any backlog. A level is gone through in rounds, each in queue order, that count one, two, four ...
more of each group: the cost grows only with the logarithm of their number.

Seconds expected are pages / rate (`tasks.scheduling.posterior`, posterior means): those it takes to collect the pages,
not those of one attempt, or the node that fails at once would look fastest. There is no exploring: a node that looks
slow gets work only once the others are that much fuller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext, Why, alike, count_attempts, stretch
from tasks.scheduling.decision import REPLAN_S, TYPICAL_PAGES, Assignment
from tasks.scheduling.posterior import Array, posterior
from tasks.scheduling.ready_queue import Backlog, ReadyQueue, SubtaskGroup


class ShortestDelay(Baseline):
    """The strategy. It remembers its estimates, which it can repeat at any time."""

    _rows: dict[object, Array]
    """Estimates by site, and by the common facts of groups. The first decision with anything to decide sets them."""

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready = context.ready
        if ready.free and ready.waiting and self.is_outdated(context, stretch(0.25 * REPLAN_S, ready)):
            self._rows = _estimate(context)
        names, held = list(ready.nodes), _attempts_held(ready)
        for level in ready.levels():
            counted = Counter[SubtaskGroup]()
            longest = max(len(group.queue) for groups in level.sites.values() for group in groups)
            for doubling in range(longest.bit_length()):
                for group in context.groups([level]):
                    seconds = self._row(ready, group)
                    most = min(len(group.queue), counted[group] + 2**doubling)
                    while counted[group] < most and np.isfinite(seconds).any():
                        delays = (held + 1.0) * seconds
                        best = int(np.argmin(delays))
                        if ready.can_take(group, names[best]):
                            held[best] += 1.0
                            scores = dict(zip(names, delays.tolist(), strict=True))
                            yield context.give(group, names[best], _why(scores), scores.get)
                            break
                        delays[best] = np.inf  # enough wait for it that the next best is as good
                        before = delays.min() / seconds[best] - held[best]
                        joining = int(np.clip(before, 1, most - counted[group]))
                        held[best] += joining
                        counted[group] += joining

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:
        """Return which busy node is worth waiting for; `None` if none is."""
        if self._made[1] != ready.version:
            return None
        delays = (_attempts_held(ready) + 1.0) * self._row(ready, group)
        name = list(ready.nodes)[int(np.argmin(delays))]
        if ready.can_take(group, name):
            return because(Reason.FREE_ARE_SLOWER, node=name)
        return because(Reason.SHORTEST_DELAY, node=name, delay_s=float(delays.min()))

    def _row(self, ready: ReadyQueue, group: SubtaskGroup) -> Array:
        """The estimates of a group's site, infinite for nodes that may not take the group."""
        key = alike(group)
        if key not in self._rows:
            may = [ready.may_take(group, name) for name in ready.nodes]
            self._rows[key] = np.where(may, self._rows[group.first.site], np.inf)
        return self._rows[key]


def _estimate(context: DecisionContext) -> dict[object, Array]:
    """Return by site the seconds of a subtask on a slot of each node, divided by the node's slots.

    A subtask has the mean number of open targets of its site's waiting subtasks, up to the typical number.
    """
    ready, usual = context.ready, Backlog(1, TYPICAL_PAGES)
    waiting = [ready.backlog.get(site, usual) for site in ready.sites]
    pages = np.array([[min(TYPICAL_PAGES, each.left / each.subtasks)] for each in waiting], np.float64)
    slots = np.array([max(1, node.slots) for node in ready.nodes.values()])
    belief = posterior(context.knowledge, context.now_s, ready.sites, ready.nodes).mean()
    return dict(zip(ready.sites, pages / np.maximum(belief.rates(pages), 1e-9) / slots, strict=True))


def _attempts_held(ready: ReadyQueue) -> Array:
    return np.array([float(max(0, count_attempts(ready, name))) for name in ready.nodes])


def _why(delays: dict[str, float]) -> Why:
    return lambda name: because(Reason.EXPECTED_DELAY, delay_s=float(delays[name]))
