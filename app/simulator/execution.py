"""What becomes of subtasks that were given to nodes: attempts, failures, silence, recalls, follow-ups.

What an attempt may meet is drawn when it begins: it fails, it hangs, or it tries its pages. Where neither limits nor
blocks can hold pages up they are laid out at once, so that an attempt is two events; elsewhere each page is one.
"""

from __future__ import annotations

from random import Random

import numpy as np

from app.simulator.attempts import Attempt, Events, Subtask, draw_pages, lay_out
from app.simulator.hosts import Host
from app.simulator.outcome import Figures, Options
from app.simulator.world import Node, World
from tasks.domain.failures import FailureReason
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult
from tasks.domain.views import NodeView, SubtaskView
from tasks.scheduling.modification import Modification
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.recall import Recall, RecallSettings, after_failure
from tasks.scheduling.statistics import Knowledge


class _NodeState:
    """A node: whether it is `alive`, whether strategies still see it (`shown`), and how many leases it has."""

    __slots__ = ("alive", "leases", "node", "shown")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.leases = 0
        self.alive = self.shown = False


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
        self._nodes = [_NodeState(node) for node in world.nodes]
        self._number = {node.name: n for n, node in enumerate(world.nodes)}
        names = [node.name for node in world.nodes]
        self._hosts = [
            Host(site, names) if site.limited or world.ever_blocks[n] else None
            for n, site in enumerate(world.sites)
        ]
        self._sites = [(s.name, str(s.spec.kind), (s.name,), s.spec.overhead_s) for s in world.sites]
        self._waiting: dict[int, Subtask] = {}
        self._running: dict[Attempt, None] = {}
        self._ids = 0
        self.open = 0

    def set_up(self) -> None:
        """Announce when nodes come and go; show the hosts to strategies."""
        for number, state in enumerate(self._nodes):
            spec = state.node.spec
            self._events.at(spec.appears_at_s, self._appear, number)
            if spec.dies_at_s is not None:
                self._events.at(spec.dies_at_s, self._die, number)
            if spec.back_at_s is not None:
                self._events.at(spec.back_at_s, self._appear, number)
        for host in self._hosts:
            if host is not None:
                self._ready.set_host(host.view(0.0))

    def add(self, site: int, pages: int) -> None:
        """A new subtask waits."""
        self._ids += 1
        self.open += 1
        self._put(Subtask(self._ids, site, pages, self._world.scenario.work.tries_per_page))

    def lease(self, subtask: SubtaskView, node: str, limits: Modification) -> None:
        """Give a waiting subtask to a node, within a quota and a budget."""
        number = self._number[node]
        taken = self._waiting.pop(subtask.id)
        attempt = Attempt(taken, number, min(limits.quota, subtask.left), limits.budget_s)
        state = self._nodes[number]
        state.leases += 1
        self._running[attempt] = None
        host = self._hosts[taken.site]
        if host is not None:
            host.leased(number)
        if state.alive:
            self._begin(attempt)
        else:
            self._events.at(self._events.now + self._rules.silent_after_s, self._deadline, attempt)

    def cut_off(self) -> None:
        """The scenario ends: pages that ended by now stay collected."""
        for attempt in self._running:
            if attempt.silenced_s is None:
                draw_pages(attempt, self._events.now, self._rng)
            self._figures.close(self._events.now, attempt, self._result(attempt, AttemptOutcome.RELEASED))

    def _put(self, subtask: Subtask) -> None:
        """A subtask waits."""
        self._waiting[subtask.id] = subtask
        name, kind, hosts, _ = self._sites[subtask.site]
        left = sum(subtask.todo)
        self._ready.put(
            SubtaskView(
                id=subtask.id,
                site=name,
                kind=kind,
                hosts=hosts,
                left=left,
                priority=0,
                failed_on=subtask.failed_on,
            )
        )

    # --- nodes come and go --------------------------------------------------------------------------------------

    def _appear(self, number: int) -> None:
        state = self._nodes[number]
        state.alive = state.shown = True
        spec = state.node.spec
        free = max(0, spec.slots - state.leases)
        self._ready.set_node(NodeView(state.node.name, spec.all_kinds, free, spec.slots))
        for attempt in [one for one in self._running if one.node == number and not one.begun]:
            self._begin(attempt)  # leases it was given while it was away

    def _die(self, number: int) -> None:
        now = self._events.now
        self._nodes[number].alive = False
        self._events.at(now + self._rules.silent_after_s, self._fall_silent, number)
        for attempt in self._running:
            if attempt.node == number and attempt.begun and attempt.silenced_s is None:
                attempt.silenced_s = now
                draw_pages(attempt, now, self._rng)
                attempt.pending = None
                self._events.at(now + self._rules.silent_after_s, self._deadline, attempt)

    def _fall_silent(self, number: int) -> None:
        """A node was not heard of for so long: from now on strategies see that it is gone."""
        state = self._nodes[number]
        if not state.alive:
            state.shown = False
            self._ready.drop_node(state.node.name)

    def _show_host(self, site: int) -> None:
        host = self._hosts[site]
        if host is not None:
            self._ready.set_host(host.view(self._events.now))

    # --- attempts -----------------------------------------------------------------------------------------------

    def _begin(self, attempt: Attempt) -> None:
        attempt.begun = True
        now, site = self._events.now, attempt.subtask.site
        course = self._world.course(site, attempt.node)
        rates = course.rates[course.at(now)]
        overhead_s = self._sites[site][3]
        chance = self._random() if rates.fail or rates.hang else 1.0
        if chance < rates.fail:
            attempt.failed = True
            attempt.active_s = overhead_s
            self._events.at(now + overhead_s, self._end, attempt)
            return
        if chance < rates.fail + rates.hang:
            attempt.silenced_s = now
            self._events.at(now + self._rules.silent_after_s, self._deadline, attempt)
            return
        attempt.active_s = overhead_s
        attempt.avail = attempt.subtask.todo.copy()
        if self._hosts[site] is None:
            self._events.at(lay_out(course, attempt, now + overhead_s), self._end, attempt)
        else:
            self._events.at(now + overhead_s, self._page, attempt)

    def _page(self, attempt: Attempt) -> None:
        """The page under way ended, or the overhead did; the next page gets its send time."""
        if attempt.over or attempt.silenced_s is not None:
            return
        attempt.count_pending()
        if attempt.tried >= attempt.responsible or (attempt.tried and attempt.active_s >= attempt.budget_s):
            self._close(attempt)
            return
        now, site, node = self._events.now, attempt.subtask.site, attempt.node
        host = self._hosts[site]
        assert host is not None
        at = host.grant(node, now)
        course = self._world.course(site, node)
        rates = course.rates[course.at(at)]
        answers = host.answers(node, rates.block, at)
        collected = self._random() < rates.completion and answers
        attempt.pending = (attempt.next_class(), collected)
        attempt.pending_s = rates.seconds_per_page
        attempt.wait_s += at - now
        self._events.at(at + rates.seconds_per_page, self._page, attempt)

    def _end(self, attempt: Attempt) -> None:
        """An attempt that was laid out, or failed at its start, is through."""
        if not attempt.over and attempt.silenced_s is None:
            draw_pages(attempt, self._events.now, self._rng)
            self._close(attempt)

    def _close(self, attempt: Attempt) -> None:
        """An attempt ended by itself: follow-up, recall or done, as in production."""
        now, subtask, node = self._events.now, attempt.subtask, attempt.node
        left = sum(subtask.todo)
        host = self._hosts[subtask.site]
        reason: FailureReason | None = None
        if attempt.failed:
            reason = FailureReason.RESULT_PAGE_BROKEN
        elif not attempt.collected and left:
            reason = FailureReason.NOTHING_STORED
            if host is not None and host.blocked(node, now):
                reason = FailureReason.BLOCKED
                until = host.refused(node, now, self._recalling)
                self._events.at(until, self._show_host, subtask.site)
        if host is not None and attempt.collected:
            host.gave(node, now)
        self._leave(attempt, AttemptOutcome.SUCCEEDED if reason is None else AttemptOutcome.FAILED, 0.0)
        if reason is not None:
            self._failed(subtask, node, reason)
        elif left:
            self._ids += 1
            subtask.id, subtask.recalls, subtask.failed_on = self._ids, 0, ()
            self._put(subtask)
        else:
            self._settle()

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
        now, site, node = self._events.now, attempt.subtask.site, attempt.node
        state = self._nodes[node]
        state.leases -= 1
        if state.shown:
            self._ready.set_free(state.node.name, max(0, state.node.spec.slots - state.leases))
        result = self._result(attempt, outcome, lost_s)
        self._knowledge.fold(result, now)
        self._figures.close(now, attempt, result)
        host = self._hosts[site]
        if host is not None:
            overhead_s = self._sites[site][3] if attempt.active_s else 0.0
            host.ended(node, attempt.tried, attempt.active_s - overhead_s + attempt.wait_s)
            self._ready.set_host(host.view(now))

    def _result(self, attempt: Attempt, outcome: AttemptOutcome, lost_s: float = 0.0) -> AttemptResult:
        # What quota and budget kept it from is not offered; what a failure or silence kept it from is.
        ended = attempt.tried > 0 and outcome is not AttemptOutcome.SILENT
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
        if not any(subtask.todo):  # collected or given up before its node died
            self._settle()
            return
        decision = after_failure(
            reason, name, subtask.recalls, subtask.failed_on, self._rules, self._recalling
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
