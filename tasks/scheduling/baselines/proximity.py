"""The `proximity` allocation: a site is crawled by one of the nodes nearest to it (2010 paper, GNP).

For each crawl one of the `nearest` nodes with the least estimated delay to the site is drawn. A hash of the subtask's
identity stands for the random number, so the draw stays the same while the subtask waits. It waits for the node drawn,
even while others are idle. Nodes that may not take it (dead, refused by a host, failed it, of another kind) are left
out before the nearest are counted, so the next nearest takes their place. Nodes of unknown delay come after all others,
in an order of their own for each site. If no delays are known at all (`distances` is None) it is the `random`
allocation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from itertools import islice
from zlib import crc32

from tasks.domain.facts import SubtaskFacts
from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling.baselines.consistent_hash import point
from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext, give_to_owners
from tasks.scheduling.baselines.simple import RandomNode
from tasks.scheduling.decision import AllocationSettings, AllocationStrategy, Assignment, Distances
from tasks.scheduling.ready_queue import ReadyQueue, SubtaskGroup


def proximity(settings: AllocationSettings) -> AllocationStrategy:
    """The strategy for these settings."""
    return RandomNode(settings) if settings.distances is None else Nearest(settings, settings.distances)


class Nearest(Baseline):
    """The strategy; it remembers delays by site as long as nodes stay."""

    def __init__(self, settings: AllocationSettings, distances: Distances) -> None:
        super().__init__(settings)
        self._distances = distances
        self._delays: dict[str, dict[str, float]] = {}
        self._names: list[str] = []

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready = context.ready
        return give_to_owners(context, partial(self._owner, ready), partial(self._why, ready))

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:
        """Return which near nodes they wait for; `None` if there are none."""
        site = group.first.site
        owners = dict.fromkeys(self._owner(ready, group, one) for one in group.queue)
        near = [f"{name} {self._format_delay(ready, site, name)}" for name in owners if name is not None]
        return because(Reason.WAITS_FOR_NEAR, site=site, nodes=", ".join(near)) if near else None

    def _owner(self, ready: ReadyQueue, group: SubtaskGroup, subtask: SubtaskFacts) -> str | None:
        near = self._near(ready, group)
        draw = crc32(f"{subtask.site}/{subtask.id}".encode()) % max(1, self._settings.nearest)
        return near[draw % len(near)] if near else None

    def _near(self, ready: ReadyQueue, group: SubtaskGroup) -> list[str]:
        """The nearest nodes that may take a group."""
        may = (name for name in self._rank_delays(ready, group.first.site) if ready.may_take(group, name))
        return list(islice(may, max(1, self._settings.nearest)))

    def _rank_delays(self, ready: ReadyQueue, site: str) -> dict[str, float]:
        """Delays in milliseconds, nearest first."""
        if self._names != list(ready.nodes):
            self._names = list(ready.nodes)
            self._delays.clear()
        if site not in self._delays:
            found = self._distances.ms([site], self._names)[0].tolist()
            ordered = sorted(zip(found, self._names, strict=True), key=partial(_rank, site))
            self._delays[site] = {name: delay for delay, name in ordered}
        return self._delays[site]

    def _format_delay(self, ready: ReadyQueue, site: str, name: str) -> str:
        delay_ms = self._rank_delays(ready, site)[name]
        return "(?)" if math.isnan(delay_ms) else f"({delay_ms:.3g} ms)"

    def _why(self, ready: ReadyQueue, group: SubtaskGroup, name: str) -> Explanation:
        near = self._near(ready, group)
        delay_ms = self._rank_delays(ready, group.first.site)[name]
        if math.isnan(delay_ms):
            return because(Reason.DELAY_UNKNOWN)
        if name in near:
            return because(Reason.NEAR, nodes=len(near), delay_ms=delay_ms)
        return because(Reason.FAR, delay_ms=delay_ms)


def _rank(site: str, delay_of: tuple[float, str]) -> tuple[float, int]:
    delay, name = delay_of
    return (math.inf if math.isnan(delay) else delay), point(f"{site}/{name}")
