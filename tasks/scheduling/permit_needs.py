"""Nodes that a site needs: whether a node is worth the permits of its host, and when its attempts end early.

Permits of a host that a node takes are lost to the others. So it is compared with those that would use them.
"""

from __future__ import annotations

from collections.abc import Callable

from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.scheduling import capacity, eligibility
from tasks.scheduling.plan import Plan
from tasks.scheduling.ready_queue import Group, ReadyQueue

_NEAR = 0.8
"""A node is given permits of a host that others could have where it reaches this share of their page chance."""

_SOON_S = 20.0
"""The waiting work of a site is left to its best nodes where they are done with it within this time."""

_Key = tuple[str, tuple[str, ...], tuple[str, ...], int]
"""Site, hosts and nodes avoided of subtasks, and the version of the ready queue: the same nodes are needed there."""

WouldTake = Callable[[str], bool]
"""Whether a node would take the group, had it a free slot: one that would not takes no permits, however good it is."""


class PermitNeeds:
    """Needs of permits while one plan is in force.

    Args:
        plan: what each pair is believed to yield.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chances: dict[_Key, list[tuple[float, str, float]]] = {}

    def near_best(self, ready: ReadyQueue, group: Group, node: str, would_take: WouldTake) -> bool:
        """Whether the node makes nearly as many pages of a request as those it would take permits from."""
        if group.first.assigned == node:
            return True
        row, column = self._plan.sites[group.first.site], self._plan.nodes[node]
        return bool(
            self._plan.belief.page_chance[row, column] >= self._least_share(ready, group, node, would_take)
        )

    def floor(self, ready: ReadyQueue, group: Group, node: str, would_take: WouldTake) -> PageFloor:
        """When an attempt of the node at the group ends early: it makes fewer pages of a request than those it takes
        permits from."""
        if not self._plan.includes(group.first.site, node) or group.first.assigned == node:
            return NO_FLOOR
        plan = self._plan
        row, column, of = plan.sites[group.first.site], plan.nodes[node], plan.believed
        a, b = float(of.page_a[row, column]), float(of.page_b[row, column])
        return PageFloor.of(a, b, self._least_share(ready, group, node, would_take))

    def _least_share(self, ready: ReadyQueue, group: Group, node: str, would_take: WouldTake) -> float:
        """Pages of a request that the node needs at the group's site, so that it is right to give it permits.

        It is compared with the last of the other nodes that are needed there, the best ones first: as many as use up
        what the site's host grants in all, or as get done with what waits of the site within `_SOON_S`, if those are
        fewer. A node counts that uses up its address's limit with its slots: another one has not the slots to take
        the permits, whatever they are worth. A node that rests counts where its rest is over before this
        one would be done. 0 where there are not so many others, or no limits.
        """
        plan, first = self._plan, group.first
        limit = capacity.tightest(first.hosts, ready.hosts)
        if limit is None:
            return 0.0
        row = plan.belief.page_chance[plan.sites[first.site]]
        key = first.site, first.hosts, first.failed_on, ready.version
        others = self._chances.get(key)
        if others is None:
            waits = ((name, eligibility.rest_s(first, name, ready.nodes, ready.hosts)) for name in plan.nodes)
            needs = limit.address_pages_per_s * plan.belief.seconds_per_page[plan.sites[first.site]]
            found = (
                (float(row[plan.nodes[name]]), name, rest_s)
                for name, rest_s in waits
                if rest_s is not None and needs[plan.nodes[name]] <= plan.slots[plan.nodes[name]]
            )
            others = self._chances[key] = sorted(found, reverse=True)
        per_s = limit.address_pages_per_s * limit.shares.get(node, 1.0) * float(row[plan.nodes[node]])
        takes_s = group.pages / max(per_s, 1e-9)
        wanted = min(limit.pages_per_s, ready.left(first.site) / _SOON_S)
        for chance, name, rest_s in others:
            if name != node and (0.0 < rest_s <= takes_s or (rest_s == 0.0 and would_take(name))):
                wanted -= limit.address_pages_per_s * limit.shares.get(name, 1.0)
                if wanted <= 1e-9:
                    return _NEAR * chance
        return 0.0
