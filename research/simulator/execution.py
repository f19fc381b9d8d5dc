"""Runs subtasks that were given to nodes: attempts, failures, silence, recalls, follow-ups.

The fate of an attempt is drawn when it begins: it fails, it hangs, or it tries its pages. Where no host of the world
limits or blocks, its pages are laid out at once, so that it is two events; elsewhere it goes page by page
(`research.simulator.paged`).
"""

from __future__ import annotations

from random import Random

import numpy as np

from research.simulator.attempts import Attempt, Events, Subtask, draw_pages, lay_out
from research.simulator.hosts import Hosts
from research.simulator.outcome import Figures, Options
from research.simulator.paged import Crawl, PagedAttempt
from research.simulator.slots import NodeState
from research.simulator.world import World
from tasks.domain.facts import NodeFacts, SubtaskFacts
from tasks.domain.failures import ErrorClass, FailureReason
from tasks.domain.page_floor import PageFloor
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult
from tasks.scheduling.modification import Modification
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.recall import Recall, RecallSettings, decide_recall
from tasks.scheduling.statistics import Knowledge
from tasks.store.queue.snapshot import UNDER_WAY
from tasks.worker.failures import failure_reason


class Execution:
    """Nodes and their attempts.

    Args:
        world: the scenario worked out.
        events: virtual time.
        ready: subtasks that wait, nodes and hosts as strategies see them; kept up to date.
        knowledge: statistics of (site, node); every attempt that ends is folded in.
        figures: what is counted.
        seed: of all chance but the work's and allocation's.
        options: of the run.

    Attributes:
        open: subtasks that are not settled yet.
        changed: something began to wait, ended or appeared since this was last set to False.
    """

    def __init__(
        self,
        world: World,
        events: Events,
        ready: ReadyQueue,
        knowledge: Knowledge,
        figures: Figures,
        seed: int,
        options: Options,
    ) -> None:
        self._world, self._events, self._ready = world, events, ready
        self._knowledge, self._figures = knowledge, figures
        self._rng = np.random.default_rng([abs(seed), 1])
        self._random = Random(f"chance {seed}").random
        self._recalling = Random(f"recall {seed}")
        self._rules = RecallSettings(enabled=options.recall)
        self._nodes = [NodeState(node) for node in world.nodes]
        self._number = {node.name: n for n, node in enumerate(world.nodes)}
        self._hosts = Hosts(world, self._recalling)
        self._sites = [
            (s.name, str(s.spec.kind), self._hosts.of(s.name), s.spec.overhead_s) for s in world.sites
        ]
        self._crawl: Crawl | None = None
        if self._hosts:
            self._crawl = Crawl(world, events, self._hosts, self._random, self._show_slots, self._close)
        self._waiting: dict[int, Subtask] = {}
        self._running: dict[Attempt, None] = {}
        self._ids = 0
        self.open = 0
        self.changed = False

    def set_up(self) -> None:
        """Announce when nodes come and go."""
        for number, state in enumerate(self._nodes):
            spec = state.node.spec
            self._events.at(spec.appears_at_s, self._appear, number)
            if spec.dies_at_s is not None:
                self._events.at(spec.dies_at_s, self._die, number)
            if spec.back_at_s is not None:
                self._events.at(spec.back_at_s, self._appear, number)

    @property
    def waits(self) -> bool:
        """Whether attempts may wait: then hosts and slots change all the time."""
        return self._crawl is not None

    def show(self) -> None:
        """Show strategies the hosts, and what running attempts have told, as they are now."""
        if self._crawl is None:
            return
        views = self._hosts.views(list(self._ready.backlog), self._knowledge, self._events.now)
        for name in self._ready.hosts.keys() - {view.host for view in views}:
            self._ready.drop_host(name)
        for view in views:
            self._ready.set_host(view)
        told = (one.reported for one in self._running if isinstance(one, PagedAttempt))
        self._knowledge.set_running(one for one in told if one is not None)

    def add(self, site: int, pages: int, vain: int) -> None:
        """A new subtask waits; so many searches find nothing before its pages are listed."""
        self._ids += 1
        self.open += 1
        self._put(Subtask(self._ids, site, pages, self._world.scenario.work.tries_per_page, vain))

    def lease(self, subtask: SubtaskFacts, node: str, limits: Modification, floor: PageFloor) -> None:
        """Give a waiting subtask to a node, within a quota and a budget; below the floor it ends early."""
        number = self._number[node]
        taken = self._waiting.pop(subtask.id)
        quota = 0 if taken.vain else min(limits.quota, sum(taken.todo))
        attempt = (
            Attempt(taken, number, quota, limits.budget_s)
            if self._crawl is None
            else PagedAttempt(taken, number, quota, limits.budget_s, floor=floor)
        )
        state = self._nodes[number]
        state.leases += 1
        self._running[attempt] = None
        attempt.counted = subtask.site, node, not taken.listed
        self._hosts.leased(*attempt.counted)
        if state.alive:
            self._begin(attempt)
        else:
            self._events.at(self._events.now + self._rules.silent_after_s, self._deadline, attempt)

    def cut_off(self) -> None:
        """The scenario ends: pages that ended by now stay collected."""
        for attempt in self._running:
            if attempt.silenced_s is None:
                self._cut(attempt)
            self._figures.close(self._events.now, attempt, self._result(attempt, AttemptOutcome.RELEASED))

    def _put(self, subtask: Subtask) -> None:
        """A subtask waits."""
        self.changed = True
        self._waiting[subtask.id] = subtask
        name, kind, hosts, _ = self._sites[subtask.site]
        self._ready.put(subtask.view(name, kind, hosts, self._world.scenario.work.hits_per_result_page))

    # --- nodes come and go --------------------------------------------------------------------------------------

    def _appear(self, number: int) -> None:
        state = self._nodes[number]
        state.alive = state.shown = True
        spec = state.node.spec
        self.changed = True
        self._ready.set_node(NodeFacts(state.node.name, spec.all_kinds, self._free(number), spec.slots))
        for attempt in [one for one in self._running if one.node == number and not one.begun]:
            self._begin(attempt)  # leases it was given while it was away

    def _die(self, number: int) -> None:
        now = self._events.now
        self._nodes[number].alive = False
        if self._crawl is not None:
            self._crawl.silence(number)
        self._events.at(now + self._rules.silent_after_s, self._fall_silent, number)
        for attempt in self._running:
            if attempt.node == number and attempt.begun and attempt.silenced_s is None:
                attempt.silenced_s = now
                self._cut(attempt)
                self._events.at(now + self._rules.silent_after_s, self._deadline, attempt)

    def _fall_silent(self, number: int) -> None:
        """A node was not heard of for so long: from now on strategies see that it is gone."""
        state = self._nodes[number]
        if not state.alive:
            state.shown = False
            self._ready.drop_node(state.node.name)

    def _free(self, number: int) -> int:
        return self._nodes[number].free(self._crawl.waiting[number] if self._crawl is not None else 0)

    def _show_slots(self, number: int) -> None:
        state = self._nodes[number]
        if state.shown:
            self._ready.set_free(state.node.name, self._free(number))

    def _cut(self, attempt: Attempt) -> None:
        """An attempt under way gets no further than now."""
        if isinstance(attempt, PagedAttempt) and self._crawl is not None:
            if not attempt.failed:
                self._crawl.cut(attempt)
        else:
            draw_pages(attempt, self._events.now, self._rng)

    # --- attempts -----------------------------------------------------------------------------------------------

    def _begin(self, attempt: Attempt) -> None:
        attempt.begun, attempt.vain = True, attempt.subtask.vain > 0
        now, site = self._events.now, attempt.subtask.site
        course = self._world.course(site, attempt.node)
        rates = course.rates[course.at(now)]
        overhead_s = self._sites[site][3]
        if self._crawl is not None:
            self._events.at(now + UNDER_WAY.total_seconds(), self._under_way, attempt)
        chance = self._random() if rates.fail or rates.hang else 1.0
        if chance < rates.fail:
            attempt.failed = True
            attempt.active_s = overhead_s
            if self._crawl is not None:
                self._crawl.occupy(attempt.node, overhead_s, self._end, attempt)
            else:
                self._events.at(now + overhead_s, self._end, attempt)
            return
        if chance < rates.fail + rates.hang:
            attempt.silenced_s = now
            if isinstance(attempt, PagedAttempt) and self._crawl is not None:
                self._crawl.stick(attempt)
            self._events.at(now + self._rules.silent_after_s, self._deadline, attempt)
            return
        attempt.avail = attempt.subtask.todo.copy()
        if isinstance(attempt, PagedAttempt) and self._crawl is not None:
            self._crawl.begin(attempt, overhead_s)
        else:
            attempt.active_s = overhead_s
            self._events.at(lay_out(course, attempt, now + overhead_s), self._end, attempt)

    def _under_way(self, attempt: Attempt) -> None:
        """Strategies see now that it is past its result pages."""
        if not attempt.over:
            attempt.under_way = self.changed = True
            self._hosts.under_way(*attempt.counted)

    def _end(self, attempt: Attempt) -> None:
        """An attempt that was laid out, or failed at its start, is through."""
        if not attempt.over and attempt.silenced_s is None:
            draw_pages(attempt, self._events.now, self._rng)
            self._close(attempt)

    def _close(self, attempt: Attempt) -> None:
        """An attempt ended by itself: follow-up, recall or done, as in production."""
        subtask, node = attempt.subtask, attempt.node
        result_error = ErrorClass.SERVER_ERROR if attempt.failed else None
        errors: set[ErrorClass] = set()
        full = False
        if isinstance(attempt, PagedAttempt):
            result_error = result_error or attempt.result_error
            errors, full = attempt.errors, attempt.full
            self._rest(attempt)
        found_nothing = attempt.vain and result_error is None and not full
        subtask.vain -= found_nothing
        left = 0 if found_nothing else sum(subtask.todo) + subtask.vain
        reason = failure_reason(
            collected=attempt.collected, left=left, result_error=result_error, hit_errors=errors
        )
        if reason is not None and full and not errors and result_error is None:
            # The permits of the host go to others: that is no failure.
            self._leave(attempt, AttemptOutcome.RELEASED, 0.0)
            self._put(subtask)
            return
        self._leave(attempt, AttemptOutcome.SUCCEEDED if reason is None else AttemptOutcome.FAILED, 0.0)
        if reason is not None:
            self._failed(subtask, node, reason)
        elif not subtask.settled:
            self._ids += 1
            subtask.id, subtask.recalls, subtask.failed_on = self._ids, 0, ()
            self._put(subtask)
        else:
            self._settle()

    def _rest(self, attempt: PagedAttempt) -> None:
        """Hosts that refused the node rest for it; those that gave it a page are probed no longer."""
        now, node = self._events.now, self._nodes[attempt.node].node.name
        for host in attempt.refused:
            self._events.at(self._hosts.refused(host, node, now), self._rested, None)
        if attempt.collected:
            self._hosts.gave(self._sites[attempt.subtask.site][0], node, now)

    def _rested(self, _: None) -> None:
        self.changed = True

    def _deadline(self, attempt: Attempt) -> None:
        """A lease ran out."""
        if attempt.over:
            return
        now, silenced_s = self._events.now, attempt.silenced_s
        if not attempt.begun or silenced_s is not None:
            since = silenced_s if silenced_s is not None else now - self._rules.silent_after_s
            self._leave(attempt, AttemptOutcome.SILENT, now - since)
            reason = FailureReason.SILENT if attempt.begun else FailureReason.NOT_STARTED
            self._failed(attempt.subtask, attempt.node, reason)

    def _leave(self, attempt: Attempt, outcome: AttemptOutcome, lost_s: float) -> None:
        """An attempt is over: its slot is free, and what it showed enters the statistics."""
        attempt.over = True
        del self._running[attempt]
        self._nodes[attempt.node].leases -= 1
        self.changed = True
        result = self._result(attempt, outcome, lost_s)
        self._knowledge.fold(result, self._events.now)
        self._figures.close(self._events.now, attempt, result)
        if isinstance(attempt, PagedAttempt) and self._crawl is not None:
            if attempt.hangs:
                self._crawl.unstick(attempt)
            told = attempt.counted
            self._hosts.left(*told, under_way=attempt.under_way, tried=attempt.tried, wait_s=attempt.wait_s)
        self._show_slots(attempt.node)

    def _result(self, attempt: Attempt, outcome: AttemptOutcome, lost_s: float = 0.0) -> AttemptResult:
        # Targets that quota and budget kept from it are not offered; those that failure, refusal or silence kept are.
        ended = attempt.tried > 0 and outcome is not AttemptOutcome.SILENT
        if isinstance(attempt, PagedAttempt) and attempt.refused and not attempt.full:
            ended = False
        return AttemptResult(
            site=self._sites[attempt.subtask.site][0],
            node=self._nodes[attempt.node].node.name,
            outcome=outcome,
            offered=attempt.tried if ended or outcome is AttemptOutcome.RELEASED else attempt.responsible,
            tried=attempt.tried,
            collected=attempt.collected,
            active_s=attempt.active_s,
            lost_s=lost_s,
        )

    def _failed(self, subtask: Subtask, node: int, reason: FailureReason) -> None:
        name = self._world.nodes[node].name
        subtask.failed_on = (*(one for one in subtask.failed_on if one != name), name)
        if subtask.settled:  # collected or given up before its node died
            self._settle()
            return
        decision = decide_recall(
            reason,
            name,
            subtask.recalls,
            subtask.failed_on,
            self._rules,
            self._recalling,
            answers_others=self._hosts.answers_others(self._sites[subtask.site][0], self._events.now),
        )
        if not isinstance(decision, Recall):
            self._figures.leave_to_a_person(subtask)
            self._settle()
            return
        self._figures.recalls += 1
        subtask.recalls += 1
        if decision.not_before_delay_s > 0:
            self._events.at(self._events.now + decision.not_before_delay_s, self._put, subtask)
        else:
            self._put(subtask)

    def _settle(self) -> None:
        self.open -= 1
        self._figures.settled_s = self._events.now
