"""Options of a simulated run, what is counted while it runs, and its figures."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

from research.simulator.attempts import Attempt, Subtask
from research.simulator.world import World
from tasks.domain.pair_stats import AttemptResult, PairStats
from tasks.scheduling.decision import AllocationSettings

WINDOW_S = 300.0
"""Length of the windows that figures over time are counted in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options that may differ from one run of a scenario to the next.

    Attributes:
        modification: False: every attempt gets the default quota and budget, and none ends early.
        recall: False: every failed subtask goes to a person at once.
        oracle: work the bound out, too.
        timeline: keep sums over time of every pair.
        allocating: settings of allocation.
    """

    modification: bool = True
    recall: bool = True
    oracle: bool = True
    timeline: bool = False
    allocating: AllocationSettings = field(default_factory=AllocationSettings)


@dataclass(frozen=True, slots=True)
class Window:
    """Sums over a pair's attempts that ended in the window from `from_s` on."""

    from_s: float
    site: str
    node: str
    stats: PairStats


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """A run's figures.

    Attributes:
        pages_collected, pages_found: hits stored; hits of all tasks that arrived.
        makespan_s: when the last subtask was DONE or MANUAL; else the end of the scenario.
        settled: no subtask was left open.
        recalls, manual: subtasks that were taken back, counted each time; that ended in MANUAL.
        manual_pages: hits left in MANUAL by site; given_up: hits tried in vain as often as allowed.
        attempts: closed.
        oracle_pages, oracle_makespan_s: the bound; None where it was not asked for, or is the other one.
        oracle_ratio: 1 = as good as the bound.
        decision_us_p50, decision_us_p99: microseconds a decision took (no part of what a seed determines).
    """

    strategy: str
    seed: int
    pages_collected: int
    pages_found: int
    makespan_s: float
    goodput_pages_per_s: float
    recalls: int
    manual: int
    oracle_pages: float | None
    oracle_makespan_s: float | None
    oracle_ratio: float | None
    decisions: int
    decision_us_p50: float
    decision_us_p99: float
    settled: bool
    attempts: int
    given_up: int
    manual_pages: Mapping[str, int]
    windows: tuple[Window, ...]

    @property
    def pairs(self) -> dict[tuple[str, str], PairStats]:
        """Sums over the attempts of each (site, node), where a timeline was kept."""
        sums: dict[tuple[str, str], PairStats] = {}
        for one in self.windows:
            sums[one.site, one.node] = sums.get((one.site, one.node), PairStats()) + one.stats
        return sums


class Figures:
    """Counters of a run while it goes on.

    Attributes:
        settled_s: when the last subtask was settled.
    """

    def __init__(self, world: World, options: Options) -> None:
        self._world, self._options = world, options
        self.found = self.collected = self.given_up = self.recalls = self.manual = self.attempts = 0
        self.settled_s = 0.0
        self.manual_pages: dict[str, int] = {}
        self.decision_us = array("d")
        self._windows: dict[tuple[int, int, int], PairStats] = {}

    def close(self, now_s: float, attempt: Attempt, result: AttemptResult) -> None:
        """An attempt ended, or was cut off by the scenario's end."""
        self.collected += result.collected
        self.given_up += attempt.given_up
        self.attempts += 1
        if self._options.timeline:
            window = int(now_s / WINDOW_S), attempt.subtask.site, attempt.node
            self._windows[window] = self._windows.get(window, PairStats()).with_attempt(result)

    def leave_to_a_person(self, subtask: Subtask) -> None:
        """A subtask ended in MANUAL."""
        self.manual += 1
        site = self._world.sites[subtask.site].name
        self.manual_pages[site] = self.manual_pages.get(site, 0) + sum(subtask.todo)

    def windows(self) -> tuple[Window, ...]:
        """Rows kept for the timeline, in the order of time."""
        sites, nodes = self._world.sites, self._world.nodes
        return tuple(
            Window(at * WINDOW_S, sites[site].name, nodes[node].name, stats)
            for (at, site, node), stats in sorted(self._windows.items())
        )
