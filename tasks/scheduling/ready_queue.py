"""The ready queue: waiting subtasks, free slots of nodes, capacity of hosts. It enforces the rules of all strategies.

1. A subtask goes only to a node that may take it (`tasks.scheduling.eligibility`).
2. A node gets no more attempts than its free slots.
3. A host gets no more attempts than it can take, in all and from one address (`tasks.scheduling.capacity`). An attempt
   counts at each of its hosts.

Subtasks that these rules and yields treat alike form a `SubtaskGroup`; within it, the first one in is the first out.
The owner of a ready queue updates it. The cost of a change does not grow with the number of waiting subtasks.
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
"""Largest class of sizes. Sizes above 2 ** 6 targets count as alike, as the overhead of an attempt hardly matters."""

_SHORT_HEAP = 64
"""Maximum length of a heap that is not cleared."""


@dataclass(slots=True, eq=False)
class SubtaskGroup:
    """Waiting subtasks that are interchangeable: same priority, site, size to a factor of two, failures ...

    Attributes:
        first: the subtask that waits longest; its site, kind, hosts and failures stand for all.
        queue: the subtasks in queue order.
    """

    first: SubtaskFacts
    queue: deque[SubtaskFacts] = field(default_factory=deque)

    @property
    def pages(self) -> int:
        """Number of open targets of the next subtask, at least 1."""
        return max(1, self.first.left)


Entry = tuple[int, int, SubtaskGroup]
"""Number of the group's first subtask at the time of the entry, a serial number, the group."""


@dataclass(slots=True)
class Level:
    """The waiting subtasks of one priority.

    Attributes:
        sites: groups by site.
        order: heap of entries. After a subtask is taken, its group also has outdated entries.
        clear_at: length beyond which the heap is cleared of outdated entries.
    """

    sites: dict[str, list[SubtaskGroup]] = field(default_factory=dict)
    order: list[Entry] = field(default_factory=list)
    clear_at: int = _SHORT_HEAP


@dataclass(slots=True)
class Backlog:
    """The waiting work of a site over all priorities: number of subtasks, and number of their open targets."""

    subtasks: int = 0
    left: int = 0


class ReadyQueue:
    """Waiting subtasks by priority and group, with the free slots of nodes and the capacity of hosts.

    Args:
        nodes: nodes that are alive and not drained.
        hosts: hosts by name. A missing host has no limit and refuses no node.

    Attributes:
        nodes: nodes that are alive and not drained, by name.
        free: number of further attempts by node, for nodes that can get one.
        capacity: capacity of hosts.
        hosts: hosts by name, as last set.
        backlog: waiting work by site.
        pending: work that is not admitted yet, by site. It can't be given yet, but plans include it.
        sites: an example subtask for each site that ever had one, with as many hosts as possible: a subtask that needs
            no further result pages does not ask its engine's host.
        waiting: number of waiting subtasks.
        version: grows when a site is new, a node appears or disappears, or a host refuses other nodes than before. A
            plan for an older version is outdated.
        changes: grows with each change that may let a node start a subtask.
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
        self._groups: dict[tuple[object, ...], SubtaskGroup] = {}
        self._serial = 0
        for node in nodes:
            self.set_node(node)

    def put(self, subtask: SubtaskFacts) -> None:
        """Add a waiting subtask behind those of its priority."""
        key = _key(subtask)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = SubtaskGroup(subtask)
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
        """Remove all waiting subtasks, but keep nodes and hosts."""
        self.backlog.clear()
        self.waiting = 0
        self._levels.clear()
        self._priorities.clear()
        self._groups.clear()

    def set_pending(self, pending: Mapping[str, Backlog]) -> None:
        """Set the work of each site that is not admitted yet."""
        self.pending = pending

    def set_node(self, node: NodeFacts) -> None:
        """Add a node, or update its kinds, catalog and free slots."""
        known = self.nodes.get(node.name)
        if known is None or (known.kinds, known.lacks) != (node.kinds, node.lacks):
            self.version += 1
            self.changes += 1
        self.nodes[node.name] = node
        self.set_free(node.name, node.free)

    def drop_node(self, name: str) -> None:
        """Remove a node that is silent or drained."""
        if self.nodes.pop(name, None) is not None:
            self.version += 1
            self.changes += 1
        self.free.pop(name, None)

    def set_free(self, name: str, free: int) -> None:
        """Set the number of attempts that a node can get now. An unknown node is ignored."""
        if free > 0 and name in self.nodes:
            self.free[name] = free
        else:
            self.free.pop(name, None)

    def set_host(self, view: HostFacts) -> None:
        """Add or update a host."""
        known = self.hosts.get(view.host)
        if (known.resting if known is not None else frozenset()) != view.resting:
            self.version += 1
        self.changes += 1
        self.capacity.set(view)

    def drop_host(self, name: str) -> None:
        """Remove a host that is not crawled and refuses no node. It has no limit until it is set again."""
        known = self.capacity.drop(name)
        self.changes += 1
        if known.resting:
            self.version += 1

    def count_targets(self, site: str) -> int:
        """Return the number of open targets of a site's waiting work and of its work that is not admitted yet."""
        return sum(known.left for by in (self.backlog, self.pending) if (known := by.get(site)) is not None)

    def levels(self) -> Iterator[Level]:
        """Yield the levels with waiting subtasks, the highest priority first."""
        for priority in self._priorities.copy():
            if priority in self._levels:
                yield self._levels[priority]

    def iter_groups(self, level: Level) -> Iterator[SubtaskGroup]:
        """Yield the groups of a level, in the order of their longest waiting subtasks. Subtasks may be taken meanwhile.

        A group whose first subtask was taken comes again at its new place; a group that was passed over does not.
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

    def can_take(self, group: SubtaskGroup, node: str) -> bool:
        """Return True if the node can get the group's next subtask now."""
        hosts = group.first.hosts
        return (
            bool(group.queue)
            and node in self.free
            and self.may_take(group, node)
            and self.capacity.remaining(hosts) >= 1
            and self.capacity.remaining_for(hosts, node) >= 1
        )

    def able(self, group: SubtaskGroup) -> list[str]:
        """Return the nodes that can get the group's next subtask now."""
        first, hosts = group.first, group.first.hosts
        if not group.queue or self.capacity.remaining(hosts) < 1:
            return []
        limited = any(host in self.hosts for host in hosts)
        return [
            name
            for name in self.free
            if eligibility.may_take(first, name, self.nodes, self.hosts)
            and (not limited or self.capacity.remaining_for(hosts, name) >= 1)
        ]

    def any_able(self) -> bool:
        """Return True if any node can get a subtask now."""
        return any(map(self.able, self._groups.values()))

    def may_take(self, group: SubtaskGroup, node: str) -> bool:
        """Return True if the node may take the group's subtasks, now or once it has a free slot."""
        return eligibility.may_take(group.first, node, self.nodes, self.hosts)

    def take(self, group: SubtaskGroup, node: str, place: int = 0) -> SubtaskFacts:
        """Give the node a subtask of the group: the next one, or the one at `place`."""
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

    def _enqueue(self, group: SubtaskGroup) -> None:
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
        """Remove the group whose last subtask was taken, and its empty site and level."""
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
    """Return True if the group still begins with the subtask of the entry."""
    number, _, group = entry
    return bool(group.queue) and group.queue[0].id == number


def size_class(left: int) -> int:
    """Return the class of a size. Sizes within a factor of two count as alike, and all sizes above 64."""
    return min(max(1, left).bit_length(), _LARGEST_CLASS)


def _key(one: SubtaskFacts) -> tuple[object, ...]:
    size = size_class(one.left)
    return one.priority, one.site, one.kind, one.hosts, size, one.failed_on, one.assigned
