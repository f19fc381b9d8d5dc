"""The bound: no policy can expect to do better, even one that knows all rates (docs/oracle.md has the proof).

A linear program over pages started per (site, node, stretch of constant rates, number of earlier tries). Every row
holds for every policy in expectation, so the optimum bounds all of them: from above the pages collected by a fixed
end, from below the makespan of work that is done to its end. Nodes that differ in nothing are one column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from research.simulator.linear import Infeasible, Program, solve
from research.simulator.pieces import Pairs, Pieces, pieces_of
from research.simulator.scenario import Scenario
from research.simulator.world import Task, World, chunks, draw_work

_TANGENTS = 6
"""Lines that bound how many pages so many subtasks can hold ..."""

_DETAILED = 100
"""... of each of so many sites; of more, one line has to do, so that the program stays small."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound that no policy can expect to beat.

    Attributes:
        pages: most pages collected by the end; None where the work is done to its end.
        makespan_s: least makespan; None where there is an end.
    """

    pages: float | None
    makespan_s: float | None


def bound(scenario: Scenario, seed: int, manual_pages: Mapping[str, int] | None = None) -> Bound:
    """The bound for the work this seed draws.

    Args:
        scenario: validated; what was worked out is kept with it.
        seed: of the run.
        manual_pages: by site, hits that the run left to a person: a makespan is that of the rest.
    """
    left_out = manual_pages if scenario.until_done and manual_pages else {}
    key = ("bound", seed, tuple(sorted(left_out.items())))
    if key not in scenario.kept:
        world = World(scenario)
        scenario.kept[key] = _Sums(
            world, [task for task in draw_work(world, seed) if task.hits], left_out
        ).bound()
    found: Bound = scenario.kept[key]
    return found


@dataclass(frozen=True, slots=True)
class _Demand:
    """The work of a site.

    Attributes:
        hits: by the run's rules, those a person got left out.
        sizes: of its subtasks, the largest first.
        arrivals: (moment, hits that are there before it), for each moment of the grid in between.
    """

    hits: float
    sizes: Floats
    first_s: float
    arrivals: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class _Spent:
    """Bounds and cost of the time spent in each interval before all is done.

    Attributes:
        surely: of a program that holds in every case, not only in expectation.
    """

    lower: Floats
    upper: Floats
    cost: Floats
    surely: bool

    @classmethod
    def at_least(cls, length_s: Floats, surely_s: float) -> _Spent:
        """Expected times, where the work is never done before `surely_s`."""
        begins = np.concatenate([[0.0], np.cumsum(length_s[:-1])])
        lower = np.clip(surely_s - begins, 0.0, length_s)
        return cls(lower, length_s, np.ones(len(length_s)), surely=False)

    @classmethod
    def up_to(cls, length_s: Floats, last: int) -> _Spent:
        """All of the intervals before the last, which is to be short."""
        at = np.arange(len(length_s))
        return cls(np.zeros(len(at)), np.where(at <= last, length_s, 0.0), (at == last) * 1.0, surely=True)


def _demand(tasks: list[Task], chunk_pages: int, left_out: int, checkpoints: list[float]) -> _Demand:
    sizes = np.array([size for task in tasks for size in chunks(task.hits, chunk_pages)], dtype=np.float64)
    times = np.array([task.arrive_s for task in tasks])
    hits = np.array([task.hits for task in tasks], dtype=np.float64)
    before = tuple(
        (t, float(hits[times < t].sum())) for t in checkpoints if (times >= t).any() and (times < t).any()
    )
    return _Demand(max(0.0, float(hits.sum()) - left_out), -np.sort(-sizes), float(times.min()), before)


class _Sums:
    """The program of one scenario and its work."""

    def __init__(self, world: World, tasks: list[Task], left_out: Mapping[str, int]) -> None:
        self._world, self._work = world, world.scenario.work
        self._until_done = world.scenario.until_done
        by_site: dict[int, list[Task]] = {}
        for task in tasks:
            by_site.setdefault(task.site, []).append(task)
        checkpoints = _checkpoints(tasks)
        self._left_out = {n for n, site in enumerate(world.sites) if left_out.get(site.name)}
        self._demand = {
            site: _demand(of, self._work.chunk_pages, left_out.get(world.sites[site].name, 0), checkpoints)
            for site, of in by_site.items()
        }
        first = {site: demand.first_s for site, demand in self._demand.items()}
        self._pieces: Pieces = pieces_of(world, first, checkpoints)
        self._largest = np.ones(len(world.sites))
        for site, demand in self._demand.items():
            self._largest[site] = max(1.0, min(world.scenario.quota.max, demand.sizes[0]))
        self._pairs: Pairs = self._pieces.pairs
        self._slack = self._pieces.slack_s(self._largest)
        overheads = np.array([site.spec.overhead_s for site in world.sites])
        self._overhead_s = overheads[self._pairs.site]

    def bound(self) -> Bound:
        """Solve it."""
        if not len(self._pairs.site):
            return Bound(None if self._until_done else 0.0, 0.0 if self._until_done else None)
        if not self._until_done:
            return Bound(-solve(self._program(self._work.tries_per_page, None)), None)
        surely = self._surely_s()
        spent = _Spent.at_least(self._pieces.interval_s, surely)
        value = solve(self._program(self._work.tries_per_page, spent))
        return Bound(None, max(value, surely, self._longest_path_s()))

    def _surely_s(self) -> float:
        """A time before which the work is done in no case, however lucky: every page is tried once, nothing hangs."""
        length = self._pieces.interval_s
        if len(length) < 2:
            return 0.0
        low, high = 0, len(length) - 1  # the interval in which it might be done at the earliest
        earliest = 0.0
        while low <= high:
            middle = (low + high) // 2
            try:
                last_s = solve(self._program(1, _Spent.up_to(length, middle)))
                earliest = float(length[:middle].sum()) + last_s
                high = middle - 1
            except Infeasible:
                low = middle + 1
        return earliest

    def _program(self, tries: int, spent: _Spent | None) -> Program:
        """Rows and columns; docs/oracle.md has a paragraph for each kind, by the names used here.

        Args:
            tries: a page may have; 1 with `spent.surely`: what must be paid in every case.
            spent: time in each interval before the work is done; None: it goes on to the end.
        """
        pairs, pieces = self._pairs, self._pieces
        surely = spent is not None and spent.surely
        per_attempt = self._overhead_s if surely else pairs.per_attempt_s
        program = Program(tries, len(pairs.site))
        per_page = pairs.seconds_per_page + per_attempt / self._largest[pairs.site]
        time = program.rows(
            pieces.count, self._slack + (pieces.slots * pieces.length_s if spent is None else 0.0)
        )
        for of_tries in range(tries):
            program.enter(of_tries, time + pairs.piece, per_page)
        program.enter(tries, time + pairs.piece, per_attempt)
        crossing = pieces.crossing
        moved = program.columns(len(crossing), upper=pieces.spill_s[crossing])
        program.set(time + crossing, moved, -1.0)
        program.set(time + crossing + 1, moved, 1.0)
        interval = self._until(program, time, spent) if spent is not None else None
        self._site_rows(program)
        self._limit_rows(program, interval)
        if spent is None:
            program.gain = pairs.completion
        return program

    def _until(self, program: Program, time: int, given: _Spent) -> NDArray[np.int64]:
        """Expected time spent in each interval before the work is done: to be minimised."""
        pieces, length = self._pieces, self._pieces.interval_s
        spent = program.columns(len(length), lower=given.lower, upper=given.upper, cost=given.cost)
        program.set(time + np.arange(pieces.count), spent[pieces.interval], -pieces.slots)
        bounded = np.flatnonzero(np.isfinite(length[1:])) + 1
        if len(bounded):  # who is still at work later was at work before: shares of intervals fall
            falls = program.rows(len(bounded), 0.0) + np.arange(len(bounded))
            program.set(falls, spent[bounded], 1.0 / length[bounded])
            program.set(falls, spent[bounded - 1], -1.0 / length[bounded - 1])
        return spent

    def _site_rows(self, program: Program) -> None:
        pairs, tries = self._pairs, program.tries
        crawled = np.unique(pairs.site)
        count, place = len(crawled), np.full(len(self._world.sites), -1)
        place[crawled] = np.arange(count)
        at = place[pairs.site]
        demands = [self._demand[site] for site in crawled.tolist()]
        hits = np.array([demand.hits for demand in demands])
        # tries: a page is tried the next time only where it was missed
        for of_tries in range(tries):
            row = program.rows(count, hits if of_tries == 0 else 0.0, equal=self._until_done) + at
            program.enter(of_tries, row, 1.0)
            if of_tries:
                program.enter(of_tries - 1, row, pairs.completion - 1.0)
        # attempts: one per subtask and number of tries, at least
        needed = [
            self._attempts_needed(site, demand, tries) if self._until_done else 0.0
            for site, demand in zip(crawled.tolist(), demands, strict=True)
        ]
        attempts = program.rows(count, -np.array(needed))
        for of_tries in range(tries):
            program.enter(of_tries, attempts + at, -1.0 / self._largest[pairs.site])
        program.enter(tries, attempts + at, -1.0)
        if not self._until_done:
            shares = np.linspace(0.0, 1.0, _TANGENTS if count <= _DETAILED else 1)
            for of_tries in range(tries):
                touched = program.columns(count, upper=np.array([float(len(d.sizes)) for d in demands]))
                program.set(attempts + np.arange(count), touched, 1.0)
                for slopes, heights in _tangents(demands, shares):
                    below = program.rows(count, heights)
                    program.enter(of_tries, below + at, 1.0)
                    program.set(below + np.arange(count), touched, -slopes)
        # arrivals: what is not there yet cannot be tried
        for site, demand in zip(crawled.tolist(), demands, strict=True):
            for moment, there in demand.arrivals:
                early = np.flatnonzero((pairs.site == site) & (self._pieces.end_s[pairs.piece] <= moment))
                program.enter(0, np.full(len(early), program.rows(1, there)), 1.0, early)

    def _limit_rows(self, program: Program, spent: NDArray[np.int64] | None) -> None:
        """Send times, in total and by address; blocks."""
        pairs, pieces, tries = self._pairs, self._pieces, program.tries
        for site, one in enumerate(self._world.sites):
            total = one.spec.total_per_s
            if total is None:
                continue
            for interval in np.unique(pieces.interval[pairs.piece[pairs.site == site]]).tolist():
                of = np.flatnonzero((pairs.site == site) & (pieces.interval[pairs.piece] == interval))
                given_s = 0.0 if spent is not None else float(pieces.interval_s[interval])
                row = program.rows(1, total * given_s + 1.0)
                for of_tries in range(tries):
                    program.enter(of_tries, np.full(len(of), row), 1.0, of)
                if spent is not None:
                    program.set(np.array([row]), spent[[interval]], -total)
        capped = np.flatnonzero(np.isfinite(pairs.most_per_s))
        if not len(capped):
            return
        nodes, rate = pieces.nodes[pairs.piece[capped]], pairs.most_per_s[capped]
        length = np.zeros(len(capped)) if spent is not None else pieces.length_s[pairs.piece[capped]]
        rows = program.rows(len(capped), nodes * (rate * length + pairs.most_at_once[capped]))
        rows_of = rows + np.arange(len(capped))
        for of_tries in range(tries):
            program.enter(of_tries, rows_of, 1.0, capped)
        if spent is not None:
            program.set(rows_of, spent[pieces.interval[pairs.piece[capped]]], -nodes * rate)

    def _best_chance(self, site: int) -> float:
        return float(self._pairs.completion[self._pairs.site == site].max(initial=0.0))

    def _attempts_needed(self, site: int, demand: _Demand, tries: int) -> float:
        """Expected attempts of a site's subtasks at least: as many as the most tries one of its pages needs."""
        if site in self._left_out:
            return 0.0
        missed = 1.0 - self._best_chance(site)
        return float(sum((1.0 - (1.0 - missed**k) ** demand.sizes).sum() for k in range(tries)))

    def _longest_path_s(self) -> float:
        """A subtask's pages are tried one after the other, wherever: the longest of them bounds the makespan."""
        longest = 0.0
        for site, demand in self._demand.items():
            of = self._pairs.site == site
            if site in self._left_out or not of.any():
                continue
            missed = 1.0 - self._best_chance(site)
            tried = sum(missed**k for k in range(self._work.tries_per_page))
            first_s = self._world.sites[site].spec.overhead_s
            pages_s = float(demand.sizes[0]) * tried * float(self._pairs.seconds_per_page[of].min())
            longest = max(longest, demand.first_s + first_s + pages_s)
        return longest


def _checkpoints(tasks: list[Task]) -> list[float]:
    """Moments up to which arrivals are counted: few, spread over them; none where all come at once."""
    times = np.unique([task.arrive_s for task in tasks])
    if len(times) < 2:
        return []
    return [float(t) for t in np.unique(np.quantile(times, np.linspace(0, 1, 9), method="nearest"))[1:]]


def _tangents(demands: list[_Demand], shares: Floats) -> list[tuple[Floats, Floats]]:
    """Lines above "most pages in so many subtasks", by site: (slopes, heights at 0); one line for each place."""
    lines = []
    for share in shares.tolist():
        slopes, heights = np.empty(len(demands)), np.empty(len(demands))
        for n, demand in enumerate(demands):
            at = round(share * (len(demand.sizes) - 1))
            slopes[n] = demand.sizes[at]
            heights[n] = demand.sizes[:at].sum() - at * demand.sizes[at]
        lines.append((slopes, heights))
    return lines
