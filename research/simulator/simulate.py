"""A scenario in virtual time: the loop of production, with production's own decisions in it.

Allocation, modification and recall are the functions of `tasks.scheduling` that production runs; they get what the
loop would give them, never the rates. What is simpler than in production: subtasks that wake go on at once, a chunk
does not wait for the one before it, and a node has no buffer beyond its slots.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from time import perf_counter

import numpy as np

from research.simulator.attempts import Events
from research.simulator.execution import Execution
from research.simulator.oracle import Bound, bound
from research.simulator.outcome import Figures, Options, SimulatedRun
from research.simulator.scenario import Scenario
from research.simulator.world import Task, World, chunks, draw_work
from splitter.errors import InputError
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.decision import AllocationStrategy
from tasks.scheduling.modification import defaults, modify
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.statistics import Knowledge

_SWEEP_S = 5.0
"""Allocation runs so often where nothing else makes it run, as in production."""

_TURN_S = 0.25
"""Allocation runs at most so often for changes of hosts and slots alone; where attempts may wait, these never end."""

_SWEEPS_IN_VAIN = 2000
"""So many sweeps that gave nothing to anybody, with nothing else to come: what waits will wait for ever."""


def simulate(
    scenario: Scenario, strategy: str | AllocationStrategy, seed: int, options: Options | None = None
) -> SimulatedRun:
    """Run a scenario in virtual time; the same figures for the same seed, but for the time decisions took.

    Args:
        scenario: validated.
        strategy: name of an allocation strategy, or one that is used once.
        seed: of the work and of all chance; the work is the same for every strategy.
        options: of the run.

    Raises:
        InputError: no strategy of that name.
    """
    options = options or Options()
    name = strategy if isinstance(strategy, str) else type(strategy).__name__
    world = World(scenario)
    engine = _Engine(world, _chosen(strategy, options), draw_work(world, seed), seed, options)
    engine.run()
    figures = engine.figures
    ended_s = scenario.duration_s
    makespan_s = figures.settled_s if engine.settled or ended_s is None else ended_s
    decisions = np.frombuffer(figures.decision_us)
    median, high = np.percentile(decisions, (50, 99)).tolist() if len(decisions) else (0.0, 0.0)
    limit = bound(scenario, seed, figures.manual_pages) if options.oracle else Bound(None, None)
    ratio: float | None = None  # if there is no bound to reach, or the work was never done
    if limit.pages:
        ratio = figures.collected / limit.pages
    elif limit.makespan_s is not None and engine.settled and makespan_s > 0:
        ratio = limit.makespan_s / makespan_s
    return SimulatedRun(
        strategy=name,
        seed=seed,
        pages_collected=figures.collected,
        pages_found=figures.found,
        makespan_s=makespan_s,
        goodput_pages_per_s=figures.collected / makespan_s if makespan_s > 0 else 0.0,
        recalls=figures.recalls,
        manual=figures.manual,
        oracle_pages=limit.pages,
        oracle_makespan_s=limit.makespan_s,
        oracle_ratio=ratio,
        decisions=len(decisions),
        decision_us_p50=median,
        decision_us_p99=high,
        settled=engine.settled,
        attempts=figures.attempts,
        given_up=figures.given_up,
        manual_pages=figures.manual_pages,
        windows=figures.windows(),
    )


def _chosen(strategy: str | AllocationStrategy, options: Options) -> AllocationStrategy:
    if not isinstance(strategy, str):
        return strategy
    if strategy not in ALLOCATION:
        raise InputError(f"there is no strategy {strategy!r}: there is {', '.join(ALLOCATION)}")
    return ALLOCATION[strategy](replace(options.allocating, floors=options.modification))


class _Engine:
    """The event loop of one run: work arrives, allocation decides."""

    def __init__(
        self, world: World, strategy: AllocationStrategy, tasks: list[Task], seed: int, options: Options
    ) -> None:
        scenario = world.scenario
        self._world, self._strategy, self._options = world, strategy, options
        self._tasks, self._arrived = tasks, 0
        self._events = Events()
        self._ready = ReadyQueue()
        self._knowledge = Knowledge()
        self.figures = Figures(world, options)
        self._execution = Execution(
            world, self._events, self._ready, self._knowledge, self.figures, seed, options
        )
        self._deciding = Random(f"allocation {seed}")
        self._usual = defaults(scenario.quota, scenario.budget_s)
        self._swept = False
        self._decided_s = self._turn_s = -_TURN_S
        self._in_vain = 0
        self._unpaid_us = 0.0

    @property
    def settled(self) -> bool:
        """Whether all that will ever arrive is DONE or MANUAL."""
        return not self._execution.open and self._arrived == len(self._tasks)

    def run(self) -> None:
        """Until the scenario's end, or until nothing is left to do."""
        end_s = self._world.scenario.duration_s
        events, ready = self._events, self._ready
        self._execution.set_up()
        if self._tasks:
            events.at(self._tasks[0].arrive_s, self._arrive, None)
        while events and not self.settled:
            if end_s is not None and events.next_s > end_s:
                break
            events.step()
            if ready.waiting and ready.free and self._has_news():
                self._decide()
        if end_s is not None and not self.settled:
            events.now = end_s
            self._execution.cut_off()

    def _has_news(self) -> bool:
        """Whether anything may be decided otherwise than the last time."""
        execution, now = self._execution, self._events.now
        next_s = self._decided_s + _TURN_S
        if not execution.waits or execution.changed or now >= next_s:
            execution.changed = False
            self._decided_s = now
            return True
        if self._turn_s < next_s:
            self._turn_s = next_s
            self._events.at(next_s, self._turn, None)
        return False

    def _turn(self, _: None) -> None:
        """The time has come to decide again."""

    def _arrive(self, _: None) -> None:
        while self._arrived < len(self._tasks):
            task = self._tasks[self._arrived]
            if task.arrive_s > self._events.now:
                self._events.at(task.arrive_s, self._arrive, None)
                return
            self._arrived += 1
            self.figures.found += task.hits
            for place, pages in enumerate(chunks(task.hits, self._world.scenario.work.chunk_pages)):
                self._execution.add(task.site, pages, 0 if place else task.vain)

    def _sweep(self, _: None) -> None:
        self._swept = False

    def _decide(self) -> None:
        now = self._events.now
        self._execution.show()
        begun = perf_counter()
        given = self._strategy.decide(self._ready, self._knowledge, now, self._deciding)
        took_us = (perf_counter() - begun) * 1e6 + self._unpaid_us
        if given:
            self.figures.decision_us.extend([took_us / len(given)] * len(given))
            took_us = 0.0
            self._in_vain = 0
        self._unpaid_us = took_us
        for assignment in given:
            limits = self._usual
            if self._options.modification:
                scenario, subtask = self._world.scenario, assignment.subtask
                stats = self._knowledge.pair(subtask.site, assignment.node, now)
                limits = modify(stats, subtask.left, scenario.quota, scenario.budget_s)
            self._execution.lease(assignment.subtask, assignment.node, limits, assignment.floor)
        if self._ready.waiting and self._ready.free and not self._swept:
            self._in_vain += not given
            if self._events or self._in_vain < _SWEEPS_IN_VAIN:
                self._swept = True
                self._events.at(now + _SWEEP_S, self._sweep, None)
