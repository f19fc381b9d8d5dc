"""The `feedback` allocation, which chooses nodes by the results of earlier attempts.

1. The rules of the ready queue hold (`tasks.scheduling.ready_queue`): eligibility, free slots, capacity of hosts.
2. Priority levels come strictly one after the other: a lower one gets the slots that a higher one leaves.
3. A (site, node) is worth its expected pages per second of a slot (`tasks.scheduling.posterior`: completion rate and
   efficiency in one figure, 2014 paper, allocation 2 and 3), drawn from its posterior, so that it explores.
4. A plan is made from these rates and all waiting work (`tasks.scheduling.planner`). A free slot goes to the planned
   site of its node with the highest yield now, relative to the best node's yield there, unless the node had much
   more of that site already than the plan gives it. So of one site a fast node takes the large subtasks, and a slow
   one the small ones, as the overhead of an attempt counts for more there. A host that refused a node gets fewer of
   its attempts for a while (`tasks.scheduling.pair_backoff`).
5. A node gets a subtask only if it completes it sooner than waiting for better nodes would: the plan treats work as
   divisible, but a subtask is not. If no planned work waits, the node takes other work by the same rule, first the
   work that it is comparatively best at. So a slow node does not get the end of a backlog (the paper: if the
   efficiency is too poor, similar tasks no longer go to that node).
"""

from __future__ import annotations

from random import Random

from tasks.domain.page_floor import NO_FLOOR
from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling import eligibility
from tasks.scheduling.decision import (
    MOST_CANDIDATES,
    AllocationSettings,
    Assignment,
    Candidate,
    candidates,
    join_names,
    why_busy,
)
from tasks.scheduling.pair_backoff import PairBackoff
from tasks.scheduling.permit_needs import WouldTake
from tasks.scheduling.planner import Planner
from tasks.scheduling.ready_queue import Level, ReadyQueue, SubtaskGroup
from tasks.scheduling.statistics import Knowledge


class Feedback:
    """The strategy. It remembers its plan, which it can make again at any time, and recent refusals of nodes."""

    def __init__(self, settings: AllocationSettings) -> None:
        self._settings = settings
        self._backoff = PairBackoff()
        self._planner = Planner(settings, self._backoff)
        self._idle: dict[str, tuple[float, int]] = {}
        self._now_s = 0.0

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, explain: bool = False
    ) -> list[Assignment]:
        """Give waiting subtasks to nodes by the module's rules. Arguments: see `AllocationStrategy`."""
        given: list[Assignment] = []
        if not ready.free or not ready.waiting:
            return given
        self._now_s = now_s
        self._backoff.update(ready, now_s)
        self._planner.update(ready, knowledge, now_s, rng)
        for level in ready.levels():
            for node in list(ready.free):
                if self._idle.get(node) == self._state(ready):
                    continue  # nothing has changed since the last look
                while node in ready.free and level.sites:
                    group = self._pick(ready, knowledge, level, node)
                    if (
                        group is None
                        and self._planner.plan.shares.get(node)
                        and self._planner.is_outdated(now_s)
                    ):
                        # The node's planned share is used up, but a newer plan may have work for it.
                        self._planner.replan(ready, knowledge, now_s, rng)
                        group = self._pick(ready, knowledge, level, node)
                    if group is None:
                        break
                    given.append(self._give(ready, knowledge, group, node, explain))
            if not ready.free:
                break
        if not self._backoff.active():  # the end of a back-off may let a node start a subtask
            self._idle.update(dict.fromkeys(ready.free, self._state(ready)))
        return given

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:
        """Return the free nodes that would take longer than waiting, or were refused lately; `None` without any."""
        planner, site, hosts = self._planner, group.first.site, group.first.hosts
        free = ready.able(group)
        calm = [name for name in free if self._backoff.allows(hosts, name, self._now_s, ready)]
        if free and not calm:
            return because(Reason.NODES_REFUSED, hosts=", ".join(hosts), nodes=join_names(free))
        known = [name for name in calm if planner.includes(site, name)]
        if not known:
            return None
        rates = join_names([f"{name} {planner.rate(group, name):.3g}" for name in known])
        best = planner.plan.best_rate[planner.plan.sites[site]]
        return because(Reason.SOONER_LATER, rates=rates, best=best)

    def _state(self, ready: ReadyQueue) -> tuple[float, int]:
        """Return facts of an idle node. While they stay the same, the node finds no work."""
        return self._planner.plan.made_at_s, ready.changes

    def _pick(self, ready: ReadyQueue, knowledge: Knowledge, level: Level, node: str) -> SubtaskGroup | None:
        """Return the group of a level whose subtask the node should get next; `None` if there is none."""
        best: tuple[tuple[bool, float], SubtaskGroup] | None = None
        planner = self._planner
        for site in planner.plan.shares.get(node, ()):
            groups = level.sites.get(site, ())
            within_share = bool(groups) and not planner.is_ahead(site, node, self._now_s)
            for group in groups:
                key = within_share, planner.worth(group, node)
                if best is not None and key <= best[0]:
                    continue  # cheaper to check than whether the node can take it
                if self._can_take(ready, group, node) and planner.finishes_sooner(ready, group, node):
                    best = key, group
        return best[1] if best is not None else self._pick_unplanned(ready, knowledge, level, node)

    def _pick_unplanned(
        self, ready: ReadyQueue, knowledge: Knowledge, level: Level, node: str
    ) -> SubtaskGroup | None:
        """Return a group that is not planned for the node, but that it completes sooner than waiting would (rule 5)."""
        planner = self._planner
        for site in planner.best_sites(node):
            for group in level.sites.get(site, ()):
                if (
                    self._can_take(ready, group, node)
                    and planner.permit_needs.near_best(ready, group, node, self._would_take(ready, group))
                    and planner.finishes_sooner(ready, group, node)
                ):
                    return group
        for site, groups in level.sites.items():
            if site in planner.plan.sites or site in knowledge.sites:
                continue  # the next plan will include it
            for group in groups:  # there is no known obstacle
                if self._can_take(ready, group, node):
                    return group
        return None

    def _would_take(self, ready: ReadyQueue, group: SubtaskGroup, without: str | None = None) -> WouldTake:
        """Return a function that returns True if a node would take the group if it had a free slot.

        Args:
            without: a node that turned out to be bad. Other nodes don't wait for it, even if its drawn rate is high.
        """
        hosts, planner = group.first.hosts, self._planner
        best_pace = None
        if without is not None and planner.includes(group.first.site, without):
            best_pace = planner.best_pace(ready, group, without)
        return lambda name: (
            self._backoff.allows(hosts, name, self._now_s, ready)
            and planner.finishes_sooner(ready, group, name, best_pace)
        )

    def _can_take(self, ready: ReadyQueue, group: SubtaskGroup, node: str) -> bool:
        return ready.can_take(group, node) and self._backoff.allows(
            group.first.hosts, node, self._now_s, ready
        )

    def _give(
        self, ready: ReadyQueue, knowledge: Knowledge, group: SubtaskGroup, node: str, explain: bool
    ) -> Assignment:
        site, score, others = group.first.site, None, []
        if self._planner.includes(site, node):
            score = self._planner.rate(group, node)
            others = self._planner.best_nodes(site)[:MOST_CANDIDATES] if explain else []
            self._backoff.begun(group.first.hosts, node, self._now_s, self._planner.seconds(group, node))
            self._planner.record(group, node)
        considered: tuple[Candidate, ...] = ()
        if explain:
            considered = candidates(
                ready,
                knowledge,
                self._now_s,
                group,
                lambda name: self._remark(ready, group, name, node),
                [node, *others],
            )
        floor = NO_FLOOR
        if self._settings.floors:
            would_take = self._would_take(ready, group, without=node)
            floor = self._planner.permit_needs.floor(ready, group, node, would_take)
        forgiven = eligibility.forgiven(group.first, ready.nodes, ready.hosts)
        return Assignment(
            subtask=ready.take(group, node),
            node=node,
            score=score,
            forgiven=forgiven if forgiven == node else None,
            floor=floor,
            prices=self._planner.prices(site, node) if explain else None,
            candidates=considered,
        )

    def _remark(
        self, ready: ReadyQueue, group: SubtaskGroup, name: str, chosen: str
    ) -> tuple[Explanation, float | None]:
        """Return the reason why a node was or was not chosen for a group, and its score."""
        if not self._planner.includes(group.first.site, name):
            return (because(Reason.SITE_NEW) if name == chosen else why_busy(ready, group, name)), None
        score = self._planner.rate(group, name)
        is_planned = group.first.site in self._planner.plan.shares.get(name, ())
        if name == chosen:
            return because(Reason.PLANNED if is_planned else Reason.SOONER_UNPLANNED), score
        if not ready.can_take(group, name):
            return why_busy(ready, group, name), score
        if not self._backoff.allows(group.first.hosts, name, self._now_s, ready):
            return because(Reason.REFUSED_LATELY), score
        return because(Reason.OTHER_FIRST if is_planned else Reason.BETTER_ELSEWHERE), score
