"""The event loop: virtual time, and the loop of DESIGN.md, 3, with production's own decisions in it.

Allocation, modification and recall are the very functions that jobs call (`tasks.strategies`); they are told what the
loop would tell them, never the rates. What is simpler than in production: subtasks that wake go on at once, a chunk
does not wait for the one before it, and a node has no buffer beyond its slots.

What an attempt may meet is drawn when it begins: it fails, it hangs, or it tries its pages. Where neither limits nor
blocks can hold pages up they are laid out at once, so that an attempt is two events; elsewhere each page is one.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush
from random import Random
from typing import Any

import numpy as np

from app.simulator.attempts import Run, Subtask, plan, settle
from app.simulator.hosts import Host
from app.simulator.outcome import Options, Window
from app.simulator.world import Node, Task, World, chunks
from tasks.domain.breaker import RestSettings
from tasks.domain.failures import FailureReason
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult, PairStats
from tasks.domain.views import NodeView, SubtaskView
from tasks.scheduling.decision import AllocationStrategy, Assignment
from tasks.scheduling.modification import fixed, modify
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.recall import Recall, after_failure
from tasks.scheduling.statistics import Knowledge

_SWEEP_S = 5.0
"""Allocation runs so often where nothing else makes it run, as in production."""

_SWEEPS_IN_VAIN = 2000
"""So many sweeps that gave nothing to anybody, with nothing else to come: what waits will wait for ever."""


class _Event(IntEnum):
    END = 0
    PAGE = 1
    DEADLINE = 2
    AGAIN = 3
    HOST = 4
    ARRIVE = 5
    SWEEP = 6
    APPEAR = 7
    DIE = 8
    SILENT = 9
    BACK = 10


class _Place:
    """A node as the loop keeps it: `shown` to the strategy, really `alive`, with so many leases."""

    __slots__ = ("alive", "leases", "node", "shown", "slots")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.slots = node.spec.slots
        self.leases = 0
        self.alive = self.shown = False


class Engine:
    """One run of one strategy.

    Args:
        world: the scenario worked out.
        strategy: decides who gets what.
        tasks: the work drawn.
        seed: of all chance but the work's.
        options: of the run.

    Attributes:
        now: virtual seconds.
        settled_s: when the last subtask was settled.
        open: subtasks that are not settled yet.
    """

    def __init__(
        self, world: World, strategy: AllocationStrategy, tasks: list[Task], seed: int, options: Options
    ) -> None:
        scenario = world.scenario
        self._world, self._strategy, self._options = world, strategy, options
        self._ready = ReadyQueue(split=strategy.split)
        self._knowledge = Knowledge()
        self._rng = np.random.default_rng([abs(seed), 1])
        self._random = Random(f"chance {seed}").random
        self._deciding, self._recalling = Random(f"allocation {seed}"), Random(f"recall {seed}")
        self._rules = options.recalling
        if not options.recall:
            self._rules = type(self._rules)(
                False,
                self._rules.silent_after_s,
                self._rules.max_recalls,
                self._rules.backoff_s,
                self._rules.backoff_max_s,
            )
        self._silent_after_s = self._rules.silent_after_s
        self._usual = fixed(scenario.quota, scenario.budget_s)
        self._places = [_Place(node) for node in world.nodes]
        self._number = {node.name: n for n, node in enumerate(world.nodes)}
        names = [node.name for node in world.nodes]
        self._hosts: list[Host | None] = [
            Host(site, names) if site.limited or world.ever_blocks[n] else None
            for n, site in enumerate(world.sites)
        ]
        self._rests = RestSettings()
        self._sites = [(s.name, str(s.spec.kind), (s.name,), s.spec.overhead_s) for s in world.sites]
        self._tasks, self._arrived = tasks, 0
        self._subtasks: dict[int, Subtask] = {}
        self._running: dict[Run, None] = {}
        self._heap: list[tuple[float, int, int, Any]] = []
        self._serial = self._ids = 0
        self._swept = False
        self._in_vain = 0
        self._unpaid_us = 0.0
        self.now = self.settled_s = 0.0
        self.open = 0
        self.found = self.collected = self.given_up = self.recalls = self.manual = self.attempts = 0
        self.manual_pages: dict[str, int] = {}
        self.decision_us = array("d")
        self.pairs: dict[tuple[int, int], PairStats] = {}
        self.over_time: list[int] = []
        self._windows: dict[tuple[int, int, int], PairStats] = {}

    def run(self) -> None:
        """Until the scenario's end, or until nothing is left to do."""
        end_s = self._world.scenario.duration_s
        self._set_up()
        handlers: dict[_Event, Callable[[Any], None]] = {
            _Event.END: self._end,
            _Event.PAGE: self._page,
            _Event.DEADLINE: self._deadline,
            _Event.AGAIN: self._put,
            _Event.HOST: self._set_host,
            _Event.ARRIVE: self._arrive,
            _Event.SWEEP: self._sweep,
            _Event.APPEAR: self._appear,
            _Event.DIE: self._die,
            _Event.SILENT: self._fall_silent,
            _Event.BACK: self._appear,
        }
        by_kind = [handlers[kind] for kind in _Event]
        heap = self._heap
        while heap and not self.settled:
            if end_s is not None and heap[0][0] > end_s:
                break
            t = self.now = heap[0][0]
            while heap and heap[0][0] == t:
                _, _, kind, what = heappop(heap)
                by_kind[kind](what)
            if self._ready.waiting and self._ready.free:
                self._decide()
        if end_s is not None and not self.settled:
            self.now = end_s
            self._cut_off()

    @property
    def settled(self) -> bool:
        """Whether all that will ever arrive is DONE or MANUAL."""
        return not self.open and self._arrived == len(self._tasks)

    def windows(self) -> tuple[Window, ...]:
        """What was kept for the timeline, in the order of time."""
        length = self._options.window_s
        sites, nodes = self._world.sites, self._world.nodes
        return tuple(
            Window(at * length, sites[site].name, nodes[node].name, stats)
            for (at, site, node), stats in sorted(self._windows.items())
        )

    def _set_up(self) -> None:
        for number, place in enumerate(self._places):
            spec = place.node.spec
            self._at(spec.appears_at_s, _Event.APPEAR, number)
            if spec.dies_at_s is not None:
                self._at(spec.dies_at_s, _Event.DIE, number)
            if spec.back_at_s is not None:
                self._at(spec.back_at_s, _Event.BACK, number)
        for host in self._hosts:
            if host is not None:
                self._ready.set_host(host.view(0.0))
        if self._tasks:
            self._at(self._tasks[0].arrive_s, _Event.ARRIVE, None)

    def _at(self, t: float, kind: _Event, what: Any) -> None:
        self._serial += 1
        heappush(self._heap, (t, self._serial, kind, what))

    # --- work and nodes come and go -----------------------------------------------------------------------------

    def _arrive(self, _: object) -> None:
        work = self._world.scenario.work
        while self._arrived < len(self._tasks):
            task = self._tasks[self._arrived]
            if task.arrive_s > self.now:
                self._at(task.arrive_s, _Event.ARRIVE, None)
                return
            self._arrived += 1
            self.found += task.hits
            for pages in chunks(task.hits, work.chunk_pages):
                self._ids += 1
                self.open += 1
                self._put(Subtask(self._ids, task.site, pages, work.tries_per_page))

    def _put(self, subtask: Subtask) -> None:
        """A subtask waits."""
        self._subtasks[subtask.id] = subtask
        name, kind, hosts, _ = self._sites[subtask.site]
        left = sum(subtask.todo)
        self._ready.put(SubtaskView(subtask.id, name, kind, hosts, left, 0, subtask.failed_on))

    def _appear(self, number: int) -> None:
        place = self._places[number]
        place.alive = place.shown = True
        self._show(place)
        for run in [run for run in self._running if run.node == number and not run.begun]:
            self._begin(run)  # leases it was given while it was away

    def _show(self, place: _Place) -> None:
        spec = place.node.spec
        free = max(0, place.slots - place.leases)
        self._ready.set_node(NodeView(place.node.name, spec.all_kinds, free, place.slots))

    def _die(self, number: int) -> None:
        self._places[number].alive = False
        self._at(self.now + self._silent_after_s, _Event.SILENT, number)
        for run in self._running:
            if run.node == number and run.begun and run.silenced_s is None:
                run.silenced_s = self.now
                settle(run, self.now, self._rng)
                run.pending = None
                self._at(self.now + self._silent_after_s, _Event.DEADLINE, run)

    def _fall_silent(self, number: int) -> None:
        """A node was not heard of for so long: only now it is known to be gone."""
        place = self._places[number]
        if not place.alive:
            place.shown = False
            self._ready.drop_node(place.node.name)

    def _set_host(self, site: int) -> None:
        host = self._hosts[site]
        if host is not None:
            self._ready.set_host(host.view(self.now))

    # --- decisions ----------------------------------------------------------------------------------------------

    def _sweep(self, _: object) -> None:
        self._swept = False

    def _decide(self) -> None:
        clock = self._options.clock
        begun = clock()
        given = self._strategy.decide(self._ready, self._knowledge, self.now, self._deciding)
        took_us = (clock() - begun) * 1e6 + self._unpaid_us
        if given:
            self.decision_us.extend([took_us / len(given)] * len(given))
            took_us = 0.0
            self._in_vain = 0
            for assignment in given:
                self._lease(assignment)
        self._unpaid_us = took_us
        if self._ready.waiting and self._ready.free and not self._swept:
            self._in_vain += not given
            if self._heap or self._in_vain < _SWEEPS_IN_VAIN:
                self._swept = True
                self._at(self.now + _SWEEP_S, _Event.SWEEP, None)

    def _lease(self, assignment: Assignment) -> None:
        subtask = self._subtasks.pop(assignment.subtask.id)
        left, site = assignment.subtask.left, subtask.site
        limits = self._usual
        if self._options.modification:
            scenario = self._world.scenario
            stats = self._knowledge.pair(assignment.subtask.site, assignment.node, self.now)
            limits = modify(stats, left, scenario.quota, scenario.budget_s, self._options.modifying)
        number = self._number[assignment.node]
        place = self._places[number]
        run = Run(subtask, number, min(limits.quota, left), limits.budget_s)
        place.leases += 1
        self._running[run] = None
        host = self._hosts[site]
        if host is not None:
            host.leased(number)
        if place.alive:
            self._begin(run)
        else:
            self._at(self.now + self._silent_after_s, _Event.DEADLINE, run)

    # --- attempts -----------------------------------------------------------------------------------------------

    def _begin(self, run: Run) -> None:
        run.begun = True
        site = run.subtask.site
        course = self._world.course(site, run.node)
        rates = course.rates[course.at(self.now)]
        overhead_s = self._sites[site][3]
        chance = self._random() if rates.fail or rates.hang else 1.0
        if chance < rates.fail:
            run.failed = True
            run.active_s = overhead_s
            self._at(self.now + overhead_s, _Event.END, run)
            return
        if chance < rates.fail + rates.hang:
            run.silenced_s = self.now
            self._at(self.now + self._silent_after_s, _Event.DEADLINE, run)
            return
        run.active_s = overhead_s
        run.avail = run.subtask.todo.copy()
        if self._hosts[site] is None:
            ends = plan(course, run, self.now + overhead_s)
            self._at(ends, _Event.END, run)
        else:
            self._at(self.now + overhead_s, _Event.PAGE, run)

    def _page(self, run: Run) -> None:
        """The page under way ended, or the overhead did; the next page gets its send time."""
        if run.over or run.silenced_s is not None:
            return
        self._count_pending(run)
        if run.tried >= run.responsible or (run.tried and run.active_s >= run.budget_s):
            self._close(run)
            return
        site, node = run.subtask.site, run.node
        host = self._hosts[site]
        assert host is not None
        at = host.grant(node, self.now)
        course = self._world.course(site, node)
        rates = course.rates[course.at(at)]
        answers = host.answers(node, rates.block, at)
        collected = self._random() < rates.completion and answers
        run.pending = (run.next_class(), collected)
        run.pending_s = rates.seconds_per_page
        run.wait_s += at - self.now
        self._at(at + rates.seconds_per_page, _Event.PAGE, run)

    def _count_pending(self, run: Run) -> None:
        if run.pending is not None:
            tries, collected = run.pending
            run.pending = None
            run.active_s += run.pending_s
            run.count(tries, 1, int(collected))

    def _end(self, run: Run) -> None:
        """An attempt that was laid out, or failed at its start, is through."""
        if not run.over and run.silenced_s is None:
            settle(run, self.now, self._rng)
            self._close(run)

    def _close(self, run: Run) -> None:
        """An attempt ended by itself: follow-up, recall or done (`tasks.worker.ending`)."""
        subtask, node = run.subtask, run.node
        left = sum(subtask.todo)
        host = self._hosts[subtask.site]
        reason: FailureReason | None = None
        if run.failed:
            reason = FailureReason.RESULT_PAGE_BROKEN
        elif not run.collected and left:
            reason = FailureReason.NOTHING_STORED
            if host is not None and host.blocked(node, self.now):
                reason = FailureReason.BLOCKED
                until = host.refused(node, self.now, self._rests, self._recalling)
                self._at(until, _Event.HOST, subtask.site)
        if host is not None and run.collected:
            host.gave(node, self.now)
        self._leave(run, AttemptOutcome.SUCCEEDED if reason is None else AttemptOutcome.FAILED, 0.0)
        if reason is not None:
            self._failed(subtask, node, reason)
        elif left:
            self._ids += 1
            subtask.id, subtask.recalls, subtask.failed_on = self._ids, 0, ()
            self._put(subtask)
        else:
            self._settled()

    def _deadline(self, run: Run) -> None:
        """A lease ran out."""
        if run.over:
            return
        began = run.silenced_s if run.silenced_s is not None else self.now - self._silent_after_s
        if not run.begun or run.silenced_s is not None:
            self._leave(run, AttemptOutcome.SILENT, self.now - began)
            self._failed(
                run.subtask, run.node, FailureReason.SILENT if run.begun else FailureReason.NOT_STARTED
            )

    def _leave(self, run: Run, outcome: AttemptOutcome, lost_s: float) -> None:
        """An attempt is over: its slot is free, and what it showed is known."""
        run.over = True
        del self._running[run]
        site, node = run.subtask.site, run.node
        place = self._places[node]
        place.leases -= 1
        if place.shown:
            self._ready.set_free(place.node.name, max(0, place.slots - place.leases))
        # Quota and budget never enter a denominator; what a failure or silence kept it from does.
        ended = run.tried > 0 and outcome is not AttemptOutcome.SILENT
        offered = run.tried if ended else run.responsible
        result = AttemptResult(
            site=self._sites[site][0],
            node=place.node.name,
            outcome=outcome,
            offered=offered,
            tried=run.tried,
            collected=run.collected,
            active_s=run.active_s,
            lost_s=lost_s,
        )
        self._knowledge.fold(result, self.now)
        self._tally(run, result)
        host = self._hosts[site]
        if host is not None:
            overhead_s = self._sites[site][3] if run.active_s else 0.0
            host.ended(node, run.tried, run.active_s - overhead_s + run.wait_s)
            self._ready.set_host(host.view(self.now))

    def _failed(self, subtask: Subtask, node: int, reason: FailureReason) -> None:
        name = self._world.nodes[node].name
        subtask.failed_on = (*(one for one in subtask.failed_on if one != name), name)
        if not any(subtask.todo):  # collected or given up before its node died
            self._settled()
            return
        decision = after_failure(
            reason, name, subtask.recalls, subtask.failed_on, self._rules, self._recalling
        )
        if not isinstance(decision, Recall):
            self.manual += 1
            site = self._sites[subtask.site][0]
            self.manual_pages[site] = self.manual_pages.get(site, 0) + sum(subtask.todo)
            self._settled()
            return
        self.recalls += 1
        subtask.recalls += 1
        if decision.not_before_delay_s > 0:
            self._at(self.now + decision.not_before_delay_s, _Event.AGAIN, subtask)
        else:
            self._put(subtask)

    def _settled(self) -> None:
        self.open -= 1
        self.settled_s = self.now

    def _cut_off(self) -> None:
        """The scenario ends: pages that ended by now stay collected."""
        for run in self._running:
            if run.silenced_s is None:
                settle(run, self.now, self._rng)
            result = AttemptResult(
                site="",
                node="",
                outcome=AttemptOutcome.RELEASED,
                offered=run.tried,
                tried=run.tried,
                collected=run.collected,
                active_s=run.active_s,
            )
            self._tally(run, result)

    # --- figures ------------------------------------------------------------------------------------------------

    def _tally(self, run: Run, result: AttemptResult) -> None:
        site, node = run.subtask.site, run.node
        self.collected += result.collected
        self.given_up += run.given_up
        self.attempts += 1
        at = int(self.now / self._options.window_s)
        while len(self.over_time) <= at:
            self.over_time.append(0)
        self.over_time[at] += result.collected
        self.pairs[site, node] = self.pairs.get((site, node), PairStats()).with_attempt(result)
        if self._options.timeline:
            window = at, site, node
            self._windows[window] = self._windows.get(window, PairStats()).with_attempt(result)
