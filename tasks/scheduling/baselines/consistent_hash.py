"""The `hash` allocation: consistent hashing, the usual way to divide URLs over crawl nodes.

A subtask's identity (its site and number stand for its URLs) is hashed into one of `_BUCKETS` buckets of its site;
the bucket and `_POINTS` virtual points of each node are hashed onto a ring (Karger et al., 1997); the first node on the
ring after the bucket owns it. When nodes come or go, only their buckets change owner. A subtask waits for its owner
even while others are idle; but where the owner may not run it (another kind, it failed it, a host refuses it, a person
asked for another one) the next node on the ring that may does.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain
from random import Random
from zlib import crc32

from tasks.domain.views import SubtaskView
from tasks.scheduling.baselines.dispatch import Choice, DecisionContext
from tasks.scheduling.baselines.owning import Lines
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge

_BUCKETS = 1024
"""Per site: enough that nodes own about as equally many as if each URL were hashed onto the ring by itself."""

_POINTS = 160
"""Virtual points of a node: what nodes own differs by about 1 / sqrt(160)."""


class Ring:
    """Nodes by virtual points on a ring."""

    def __init__(self, names: Iterable[str]) -> None:
        points = sorted((point(f"{name}#{number}"), name) for name in names for number in range(_POINTS))
        self._at = [at for at, _ in points]
        self._names = [name for _, name in points]

    def after(self, at: int) -> Iterator[str]:
        """Nodes in the order in which they follow a place, each once."""
        begin = bisect(self._at, at)
        seen: set[str] = set()
        for place in chain(range(begin, len(self._names)), range(begin)):
            name = self._names[place]
            if name not in seen:
                seen.add(name)
                yield name


class Hashing:
    """The strategy; it remembers the ring, and who waits for whom."""

    def __init__(self, settings: AllocationSettings) -> None:
        del settings  # it has none
        self._lines = Lines(self._owner)
        self._ring = Ring(())
        self._on_ring: set[str] = set()
        self._seen: tuple[ReadyQueue, int] | None = None

    @staticmethod
    def split(subtask: SubtaskView) -> int:
        """The bucket of a subtask."""
        return crc32(f"{subtask.site}/{subtask.id}".encode()) % _BUCKETS

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        return self._lines.give_away(DecisionContext(ready, knowledge, now_s, rng, tell), _choice)

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Whose it is."""
        return f"waits for {self._owner(ready, group)}, to which its URLs hash"

    def _owner(self, ready: ReadyQueue, group: Group) -> str | None:
        if self._seen != (ready, ready.version):
            self._seen = ready, ready.version
            if self._on_ring != set(ready.nodes):
                self._on_ring = set(ready.nodes)
                self._ring = Ring(ready.nodes)
        at = point(f"{group.first.site}/{group.part}")
        return next((name for name in self._ring.after(at) if ready.may(group, name)), None)


def _choice(_: Group, chosen: str) -> Choice:
    return Choice(
        chosen, lambda name: "its URLs hash to it" if name == chosen else "its URLs hash to another"
    )


def point(text: str) -> int:
    """A place on the ring: the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
