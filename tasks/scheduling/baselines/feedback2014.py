"""The `feedback2014` allocation: the literal rule of the 2014 product paper, to compare with.

In queue order, each subtask goes, among the nodes that may run it and have a free slot, to the one with

1. its kind (a rule of the ready queue);
2. the highest completion rate at its site (collected / offered; the paper: / found), corrected as attempts end;
3. but never to one whose efficiency at the site (active seconds per collected page) is too poor: worse than the best
   one's of those that may run it, busy ones too, by more than 1 / `poor_fraction`. Such work waits for the others.

What the paper leaves open and is assumed here: a pair of which (nearly) nothing is known comes before all others, so
that each is tried once; while that first attempt runs it comes after those that are known. "No longer" holds until the
pair's data have faded to less than half an attempt: then it counts as unknown again. A pair that was
tried and collected nothing has an endless efficiency. Between equals chance decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tasks.domain.pair_stats import PairStats
from tasks.scheduling.baselines.dispatch import Choice, DecisionContext, push
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge, Sums

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

    completion: float | None
    efficiency_s: float


_UNKNOWN = _Pair(None, 0.0)


class Feedback2014:
    """The strategy; it remembers which pairs are being tried for the first time, and what it looked up just now."""

    split = None

    def __init__(self, settings: AllocationSettings) -> None:
        self._poor_fraction = settings.poor_fraction
        self._trials: dict[tuple[str, str], float] = {}
        self._sums: Sums | None = None
        self._pairs: dict[str, dict[str, _Pair]] = {}
        self._limits_s: dict[tuple[object, ...], float] = {}
        self._looked_up: tuple[float, int] | None = None

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        context = DecisionContext(ready, knowledge, now_s, rng, tell)
        self._refresh(context)
        return push(context, lambda group: self._choose(context, group))

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Which free nodes are too poor at its site."""
        limit_s = self._limits_s.get(_alike(group), math.inf)
        seen = self._pairs.get(group.first.site, {})
        poor = [
            f"{seen[name].efficiency_s:.3g} on {name}"
            for name in ready.free
            if name in seen and seen[name].efficiency_s > limit_s and ready.takes(group, name)
        ]
        if not poor:
            return None
        best_s = limit_s * self._poor_fraction
        return f"too poor: {', '.join(poor[:5])} seconds per page, the best takes {best_s:.3g}"

    def _refresh(self, context: DecisionContext) -> None:
        """Forget what was looked up, once it may have changed."""
        last, seen = self._looked_up or (-math.inf, -1)
        pairs = len(context.knowledge.sites) * len(context.knowledge.nodes)
        lasts_s = _FRESH_S * max(1.0, pairs / _MANY_PAIRS)
        if 0 <= context.now_s - last < lasts_s and seen == context.ready.version:
            return
        self._looked_up = context.now_s, context.ready.version
        self._sums = None
        self._pairs.clear()
        self._limits_s.clear()
        self._trials = {pair: at_s for pair, at_s in self._trials.items() if context.now_s - at_s < _TRIAL_S}

    def _choose(self, context: DecisionContext, group: Group) -> Choice | None:
        site, able = group.first.site, context.able(group)
        if not able:
            return None
        limit_s = self._limit_s(context, group)
        good = [name for name in able if self._pair(context, site, name).efficiency_s <= limit_s]
        if not good:
            return None
        chosen = max(good, key=lambda name: (self._rank(context, site, name), context.rng.random()))
        if self._pair(context, site, chosen).completion is None:
            self._trials.setdefault((site, chosen), context.now_s)
        return Choice(
            chosen,
            self._reason(context, site, chosen, limit_s),
            lambda name: self._pair(context, site, name).completion,
        )

    def _rank(self, context: DecisionContext, site: str, name: str) -> tuple[int, float]:
        rate = self._pair(context, site, name).completion
        if rate is not None:
            return 1, rate
        return (0 if (site, name) in self._trials else 2), 0.0

    def _limit_s(self, context: DecisionContext, group: Group) -> float:
        """The worst efficiency that is not too poor for a group."""
        key = _alike(group)
        limit_s = self._limits_s.get(key)
        if limit_s is None:
            able = context.ready.eligible(group)
            known = [self._pair(context, group.first.site, name) for name in able]
            best_s = min((one.efficiency_s for one in known if one.completion is not None), default=math.inf)
            limit_s = self._limits_s[key] = (
                best_s / self._poor_fraction if self._poor_fraction > 0 else math.inf
            )
        return limit_s

    def _pair(self, context: DecisionContext, site: str, name: str) -> _Pair:
        of_site = self._pairs.get(site)
        if of_site is None:
            of_site = self._pairs[site] = self._of_site(context, site)
        return of_site.get(name, _UNKNOWN)

    def _of_site(self, context: DecisionContext, site: str) -> dict[str, _Pair]:
        knowledge = context.knowledge
        if self._sums is None:
            self._sums = knowledge.sums(context.now_s)
        place = knowledge.sites.get(site, len(self._sums))
        if place >= len(self._sums):  # known since the others were looked up
            return {}
        found = {
            name: _seen(PairStats.of(sums))
            for name, sums in zip(knowledge.nodes, self._sums[place].tolist(), strict=False)
        }
        for name, pair in found.items():
            if pair.completion is not None:
                self._trials.pop((site, name), None)
        return found

    def _reason(
        self, context: DecisionContext, site: str, chosen: str, limit_s: float
    ) -> Callable[[str], str]:
        def reason(name: str) -> str:
            pair = self._pair(context, site, name)
            if pair.completion is None:
                return "chosen: not tried here yet" if name == chosen else "not known here yet"
            told = f"completion rate {pair.completion:.3g}, {pair.efficiency_s:.3g} s per page"
            if pair.efficiency_s > limit_s:
                return f"too poor: {told}"
            return f"chosen: {told}" if name == chosen else told

        return reason


def _seen(stats: PairStats) -> _Pair:
    if stats.attempts < _KNOWN:
        return _UNKNOWN
    each_s = stats.efficiency_s
    return _Pair(stats.completion or 0.0, math.inf if each_s is None else each_s)


def _alike(group: Group) -> tuple[object, ...]:
    wanted = group.first
    return wanted.site, wanted.kind, wanted.hosts, wanted.failed_on, wanted.assigned
