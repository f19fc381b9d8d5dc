"""Virtual time, and what happens in it: subtasks, attempts, and what becomes of an attempt's pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from research.simulator.world import Course
from tasks.domain.facts import SubtaskFacts
from tasks.store.queue.leases import HITS_UNREAD


class Events:
    """Calls to be made, in the order of their moments; those of one moment in the order they were announced.

    Attributes:
        now: virtual seconds.
    """

    __slots__ = ("_heap", "_serial", "now")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._serial = 0
        self.now = 0.0

    def __len__(self) -> int:
        """How many calls are still to be made."""
        return len(self._heap)

    @property
    def next_s(self) -> float:
        """When the next call is due; there must be one."""
        return self._heap[0][0]

    def at(self, moment_s: float, call: Callable[[Any], None], what: object) -> None:
        """Announce `call(what)`."""
        self._serial += 1
        heappush(self._heap, (moment_s, self._serial, call, what))

    def step(self) -> None:
        """Go to the next moment at which something is due, and make all its calls."""
        heap = self._heap
        moment_s = self.now = heap[0][0]
        while heap and heap[0][0] == moment_s:
            _, _, call, what = heappop(heap)
            call(what)


class Subtask:
    """The targets of a subtask that are left.

    Attributes:
        id: number of the subtask it is now; a follow-up has a new one.
        todo: pages left by the number of tries they have had.
        recalls, failed_on: in this round.
        listed: its result pages were read.
        vain: searches that will find nothing, before the one that lists them.
    """

    __slots__ = ("failed_on", "id", "listed", "recalls", "site", "todo", "vain")

    def __init__(self, number: int, site: int, pages: int, tries: int, vain: int = 0) -> None:
        self.id = number
        self.site = site
        self.todo = [pages] + [0] * (tries - 1)
        self.recalls = 0
        self.failed_on: tuple[str, ...] = ()
        self.listed = False
        self.vain = vain

    @property
    def settled(self) -> bool:
        """Whether nothing of it is left to be done."""
        return not self.vain and not any(self.todo)

    def view(self, site: str, kind: str, hosts: tuple[str, ...], hits_per_result_page: int) -> SubtaskFacts:
        """As strategies see it; its site has this name and kind, and these hosts (the engine's, the site's).

        Nobody knows how many hits a result page lists before it is read: it counts as much as production's.
        """
        left = max(1, sum(self.todo))
        if len(hosts) > 1 and not self.listed:
            left = HITS_UNREAD * -(-left // hits_per_result_page)
        return SubtaskFacts(
            id=self.id,
            site=site,
            kind=kind,
            hosts=hosts[-1:] if self.listed else hosts,
            left=left,
            priority=0,
            failed_on=self.failed_on,
        )


class Stretch(NamedTuple):
    """Pages of an attempt one after the other, at the same rates: the first starts at `from_s`."""

    from_s: float
    pages: int
    seconds_per_page: float
    completion: float


@dataclass(slots=True, eq=False)
class Attempt:
    """An attempt under way.

    Attributes:
        node: its number.
        responsible: pages it may take: quota, or what is left.
        budget_s: active seconds after which it takes no further page.
        stretches: pages it will have tried, where that is known when it begins.
        avail: pages it has not taken, by tries they had before.
        tried, collected, given_up, active_s, wait_s: so far.
        failed: it failed at its start.
        vain: its search finds nothing.
        begun: it was started by a node that was alive.
        under_way: long enough ago that it is past its result pages, as a rule.
        over: it has ended; events that still name it are ignored.
        silenced_s: when its node died, or it hung.
        counted: as hosts count it: site, node, whether it was given result pages.
    """

    subtask: Subtask
    node: int
    responsible: int
    budget_s: float
    stretches: list[Stretch] = field(default_factory=list)
    avail: list[int] = field(default_factory=list)
    tried: int = 0
    collected: int = 0
    given_up: int = 0
    active_s: float = 0.0
    wait_s: float = 0.0
    failed: bool = False
    begun: bool = False
    vain: bool = False
    under_way: bool = False
    over: bool = False
    silenced_s: float | None = None
    counted: tuple[str, str, bool] = ("", "", True)

    def next_class(self) -> int:
        """Tries of the page that is taken next: those with the fewest come first."""
        for tries, pages in enumerate(self.avail):
            if pages:
                return tries
        raise AssertionError("an attempt takes no more pages than are left")

    def count(self, tries: int, pages: int, collected: int) -> None:
        """Pages with so many earlier tries were tried: so many of them collected."""
        todo = self.subtask.todo
        todo[tries] -= pages
        self.tried += pages
        self.collected += collected
        missed = pages - collected
        if tries + 1 < len(todo):
            todo[tries + 1] += missed
        else:
            self.given_up += missed


def lay_out(course: Course, attempt: Attempt, start_s: float) -> float:
    """Lay out the pages of an attempt that nothing will hold up; returns when the last one ends.

    Each page has the rates in force when it starts. One that is begun within the budget is ended.

    Args:
        start_s: of its first page; `attempt.active_s` is what it took until then.
    """
    left, t, spent = attempt.responsible, start_s, attempt.active_s
    first = True
    while left and (first or spent < attempt.budget_s):
        place = course.at(t)
        seconds, chance = course.rates[place].seconds_per_page, course.rates[place].completion
        pages = min(left, max(1, math.ceil((attempt.budget_s - spent) / seconds - 1e-9)))
        if place + 1 < len(course.from_s):
            pages = min(pages, max(1, math.ceil((course.from_s[place + 1] - t) / seconds - 1e-9)))
        attempt.stretches.append(Stretch(t, pages, seconds, chance))
        left -= pages
        t += pages * seconds
        spent += pages * seconds
        first = False
    return t


def draw_pages(attempt: Attempt, until_s: float, rng: np.random.Generator) -> None:
    """Draw what the planned pages that ended by `until_s` came to."""
    for stretch in attempt.stretches:
        pages, seconds = stretch.pages, stretch.seconds_per_page
        if stretch.from_s + pages * seconds > until_s + 1e-9:
            pages = max(0, min(pages, math.floor((until_s - stretch.from_s) / seconds + 1e-9)))
        attempt.active_s += pages * seconds
        while pages:
            tries = attempt.next_class()
            some = min(pages, attempt.avail[tries])
            attempt.avail[tries] -= some
            attempt.count(tries, some, _binomial(some, stretch.completion, rng))
            pages -= some
    attempt.stretches = []


def _binomial(pages: int, chance: float, rng: np.random.Generator) -> int:
    if chance >= 1.0:
        return pages
    if chance <= 0.0:
        return 0
    return int(rng.binomial(pages, chance))
