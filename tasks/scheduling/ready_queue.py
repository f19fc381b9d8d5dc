"""The ready queue: what waits, which nodes have room, what hosts allow. Every strategy keeps its rules.

1. Kind first: a meta (0) or microblog (1) subtask goes only to nodes that have its kind (2014 paper,
   allocation 1).
2. Only nodes that are on the ready queue (silent and drained ones are not), and none whose address one of its hosts
   refuses now.
3. Nodes that failed the subtask are avoided. Where no other eligible node exists (a busy one exists, so the
   subtask waits for it), the oldest failure that can be forgiven is forgiven; a node resting at a host can't.
4. A node a person asked for is the only one; that it failed before is then forgiven.
5. A node gets no more than its free slots, a host no more attempts than it has room for: an attempt takes
   one of the room of each of its hosts. And a node gets no more attempts on a host than use up what its
   address may ask there: the others would hold slots only to wait. After a rest at a host it probes it: it gets
   one attempt there at a time, until a page comes.

Subtasks that differ in nothing these rules or a yield look at are one `Group`; within it, first in is first
out. Whoever owns a ready queue keeps it up to date: each change costs the same however many subtasks wait.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from tasks.domain.views import HostView, NodeView, SubtaskView

Split = Callable[[SubtaskView], int]
"""What a strategy tells waiting subtasks apart by, beyond the rules of the ready queue."""

_WIDEST = 7
"""Sizes beyond 2 ** 6 targets are alike: an attempt's overhead is hardly felt there."""


@dataclass(slots=True, eq=False)
class Group:
    """Waiting subtasks that are interchangeable: same priority, site, size to a factor of two, failures ...

    Attributes:
        first: the one that waits longest; its site, kind, hosts, failures stand for all.
        part: what the strategy's split made of them; 0 without one.
        queue: in queue order.
        left: targets left, over all.
    """

    first: SubtaskView
    part: int = 0
    queue: deque[SubtaskView] = field(default_factory=deque)
    left: int = 0

    @property
    def pages(self) -> int:
        """Targets left of the subtask that is next; at least 1."""
        return max(1, self.first.left)


Entry = tuple[int, int, Group]
"""Number of the group's first subtask when it was entered, a serial number, the group."""

_FEW = 64
"""A heap this short is not worth clearing."""


@dataclass(slots=True)
class Level:
    """What waits with one priority.

    Attributes:
        sites: by site, its groups.
        order: heap of entries; a group that was taken from has old ones, too.
        roomy: length beyond which the heap is cleared of old entries.
    """

    sites: dict[str, list[Group]] = field(default_factory=dict)
    order: list[Entry] = field(default_factory=list)
    roomy: int = _FEW


@dataclass(slots=True)
class Backlog:
    """What waits of a site, over all priorities: number of subtasks, and targets left of them."""

    subtasks: int = 0
    left: int = 0


class ReadyQueue:
    """Waiting subtasks by priority and group, with the room left on nodes and hosts.

    Args:
        nodes: alive and not drained.
        hosts: by host; one that is missing has no limit and refuses nobody.
        split: of the strategy that will read the ready queue.

    Attributes:
        nodes: by name, alive and not drained.
        free: by name, attempts it can be given now; only nodes that can be given one.
        hosts: by host, as they were told last.
        backlog: by site that has waiting subtasks.
        pending: by site, what has still to be let in: it can't be given away yet, but a plan reckons with it.
        sites: by site that ever had one, an example of its subtasks (kind and hosts are the same for all).
        waiting: number of subtasks.
        version: grows whenever a site is new, a node appears or goes, or a host refuses others than before.
        changes: grows with everything that may let a node start what it could not start before.
    """

    def __init__(
        self,
        nodes: Iterable[NodeView] = (),
        hosts: Mapping[str, HostView] | None = None,
        *,
        split: Split | None = None,
    ) -> None:
        self.nodes: dict[str, NodeView] = {}
        self.free: dict[str, int] = {}
        self.hosts: dict[str, HostView] = {}
        self.backlog: dict[str, Backlog] = {}
        self.pending: Mapping[str, Backlog] = {}
        self.sites: dict[str, SubtaskView] = {}
        self.waiting = 0
        self.version = 0
        self.changes = 0
        self._split = split
        self._levels: dict[int, Level] = {}
        self._priorities: list[int] = []
        self._groups: dict[tuple[object, ...], Group] = {}
        self._room: dict[str, int] = {}
        self._held: dict[str, dict[str, int]] = {}
        self._serial = 0
        for node in nodes:
            self.set_node(node)
        for view in (hosts or {}).values():
            self.set_host(view)

    def put(self, subtask: SubtaskView) -> None:
        """A subtask waits from now on, behind those of its priority that wait already."""
        part = self._split(subtask) if self._split is not None else 0
        key = _key(subtask, part)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(subtask, part)
            self._level(subtask.priority).sites.setdefault(subtask.site, []).append(group)
        group.queue.append(subtask)
        if len(group.queue) == 1:
            self._enqueue(group)
        left = max(1, subtask.left)
        group.left += left
        waits = self.backlog.setdefault(subtask.site, Backlog())
        waits.subtasks += 1
        waits.left += left
        self.waiting += 1
        self.changes += 1
        if subtask.site not in self.sites:
            self.sites[subtask.site] = subtask
            self.version += 1

    def clear(self) -> None:
        """Nothing waits any more: whoever reads anew what waits puts it back. Nodes and hosts stay."""
        self.backlog.clear()
        self.waiting = 0
        self._levels.clear()
        self._priorities.clear()
        self._groups.clear()

    def set_pending(self, pending: Mapping[str, Backlog]) -> None:
        """What of each site has still to be let in, as it was counted last."""
        self.pending = pending

    def set_node(self, node: NodeView) -> None:
        """A node appears, or its kinds or room changed."""
        known = self.nodes.get(node.name)
        if known is None or known.kinds != node.kinds:
            self.version += 1
            self.changes += 1
        self.nodes[node.name] = node
        self.set_free(node.name, node.free)

    def drop_node(self, name: str) -> None:
        """A node is silent or drained."""
        if self.nodes.pop(name, None) is not None:
            self.version += 1
            self.changes += 1
        self.free.pop(name, None)

    def set_free(self, name: str, free: int) -> None:
        """How many attempts a node can be given now; of one that is not on the ready queue nothing is kept."""
        if free > 0 and name in self.nodes:
            self.free[name] = free
        else:
            self.free.pop(name, None)

    def set_host(self, view: HostView) -> None:
        """A host as it is now: its room, who is refused, who asks there."""
        known = self.hosts.get(view.host)
        if (known.resting if known is not None else frozenset()) != view.resting:
            self.version += 1
        self.changes += 1
        self.hosts[view.host] = view
        self._room[view.host] = max(0, view.room)
        self._held[view.host] = dict(view.held)

    def drop_host(self, name: str) -> None:
        """A host that nobody crawls and that refuses nobody: it has no limit until it is set again."""
        known = self.hosts.pop(name)
        self._room.pop(name)
        self._held.pop(name)
        self.changes += 1
        if known.resting:
            self.version += 1

    def levels(self) -> Iterator[Level]:
        """What waits, the highest priority first; levels where nothing waits are left out."""
        for priority in self._priorities.copy():
            if priority in self._levels:
                yield self._levels[priority]

    def in_order(self, level: Level) -> Iterator[Group]:
        """Groups of a level by the one that waits longest in each; whoever reads may take from them meanwhile.

        A group whose first was taken comes again in its new place, one that was passed over does not.
        """
        passed: list[Entry] = []
        try:
            while level.order:
                entry = heappop(level.order)
                if not _stands(entry):
                    continue
                passed.append(entry)
                yield entry[2]
                if not _stands(entry):
                    passed.pop()
        finally:
            for entry in passed:
                if _stands(entry):
                    heappush(level.order, entry)

    def room(self, group: Group) -> float:
        """Attempts all of the group's hosts can still take; infinite where none has a limit."""
        room = math.inf
        for host in group.first.hosts:
            room = min(room, self._room.get(host, math.inf))
        return room

    def takes(self, group: Group, node: str) -> bool:
        """Whether the node could be given the group's next subtask now."""
        return (
            bool(group.queue)
            and node in self.free
            and self.may(group, node)
            and self.room(group) >= 1
            and self.address_room(group, node) >= 1
        )

    def address_room(self, group: Group, node: str) -> float:
        """Attempts of the group by which the node doesn't ask a host more often than its address may."""
        room = math.inf
        for host in group.first.hosts:
            view = self.hosts.get(host)
            if view is None:
                continue
            limit = 1 if node in view.probing else view.address_limit
            if limit is not None:
                room = min(room, max(0, limit - self.held(host, node)))
        return room

    def may(self, group: Group, node: str) -> bool:
        """Whether the node may run the group, now or once it has a free slot (rules 1 to 4)."""
        if self._refusal(group.first, node) is not None:
            return False
        failed_on = group.first.failed_on
        if not failed_on or node not in failed_on or group.first.assigned == node:
            return True
        return self.forgiven(group) == node

    def forgiven(self, group: Group) -> str | None:
        """The node whose failure is forgiven, where it has come to that (rules 3 and 4); None otherwise."""
        wanted = group.first
        if not wanted.failed_on:
            return None
        if wanted.assigned is not None:
            return wanted.assigned if wanted.assigned in wanted.failed_on else None
        if any(name not in wanted.failed_on and self._refusal(wanted, name) is None for name in self.nodes):
            return None
        return next((name for name in wanted.failed_on if self._refusal(wanted, name) is None), None)

    def eligible(self, group: Group) -> list[str]:
        """Nodes that may run the group, busy ones too, in the order they appeared."""
        return [name for name in self.nodes if self.may(group, name)]

    def refused(self, group: Group, node: str) -> str | None:
        """Why the node may not run the group, for people; None where it may."""
        refusal = self._refusal(group.first, node)
        if refusal is not None or not group.first.failed_on:
            return refusal
        return None if self.may(group, node) else "failed this subtask before"

    def take(self, group: Group, node: str) -> SubtaskView:
        """Give the node the group's next subtask."""
        subtask = group.queue.popleft()
        left = max(1, subtask.left)
        group.left -= left
        waits = self.backlog[subtask.site]
        waits.subtasks -= 1
        waits.left -= left
        self.waiting -= 1
        self.set_free(node, self.free.get(node, 0) - 1)
        for host in set(subtask.hosts):  # an engine may be its site's own search: one host, one attempt
            held = self._held.setdefault(host, {})
            held[node] = held.get(node, 0) + 1
            if host in self._room:
                self._room[host] -= 1
        if group.queue:
            group.first = group.queue[0]
            self._enqueue(group)
        else:
            self._drop(group, subtask)
        return subtask

    def held(self, host: str, node: str) -> int:
        """Attempts of the node at the host, given away ones included."""
        return self._held.get(host, {}).get(node, 0)

    def host_room(self, host: str) -> float:
        """Attempts the host can still take; infinite without a limit."""
        return self._room.get(host, math.inf)

    def _enqueue(self, group: Group) -> None:
        self._serial += 1
        level = self._level(group.first.priority)
        heappush(level.order, (group.first.id, self._serial, group))
        if len(level.order) > level.roomy:  # who takes by site never reads the order
            level.order[:] = [entry for entry in level.order if _stands(entry)]
            heapify(level.order)
            level.roomy = 2 * len(level.order) + _FEW

    def _level(self, priority: int) -> Level:
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = Level()
            self._priorities = sorted(self._levels, reverse=True)
        return level

    def _drop(self, group: Group, last: SubtaskView) -> None:
        """Forget a group that is used up, and what was only there for it."""
        del self._groups[_key(last, group.part)]
        level = self._levels[last.priority]
        level.sites[last.site].remove(group)
        if not level.sites[last.site]:
            del level.sites[last.site]
        if not level.sites:
            del self._levels[last.priority]
            self._priorities.remove(last.priority)
        if not self.backlog[last.site].subtasks:
            del self.backlog[last.site]

    def _refusal(self, wanted: SubtaskView, node: str) -> str | None:
        view = self.nodes.get(node)
        if view is None:
            return "is not alive or is drained"
        if wanted.kind not in view.kinds:
            return f"does not crawl {wanted.kind} sites"
        if wanted.assigned is not None and wanted.assigned != node:
            return f"a person asked for {wanted.assigned}"
        for name in wanted.hosts:
            host = self.hosts.get(name)
            if host is not None and node in host.resting:
                return f"{name} refuses its address at present"
        return None


def _stands(entry: Entry) -> bool:
    """Whether the group still begins with the subtask it was entered with; if not, it stands elsewhere or is gone."""
    number, _, group = entry
    return bool(group.queue) and group.queue[0].id == number


def size_class(left: int) -> int:
    """Sizes that count as alike: equal to a factor of two, and all beyond 64."""
    return min(max(1, left).bit_length(), _WIDEST)


def _key(one: SubtaskView, part: int) -> tuple[object, ...]:
    return (
        one.priority,
        one.site,
        one.kind,
        one.hosts,
        size_class(one.left),
        one.failed_on,
        one.assigned,
        part,
    )
