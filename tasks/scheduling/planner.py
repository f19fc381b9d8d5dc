"""The planner of `feedback`. It estimates the yield of every (site, node) and plans which sites each node serves.

A plan rests on rates drawn from the posteriors of all pairs (`tasks.scheduling.posterior`) and divides the slots of all
nodes over the sites (`tasks.scheduling.fluid`). It is made every `REPLAN_S`, when sites, nodes or refusals change,
and when there are many new results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from tasks.domain.pair_stats import PairStats
from tasks.scheduling import capacity, eligibility, fluid
from tasks.scheduling.decision import REPLAN_S, TYPICAL_PAGES, AllocationSettings, Prices, Ruling
from tasks.scheduling.pair_backoff import PairBackoff
from tasks.scheduling.permit_needs import PermitNeeds
from tasks.scheduling.plan import Array, Plan
from tasks.scheduling.posterior import Belief, posterior
from tasks.scheduling.prior import distance_prior
from tasks.scheduling.ready_queue import Backlog, ReadyQueue, SubtaskGroup
from tasks.scheduling.sampled_rates import SampledRates
from tasks.scheduling.statistics import Knowledge

_OUTDATED_S = 0.1 * REPLAN_S
"""Age in seconds after which a plan that no longer fits is replaced."""

_NEWS = 1.25
"""A plan is replaced when the number of tried pages is this multiple of the number when it was made, ..."""

_FIRST_NEWS = 10.0
"""... and exceeds it by at least this number, ..."""

_NEWS_S = 0.05 * REPLAN_S
"""... but not before this age in seconds."""

_UNPLANNED_S = 0.01 * REPLAN_S
"""Age in seconds after which a plan is replaced because work waits at a site without waiting work before."""

_MANY_PAIRS = 10_000
"""Number of pairs above which plans are made less often, as the cost of a plan grows with it."""

_MOST_TIMES_LONGER = 5.0
"""Maximum stretch of the time between plans."""

_AHEAD = 4.0
"""Multiple of its plan that a node may reach at a site while other planned work waits for it."""

_ROUNDS = 5.0
"""A draw is kept for the time that it takes to try every pair this number of times, ..."""

_PAIRS_TO_EXPLORE = 5000
"""... if there are at least this number of pairs; with fewer, for a proportionally shorter time."""

_HOPELESS = 0.1
"""A site's plan leaves out nodes that reach less than this share of the pages that its best node reaches."""

_SCARCITY = 0.3, 0.7
"""Weight of a subtask's best yield elsewhere against giving it a slot, from 0 (most pages now) to 1 (each node does
the work it is comparatively best at): with endless work, and in the last `_SCARCE_S`. Found by simulation:
docs/strategies.md."""

_SCARCE_S = 7200.0
"""Seconds until all is collected up to which the weight is full. For a backlog n times as long it is an n-th."""

_ROUNDING = 1e-6
"""Shadow prices up to this count as 0, because of the solver's rounding."""

_ATTEMPT_S = 10.0
"""Assumed active seconds of an attempt without data."""


class Planner:
    """Makes plans and stores the one in force. All stored values can be computed again.

    Args:
        settings: settings of the allocation.
        backoff: recent refusals of nodes by hosts.
    """

    def __init__(self, settings: AllocationSettings, backoff: PairBackoff) -> None:
        self._settings = settings
        self._backoff = backoff
        self._sampled = SampledRates()
        self._plan: Plan | None = None
        self._permit_needs: PermitNeeds | None = None
        self._forget()

    def _forget(self) -> None:
        """Clear the caches, which belong to one plan."""
        self._given_s: dict[tuple[str, str], float] = {}
        self._sites_of: dict[str, list[str]] = {}
        self._nodes_of: dict[str, list[str]] = {}
        self._rates: dict[tuple[str, str, float], float] = {}
        self._worths: dict[tuple[str, str, float], float] = {}

    @property
    def plan(self) -> Plan:
        """Return the plan in force. Raises ValueError before the first `update`."""
        if self._plan is None:
            raise ValueError("no plan was made yet: call update")
        return self._plan

    @property
    def permit_needs(self) -> PermitNeeds:
        """Return the needs of permits by the plan in force. Raises ValueError before the first `update`."""
        if self._permit_needs is None:
            raise ValueError("no plan was made yet: call update")
        return self._permit_needs

    def includes(self, site: str, node: str) -> bool:
        """Return True if there is a plan that knows both names."""
        return self._plan is not None and self._plan.includes(site, node)

    def update(self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random) -> None:
        """Make a new plan if there is none, or if the plan is too old or no longer fits."""
        if self._plan is not None:
            age_s = now_s - self._plan.made_at_s
            changed = self._plan.version != ready.version and self.is_outdated(now_s)
            strangers = any(name not in self._plan.nodes for name in ready.free)
            slower = self._plan.lasts_s / REPLAN_S
            unplanned = age_s >= _UNPLANNED_S * slower and not ready.backlog.keys() <= self._plan.sites.keys()
            news = (
                age_s >= _NEWS_S * slower and knowledge.pages_tried >= _NEWS * self._plan.tried + _FIRST_NEWS
            )
            if 0 <= age_s < self._plan.lasts_s and not (changed or strangers or unplanned or news):
                return
        self.replan(ready, knowledge, now_s, rng)

    def is_outdated(self, now_s: float) -> bool:
        """Return True if the plan is old enough to be replaced when it no longer fits."""
        return now_s - self.plan.made_at_s >= _OUTDATED_S

    def replan(self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random) -> None:
        """Draw the rates of all pairs and plan the waiting work."""
        work, nodes = _work(ready), list(ready.nodes)
        sites = list(work)
        examples = [ready.sites[site] for site in sites]
        prior_s = None
        if self._settings.distances is not None:
            prior_s = distance_prior(self._settings.distances, knowledge, now_s, sites, nodes)
        believed = posterior(knowledge, now_s, sites, nodes, prior_s)
        slots = np.array([float(ready.nodes[name].slots) for name in nodes])
        pairs = len(sites) * len(nodes)
        once_s = pairs * _attempt_s(knowledge, now_s) / max(1.0, slots.sum())
        memory_s = _ROUNDS * once_s * min(1.0, pairs / _PAIRS_TO_EXPLORE)
        belief = believed.draw(self._sampled.scores(now_s, sites, nodes, memory_s, rng))
        allowed = eligibility.eligible_for_sites(examples, ready.nodes, ready.hosts) & (slots > 0)
        belief = _drop_hopeless(belief, allowed)
        typical = np.array([min(TYPICAL_PAGES, one.left / one.subtasks) for one in work.values()])
        rates = np.where(allowed, belief.rates(typical[:, None]), 0.0)
        asks = rates / np.maximum(belief.page_chance, 1e-9)
        hosts = capacity.total_pages(examples, ready.hosts)
        alone = capacity.address_pages(examples, nodes, ready.hosts, asks)
        requesting = np.minimum(alone, 1.0)
        alone = np.minimum(alone, self._backoff.shares(examples, nodes, now_s))
        pages = np.array([float(one.left) for one in work.values()])
        demand = fluid.Demand(rates=rates, pages=pages, slots=slots, asks=asks, hosts=hosts, alone=alone)
        division = fluid.divide(demand)
        permit_worth = np.zeros(len(sites))
        for (places, _), worth in zip(hosts, division.permit_worth, strict=True):
            permit_worth[places] = np.maximum(permit_worth[places], worth)
        flow = (division.seconds * rates).sum(axis=1) / max(fluid.EARLY * division.drain_s, 1e-9)
        known_pairs = len(ready.sites) * len(ready.nodes)
        lasts_s = REPLAN_S * min(_MOST_TIMES_LONGER, max(1.0, known_pairs / _MANY_PAIRS))
        self._forget()
        self._plan = Plan(
            made_at_s=now_s,
            lasts_s=lasts_s,
            version=ready.version,
            sites={name: place for place, name in enumerate(sites)},
            nodes={name: place for place, name in enumerate(nodes)},
            belief=belief,
            believed=believed,
            shares={name: _shares(division.seconds[:, place], sites) for place, name in enumerate(nodes)},
            rates=rates,
            requesting=requesting,
            best_rate=rates.max(axis=1, initial=0.0),
            best_pace=(rates * requesting).max(axis=1, initial=0.0),
            wait_s=np.minimum(pages / np.maximum(flow, 1e-9), division.drain_s),
            slots=slots,
            scarcity=scarcity(division.drain_s),
            tried=knowledge.pages_tried,
            permit_worth=permit_worth,
            slot_worth=division.slot_worth,
        )
        self._permit_needs = PermitNeeds(self._plan)

    def rate(self, group: SubtaskGroup, node: str) -> float:
        """Return the drawn pages per second of a slot for the group's next subtask."""
        key = group.first.site, node, min(float(group.pages), TYPICAL_PAGES)
        known = self._rates.get(key)
        if known is None:
            site, name, pages = key
            plan = self.plan
            known = self._rates[key] = plan.belief.rate(plan.sites[site], plan.nodes[name], pages)
        return known

    def seconds(self, group: SubtaskGroup, node: str) -> float:
        """Return the expected seconds of a slot for the group's next subtask."""
        pages, plan = min(float(group.pages), TYPICAL_PAGES), self.plan
        return plan.belief.seconds(plan.sites[group.first.site], plan.nodes[node], pages)

    def worth(self, group: SubtaskGroup, node: str) -> float:
        """Return the score of a group on a node: rate / (rate of the subtask on the site's best node) ** scarcity."""
        key = group.first.site, node, min(float(group.pages), TYPICAL_PAGES)
        known = self._worths.get(key)
        if known is None:
            best = max(self.rate(group, self.best_nodes(key[0])[0]), 1e-9)
            known = self._worths[key] = self.rate(group, node) / math.exp(self.plan.scarcity * math.log(best))
        return known

    def is_ahead(self, site: str, node: str, now_s: float) -> bool:
        """Return True if the node got much more work of the site since the plan was made than its share of the time.

        The best yield comes first, and most planned work can wait, since a plan covers a long time. But if the plan
        gives this node little work of a site, it gives most of the site to other nodes.
        """
        plan = self.plan
        share = plan.shares[node].get(site, 0.0)
        time_s = float(plan.slots[plan.nodes[node]]) * (now_s - plan.made_at_s + plan.lasts_s)
        return self._given_s.get((site, node), 0.0) >= _AHEAD * share * time_s

    def record(self, group: SubtaskGroup, node: str) -> None:
        """Record that the group's next subtask goes to the node."""
        pair = group.first.site, node
        self._given_s[pair] = self._given_s.get(pair, 0.0) + self.seconds(group, node)

    def finishes_sooner(
        self, ready: ReadyQueue, group: SubtaskGroup, node: str, best_pace: float | None = None
    ) -> bool:
        """Return True if the node completes the group's next subtask sooner than waiting would.

        The time of waiting is the time until the nodes planned for the site begin its last waiting page, plus the
        time of one subtask on the best node that may run it.

        Args:
            best_pace: the best pace of the nodes to wait for (see `best_pace`); `None` for all nodes.
        """
        if group.first.assigned == node:
            return True
        plan = self.plan
        best = self.best_pace(ready, group) if best_pace is None else best_pace
        if best <= 0:
            return True  # no node was allowed when the plan was made
        site = plan.sites[group.first.site]
        waited_s = float(plan.wait_s[site])
        rate = self.rate(group, node) * float(plan.requesting[site, plan.nodes[node]])
        return group.pages / max(rate, 1e-9) <= waited_s + group.pages / best

    def best_pace(self, ready: ReadyQueue, group: SubtaskGroup, without: str | None = None) -> float:
        """Return the best yield of the group's site on nodes that may take it and have not failed it."""
        plan = self.plan
        row = plan.sites[group.first.site]
        if not group.first.failed_on and without is None:
            return float(plan.best_pace[row])
        able = [plan.nodes[name] for name in plan.nodes if name != without and ready.may_take(group, name)]
        return float((plan.rates[row, able] * plan.requesting[row, able]).max(initial=0.0))

    def prices(self, site: str, node: str) -> Prices | None:
        """Return the worth of a permit and of a slot at the pair; `None` if no plan includes it."""
        if not self.includes(site, node):
            return None
        plan = self.plan
        row, column, of = plan.sites[site], plan.nodes[node], plan.believed
        a, b = float(of.page_a[row, column]), float(of.page_b[row, column])
        permit, slot = float(plan.permit_worth[row]), float(plan.slot_worth[column])
        requests_per_s = float(plan.rates[row, column] / max(plan.belief.page_chance[row, column], 1e-9))
        if max(permit, slot) <= _ROUNDING:
            ruled = Ruling.NEITHER
        else:
            ruled = Ruling.PERMITS if requests_per_s * permit >= slot else Ruling.SLOTS
        return Prices(page_chance=a / (a + b), permit=permit, slot=slot, ruled=ruled)

    def best_sites(self, node: str) -> list[str]:
        """Return the sites by the node's yield relative to that of the site's best node, greatest first."""
        known = self._sites_of.get(node)
        if known is None:
            plan = self.plan
            rates = plan.belief.rates(float(TYPICAL_PAGES))[:, plan.nodes[node]]
            names = list(plan.sites)
            order = np.argsort(-(rates / np.maximum(plan.best_rate, 1e-9)), kind="stable").tolist()
            known = self._sites_of[node] = [names[place] for place in order]
        return known

    def best_nodes(self, site: str) -> list[str]:
        """Return the nodes in the order of their yields at a site, greatest first."""
        known = self._nodes_of.get(site)
        if known is None:
            names = list(self.plan.nodes)
            order = np.argsort(-self.plan.rates[self.plan.sites[site]], kind="stable").tolist()
            known = self._nodes_of[site] = [names[column] for column in order]
        return known


def scarcity(drain_s: float) -> float:
    """Return the weight of the best yield elsewhere, given the seconds until all is collected (`_SCARCITY`)."""
    least, most = _SCARCITY
    return max(least, most * min(1.0, _SCARCE_S / max(drain_s, 1e-9)))


def _attempt_s(knowledge: Knowledge, now_s: float) -> float:
    """Return the mean active seconds of an attempt over all pairs."""
    seen = PairStats.unpack(knowledge.sums(now_s).sum(axis=(0, 1)).tolist())
    return max(seen.active_s / seen.attempts, 0.1) if seen.attempts >= 1.0 else _ATTEMPT_S


def _shares(seconds: Array, sites: Sequence[str]) -> dict[str, float]:
    """Return each site's share of a node's planned seconds, by site. Sites without any are left out."""
    total = float(seconds.sum())
    return {sites[place]: float(seconds[place]) / total for place in np.flatnonzero(seconds > 1e-6).tolist()}


def _work(ready: ReadyQueue) -> dict[str, Backlog]:
    """Return the waiting and not yet admitted work by site, for sites that the ready queue has an example of."""
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


def _drop_hopeless(belief: Belief, allowed: NDArray[np.bool_]) -> Belief:
    """Return the belief with zero yields for nodes that reach hardly any page at sites where other nodes do.

    They hardly slow a long backlog down, but each of their failures costs a subtask one of its few recalls.
    """
    best = np.where(allowed, belief.reach, 0.0).max(axis=1, keepdims=True, initial=0.0)
    return belief._replace(reach=np.where(belief.reach < _HOPELESS * best, 0.0, belief.reach))
