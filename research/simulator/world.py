"""A scenario worked out: who is there when, which rates are in force for a pair at a moment, and the work drawn.

Rates are piecewise constant. Pairs that the same entries speak of share one `Course`, made when first asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from research.simulator.scenario import ANY, Dist, EngineSpec, NodeSpec, PairSpec, Scenario, SiteSpec
from tasks.scheduling.rebalancing import BufferRule

LANES = 4
"""Requests of an attempt in flight at once, as production has them by default."""

MOST_ATTEMPTS = 1 + BufferRule().slots_over
"""Attempts that a node has at once, of each slot: those beyond its slots only wait."""


class Block(NamedTuple):
    """After so many pages in so many seconds, nothing is collected for so long."""

    pages: int
    window_s: float
    for_s: float

    @property
    def most_per_s(self) -> float:
        """Pages a second that may count in the long run, however they are spread (docs/oracle.md, blocks)."""
        return max((self.pages - 1) / self.window_s, self.pages / self.for_s)


class Rates(NamedTuple):
    """Rates in force for a pair; see `research.simulator.scenario.PairSpec`."""

    seconds_per_page: float
    completion: float
    fail: float
    hang: float
    fault: float
    block: Block | None


@dataclass(frozen=True, slots=True)
class Course:
    """Rates of a pair over time: `rates[i]` from `from_s[i]` (0 first) until the next."""

    from_s: tuple[float, ...]
    rates: tuple[Rates, ...]

    def at(self, t: float) -> int:
        """Place of the rates in force at a moment."""
        return bisect_right(self.from_s, t) - 1 if len(self.from_s) > 1 else 0


@dataclass(frozen=True, slots=True)
class Node:
    """One node."""

    name: str
    group: str
    spec: NodeSpec

    def alive(self, end_s: float) -> list[tuple[float, float]]:
        """When it is there, up to `end_s`: (from, until)."""
        spec = self.spec
        spans = [(spec.appears_at_s, end_s if spec.dies_at_s is None else spec.dies_at_s)]
        if spec.back_at_s is not None:
            spans.append((spec.back_at_s, end_s))
        return [(a, min(b, end_s)) for a, b in spans if a < min(b, end_s)]


@dataclass(frozen=True, slots=True)
class Site:
    """One site."""

    name: str
    group: str
    spec: SiteSpec

    @property
    def limited(self) -> bool:
        """Whether its host may only be asked so often."""
        return self.spec.per_address_per_s is not None or self.spec.total_per_s is not None


class World:
    """Nodes and sites by number, and the courses of their pairs."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.nodes = [Node(name, spec.name, spec) for spec in scenario.nodes for name in spec.names()]
        self.sites = [Site(name, spec.name, spec) for spec in scenario.sites for name in spec.names()]
        self._entries: dict[tuple[str, str], list[int]] = {}
        for index, pair in enumerate(scenario.pairs):
            self._entries.setdefault((pair.node, pair.site), []).append(index)
        self._courses: dict[tuple[int, ...], Course] = {}
        self._of_pair: dict[int, Course] = {}

    def course(self, site: int, node: int) -> Course:
        """Of a pair, by the numbers of both."""
        key = site * len(self.nodes) + node
        found = self._of_pair.get(key)
        if found is None:
            found = self._of_pair[key] = self._made(self.sites[site], self.nodes[node])
        return found

    @cached_property
    def ever_blocks(self) -> list[bool]:
        """By site, whether some entry that speaks of it blocks."""
        blocking = {pair.site for pair in self.scenario.pairs if pair.block_after_pages is not None}
        return [bool(blocking & {ANY, site.name, site.group}) for site in self.sites]

    @cached_property
    def engines(self) -> dict[str, EngineSpec]:
        """By name."""
        return {engine.name: engine for engine in self.scenario.engines}

    def rationed(self, site: int) -> bool:
        """Whether a host that an attempt on the site asks limits or blocks anybody."""
        return self.sites[site].limited or self.ever_blocks[site] or self.sites[site].spec.engine is not None

    @cached_property
    def crowds(self) -> bool:
        """Whether a node may have more attempts at work than slots, because some of them waited."""
        return any(self.rationed(site) for site in range(len(self.sites)))

    def eligible(self, site: int, node: int) -> bool:
        """Whether the node may crawl the site's kind."""
        return str(self.sites[site].spec.kind) in self.nodes[node].spec.all_kinds

    def _made(self, site: Site, node: Node) -> Course:
        entries: list[int] = []
        for name in dict.fromkeys((ANY, node.group, node.name)):
            for place in dict.fromkeys((ANY, site.group, site.name)):
                entries += self._entries.get((name, place), ())
        key = tuple(sorted(entries))
        found = self._courses.get(key)
        if found is None:
            found = self._courses[key] = _course([self.scenario.pairs[index] for index in key])
        return found


_RATES = ("seconds_per_page", "completion", "fail", "hang", "fault")
_BLOCK = ("block_after_pages", "block_window_s", "block_for_s")


def _course(entries: list[PairSpec]) -> Course:
    """Entries laid over each other, key by key, later ones over earlier ones, from their moment on."""
    moments = sorted({0.0, *(entry.from_s for entry in entries)})
    times: list[float] = []
    laid: list[Rates] = []
    for moment in moments:
        values = {name: PairSpec.model_fields[name].default for name in (*_RATES, *_BLOCK)}
        for entry in entries:
            if entry.from_s <= moment:
                values |= {name: getattr(entry, name) for name in entry.model_fields_set if name in values}
        after = values["block_after_pages"]
        block = None if after is None else Block(after, values["block_window_s"], values["block_for_s"])
        rates = Rates(**{name: values[name] for name in _RATES}, block=block)
        if not laid or rates != laid[-1]:
            times.append(moment)
            laid.append(rates)
    return Course(tuple(times), tuple(laid))


@dataclass(frozen=True, slots=True)
class Task:
    """One product on one site; before its hits are listed, `vain` searches find nothing."""

    site: int
    arrive_s: float
    hits: int
    vain: int = 0


def draw_work(world: World, seed: int) -> list[Task]:
    """The tasks, in the order they arrive: by product, then site. The same for every strategy."""
    work = world.scenario.work
    hits = draw_hits(world, seed)
    vain = _listed(world, work.hits.vain)
    tasks = [
        Task(
            site,
            max(work.arrive_s + product * work.arrive_every_s, world.sites[site].spec.appears_at_s),
            drawn,
            searches,
        )
        for product, row in enumerate(zip(hits.tolist(), vain.tolist(), strict=True))
        for site, (drawn, searches) in enumerate(zip(*row, strict=True))
        if drawn or searches
    ]
    return sorted(tasks, key=lambda task: task.arrive_s)


def draw_hits(world: World, seed: int) -> NDArray[np.int64]:
    """Hits by (product, site); 0: no such task (only where hits are listed)."""
    work = world.scenario.work
    given, shape = work.hits, (work.products, len(world.sites))
    rng = np.random.default_rng([abs(seed), 0])
    if given.dist is Dist.LISTED:
        return _listed(world, given.listed)
    if given.dist is Dist.CONSTANT:
        drawn = np.full(shape, given.mean)
    elif given.dist is Dist.PARETO:  # a Lomax tail from x_m on: mean x_m alpha / (alpha - 1)
        least = given.mean * (given.alpha - 1.0) / given.alpha
        drawn = least * (1.0 + rng.pareto(given.alpha, shape))
    else:
        mu = np.log(given.mean) - given.sigma**2 / 2.0
        drawn = rng.lognormal(mu, given.sigma, shape)
    whole: NDArray[np.int64] = np.maximum(1, np.rint(np.minimum(drawn, 1e12))).astype(np.int64)
    return whole


def _listed(world: World, by_site: Mapping[str, Sequence[int]]) -> NDArray[np.int64]:
    """Numbers that are listed by site, by (product, site); 0 beyond."""
    products = world.scenario.work.products
    listed = np.zeros((products, len(world.sites)), dtype=np.int64)
    for place, site in enumerate(world.sites):
        row = by_site.get(site.name, ())[:products]
        listed[: len(row), place] = row
    return listed


def chunks(hits: int, chunk_pages: int) -> list[int]:
    """Sizes of a task's subtasks."""
    if chunk_pages <= 0 or hits <= chunk_pages:
        return [hits]
    whole, rest = divmod(hits, chunk_pages)
    return [chunk_pages] * whole + ([rest] if rest else [])
