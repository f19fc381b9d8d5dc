"""The ready queue: what waits, which nodes have free slots, what hosts can take. Every strategy keeps its rules.

1. A subtask goes only to a node that may take it (`tasks.scheduling.eligibility`).
2. A node gets no more attempts than its free slots.
3. A host gets no more attempts than it can take, in all and from one address (`tasks.scheduling.capacity`). An attempt
   counts at each of its hosts.

Subtasks that differ in nothing these rules or a yield depend on form one `Group`; within it, first in is first out.
The owner of a ready queue keeps it up to date. Each change costs the same however many subtasks wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.scheduling import eligibility
from tasks.scheduling.capacity import HostCapacity

_LARGEST_CLASS = 7
"""Sizes beyond 2 ** 6 targets are alike: an attempt's overhead hardly counts there."""

_SHORT_HEAP = 64
"""A heap this short is not worth clearing."""


@dataclass(slots=True, eq=False)
class Group:
    """Waiting subtasks that are interchangeable: same priority, site, size to a factor of two, failures ...

    Attributes:
        first: the one that waits longest; its site, kind, hosts, failures stand for all.
        queue: in queue order.
    """

    first: SubtaskFacts
    queue: deque[SubtaskFacts] = field(default_factory=deque)

    @property
    def pages(self) -> int:
        """Targets left of the subtask that is next; at least 1."""
        return max(1, self.first.left)


Entry = tuple[int, int, Group]
"""Number of the group's first subtask when it was entered, a serial number, the group."""


@dataclass(slots=True)
class Level:
    """The waiting subtasks of one priority.

    Attributes:
        sites: by site, its groups.
        order: heap of entries; a group that was taken from has outdated ones, too.
        clear_at: length beyond which the heap is cleared of outdated entries.
    """

    sites: dict[str, list[Group]] = field(default_factory=dict)
    order: list[Entry] = field(default_factory=list)
    clear_at: int = _SHORT_HEAP


@dataclass(slots=True)
class Backlog:
    """The waiting work of a site, over all priorities: number of subtasks, and targets left of them."""

    subtasks: int = 0
    left: int = 0


class ReadyQueue:
    """Waiting subtasks by priority and group, with the free slots of nodes and the capacity of hosts.

    Args:
        nodes: alive and not drained.
        hosts: by host; one that is missing has no limit and refuses nobody.

    Attributes:
        nodes: by name, alive and not drained.
        free: by name, attempts it can be given now; only nodes that can be given one.
        capacity: of hosts.
        hosts: by name, as they were set last.
        backlog: by site that has waiting subtasks.
        pending: by site, what has still to be admitted: it can't be given away yet, but a plan reckons with it.
        sites: by site that ever had one, an example of its subtasks: of those with most hosts (kind is the same for
            all; what has its result pages behind it asks its engine's host no more).
        waiting: number of subtasks.
        version: grows whenever a site is new, a node appears or goes, or a host refuses others than before: a plan
            made for an older version is outdated.
        changes: grows with everything that may let a node start what it could not start before.
    """

    def __init__(self, nodes: Iterable[NodeFacts] = (), hosts: Mapping[str, HostFacts] | None = None) -> None:
        self.nodes: dict[str, NodeFacts] = {}
        self.free: dict[str, int] = {}
        self.capacity = HostCapacity((hosts or {}).values())
        self.hosts: Mapping[str, HostFacts] = self.capacity.views
        self.backlog: dict[str, Backlog] = {}
        self.pending: Mapping[str, Backlog] = {}
        self.sites: dict[str, SubtaskFacts] = {}
        self.waiting = 0
        self.version = 0
        self.changes = 0
        self._levels: dict[int, Level] = {}
        self._priorities: list[int] = []
        self._groups: dict[tuple[object, ...], Group] = {}
        self._serial = 0
        for node in nodes:
            self.set_node(node)

    def put(self, subtask: SubtaskFacts) -> None:
        """A subtask waits from now on, behind those of its priority that wait already."""
        key = _key(subtask)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(subtask)
            self._level(subtask.priority).sites.setdefault(subtask.site, []).append(group)
        group.queue.append(subtask)
        if len(group.queue) == 1:
            self._enqueue(group)
        waits = self.backlog.setdefault(subtask.site, Backlog())
        waits.subtasks += 1
        waits.left += max(1, subtask.left)
        self.waiting += 1
        self.changes += 1
        known = self.sites.get(subtask.site)
        if known is None or len(subtask.hosts) > len(known.hosts):
            self.sites[subtask.site] = subtask
            self.version += 1

    def clear(self) -> None:
        """Nothing waits any more; nodes and hosts stay."""
        self.backlog.clear()
        self.waiting = 0
        self._levels.clear()
        self._priorities.clear()
        self._groups.clear()

    def set_pending(self, pending: Mapping[str, Backlog]) -> None:
        """Note the work of each site that has still to be admitted, as it was counted last."""
        self.pending = pending

    def set_node(self, node: NodeFacts) -> None:
        """A node appears, or its kinds, catalog or free slots changed."""
        known = self.nodes.get(node.name)
        if known is None or (known.kinds, known.lacks) != (node.kinds, node.lacks):
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
        """How many attempts a node can be given now; ignored for a node that is not on the ready queue."""
        if free > 0 and name in self.nodes:
            self.free[name] = free
        else:
            self.free.pop(name, None)

    def set_host(self, view: HostFacts) -> None:
        """A host as it is now."""
        known = self.hosts.get(view.host)
        if (known.resting if known is not None else frozenset()) != view.resting:
            self.version += 1
        self.changes += 1
        self.capacity.set(view)

    def drop_host(self, name: str) -> None:
        """A host that nobody crawls and that refuses nobody: it has no limit until it is set again."""
        known = self.capacity.drop(name)
        self.changes += 1
        if known.resting:
            self.version += 1

    def left(self, site: str) -> int:
        """Targets left of what waits of a site, and of what has still to be admitted."""
        return sum(known.left for by in (self.backlog, self.pending) if (known := by.get(site)) is not None)

    def levels(self) -> Iterator[Level]:
        """The levels, the highest priority first; those where nothing waits are left out."""
        for priority in self._priorities.copy():
            if priority in self._levels:
                yield self._levels[priority]

    def in_order(self, level: Level) -> Iterator[Group]:
        """Groups of a level by the one that waits longest in each; the reader may take from them meanwhile.

        A group whose first was taken comes again in its new place, one that was passed over does not.
        """
        passed: list[Entry] = []
        try:
            while level.order:
                entry = heappop(level.order)
                if not _current(entry):
                    continue
                passed.append(entry)
                yield entry[2]
                if not _current(entry):
                    passed.pop()
        finally:
            for entry in passed:
                if _current(entry):
                    heappush(level.order, entry)

    def can_take(self, group: Group, node: str) -> bool:
        """Whether the node could be given the group's next subtask now."""
        hosts = group.first.hosts
        return (
            bool(group.queue)
            and node in self.free
            and self.may_take(group, node)
            and self.capacity.left(hosts) >= 1
            and self.capacity.left_for(hosts, node) >= 1
        )

    def able(self, group: Group) -> list[str]:
        """Nodes that could be given the group's next subtask now."""
        first, hosts = group.first, group.first.hosts
        if not group.queue or self.capacity.left(hosts) < 1:
            return []
        limited = any(host in self.hosts for host in hosts)
        return [
            name
            for name in self.free
            if eligibility.may_take(first, name, self.nodes, self.hosts)
            and (not limited or self.capacity.left_for(hosts, name) >= 1)
        ]

    def any_able(self) -> bool:
        """Whether any node could be given anything now."""
        return any(map(self.able, self._groups.values()))

    def may_take(self, group: Group, node: str) -> bool:
        """Whether the node may take the group's subtasks, now or once it has a free slot."""
        return eligibility.may_take(group.first, node, self.nodes, self.hosts)

    def take(self, group: Group, node: str, place: int = 0) -> SubtaskFacts:
        """Give the node a subtask of the group: the next one, or the one at this place."""
        subtask = group.queue[place]
        del group.queue[place]
        waits = self.backlog[subtask.site]
        waits.subtasks -= 1
        waits.left -= max(1, subtask.left)
        self.waiting -= 1
        self.set_free(node, self.free.get(node, 0) - 1)
        self.capacity.take(subtask.hosts, node)
        if not group.queue:
            self._drop(subtask)
        elif place == 0:
            group.first = group.queue[0]
            self._enqueue(group)
        return subtask

    def _enqueue(self, group: Group) -> None:
        self._serial += 1
        level = self._level(group.first.priority)
        heappush(level.order, (group.first.id, self._serial, group))
        if len(level.order) > level.clear_at:  # a strategy that goes by site never reads the order
            level.order[:] = [entry for entry in level.order if _current(entry)]
            heapify(level.order)
            level.clear_at = 2 * len(level.order) + _SHORT_HEAP

    def _level(self, priority: int) -> Level:
        level = self._levels.get(priority)
        if level is None:
            level = self._levels[priority] = Level()
            self._priorities = sorted(self._levels, reverse=True)
        return level

    def _drop(self, last: SubtaskFacts) -> None:
        """Forget the group whose last subtask was taken, and what was only there for it."""
        group = self._groups.pop(_key(last))
        level = self._levels[last.priority]
        level.sites[last.site].remove(group)
        if not level.sites[last.site]:
            del level.sites[last.site]
        if not level.sites:
            del self._levels[last.priority]
            self._priorities.remove(last.priority)
        if not self.backlog[last.site].subtasks:
            del self.backlog[last.site]


def _current(entry: Entry) -> bool:
    """Whether the group still begins with the subtask it was entered with."""
    number, _, group = entry
    return bool(group.queue) and group.queue[0].id == number


def size_class(left: int) -> int:
    """Sizes that count as alike: equal to a factor of two, and all beyond 64."""
    return min(max(1, left).bit_length(), _LARGEST_CLASS)


def _key(one: SubtaskFacts) -> tuple[object, ...]:
    size = size_class(one.left)
    return one.priority, one.site, one.kind, one.hosts, size, one.failed_on, one.assigned
