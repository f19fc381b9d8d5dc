"""The `hash` allocation: consistent hashing, the usual way to divide URLs over crawl nodes.

A subtask's identity (its site and number stand for its URLs) is hashed into one of `_BUCKETS` buckets of its site.
The bucket and `_POINTS` virtual points of each node are hashed onto a ring (Karger et al., 1997); the first node on the
ring after the bucket owns it. When nodes come or go, only their buckets change owner. A subtask waits for its owner
even while others are idle. Where the owner may not take it (another kind, it failed it, a host refuses it, a person
asked for another one), the next node on the ring that may owns it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator
from functools import partial
from hashlib import blake2b
from itertools import chain
from zlib import crc32

from tasks.domain.facts import SubtaskFacts
from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext, give_to_owners
from tasks.scheduling.decision import AllocationSettings, Assignment, join_names
from tasks.scheduling.ready_queue import ReadyQueue, SubtaskGroup

_BUCKETS = 1024
"""Per site: enough that nodes own about as equally many as if each URL were hashed onto the ring by itself."""

_POINTS = 160
"""Number of virtual points of a node. The shares of nodes differ by about 1 / sqrt(160)."""


class Ring:
    """Nodes by virtual points on a ring."""

    def __init__(self, names: Iterable[str]) -> None:
        points = sorted((point(f"{name}#{number}"), name) for name in names for number in range(_POINTS))
        self._at = [at for at, _ in points]
        self._names = [name for _, name in points]

    def list_followers(self, at: int) -> Iterator[str]:
        """Yield the nodes that follow a place, in order, each once."""
        begin = bisect(self._at, at)
        following = chain(range(begin, len(self._names)), range(begin))
        yield from dict.fromkeys(self._names[place] for place in following)


class ConsistentHash(Baseline):
    """The strategy; it remembers the ring, and the owners it looked up."""

    def __init__(self, settings: AllocationSettings) -> None:
        super().__init__(settings)
        self._ring, self._on_ring = Ring(()), set[str]()
        self._owners: dict[tuple[object, ...], str | None] = {}
        self._owners_of: tuple[ReadyQueue, int] | None = None

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready = context.ready
        return give_to_owners(
            context,
            partial(self._owner, ready),
            lambda *_: because(Reason.HASHED),
        )

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:
        """Return the nodes that own them."""
        owners = dict.fromkeys(self._owner(ready, group, one) or "-" for one in group.queue)
        return because(Reason.WAITS_FOR_OWNER, nodes=join_names(list(owners)))

    def _owner(self, ready: ReadyQueue, group: SubtaskGroup, subtask: SubtaskFacts) -> str | None:
        if self._owners_of != (ready, ready.version):
            self._owners_of = ready, ready.version
            self._owners.clear()
            if self._on_ring != set(ready.nodes):
                self._on_ring, self._ring = set(ready.nodes), Ring(ready.nodes)
        bucket = crc32(f"{subtask.site}/{subtask.id}".encode()) % _BUCKETS
        key = subtask.site, bucket, subtask.failed_on, subtask.assigned
        if key not in self._owners:
            nodes = self._ring.list_followers(point(f"{subtask.site}/{bucket}"))
            self._owners[key] = next((name for name in nodes if ready.may_take(group, name)), None)
        return self._owners[key]


def point(text: str) -> int:
    """Return a place on the ring, the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
