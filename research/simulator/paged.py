"""Attempts page by page, where a host may hold them up: lanes, permits, slots, refusals, as on a node.

An attempt reads the result pages of its subtask, one after the other, then its lanes take its pages: a lane asks for a
permit and waits for its time, without a slot while nothing else of the attempt is under way. A page starts at its
permit's time, at the rates in force then. Pages of one attempt are worked off one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

from research.simulator.attempts import Attempt, Events
from research.simulator.hosts import LONGEST_WAIT_S, Hosts
from research.simulator.slots import SharedSlots
from research.simulator.world import LANES, World
from tasks.domain.failures import ErrorClass
from tasks.domain.page_floor import PageFloor
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult
from tasks.fetching.pace import AnswerSample
from tasks.worker.lease_renewal import FIRST_REPORT_TRIES, REPORT_EVERY_S, REPORT_SOONEST_S


class _Started(NamedTuple):
    """A request that was sent: a page with its tries so far, or a result page (None); and what comes of it."""

    tries: int | None
    seconds: float
    error: ErrorClass | None


@dataclass(slots=True, eq=False)
class PagedAttempt(Attempt):
    """An attempt page by page.

    Attributes:
        floor: when it ends early.
        taken: pages that its lanes took.
        lanes, closed_lanes: that have not ended; that may still be opened.
        asks, queued: one of them asks for a permit; so many more have a page, and are to ask then.
        started: requests that were sent and are not answered, in their order.
        unread: result pages to be read before its pages are known.
        full: quota, budget or the next permit keep it from further pages.
        errors: of its pages; result_error: of its result pages.
        refused: hosts that refused it.
        since_s: when it began to work, or to wait.
        at_work: it holds a slot; hangs: until it is recalled.
        reported: what it told last while running.
    """

    floor: PageFloor = field(kw_only=True)
    taken: int = 0
    lanes: int = 0
    closed_lanes: int = 0
    asks: bool = False
    queued: int = 0
    started: deque[_Started] = field(default_factory=deque)
    unread: int = 0
    full: bool = False
    errors: set[ErrorClass] = field(default_factory=set)
    result_error: ErrorClass | None = None
    refused: set[str] = field(default_factory=set)
    since_s: float = 0.0
    at_work: bool = False
    hangs: bool = False
    reported: AttemptResult | None = None
    reported_s: float = 0.0
    report_at_tries: int = FIRST_REPORT_TRIES


class Crawl:
    """Attempts under way on all nodes.

    Args:
        world, events: of the run.
        hosts: every host that limits or blocks.
        chance: draws from [0, 1).
        on_slot: called with a node's number when one of its attempts gives its slot back, or takes one again.
        on_end: called with an attempt that has ended by itself.
    """

    def __init__(
        self,
        world: World,
        events: Events,
        hosts: Hosts,
        chance: Callable[[], float],
        on_slot: Callable[[int], None],
        on_end: Callable[[PagedAttempt], None],
    ) -> None:
        self._world, self._events, self._hosts = world, events, hosts
        self._chance, self._on_slot, self._on_end = chance, on_slot, on_end
        shared = world.scenario.shared_slots
        self._slots = [SharedSlots(events, node.spec.slots if shared else inf) for node in world.nodes]
        self._hits_per_result_page = world.scenario.work.hits_per_result_page
        self.waiting = [0] * len(world.nodes)
        """By node, attempts that hold no slot."""

    def begin(self, attempt: PagedAttempt, overhead_s: float) -> None:
        """Begin an attempt on a node that is alive."""
        attempt.at_work = True
        attempt.since_s = attempt.reported_s = self._events.now
        subtask = attempt.subtask
        if self._world.sites[subtask.site].spec.engine and not subtask.listed:
            pages = -(-sum(subtask.todo) // self._hits_per_result_page)
            attempt.unread = 1 if attempt.vain else pages
        self._slots[attempt.node].begin(overhead_s, self._entered, attempt)

    def occupy(self, number: int, seconds: float, call: Callable[[Any], None], what: object) -> None:
        """Work of a node that is no page."""
        self._slots[number].begin(seconds, call, what)

    def stick(self, attempt: PagedAttempt) -> None:
        """It hangs: it keeps its slot until it is recalled."""
        attempt.at_work = attempt.hangs = True
        self._slots[attempt.node].stick(1)

    def unstick(self, attempt: PagedAttempt) -> None:
        """It was recalled."""
        self._slots[attempt.node].stick(-1)

    def silence(self, number: int) -> None:
        """A node dies: nothing that is under way there will end."""
        self._slots[number].stop()

    def cut(self, attempt: PagedAttempt) -> None:
        """It stops where it is: no request of it will be answered."""
        self._settle(attempt)
        if not attempt.at_work:
            self.waiting[attempt.node] -= 1
            attempt.at_work = True
        attempt.started.clear()

    # --- result pages ------------------------------------------------------------------------------------------

    def _entered(self, attempt: PagedAttempt) -> None:
        """The overhead is over."""
        if attempt.unread:
            attempt.lanes = 1
            self._read(attempt)
        else:
            self._begin_lanes(attempt)
        self._go_on(attempt)

    def _read(self, attempt: PagedAttempt) -> None:
        """Ask for the next result page."""
        host = self._hosts.of(self._world.sites[attempt.subtask.site].name)[0]
        if not self._ask(attempt, host, self._send_search):
            attempt.lanes = 0

    def _send_search(self, attempt: PagedAttempt) -> None:
        if attempt.over or attempt.silenced_s is not None:
            return
        engine = self._world.engines[self._world.sites[attempt.subtask.site].spec.engine or ""]
        error = ErrorClass.SERVER_ERROR if engine.fault > 0 and self._chance() < engine.fault else None
        self._start(attempt, _Started(None, engine.seconds_per_page, error))

    def _was_read(self, attempt: PagedAttempt, page: _Started) -> None:
        host = self._hosts.of(self._world.sites[attempt.subtask.site].name)[0]
        self._observe(host, attempt, page)
        attempt.unread -= 1
        if page.error is not None:
            attempt.result_error = page.error
            attempt.lanes = 0
        elif attempt.unread:
            self._read(attempt)
        else:
            attempt.subtask.listed = not attempt.vain
            attempt.lanes = 0
            self._begin_lanes(attempt)

    # --- pages -------------------------------------------------------------------------------------------------

    def _begin_lanes(self, attempt: PagedAttempt) -> None:
        site = self._world.sites[attempt.subtask.site].name
        attempt.closed_lanes = min(LANES if self._hosts.limited(site) else 1, attempt.responsible)
        self._open_lanes(attempt, attempt.floor.tries_without_page or attempt.closed_lanes)

    def _open_lanes(self, attempt: PagedAttempt, count: int) -> None:
        """Open so many more lanes, up to all. At first as many as failures end the attempt; each page opens one."""
        for _ in range(min(count, attempt.closed_lanes)):
            attempt.closed_lanes -= 1
            attempt.lanes += 1
            self._lane(attempt)

    def _lane(self, attempt: PagedAttempt) -> None:
        """A lane takes the next page, or ends."""
        self._settle(attempt)
        if attempt.taken and attempt.active_s >= attempt.budget_s:
            attempt.full = True
        most = attempt.floor.tries_without_page or attempt.responsible
        waits = attempt.lanes > 1 and attempt.taken >= most and not attempt.collected
        if waits or attempt.taken >= attempt.responsible or attempt.full or attempt.refused:
            attempt.lanes -= 1
            attempt.closed_lanes += waits
            return
        attempt.taken += 1
        if attempt.asks:
            attempt.queued += 1
        else:
            self._turn(attempt)

    def _turn(self, attempt: PagedAttempt) -> None:
        """A lane asks for a permit; one at a time does, so that the others reserve none further ahead."""
        attempt.asks = True
        site = self._world.sites[attempt.subtask.site].name
        if attempt.refused or not self._ask(attempt, site, self._send_page):
            self._give_back(attempt)

    def _give_back(self, attempt: PagedAttempt) -> None:
        """A lane ends with its page not asked for."""
        attempt.taken -= 1
        attempt.lanes -= 1
        self._next_turn(attempt)

    def _next_turn(self, attempt: PagedAttempt) -> None:
        attempt.asks = False
        if attempt.queued:
            attempt.queued -= 1
            self._turn(attempt)

    def _ask(self, attempt: PagedAttempt, host: str, send: Callable[[PagedAttempt], None]) -> bool:
        """Reserve a permit; False where it would be too far ahead."""
        now, node = self._events.now, self._world.nodes[attempt.node].name
        wait_s = self._hosts.reserve(host, node, now) if self._hosts.known(host) else 0.0
        if wait_s > LONGEST_WAIT_S:
            attempt.full = True
            return False
        if wait_s > 0:
            self._events.at(now + wait_s, send, attempt)
        else:
            send(attempt)
        return True

    def _send_page(self, attempt: PagedAttempt) -> None:
        if attempt.over or attempt.silenced_s is not None:
            return
        if attempt.refused:  # while it waited
            self._give_back(attempt)
            if not attempt.lanes and not attempt.at_work:
                self._settle(attempt)
                attempt.at_work = True
                self.waiting[attempt.node] -= 1
                self._on_end(attempt)
            return
        now, site, node = self._events.now, attempt.subtask.site, attempt.node
        course = self._world.course(site, node)
        rates = course.rates[course.at(now)]
        tries = attempt.next_class()
        attempt.avail[tries] -= 1
        error: ErrorClass | None = None
        if not self._hosts.answers(site, node, rates.block, now):
            error = ErrorClass.FORBIDDEN
        elif self._chance() >= rates.completion:
            fault = rates.fault > 0 and (rates.fault >= 1 or self._chance() < rates.fault)
            error = ErrorClass.SERVER_ERROR if fault else ErrorClass.BAD_CONTENT
        self._start(attempt, _Started(tries, rates.seconds_per_page, error))
        self._next_turn(attempt)

    def _start(self, attempt: PagedAttempt, request: _Started) -> None:
        attempt.started.append(request)
        if not attempt.at_work:
            self._settle(attempt)
            attempt.at_work = True
            self.waiting[attempt.node] -= 1
            self._on_slot(attempt.node)
            self._work(attempt)

    def _work(self, attempt: PagedAttempt) -> None:
        self._slots[attempt.node].begin(attempt.started[0].seconds, self._answered, attempt)

    def _answered(self, attempt: PagedAttempt) -> None:
        self._settle(attempt)
        request = attempt.started.popleft()
        if request.tries is None:
            self._was_read(attempt, request)
        else:
            self._count(attempt, request.tries, request)
            self._lane(attempt)
        self._go_on(attempt)

    def _count(self, attempt: PagedAttempt, tries: int, request: _Started) -> None:
        name = self._world.sites[attempt.subtask.site].name
        self._observe(name, attempt, request)
        if request.error is None or not request.error.facts.about_host:
            attempt.count(tries, 1, int(request.error is None))
        else:
            attempt.tried += 1
        if request.error is not None:
            attempt.errors.add(request.error)
            if request.error.facts.blocks:
                attempt.refused.add(name)
                self._hosts.push_back(name, self._world.nodes[attempt.node].name, self._events.now)
            if attempt.taken < attempt.responsible and attempt.floor.is_missed(
                attempt.tried, attempt.collected
            ):
                attempt.full = True
        else:
            self._open_lanes(attempt, 1)
        self._report(attempt)

    def _observe(self, host: str, attempt: PagedAttempt, request: _Started) -> None:
        node = self._world.nodes[attempt.node].name
        self._hosts.observe(host, node, AnswerSample(request.seconds, request.error), self._events.now)

    def _go_on(self, attempt: PagedAttempt) -> None:
        """Work on what was sent; else end where no lane is left; else wait without a slot."""
        if attempt.started:
            self._work(attempt)
        elif not attempt.lanes:
            self._on_end(attempt)
        else:
            self._settle(attempt)
            attempt.at_work = False
            self.waiting[attempt.node] += 1
            self._on_slot(attempt.node)

    # --- what it tells -------------------------------------------------------------------------------------------

    def _settle(self, attempt: PagedAttempt) -> None:
        now = self._events.now
        if attempt.at_work:
            attempt.active_s += now - attempt.since_s
        else:
            attempt.wait_s += now - attempt.since_s
        attempt.since_s = now

    def _report(self, attempt: PagedAttempt) -> None:
        """Update the report of a running attempt now and then; a page closes the half-open breaker of its host."""
        ago_s = self._events.now - attempt.reported_s
        news = attempt.tried >= attempt.report_at_tries
        if ago_s < (REPORT_SOONEST_S if news else REPORT_EVERY_S):
            return
        attempt.reported_s = self._events.now
        attempt.report_at_tries = max(FIRST_REPORT_TRIES, 2 * attempt.tried)
        attempt.reported = AttemptResult(
            site=self._world.sites[attempt.subtask.site].name,
            node=self._world.nodes[attempt.node].name,
            outcome=AttemptOutcome.RELEASED,
            offered=attempt.tried,
            tried=attempt.tried,
            collected=attempt.collected,
            active_s=attempt.active_s,
        )
        if attempt.collected:
            self._hosts.gave(attempt.reported.site, attempt.reported.node, self._events.now)
