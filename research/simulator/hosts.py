"""Hosts with limits or blocks, by production's own code: permits and paces, rests, and how a strategy sees them.

Permits and paces are those of `tasks.fetching`, rests those of `tasks.domain.breaker`, views those of
`tasks.scheduling.capacity`. Only the hosts themselves, that refuse an address after so many pages, are made up here.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from research.simulator.world import Block, World
from splitter.catalog.model import Limits
from tasks.domain.breaker import rest_s
from tasks.domain.facts import HostFacts
from tasks.domain.failures import ErrorClass
from tasks.fetching.pace import AnswerSample
from tasks.fetching.permits import PermitBook
from tasks.scheduling.capacity import Crawled, host_views
from tasks.scheduling.statistics import Knowledge

LONGEST_WAIT_S = 30.0
"""A permit further ahead ends an attempt, as in production."""

_LANES_AT_WORK = 1
"""Pages of an attempt are worked off one after the other, however many of its lanes have one: `seconds_per_page` is
the attempt's."""

_UNLIMITED = Limits(per_address_per_s=1000, total_per_s=10_000)
_FASTEST_S = 0.01


@dataclass(slots=True)
class Blocking:
    """Pages of one pair within the window, and until when nothing is collected."""

    starts: deque[float] = field(default_factory=deque)
    until_s: float = 0.0

    def answers(self, block: Block, at_s: float) -> bool:
        """Whether a page that starts then may be collected; counts it (at_s never falls)."""
        if at_s < self.until_s:
            return False
        starts = self.starts
        starts.append(at_s)
        while starts[0] <= at_s - block.window_s:
            starts.popleft()
        if len(starts) >= block.pages:
            self.until_s = at_s + block.for_s
            starts.clear()
        return True


@dataclass(slots=True)
class _Rest:
    until_s: float
    times: int


@dataclass(slots=True)
class _Asked:
    """Pages that closed attempts of a site tried, and how long they waited for permits."""

    pages: int = 0
    wait_s: float = 0.0


class Hosts:
    """Every host of a world that limits or blocks.

    Args:
        world: the scenario worked out.
        rests_rng: for the jitter of rests.
    """

    def __init__(self, world: World, rests_rng: Random) -> None:
        self._names = [node.name for node in world.nodes]
        self._addresses = {name: name for name in self._names}
        self._rng = rests_rng
        self._limits: dict[str, Limits] = {}
        self._only_block: set[str] = set()
        self._of_site: dict[str, tuple[str, str]] = {}
        for number, site in enumerate(world.sites):
            engine = world.engines.get(site.spec.engine or "")
            if world.rationed(number):
                self._of_site[site.name] = (engine.name if engine is not None else site.name, site.name)
                own = _limits(site.spec.per_address_per_s, site.spec.total_per_s)
                if own is _UNLIMITED and world.ever_blocks[number]:
                    own = _most(world, number)
                    self._only_block.add(site.name)
                self._limits[site.name] = own
            if engine is not None:
                self._limits[engine.name] = _limits(engine.per_address_per_s, engine.total_per_s)
        self._hits_per_result_page = world.scenario.work.hits_per_result_page
        self._permits = PermitBook(LONGEST_WAIT_S)
        self._blocking: dict[tuple[int, int], Blocking] = {}
        self._rests: dict[str, dict[str, _Rest]] = {}
        self._attempts: dict[tuple[str, str, bool], int] = {}
        self._well_begun: dict[tuple[str, str, bool], int] = {}
        self._asked: dict[str, _Asked] = {}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._of_site)

    def of(self, site: str) -> tuple[str, ...]:
        """Hosts that an attempt on a site asks: the engine's, where it has one, and its own."""
        return tuple(dict.fromkeys(self._of_site.get(site, (site,))))

    def known(self, host: str) -> bool:
        """Whether it limits or blocks anybody."""
        return host in self._limits

    def limited(self, host: str) -> bool:
        """Whether it may only be asked so often."""
        return self._limits.get(host, _UNLIMITED) is not _UNLIMITED

    # --- permits, answers, blocks ------------------------------------------------------------------------------

    def reserve(self, host: str, node: str, now_s: float) -> float:
        """Reserve a permit; seconds until its time. Beyond `LONGEST_WAIT_S` nothing is reserved."""
        if self.limited(host):
            return self._permits.reserve(host, node, self._limits[host], now_s)
        rest = self._rests.get(host, {}).get(node)
        return max(0.0, rest.until_s - now_s) if rest is not None else 0.0

    def observe(self, host: str, node: str, answer: AnswerSample, now_s: float) -> None:
        """Adapt paces to the outcome of a request."""
        if self.limited(host):
            self._permits.observe(host, node, self._limits[host], answer, now_s)

    def answers(self, site: int, node: int, block: Block | None, at_s: float) -> bool:
        """Whether a page that starts then may be collected; counts it (at_s never falls for a pair)."""
        if block is None:
            return True
        state = self._blocking.get((site, node))
        if state is None:
            state = self._blocking[site, node] = Blocking()
        return state.answers(block, at_s)

    def push_back(self, host: str, node: str, now_s: float) -> None:
        """It refused a node, whose other requests wait at once; how long it rests is decided when the attempt ends."""
        self._permits.push_back(host, node, rest_s(ErrorClass.FORBIDDEN, 1, None, self._rng), now_s)

    def refused(self, host: str, node: str, now_s: float) -> float:
        """It refused a node: its breaker opens (`tasks.store.queue.hosts.rest_hosts`). Returns when the rest ends."""
        rest = self._rests.setdefault(host, {}).setdefault(node, _Rest(now_s, 0))
        if rest.until_s <= now_s:
            rest.times += 1
        length_s = rest_s(ErrorClass.FORBIDDEN, rest.times, None, self._rng)
        rest.until_s = max(rest.until_s, now_s + length_s)
        self._permits.push_back(host, node, rest.until_s - now_s, now_s)
        return rest.until_s

    def gave(self, host: str, node: str, now_s: float) -> None:
        """It gave a node a page: a half-open breaker closes."""
        of_host = self._rests.get(host, {})
        if node in of_host and of_host[node].until_s <= now_s:
            del of_host[node]

    def answers_others(self, site: str, now_s: float) -> bool:
        """Whether each host of the site answers some address well, as `tasks.jobs.sweeps` asks it."""
        hosts = self.of(site)
        granted = self._permits.get_grants(hosts, now_s)
        return all(host in granted and granted[host].answers_well for host in hosts)

    # --- what strategies see -----------------------------------------------------------------------------------

    def leased(self, site: str, node: str, searches: bool) -> None:
        """An attempt was given to a node, with result pages or without."""
        self._count(self._attempts, (site, node, searches), 1)

    def under_way(self, site: str, node: str, searches: bool) -> None:
        """It is past its result pages, as a rule."""
        self._count(self._well_begun, (site, node, searches), 1)

    def left(
        self, site: str, node: str, searches: bool, *, under_way: bool, tried: int, wait_s: float
    ) -> None:
        """It is over; it waited so many seconds for permits with nothing in flight."""
        self._count(self._attempts, (site, node, searches), -1)
        if under_way:
            self._count(self._well_begun, (site, node, searches), -1)
        asked = self._asked.setdefault(site, _Asked())
        asked.pages += tried
        asked.wait_s += wait_s

    def _count(self, where: dict[tuple[str, str, bool], int], key: tuple[str, str, bool], by: int) -> None:
        if key[0] in self._of_site:
            where[key] = where.get(key, 0) + by

    def views(self, sites: Collection[str], knowledge: Knowledge, now_s: float) -> list[HostFacts]:
        """As strategies see them.

        Args:
            sites: where something waits.
            knowledge: what attempts took so far.
        """
        rests = [
            (host, node, rest.until_s - now_s, False)
            for host, by_node in self._rests.items()
            for node, rest in by_node.items()
        ]
        crawled = Crawled(
            running=self._running(),
            asking={},
            rests=rests,
            sites=[site for site in sites if site in self._of_site],
            grants=self._permits.get_grants(self._limits, now_s),
            addresses=self._addresses,
        )
        found = host_views(
            crawled,
            self._of_site.__getitem__,
            self._limits.__getitem__,
            self._request_s(knowledge, now_s),
            _LANES_AT_WORK,
            self._hits_per_result_page,
        )
        return [self._known_limits(view) for view in found.values()]

    def _known_limits(self, view: HostFacts) -> HostFacts:
        """The view with no limit that a catalog would not have."""
        if not self.limited(view.host):
            return replace(view, address_limit=None, pages_per_s=math.inf, address_pages_per_s=math.inf)
        return replace(view, pages_per_s=math.inf) if view.host in self._only_block else view

    def _running(self) -> Sequence[tuple[str, str, bool, int, int]]:
        return [
            (*key, attempts, self._well_begun.get(key, 0))
            for key, attempts in self._attempts.items()
            if attempts
        ]

    def _request_s(self, knowledge: Knowledge, now_s: float) -> Mapping[str, float]:
        """By site, seconds from one request of an attempt to the next, as `tasks.jobs.scheduler_state` has them."""
        found = {}
        for site in self._of_site:
            seen = knowledge.site(site, now_s)
            if seen.tried >= 1:
                asked = self._asked.get(site)
                waited_s = asked.wait_s / asked.pages if asked is not None and asked.pages else 0.0
                found[site] = max(_FASTEST_S, seen.active_s / seen.tried + waited_s)
        return found


def _limits(per_address_per_s: float | None, total_per_s: float | None) -> Limits:
    if per_address_per_s is None and total_per_s is None:
        return _UNLIMITED
    return Limits(
        per_address_per_s=per_address_per_s or _UNLIMITED.per_address_per_s,
        total_per_s=total_per_s or _UNLIMITED.total_per_s,
    )


_ROOM = 3.0
"""The limit of a host that only blocks, over what its nodes could ask: permits of its own hold nobody up."""


def _most(world: World, site: int) -> Limits:
    """More often than its nodes could ask a host at all: what an address learns of a block is a share of its limit."""
    per_s = [
        _ROOM * node.spec.slots / min(rates.seconds_per_page for rates in world.course(site, number).rates)
        for number, node in enumerate(world.nodes)
    ]
    return Limits(per_address_per_s=min(1000.0, max(per_s)), total_per_s=min(10_000.0, sum(per_s)))
