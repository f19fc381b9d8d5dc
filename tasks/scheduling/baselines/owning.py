"""Strategies by which a waiting subtask belongs to one node, and waits for it: hashing, nearness.

Who owns a group depends on nothing but the group, the nodes there are and whom hosts refuse. So groups are put in line
for their owner once, and again only when nodes or refusals change: a decision costs the same however many wait.
The lines are a cache of the ready queue; for another ready, or one that was cleared, they are made anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from tasks.scheduling.baselines.dispatch import Choice, DecisionContext
from tasks.scheduling.decision import Assignment
from tasks.scheduling.ready_queue import Group, Level, ReadyQueue

Owner = Callable[[ReadyQueue, Group], str | None]
"""The node a group waits for: one that may run it (`ReadyQueue.may`); None where nobody may."""


@dataclass(slots=True, eq=False)
class _Line:
    """Groups of one level that wait for one node and have the same hosts: all may start, or none.

    Attributes:
        groups: heap of (number of its first subtask, serial number, group); may hold groups that left or moved on.
        turn: serial number of its entry among the node's turns that counts; -1: none does.
    """

    groups: list[tuple[int, int, Group]] = field(default_factory=list)
    turn: int = -1


class Lines:
    """What waits, by the node it waits for."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._ready: ReadyQueue | None = None
        self._version = -1
        self._shelves: list[_Shelf] = []
        self._kinds: dict[str, frozenset[str]] = {}
        self._resting: dict[str, frozenset[str]] = {}

    def give_away(self, context: DecisionContext, choice: Callable[[Group, str], Choice]) -> list[Assignment]:
        """Give free nodes what waits for them: higher priority first, then in queue order.

        Args:
            context: what the strategy was handed.
            choice: of a group and its node: how to put it.
        """
        ready, given = context.ready, list[Assignment]()
        if not ready.free:
            return given
        self._follow(ready)
        for shelf in self._shelves:
            for group, name in shelf.served(ready):
                given.append(context.give(group, choice(group, name)))
            if not ready.free:
                break
        return given

    def _follow(self, ready: ReadyQueue) -> None:
        """Catch up with the ready queue: levels and groups that are new, and owners that changed."""
        if ready is not self._ready or ready.version != self._version:
            hosts = self._changed_hosts(ready)
            for shelf in self._shelves if ready is self._ready else ():
                shelf.place_again(ready, hosts)
            self._ready, self._version = ready, ready.version
        known = {
            id(shelf.level): shelf for shelf in self._shelves
        }  # a level that emptied comes back as another
        self._shelves = [known.get(id(level)) or _Shelf(level, self._owner) for level in ready.levels()]
        for shelf in self._shelves:
            shelf.follow(ready)

    def _changed_hosts(self, ready: ReadyQueue) -> frozenset[str] | None:
        """Hosts that refuse others than when it was looked last; None: other nodes are there, so all may differ."""
        kinds = {name: node.kinds for name, node in ready.nodes.items()}
        resting = {name: view.resting for name, view in ready.hosts.items() if view.resting}
        before = self._resting
        others = list(kinds.items()) != list(self._kinds.items())
        self._kinds, self._resting = kinds, resting
        if others:
            return None
        return frozenset(name for name in {*resting, *before} if resting.get(name) != before.get(name))


class _Shelf:
    """The lines of one level of the ready queue."""

    def __init__(self, level: Level, owner: Owner) -> None:
        self.level = level
        self._owner = owner
        self._changes = -1
        self._owners: dict[Group, str | None] = {}
        self._lines: dict[tuple[str, tuple[str, ...]], _Line] = {}
        self._turns: dict[str, list[tuple[int, int, _Line]]] = {}
        self._serial = 0

    def follow(self, ready: ReadyQueue) -> None:
        """Put groups in line that are new on the ready queue."""
        if self._changes == ready.changes:
            return
        self._changes = ready.changes
        owners = self._owners
        for groups in [groups for groups in self.level.sites.values() if groups[-1] not in owners]:
            for group in reversed(groups):  # new ones are at the end
                if group in owners:
                    break
                self._place(ready, group)

    def place_again(self, ready: ReadyQueue, hosts: frozenset[str] | None) -> None:
        """Look again who owns the groups of these hosts; of all, where it is None."""
        for group in list(self._owners):
            if hosts is None or not hosts.isdisjoint(group.first.hosts):
                self._place(ready, group)

    def served(self, ready: ReadyQueue) -> Iterator[tuple[Group, str]]:
        """Groups and their nodes, in queue order, as long as free nodes have some; each first is taken by who reads."""
        heads = [head for name in ready.free if (head := self._head(ready, name)) is not None]
        heapify(heads)
        while heads:
            _, _, group, name = heappop(heads)
            if ready.takes(group, name):
                yield group, name
                if group.queue:
                    self._join(group, name)
                else:
                    del self._owners[group]
            head = self._head(ready, name)
            if head is not None:
                heappush(heads, head)

    def _place(self, ready: ReadyQueue, group: Group) -> None:
        """Put a group in line for its owner; its place in another's line counts no longer."""
        owner = self._owner(ready, group)
        if owner is not None and self._owners.get(group) != owner:
            self._join(group, owner)
        self._owners[group] = owner

    def _join(self, group: Group, owner: str) -> None:
        line = self._lines.setdefault((owner, group.first.hosts), _Line())
        self._serial += 1
        heappush(line.groups, (group.first.id, self._serial, group))
        if line.groups[0][1] == self._serial:
            self._queue(line, owner)

    def _queue(self, line: _Line, owner: str) -> None:
        """Give a line its turn, by the first of its groups; an earlier turn counts no longer."""
        self._serial += 1
        line.turn = self._serial
        heappush(self._turns.setdefault(owner, []), (line.groups[0][0], line.turn, line))

    def _head(self, ready: ReadyQueue, name: str) -> tuple[int, int, Group, str] | None:
        """What a node should be given next: number, serial number, group, node; None: nothing."""
        turns = self._turns.get(name)
        if not turns or name not in ready.free:
            return None
        looked_at: list[tuple[int, int, _Line]] = []
        found = None
        while turns and found is None:
            number, turn, line = heappop(turns)
            if line.turn != turn or not self._stands(line, name, number):
                continue
            looked_at.append((number, turn, line))
            group = line.groups[0][2]
            if ready.takes(group, name):
                found = number, turn, group, name
        for entry in looked_at:
            heappush(turns, entry)
        return found

    def _stands(self, line: _Line, name: str, number: int) -> bool:
        """Whether a line still begins with this number; where it doesn't, it gets another turn or none."""
        while line.groups:
            first, _, group = line.groups[0]
            if group.queue and group.queue[0].id == first and self._owners.get(group) == name:
                break
            heappop(line.groups)
        if line.groups and line.groups[0][0] == number:
            return True
        line.turn = -1
        if line.groups:
            self._queue(line, name)
        return False
