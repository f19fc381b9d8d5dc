"""The `feedback2014` allocation: the literal rule of the 2014 product paper, to compare with.

In queue order, each subtask goes, among the nodes that can take it, to the one with

1. its kind (a rule of eligibility);
2. the highest completion rate at its site (collected / offered; the paper: / found), corrected as attempts end;
3. but never to one whose efficiency at the site (active seconds per collected page) is too poor: worse than the best
   one's of those that may take it, busy ones too, by more than 1 / `_POOR`. Such work waits for the others.

What the paper leaves open and is assumed here: a pair of which (nearly) nothing is known comes before all others, so
that each is tried once; while that first attempt runs it comes after those that are known. "No longer" holds until the
pair's data have faded to less than half an attempt: then it counts as unknown again. A pair that was
tried and collected nothing has an endless efficiency. Between equals chance decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from tasks.scheduling import eligibility
from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue

_POOR = 0.5
"""Assumed: an efficiency worse than the best one's by more than 1 / this is too poor."""

_KNOWN = 0.5
"""Attempts (faded) from which a pair counts as known."""

_TRIAL_S = 300.0
"""After so long a first attempt that left no trace (it was given back) is made again."""

_FRESH_S = 1.0
"""What is known is looked up again after so long ..."""

_MANY_PAIRS = 10_000
"""... or later in proportion, where there are more pairs than this: the cost grows with their number."""


class _Pair(NamedTuple):
    """What was seen of a site on a node; `completion` is None where it is not known."""

    completion: float | None = None
    efficiency_s: float = 0.0


class Feedback2014(Baseline):
    """The strategy; it remembers which pairs are being tried for the first time, and what it looked up just now."""

    def __init__(self, settings: AllocationSettings) -> None:
        super().__init__(settings)
        self._trials: dict[tuple[str, str], float] = {}
        self._pairs: dict[tuple[str, str], _Pair] = {}
        self._limits_s: dict[tuple[object, ...], float] = {}
        self._looked_up = (-math.inf, -1)

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        self._refresh(context)
        for group in context.groups():
            site, able = group.first.site, context.ready.able(group)
            limit_s = self._limit_s(context, group) if able else 0.0
            ranks = {
                name: self._rank(site, name, pair)
                for name in able
                if (pair := self._pair(context, site, name)).efficiency_s <= limit_s
            }
            if not ranks:
                continue
            chosen = max(ranks, key=lambda name: (ranks[name], context.rng.random()))
            if self._pairs[site, chosen].completion is None:
                self._trials.setdefault((site, chosen), context.now_s)
            why = partial(self._why, context, site, limit_s)
            yield context.give(group, chosen, why, partial(self._completion, context, site))

    def why_held_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Which free nodes are too poor at its site."""
        site, limit_s = group.first.site, self._limits_s.get(_alike(group), math.inf)
        seen = {name: self._pairs.get((site, name), _Pair()).efficiency_s for name in ready.able(group)}
        poor = [f"{each_s:.3g} on {name}" for name, each_s in seen.items() if each_s > limit_s]
        if not poor:
            return None
        return f"too poor: {', '.join(poor[:5])} seconds per page, the best takes {limit_s * _POOR:.3g}"

    def _refresh(self, context: DecisionContext) -> None:
        """Forget what was looked up, once it may have changed."""
        last_s, version = self._looked_up
        pairs = len(context.knowledge.sites) * len(context.knowledge.nodes)
        lasts_s = _FRESH_S * max(1.0, pairs / _MANY_PAIRS)
        if 0 <= context.now_s - last_s < lasts_s and version == context.ready.version:
            return
        self._looked_up = context.now_s, context.ready.version
        self._pairs.clear()
        self._limits_s.clear()
        self._trials = {pair: at_s for pair, at_s in self._trials.items() if context.now_s - at_s < _TRIAL_S}

    def _rank(self, site: str, name: str, pair: _Pair) -> tuple[int, float]:
        if pair.completion is not None:
            return 1, pair.completion
        return (0 if (site, name) in self._trials else 2), 0.0

    def _limit_s(self, context: DecisionContext, group: Group) -> float:
        """The worst efficiency that is not too poor for a group."""
        key = _alike(group)
        if key not in self._limits_s:
            names = eligibility.eligible(group.first, context.ready.nodes, context.ready.hosts)
            known = [self._pair(context, group.first.site, name) for name in names]
            best_s = min((one.efficiency_s for one in known if one.completion is not None), default=math.inf)
            self._limits_s[key] = best_s / _POOR
        return self._limits_s[key]

    def _pair(self, context: DecisionContext, site: str, name: str) -> _Pair:
        pair = self._pairs.get((site, name))
        if pair is None:
            pair, stats = _Pair(), context.knowledge.pair(site, name, context.now_s)
            if stats.attempts >= _KNOWN:
                each_s = math.inf if stats.efficiency_s is None else stats.efficiency_s
                pair = _Pair(stats.completion or 0.0, each_s)
                self._trials.pop((site, name), None)
            self._pairs[site, name] = pair
        return pair

    def _completion(self, context: DecisionContext, site: str, name: str) -> float | None:
        return self._pair(context, site, name).completion

    def _why(self, context: DecisionContext, site: str, limit_s: float, name: str, chosen: bool) -> str:
        pair = self._pair(context, site, name)
        if pair.completion is None:
            return "chosen: not tried here yet" if chosen else "not known here yet"
        figures = f"completion rate {pair.completion:.3g}, {pair.efficiency_s:.3g} s per page"
        if pair.efficiency_s > limit_s:
            return f"too poor: {figures}"
        return f"chosen: {figures}" if chosen else figures


def _alike(group: Group) -> tuple[object, ...]:
    wanted = group.first
    return wanted.site, wanted.kind, wanted.hosts, wanted.failed_on, wanted.assigned
