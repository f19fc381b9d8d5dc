"""The `feedback2014` allocation: the literal rule of the 2014 product paper, to compare with.

In queue order, each subtask goes, among the nodes that can take it, to the one with

1. its kind (a rule of eligibility);
2. the highest completion rate at its site (collected / offered; the paper: / found), corrected as attempts end;
3. but never to one whose efficiency at the site (active seconds per collected page) is too poor: worse than the best
   one's of those that may take it, busy ones too, by more than 1 / `_POOR`. Such work waits for the others.

Assumed here, as the paper leaves it open: a pair with (nearly) no data comes before all others, so
that each is tried once; while that first attempt runs it comes after those that are known. "No longer" holds until the
pair's data have faded to less than half an attempt: then it counts as unknown again. A pair that was
tried and collected nothing has an endless efficiency. Between equals chance decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling import eligibility
from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext, alike, stretch
from tasks.scheduling.decision import AllocationSettings, Assignment, join_names
from tasks.scheduling.ready_queue import ReadyQueue, SubtaskGroup

_POOR = 0.5
"""Assumed: an efficiency worse than the best one's by more than 1 / this is too poor."""

_KNOWN = 0.5
"""Number of attempts (faded) that make a pair known."""

_TRIAL_S = 300.0
"""Seconds after which a first attempt that left no trace (it was given back) is repeated."""


class _Seen(NamedTuple):
    """Observed rates at a site, of the nodes that may take a group. Nodes without data are left out.

    Attributes:
        completion, efficiency_s: by node.
        limit_s: the worst efficiency that is not too poor.
    """

    completion: dict[str, float]
    efficiency_s: dict[str, float]
    limit_s: float

    def poor(self, node: str) -> bool:
        """Return True if a node's efficiency is too poor; a node without data is not."""
        return self.efficiency_s.get(node, 0.0) > self.limit_s

    def why(self, node: str) -> Explanation:
        """Return the observed rates of a node."""
        if node not in self.completion:
            return because(Reason.NOT_KNOWN_HERE)
        reason = Reason.TOO_SLOW if self.poor(node) else Reason.PACE
        return because(reason, completion=self.completion[node], efficiency_s=self.efficiency_s[node])


class Feedback2014(Baseline):
    """The strategy; it remembers which pairs are being tried for the first time, and what it looked up just now."""

    def __init__(self, settings: AllocationSettings) -> None:
        super().__init__(settings)
        self._trials: dict[tuple[str, str], float] = {}
        self._seen: dict[tuple[object, ...], _Seen] = {}

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready, now_s, random = context.ready, context.now_s, context.rng.random
        if self.is_outdated(context, stretch(1.0, ready)):
            self._seen.clear()
            self._trials = {pair: at_s for pair, at_s in self._trials.items() if now_s - at_s < _TRIAL_S}
        for group, able in context.choices():
            site, seen = group.first.site, self._look_up(context, group)
            ranks = {name: (self._rank(site, name, seen), random()) for name in able if not seen.poor(name)}
            if ranks:
                chosen = max(ranks, key=ranks.__getitem__)
                if chosen not in seen.completion:
                    self._trials.setdefault((site, chosen), now_s)
                yield context.give(group, chosen, seen.why, seen.completion.get)

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:
        """Return which free nodes are too slow at its site; `None` if none is."""
        seen = self._seen.get(alike(group), _Seen({}, {}, math.inf))
        slow = [f"{name} {seen.efficiency_s[name]:.3g}" for name in ready.able(group) if seen.poor(name)]
        if not slow:
            return None
        return because(Reason.NODES_TOO_SLOW, rates=join_names(slow), limit_s=seen.limit_s)

    def _look_up(self, context: DecisionContext, group: SubtaskGroup) -> _Seen:
        key, site, ready = alike(group), group.first.site, context.ready
        if key not in self._seen:
            names = eligibility.eligible(group.first, ready.nodes, ready.hosts)
            stats = {name: context.knowledge.pair(site, name, context.now_s) for name in names}
            known = {name: one for name, one in stats.items() if one.attempts >= _KNOWN}
            for name in known:
                self._trials.pop((site, name), None)
            completion = {name: one.completion or 0.0 for name, one in known.items()}
            each_s = {
                n: one.active_s / one.collected if one.collected else math.inf for n, one in known.items()
            }
            self._seen[key] = _Seen(completion, each_s, min(each_s.values(), default=math.inf) / _POOR)
        return self._seen[key]

    def _rank(self, site: str, name: str, seen: _Seen) -> float:
        """Return the completion rate; above all rates before the first attempt, below them while it runs."""
        return seen.completion.get(name, -1.0 if (site, name) in self._trials else 2.0)
