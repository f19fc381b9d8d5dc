"""What `feedback` expects, worked out for everything that waits at one moment: beliefs, a plan, and what follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from tasks.domain.pair_stats import PairStats
from tasks.scheduling import allowances, fluid
from tasks.scheduling import posterior as estimate
from tasks.scheduling.decision import AllocationSettings
from tasks.scheduling.guess import by_distance
from tasks.scheduling.pair_backoff import PairBackoff
from tasks.scheduling.ready_queue import Backlog, Group, ReadyQueue
from tasks.scheduling.scores import Scores
from tasks.scheduling.statistics import Knowledge

Array = NDArray[np.float64]

_HASTE = 4.0
"""A node may run ahead of the plan at a site by this factor, while something else that is planned for it waits."""

_ROUNDS = 5.0
"""A draw is kept as long as it takes to try every pair so many times ..."""

_SO_MANY = 5000
"""... where there are so many pairs; with fewer it is kept for a shorter time, in proportion."""

_HOPELESS = 0.1
"""A node that gets to less than this share of the pages that the best node of a site gets to is left out there."""


@dataclass(slots=True)
class Outlook:
    """A plan with what was believed when it was made.

    Attributes:
        at_s: when.
        sites, nodes: place of each name on the two axes of what follows.
        belief: drawn from what was known.
        shares: by node, its planned sites with the share of its planned time that each gets.
        rates: pages per second of a slot of each pair; 0 where the node may not. (sites, nodes)
        going: share of its time that an attempt does not wait for its address' next send time. (sites, nodes)
        best: the best rate of each site. (sites,)
        fastest_pace: the best rate of each site by the clock, waiting included. (sites,)
        wait_s: seconds until the last page that waits of a site is begun, if the plan is followed. (sites,)
        seen: the ready queue's version it was made for.
        slots: of each node.
        typical_pages: most pages an attempt is expected to take.
        lasts_s: until the next plan.
        idle: nodes that found nothing, with the ready queue's number of changes then.
    """

    at_s: float
    sites: dict[str, int]
    nodes: dict[str, int]
    belief: estimate.Belief
    shares: dict[str, dict[str, float]]
    rates: Array
    going: Array
    best: Array
    fastest_pace: Array
    wait_s: Array
    seen: int
    slots: Array
    typical_pages: float
    lasts_s: float
    idle: dict[str, int] = field(default_factory=dict)
    _given_s: dict[tuple[str, str], float] = field(default_factory=dict)
    _by_strength: dict[str, list[str]] = field(default_factory=dict)
    _by_rate: dict[str, list[str]] = field(default_factory=dict)
    _rate_of: dict[tuple[str, str, float], float] = field(default_factory=dict)
    _worth_of: dict[tuple[str, str, float, float], float] = field(default_factory=dict)

    def knows(self, site: str, node: str) -> bool:
        """Whether both were there when the plan was made."""
        return site in self.sites and node in self.nodes

    def rate(self, group: Group, node: str) -> float:
        """Pages per second of a slot for the group's next subtask, as believed (drawn)."""
        key = group.first.site, node, min(float(group.pages), self.typical_pages)
        known = self._rate_of.get(key)
        if known is None:
            site, name, pages = key
            known = self._rate_of[key] = self.belief.rate(self.sites[site], self.nodes[name], pages)
        return known

    def seconds(self, group: Group, node: str) -> float:
        """Seconds of a slot that the group's next subtask is expected to take."""
        pages = min(float(group.pages), self.typical_pages)
        return self.belief.seconds(self.sites[group.first.site], self.nodes[node], pages)

    def hasty(self, site: str, node: str, now_s: float) -> bool:
        """Whether the node has been given much more of the site since the plan was made than its share of the time.

        What yields most comes first, and most of what is planned can wait, since a plan looks far ahead. But a site of
        which the plan wants little on this node is planned, for most of it, on others.
        """
        share = self.shares[node].get(site, 0.0)
        time_s = float(self.slots[self.nodes[node]]) * (now_s - self.at_s + self.lasts_s)
        return self._given_s.get((site, node), 0.0) >= _HASTE * share * time_s

    def gave(self, group: Group, node: str) -> None:
        """The group's next subtask goes to the node."""
        pair = group.first.site, node
        self._given_s[pair] = self._given_s.get(pair, 0.0) + self.seconds(group, node)

    def worth(self, group: Group, node: str, scarcity: float) -> float:
        """What choosing is done by: rate / (the same subtask's rate on the site's best node) ** scarcity."""
        site = group.first.site
        key = site, node, min(float(group.pages), self.typical_pages), scarcity
        known = self._worth_of.get(key)
        if known is None:
            best = max(self.rate(group, self.fastest(site)[0]), 1e-9)
            known = self._worth_of[key] = self.rate(group, node) / math.exp(scarcity * math.log(best))
        return known

    def sooner(self, ready: ReadyQueue, group: Group, node: str) -> bool:
        """Whether the node is done with the group's next subtask before it would be done by waiting.

        Waiting: until the nodes that are planned for the site begin the last page that waits there, and then one
        subtask's time on the best node that may run it.
        """
        if group.first.assigned == node:
            return True
        best = self._best(ready, group)
        if best <= 0:
            return True  # nobody was allowed when the plan was made
        site = self.sites[group.first.site]
        waited_s = float(self.wait_s[site])
        rate = self.rate(group, node) * float(self.going[site, self.nodes[node]])
        return group.pages / max(rate, 1e-9) <= waited_s + group.pages / best

    def strongest(self, node: str) -> list[str]:
        """Sites in the order of how near the node comes to the best of each."""
        known = self._by_strength.get(node)
        if known is None:
            column = self.nodes[node]
            strength = self.belief.rates(self.typical_pages)[:, column] / np.maximum(self.best, 1e-9)
            names = list(self.sites)
            order = np.argsort(-strength, kind="stable").tolist()
            known = self._by_strength[node] = [names[place] for place in order]
        return known

    def fastest(self, site: str) -> list[str]:
        """Nodes in the order of what they yield at a site."""
        known = self._by_rate.get(site)
        if known is None:
            names = list(self.nodes)
            order = np.argsort(-self.rates[self.sites[site]], kind="stable").tolist()
            known = self._by_rate[site] = [names[column] for column in order]
        return known

    def _best(self, ready: ReadyQueue, group: Group) -> float:
        """The best yield of the group's site on any node that may run the group: what failed it is not waited for."""
        site = group.first.site
        if not group.first.failed_on:
            return float(self.fastest_pace[self.sites[site]])
        row, able = self.sites[site], [self.nodes[name] for name in self.nodes if ready.may(group, name)]
        return float((self.rates[row, able] * self.going[row, able]).max(initial=0.0))


def look_ahead(
    ready: ReadyQueue,
    knowledge: Knowledge,
    now_s: float,
    rng: Random,
    settings: AllocationSettings,
    backoff: PairBackoff,
    scores: Scores,
    lasts_s: float,
) -> Outlook:
    """Draw beliefs of every pair and plan what waits.

    Args:
        ready: what waits, and for whom.
        knowledge: what closed attempts say.
        now_s: when.
        rng: for the draw.
        settings: parameters.
        backoff: who is held back at which host.
        scores: to draw with.
        lasts_s: until the next plan.
    """
    work, nodes = _work(ready), list(ready.nodes)
    sites = list(work)
    guess_s = None
    if settings.distances is not None:
        guess_s = by_distance(settings.distances, knowledge, now_s, sites, nodes, settings.estimate)
    believed = estimate.posterior(knowledge, now_s, sites, nodes, settings.estimate, guess_s)
    slots = np.array([float(ready.nodes[name].slots) for name in nodes])
    pairs = len(sites) * len(nodes)
    once_s = pairs * _attempt_s(knowledge, now_s) / max(1.0, slots.sum())
    memory_s = _ROUNDS * once_s * min(1.0, pairs / _SO_MANY)
    belief = believed.draw(scores.at(now_s, sites, nodes, memory_s, rng))
    mean = np.array([min(settings.typical_pages, one.left / one.subtasks) for one in work.values()])
    allowed = _allowed(ready, sites, nodes) & (slots > 0)
    belief = _without_hopeless(belief, allowed)
    rates = np.where(allowed, belief.rates(mean[:, None]), 0.0)
    pages = np.array([float(one.left) for one in work.values()])
    asks = rates / np.maximum(belief.page_chance, 1e-9)
    if settings.waits_hold_slots:  # what a host allows is counted in attempts
        asks, hosts = np.ones_like(rates), allowances.feeds(ready, sites)
        alone = allowances.address_limits(ready, sites, asks)
    else:
        hosts = allowances.asked_for(ready, sites)
        alone = allowances.alone(ready, sites, asks)
    going = np.minimum(alone, 1.0)
    restrained = np.minimum(alone, allowances.restrained(ready, sites, nodes, backoff, now_s))
    demand = fluid.Demand(rates, pages, slots, asks, hosts, restrained)
    plan = fluid.plan(demand, settings.fluid)
    flow = (plan.seconds * rates).sum(axis=1) / max(settings.fluid.early * plan.drain_s, 1e-9)
    return Outlook(
        at_s=now_s,
        sites={name: place for place, name in enumerate(sites)},
        nodes={name: place for place, name in enumerate(nodes)},
        belief=belief,
        shares={name: _shares(plan.seconds[:, column], sites) for column, name in enumerate(nodes)},
        rates=rates,
        going=going,
        best=rates.max(axis=1, initial=0.0),
        fastest_pace=(rates * going).max(axis=1, initial=0.0),
        wait_s=np.minimum(pages / np.maximum(flow, 1e-9), plan.drain_s),
        seen=ready.version,
        slots=slots,
        lasts_s=lasts_s,
        typical_pages=float(settings.typical_pages),
    )


def _attempt_s(knowledge: Knowledge, now_s: float) -> float:
    """Active seconds of an attempt, over all pairs; 10 where nothing is known."""
    seen = PairStats.of(knowledge.sums(now_s).sum(axis=(0, 1)).tolist())
    return max(seen.active_s / seen.attempts, 0.1) if seen.attempts >= 1.0 else 10.0


def _shares(seconds: Array, sites: Sequence[str]) -> dict[str, float]:
    """By site, its share of a node's planned seconds; sites without any are left out."""
    total = float(seconds.sum())
    return {sites[place]: float(seconds[place]) / total for place in np.flatnonzero(seconds > 1e-6).tolist()}


def _work(ready: ReadyQueue) -> dict[str, Backlog]:
    """By site, what waits and what has still to be let in; of sites the ready queue has seen, since kind and hosts
    count."""
    work: dict[str, Backlog] = {}
    for site in ready.sites:
        waits, pending = ready.backlog.get(site), ready.pending.get(site)
        if waits is None or pending is None:
            known = waits or pending
            if known is not None:
                work[site] = known
        else:
            work[site] = Backlog(waits.subtasks + pending.subtasks, waits.left + pending.left)
    return work


def _without_hopeless(belief: estimate.Belief, allowed: NDArray[np.bool_]) -> estimate.Belief:
    """Nothing is expected of nodes that get to hardly any page where others do.

    Little as they slow a long backlog down, each of their failures costs a subtask one of its few recalls.
    """
    best = np.where(allowed, belief.reach, 0.0).max(axis=1, keepdims=True, initial=0.0)
    return belief._replace(reach=np.where(belief.reach < _HOPELESS * best, 0.0, belief.reach))


def _allowed(ready: ReadyQueue, sites: Sequence[str], nodes: Sequence[str]) -> NDArray[np.bool_]:
    """Which nodes have a site's kind and are refused by none of its hosts."""
    kinds = {ready.sites[site].kind for site in sites}
    by_kind = {kind: np.array([kind in ready.nodes[name].kinds for name in nodes]) for kind in kinds}
    allowed = np.array([by_kind[ready.sites[site].kind] for site in sites])
    refusing = {name: view.resting for name, view in ready.hosts.items() if view.resting}
    if refusing:
        for place, site in enumerate(sites):
            for host in ready.sites[site].hosts:
                for column, name in enumerate(nodes):
                    if name in refusing.get(host, ()):
                        allowed[place, column] = False
    return allowed
