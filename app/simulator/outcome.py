"""What a simulated run is asked to do, and what it came to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from tasks.domain.pair_stats import PairStats
from tasks.scheduling.decision import AllocationSettings
from tasks.scheduling.modification import ModificationSettings
from tasks.scheduling.recall import RecallSettings


@dataclass(frozen=True, slots=True)
class Options:
    """What may be different from one run of a scenario to the next.

    Attributes:
        modification: False: every attempt gets the default quota and budget.
        recall: False: every failed subtask goes to a person at once.
        oracle: work the bound out, too.
        timeline: keep completion over time of every pair.
        window_s: length of the windows that figures over time are counted in.
        clock: measures decisions; seconds.
        allocating, modifying, recalling: settings of the strategies, as production has them.
    """

    modification: bool = True
    recall: bool = True
    oracle: bool = True
    timeline: bool = False
    window_s: float = 300.0
    clock: Callable[[], float] = perf_counter
    allocating: AllocationSettings = field(default_factory=AllocationSettings)
    modifying: ModificationSettings = field(default_factory=ModificationSettings)
    recalling: RecallSettings = field(default_factory=RecallSettings)


@dataclass(frozen=True, slots=True)
class Window:
    """A pair's attempts that ended within a window; `from_s` is its begin."""

    from_s: float
    site: str
    node: str
    stats: PairStats


@dataclass(frozen=True, slots=True)
class Outcome:
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
        pages_over_time: pages of attempts that ended in each window, from 0 on.
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
    pairs: Mapping[tuple[str, str], PairStats]
    window_s: float
    pages_over_time: tuple[int, ...]
    windows: tuple[Window, ...]
