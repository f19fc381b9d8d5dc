"""One allocation round: who may run what, and what room is left. Every strategy keeps the rules of this
module.

1. Kind first: a meta (0) or microblog (1) subtask goes only to nodes that have its kind (2014 paper,
   allocation 1).
2. Only nodes that are shown (silent and drained ones are not), and none whose address one of its hosts
   refuses now.
3. Nodes that failed the subtask are avoided. Where no other eligible node exists (a busy one exists, so the
   subtask waits for it), the oldest failure that can be forgiven is forgiven; a node resting at a host can't.
4. A node a person asked for is the only one; that it failed before is then forgiven.
5. A node gets no more than its free slots, a host no more attempts than it has room for: an attempt takes
   one of the room of each of its hosts. And a node gets no more attempts on a host than use up what its
   address may ask there: the others would hold slots only to wait. After a rest at a host it probes it: it gets
   one attempt there at a time, until a page comes.

Subtasks that differ in nothing these rules or a yield look at are one `Group`; within it, first in is first
out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from tasks.control import completion, efficiency_s
from tasks.model import HostView, NodeView, PairStats, SubtaskView
from tasks.strategies.decision import Candidate, Waiting


@dataclass(slots=True, eq=False)
class Group:
    """Waiting subtasks of one priority that are interchangeable.

    Attributes:
        first: the one that waits longest; its site, kind, hosts, failures stand for all.
        ids: numbers in queue order; `taken` of them have been given away.
        left: targets left, over all.
        eligible: nodes that may run it, busy ones too, in the order shown.
        forgiven: the node whose failure is forgiven, if it came to that.
        refused: why each other node may not.
    """

    first: SubtaskView
    ids: list[int] = field(default_factory=list)
    left: int = 0
    taken: int = 0
    eligible: list[NodeView] = field(default_factory=list)
    forgiven: str | None = None
    refused: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Subtasks not given away yet."""
        return len(self.ids) - self.taken


@dataclass(frozen=True, slots=True)
class Level:
    """Waiting subtasks of one priority: their groups, and the group of each in queue order."""

    groups: list[Group]
    order: list[Group]


class Round:
    """Groups by priority level, with the room left on nodes and hosts."""

    def __init__(
        self,
        subtasks: Sequence[SubtaskView],
        nodes: Sequence[NodeView],
        hosts: Mapping[str, HostView],
        stats: Mapping[tuple[str, str], PairStats],
    ) -> None:
        self.nodes = nodes
        self._hosts = hosts
        self._stats = stats
        self.free = {node.name: max(0, node.free) for node in nodes}
        self._room = {name: max(0, host.room) for name, host in hosts.items()}
        self._held = {(name, node): n for name, host in hosts.items() for node, n in host.held.items()}
        self._permits: dict[tuple[object, ...], tuple[list[NodeView], dict[str, str]]] = {}
        self.levels = [self._level(level) for _, level in groupby(subtasks, key=lambda one: one.priority)]

    def room(self, group: Group) -> float:
        """Attempts all of the group's hosts can still take; infinite where none has a limit."""
        room = math.inf
        for host in group.first.hosts:
            room = min(room, self._room.get(host, math.inf))
        return room

    def takes(self, group: Group, node: str) -> int:
        """How many of the group the node could be given now."""
        return int(min(group.count, self.free[node], self.room(group), self._address_room(group, node)))

    def _address_room(self, group: Group, node: str) -> float:
        room = math.inf
        for host in group.first.hosts:
            view = self._hosts.get(host)
            if view is None:
                continue
            limit = 1 if node in view.probing else view.address_limit
            if limit is not None:
                room = min(room, max(0, limit - self._held.get((host, node), 0)))
        return room

    def take(self, group: Group, node: str) -> int:
        """Give the node the next subtask of the group; returns its number."""
        self.free[node] -= 1
        for host in set(group.first.hosts):  # an engine may be its site's own search: one host, one attempt
            self._held[host, node] = self._held.get((host, node), 0) + 1
            if host in self._room:
                self._room[host] -= 1
        group.taken += 1
        return group.ids[group.taken - 1]

    def candidates(
        self, group: Group, scores: Mapping[str, float], notes: Mapping[str, str]
    ) -> tuple[Candidate, ...]:
        """Every node shown, as it was considered for the group.

        Args:
            group: what is given away.
            scores: by node that was ranked.
            notes: by node that might run it, why it was or was not chosen.
        """
        return tuple(self._candidate(group, node.name, scores, notes) for node in self.nodes)

    def left_over(self, idle_why: Mapping[int, str]) -> tuple[Waiting, ...]:
        """What stays waiting and why.

        Args:
            idle_why: by `id(group)`, why the strategy itself held back a group that could have run.
        """
        return tuple(
            Waiting(tuple(group.ids[group.taken :]), idle_why.get(id(group)) or self._why_waiting(group))
            for level in self.levels
            for group in level.groups
            if group.count
        )

    def _level(self, level: Iterator[SubtaskView]) -> Level:
        groups: dict[tuple[object, ...], Group] = {}
        order: list[Group] = []
        for one in level:
            key = (one.site, one.kind, one.hosts, one.failed_on, one.assigned)
            group = groups.get(key)
            if group is None:
                group = groups[key] = Group(one)
                self._admit(group)
            group.ids.append(one.id)
            group.left += max(1, one.left)
            order.append(group)
        return Level(list(groups.values()), order)

    def _admit(self, group: Group) -> None:
        """Fill in who may run the group (rules 1 to 4)."""
        wanted = group.first
        may, refused = self._permitted(wanted)
        if wanted.assigned is not None:
            group.eligible, group.refused = may, refused
            group.forgiven = wanted.assigned if wanted.assigned in wanted.failed_on else None
            return
        group.eligible = [node for node in may if node.name not in wanted.failed_on]
        if may and not group.eligible:
            group.eligible = [min(may, key=lambda node: wanted.failed_on.index(node.name))]
            group.forgiven = group.eligible[0].name
        failed = [name for name in wanted.failed_on if name != group.forgiven]
        group.refused = dict.fromkeys(failed, "failed this subtask before") | refused if failed else refused

    def _permitted(self, wanted: SubtaskView) -> tuple[list[NodeView], dict[str, str]]:
        """Nodes whose kind, address and name fit, and why the others don't. Same for all that ask alike."""
        key = (wanted.kind, wanted.hosts, wanted.assigned)
        known = self._permits.get(key)
        if known is None:
            reasons = [(node, self._refusal(wanted, node)) for node in self.nodes]
            known = self._permits[key] = (
                [node for node, reason in reasons if reason is None],
                {node.name: reason for node, reason in reasons if reason is not None},
            )
        return known

    def _refusal(self, wanted: SubtaskView, node: NodeView) -> str | None:
        if wanted.kind not in node.kinds:
            return f"does not crawl {wanted.kind} sites"
        if wanted.assigned is not None and wanted.assigned != node.name:
            return f"a person asked for {wanted.assigned}"
        for host in wanted.hosts:
            view = self._hosts.get(host)
            if view is not None and node.name in view.resting:
                return f"{host} refuses its address at present"
        return None

    def _candidate(
        self, group: Group, node: str, scores: Mapping[str, float], notes: Mapping[str, str]
    ) -> Candidate:
        refused = group.refused.get(node)
        seen = self._stats.get((group.first.site, node))
        return Candidate(
            node=node,
            eligible=refused is None,
            why=refused or notes.get(node) or self._why_busy(group, node),
            completion=None if seen is None else completion(seen),
            efficiency_s=None if seen is None else efficiency_s(seen),
            attempts=0.0 if seen is None else seen.attempts,
            score=scores.get(node),
        )

    def _why_busy(self, group: Group, node: str) -> str:
        if self.free[node] > 0 and self._address_room(group, node) < 1:
            probed = [host for host in group.first.hosts if self._probes(host, node)]
            return (
                f"probes {probed[0]} after a rest"
                if probed
                else "already asks there as often as its address may"
            )
        return "busy: no free slot"

    def _probes(self, host: str, node: str) -> bool:
        view = self._hosts.get(host)
        return view is not None and node in view.probing

    def _why_waiting(self, group: Group) -> str:
        wanted = group.first
        if not self.nodes:
            return "no node is alive"
        if not group.eligible:
            return self._why_nobody(wanted, group)
        if self.room(group) < 1:
            full = next(host for host in wanted.hosts if self._room.get(host, 1) < 1)
            return f"{full} is asked as often as it allows: no room for another attempt"
        names = ", ".join(node.name for node in group.eligible[:5])
        names += f" and {len(group.eligible) - 5} more" if len(group.eligible) > 5 else ""
        if group.forgiven is not None:
            return f"waits for a free slot of {names}, whose failure would be forgiven"
        return f"every node that may run it is busy ({names})"

    def _why_nobody(self, wanted: SubtaskView, group: Group) -> str:
        names = {node.name for node in self.nodes}
        if wanted.assigned is not None and wanted.assigned not in names:
            return f"{wanted.assigned}, which a person asked for, is not alive or is drained"
        if not any(wanted.kind in node.kinds for node in self.nodes):
            return f"no live node crawls {wanted.kind} sites"
        reasons = dict.fromkeys(reason for reason in group.refused.values() if "refuses" in reason)
        return "no node may run it now: " + "; ".join(reasons or dict.fromkeys(group.refused.values()))
