"""The planner of `feedback`: what every (site, node) is expected to yield, and which sites each node should serve.

A plan rests on rates drawn from the posteriors of all pairs (`tasks.scheduling.posterior`) and divides the slots of all
nodes over the sites (`tasks.scheduling.fluid`). It is made every `REPLAN_S`, whenever sites, nodes or refusals
change, and when much has been learned. While the solver loads, nothing is divided, and each node takes what it is best
at.
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
from tasks.scheduling.ready_queue import Backlog, Group, ReadyQueue
from tasks.scheduling.sampled_rates import SampledRates
from tasks.scheduling.statistics import Knowledge

_OUTDATED_S = 0.1 * REPLAN_S
"""Age after which a plan that fits no longer is made anew."""

_NEWS = 1.25
"""A plan is made anew once so many times as many pages have been tried as when it was made, ..."""

_FIRST_NEWS = 10.0
"""... and so many more, ..."""

_NEWS_S = 0.05 * REPLAN_S
"""... but not sooner than this."""

_UNPLANNED_S = 0.01 * REPLAN_S
"""Age after which a plan is made anew because work waits of a site of which nothing waited then."""

_MANY_PAIRS = 10_000
"""With more pairs than this, plans are made less often: a plan's cost grows with their number."""

_MOST_TIMES_LONGER = 5.0
"""At most so many times less often."""

_AHEAD = 4.0
"""A node may run ahead of the plan at a site by this factor, while something else that is planned for it waits."""

_ROUNDS = 5.0
"""A draw is kept as long as it takes to try every pair so many times ..."""

_PAIRS_TO_EXPLORE = 5000
"""... where there are so many pairs; with fewer it is kept for a shorter time, in proportion."""

_HOPELESS = 0.1
"""A node that reaches less than this share of the pages that the best node of a site reaches is left out there."""

_SCARCITY = 0.3, 0.7
"""How much the best yield a subtask could get elsewhere counts against giving it a slot, from 0 (most pages now) to 1
(each node does what it is comparatively best at): with endless work, and from `_SCARCE_S` before its end on. Found by
simulation: docs/strategies.md."""

_SCARCE_S = 7200.0
"""Up to this time until all is collected the full comparison counts; of a backlog n times as long, an n-th of it."""

_ROUNDING = 1e-6
"""A shadow price up to this is 0: the solver's rounding."""

_ATTEMPT_S = 10.0
"""Active seconds of an attempt, where nothing is known."""


class Planner:
    """Makes plans and keeps the one in force. All it remembers can be made anew.

    Args:
        settings: of allocation.
        backoff: which nodes a host refused not long ago.
    """

    def __init__(self, settings: AllocationSettings, backoff: PairBackoff) -> None:
        self._settings = settings
        self._backoff = backoff
        self._sampled = SampledRates()
        self._plan: Plan | None = None
        self._permit_needs: PermitNeeds | None = None
        self._forget()

    def _forget(self) -> None:
        """Empty the caches, which hold for one plan."""
        self._given_s: dict[tuple[str, str], float] = {}
        self._sites_of: dict[str, list[str]] = {}
        self._nodes_of: dict[str, list[str]] = {}
        self._rates: dict[tuple[str, str, float], float] = {}
        self._worths: dict[tuple[str, str, float], float] = {}

    @property
    def plan(self) -> Plan:
        """The plan in force. Raises ValueError before the first `update`."""
        if self._plan is None:
            raise ValueError("no plan was made yet: call update")
        return self._plan

    @property
    def permit_needs(self) -> PermitNeeds:
        """By the plan in force. Raises ValueError before the first `update`."""
        if self._permit_needs is None:
            raise ValueError("no plan was made yet: call update")
        return self._permit_needs

    def includes(self, site: str, node: str) -> bool:
        """Whether there is a plan, and both were there when it was made."""
        return self._plan is not None and self._plan.includes(site, node)

    def update(self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random) -> None:
        """Make a new plan where there is none, where it is too old, or where it fits no longer."""
        if self._plan is not None:
            age_s = now_s - self._plan.made_at_s
            changed = self._plan.version != ready.version and self.outdated(now_s)
            strangers = any(name not in self._plan.nodes for name in ready.free)
            slower = self._plan.lasts_s / REPLAN_S
            unplanned = age_s >= _UNPLANNED_S * slower and not ready.backlog.keys() <= self._plan.sites.keys()
            news = (
                age_s >= _NEWS_S * slower and knowledge.pages_tried >= _NEWS * self._plan.tried + _FIRST_NEWS
            )
            if 0 <= age_s < self._plan.lasts_s and not (changed or strangers or unplanned or news):
                return
        self.replan(ready, knowledge, now_s, rng)

    def outdated(self, now_s: float) -> bool:
        """Whether the plan is old enough to be replaced where it no longer fits."""
        return now_s - self.plan.made_at_s >= _OUTDATED_S

    def replan(self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random) -> None:
        """Draw rates of every pair and plan what waits. While the solver is loading, only draw."""
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
        can_solve = self._settings.can_solve()
        if can_solve:
            belief = believed.draw(self._sampled.scores(now_s, sites, nodes, memory_s, rng))
        else:
            belief = believed.draw_anew(np.random.default_rng(rng.getrandbits(64)))
        allowed = eligibility.eligible_for_sites(examples, ready.nodes, ready.hosts) & (slots > 0)
        belief = _without_hopeless(belief, allowed)
        typical = np.array([min(TYPICAL_PAGES, one.left / one.subtasks) for one in work.values()])
        rates = np.where(allowed, belief.rates(typical[:, None]), 0.0)
        asks = rates / np.maximum(belief.page_chance, 1e-9)
        hosts = capacity.total_pages(examples, ready.hosts)
        alone = capacity.address_pages(examples, nodes, ready.hosts, asks)
        requesting = np.minimum(alone, 1.0)
        alone = np.minimum(alone, self._backoff.shares(examples, nodes, now_s))
        pages = np.array([float(one.left) for one in work.values()])
        demand = fluid.Demand(rates=rates, pages=pages, slots=slots, asks=asks, hosts=hosts, alone=alone)
        division = fluid.divide(demand) if can_solve else fluid.leave_undivided(demand)
        permit_worth = np.zeros(len(sites))
        for (places, _), worth in zip(hosts, division.permit_worth, strict=True):
            permit_worth[places] = np.maximum(permit_worth[places], worth)
        flow = (division.seconds * rates).sum(axis=1) / max(fluid.EARLY * division.drain_s, 1e-9)
        known_pairs = len(ready.sites) * len(ready.nodes)
        lasts_s = REPLAN_S * min(_MOST_TIMES_LONGER, max(1.0, known_pairs / _MANY_PAIRS))
        self._forget()
        self._plan = Plan(
            made_at_s=now_s,
            lasts_s=lasts_s if can_solve else 0.0,
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

    def rate(self, group: Group, node: str) -> float:
        """Pages per second of a slot for the group's next subtask, as drawn."""
        key = group.first.site, node, min(float(group.pages), TYPICAL_PAGES)
        known = self._rates.get(key)
        if known is None:
            site, name, pages = key
            plan = self.plan
            known = self._rates[key] = plan.belief.rate(plan.sites[site], plan.nodes[name], pages)
        return known

    def seconds(self, group: Group, node: str) -> float:
        """Seconds of a slot that the group's next subtask is expected to take."""
        pages, plan = min(float(group.pages), TYPICAL_PAGES), self.plan
        return plan.belief.seconds(plan.sites[group.first.site], plan.nodes[node], pages)

    def worth(self, group: Group, node: str) -> float:
        """The score of a group on a node: rate / (the same subtask's rate on the site's best node) ** scarcity."""
        key = group.first.site, node, min(float(group.pages), TYPICAL_PAGES)
        known = self._worths.get(key)
        if known is None:
            best = max(self.rate(group, self.best_nodes(key[0])[0]), 1e-9)
            known = self._worths[key] = self.rate(group, node) / math.exp(self.plan.scarcity * math.log(best))
        return known

    def ahead(self, site: str, node: str, now_s: float) -> bool:
        """Whether the node has been given much more of the site since the plan was made than its share of the time.

        The best yield comes first, and most of what is planned can wait, since a plan looks far ahead. But a site of
        which the plan wants little on this node is planned, for most of it, on others.
        """
        plan = self.plan
        share = plan.shares[node].get(site, 0.0)
        time_s = float(plan.slots[plan.nodes[node]]) * (now_s - plan.made_at_s + plan.lasts_s)
        return self._given_s.get((site, node), 0.0) >= _AHEAD * share * time_s

    def record(self, group: Group, node: str) -> None:
        """The group's next subtask goes to the node."""
        pair = group.first.site, node
        self._given_s[pair] = self._given_s.get(pair, 0.0) + self.seconds(group, node)

    def sooner(self, ready: ReadyQueue, group: Group, node: str, best_pace: float | None = None) -> bool:
        """Whether the node is done with the group's next subtask before it would be done by waiting.

        Waiting: until the nodes that are planned for the site begin the last page that waits there, and then one
        subtask's time on the best node that may run it.

        Args:
            best_pace: of the nodes that are waited for (`best_pace`); None: of all.
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

    def best_pace(self, ready: ReadyQueue, group: Group, without: str | None = None) -> float:
        """The best yield of the group's site on any node that may take it: nodes that failed it are not waited for."""
        plan = self.plan
        row = plan.sites[group.first.site]
        if not group.first.failed_on and without is None:
            return float(plan.best_pace[row])
        able = [plan.nodes[name] for name in plan.nodes if name != without and ready.may_take(group, name)]
        return float((plan.rates[row, able] * plan.requesting[row, able]).max(initial=0.0))

    def prices(self, site: str, node: str) -> Prices | None:
        """Return the worth of a permit and of a slot at the pair, or None if no solved plan has it."""
        if not self.includes(site, node) or not self.plan.is_solved:
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
        """Sites in the order of how near the node comes to the best node of each."""
        known = self._sites_of.get(node)
        if known is None:
            plan = self.plan
            rates = plan.belief.rates(float(TYPICAL_PAGES))[:, plan.nodes[node]]
            names = list(plan.sites)
            order = np.argsort(-(rates / np.maximum(plan.best_rate, 1e-9)), kind="stable").tolist()
            known = self._sites_of[node] = [names[place] for place in order]
        return known

    def best_nodes(self, site: str) -> list[str]:
        """Nodes in the order of what they yield at a site."""
        known = self._nodes_of.get(site)
        if known is None:
            names = list(self.plan.nodes)
            order = np.argsort(-self.plan.rates[self.plan.sites[site]], kind="stable").tolist()
            known = self._nodes_of[site] = [names[column] for column in order]
        return known


def scarcity(drain_s: float) -> float:
    """How much the best yield elsewhere counts, by the seconds until all that waits is collected (`_SCARCITY`)."""
    least, most = _SCARCITY
    return max(least, most * min(1.0, _SCARCE_S / max(drain_s, 1e-9)))


def _attempt_s(knowledge: Knowledge, now_s: float) -> float:
    """Active seconds of an attempt, over all pairs."""
    seen = PairStats.of(knowledge.sums(now_s).sum(axis=(0, 1)).tolist())
    return max(seen.active_s / seen.attempts, 0.1) if seen.attempts >= 1.0 else _ATTEMPT_S


def _shares(seconds: Array, sites: Sequence[str]) -> dict[str, float]:
    """By site, its share of a node's planned seconds; sites without any are left out."""
    total = float(seconds.sum())
    return {sites[place]: float(seconds[place]) / total for place in np.flatnonzero(seconds > 1e-6).tolist()}


def _work(ready: ReadyQueue) -> dict[str, Backlog]:
    """By site, what waits and what has still to be admitted; of sites the ready queue has seen, since kind and hosts
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


def _without_hopeless(belief: Belief, allowed: NDArray[np.bool_]) -> Belief:
    """Nothing is expected of nodes that reach hardly any page where others do.

    Little as they slow a long backlog down, each of their failures costs a subtask one of its few recalls.
    """
    best = np.where(allowed, belief.reach, 0.0).max(axis=1, keepdims=True, initial=0.0)
    return belief._replace(reach=np.where(belief.reach < _HOPELESS * best, 0.0, belief.reach))
