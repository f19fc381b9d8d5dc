"""The `proximity` allocation: a site is crawled by one of the nodes nearest to it (2010 paper, GNP).

For each crawl one of the `nearest` nodes with the least estimated delay to the site is drawn. The draw is made once,
when the subtask begins to wait: a hash of its identity stands for a random number, all equally likely, so that no
decision has to look at all that waits. It waits for the node drawn, even while others are idle. Nodes that may not
run it (dead, refused by a host, failed it, of another kind) are left out before the nearest are counted, so the next
nearest takes their place. Nodes of unknown delay come after all others, in an order of their own for each site.
Where no delays are known at all (`distances` is None) it is the `random` allocation.
"""

from __future__ import annotations

import math
from itertools import islice
from random import Random
from zlib import crc32

from tasks.domain.views import SubtaskView
from tasks.scheduling.baselines.consistent_hash import point
from tasks.scheduling.baselines.dispatch import Choice, DecisionContext
from tasks.scheduling.baselines.owning import Lines
from tasks.scheduling.baselines.random_node import Chance
from tasks.scheduling.decision import AllocationSettings, AllocationStrategy, Assignment, Distances
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge


def proximity(settings: AllocationSettings) -> AllocationStrategy:
    """The strategy for these settings."""
    return Chance(settings) if settings.distances is None else Nearest(settings.distances, settings.nearest)


class Nearest:
    """The strategy; it remembers delays by site as long as nodes stay, and who waits for whom."""

    def __init__(self, distances: Distances, nearest: int) -> None:
        self._distances = distances
        self._nearest = max(1, nearest)
        self._lines = Lines(self._owner)
        self._seen: tuple[ReadyQueue, int] | None = None
        self._names: list[str] = []
        self._delays: dict[str, dict[str, float]] = {}

    def split(self, subtask: SubtaskView) -> int:
        """The draw: which of the nearest."""
        return crc32(f"{subtask.site}/{subtask.id}".encode()) % self._nearest

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        return self._lines.give_away(
            DecisionContext(ready, knowledge, now_s, rng, tell),
            lambda group, name: self._choice(ready, group, name),
        )

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Which near node it waits for."""
        name = self._owner(ready, group)
        if name is None:
            return None
        return f"waits for {name}, drawn from the nodes nearest to {group.first.site} ({self._far(ready, group, name)})"

    def _owner(self, ready: ReadyQueue, group: Group) -> str | None:
        near = self._near(ready, group)
        return near[group.part % len(near)] if near else None

    def _near(self, ready: ReadyQueue, group: Group) -> list[str]:
        """The nearest nodes that may run a group."""
        may = (name for name in self._by_delay(ready, group.first.site) if ready.may(group, name))
        return list(islice(may, self._nearest))

    def _by_delay(self, ready: ReadyQueue, site: str) -> dict[str, float]:
        """Delays in milliseconds, nearest first."""
        if self._seen != (ready, ready.version):
            self._seen = ready, ready.version
            if self._names != list(ready.nodes):
                self._names = list(ready.nodes)
                self._delays.clear()
        delays = self._delays.get(site)
        if delays is None:
            names = self._names
            found = dict(zip(names, self._distances.ms([site], names)[0].tolist(), strict=True))
            order = sorted(names, key=lambda name: _rank(found[name], site, name))
            delays = self._delays[site] = {name: found[name] for name in order}
        return delays

    def _far(self, ready: ReadyQueue, group: Group, name: str) -> str:
        delay = self._by_delay(ready, group.first.site)[name]
        return "delay unknown" if math.isnan(delay) else f"{delay:.3g} ms"

    def _choice(self, ready: ReadyQueue, group: Group, chosen: str) -> Choice:
        def reason(name: str) -> str:
            near = self._near(ready, group)
            far = self._far(ready, group, name)
            if name == chosen:
                return f"drawn from the {len(near)} nearest: {far}"
            return f"might have been drawn: {far}" if name in near else f"not among the nearest: {far}"

        return Choice(chosen, reason)


def _rank(delay: float, site: str, name: str) -> tuple[float, int]:
    return (math.inf if math.isnan(delay) else delay), point(f"{site}/{name}")
