"""Decide if a node is worth the permits of a site's host, and when its attempts end early.

Permits that a node takes are lost to other nodes. So the node is compared with those that would use them.
"""

from __future__ import annotations

from collections.abc import Callable

from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.scheduling import capacity, eligibility
from tasks.scheduling.plan import Plan
from tasks.scheduling.ready_queue import ReadyQueue, SubtaskGroup

_NEAR = 0.8
"""Share of other nodes' page chance that a node must reach to get permits that they could use."""

_SOON_S = 20.0
"""Seconds within which a site's best nodes must complete its waiting work for it to be left to them."""

_Key = tuple[str, tuple[str, ...], tuple[str, ...], int]
"""Site, hosts and avoided nodes of subtasks, and version of the ready queue. Equal keys need the same nodes."""

WouldTake = Callable[[str], bool]
"""Function that returns True if a node would take the group if it had a free slot. Only such nodes use permits."""


class PermitNeeds:
    """Needs of permits while one plan is in force.

    Args:
        plan: the plan with the estimated yields of all pairs.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chances: dict[_Key, list[tuple[float, str, float]]] = {}

    def near_best(self, ready: ReadyQueue, group: SubtaskGroup, node: str, would_take: WouldTake) -> bool:
        """Return True if the node gets nearly as many pages per request as the nodes it would take permits from."""
        if group.first.assigned == node:
            return True
        row, column = self._plan.sites[group.first.site], self._plan.nodes[node]
        return bool(
            self._plan.belief.page_chance[row, column] >= self._least_share(ready, group, node, would_take)
        )

    def floor(self, ready: ReadyQueue, group: SubtaskGroup, node: str, would_take: WouldTake) -> PageFloor:
        """Return when an attempt of the node at the group ends early: if it gets fewer pages per request than the nodes
        it takes permits from."""
        if not self._plan.includes(group.first.site, node) or group.first.assigned == node:
            return NO_FLOOR
        plan = self._plan
        row, column, of = plan.sites[group.first.site], plan.nodes[node], plan.believed
        a, b = float(of.page_a[row, column]), float(of.page_b[row, column])
        return PageFloor.for_beta(a, b, self._least_share(ready, group, node, would_take))

    def _least_share(self, ready: ReadyQueue, group: SubtaskGroup, node: str, would_take: WouldTake) -> float:
        """Return the pages per request that the node needs at the group's site to be worth its permits.

        It is compared with the last of the other nodes that are needed there, the best ones first: as many as use up
        the host's total rate, or as complete the site's waiting work within `_SOON_S`, if those are fewer. Only nodes
        count whose slots use up their address's limit, because others have no slots for further permits. A resting
        node counts if its rest ends before this node would be done. The result is 0 if there are too few other nodes
        or no limits.
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
        wanted = min(limit.pages_per_s, ready.count_targets(first.site) / _SOON_S)
        for chance, name, rest_s in others:
            if name != node and (0.0 < rest_s <= takes_s or (rest_s == 0.0 and would_take(name))):
                wanted -= limit.address_pages_per_s * limit.shares.get(name, 1.0)
                if wanted <= 1e-9:
                    return _NEAR * chance
        return 0.0
