"""Finds hits of a result page that may be stored already: in a local cache, then in a shared set, in batches.

The double buffer of [2022 buffering]: a bounded cache (least recently used goes first) before a remote filter that is
read only for the rest, in as few round trips as the batch allows. Only committed pages are put in. A stored page never
goes away, so a hit in the local cache is certain; a yes of the shared set is confirmed in the database.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tasks.worker.settings import REMEMBERED

BATCH = 400

# Round trips under way at once. Look-ups that come meanwhile go with the next one: the longer a round trip takes, the
# more travel with the next, up to the batch.
_TRIPS = 4
# Delay in seconds until pages are added to the shared set; at worst another node fetches one of them in that time.
_LINGER_S = 0.5
_RETRY_S = 5.0
_MOST_UNSHARED = 100_000


class SharedSet(Protocol):
    """A set of pages that every process of a cluster sees; it may err towards yes, and may be lost."""

    async def has(self, keys: Sequence[bytes]) -> Sequence[bool] | None:
        """Return for each key whether it may be in the set; None: not available now. One round trip."""

    async def add(self, keys: Sequence[bytes]) -> bool:
        """Add keys of committed pages; False: not now. One round trip."""


@dataclass(frozen=True, slots=True)
class SeenKeys:
    """The result of a look-up; keys in neither set are new, unless they were stored elsewhere just now.

    Attributes:
        sure: stored, for certain.
        maybe: to be confirmed in the database.
    """

    sure: frozenset[bytes]
    maybe: frozenset[bytes]


class _Lookup:
    """Keys of one `look_up` that are under way."""

    __slots__ = ("answer", "maybe", "open")

    def __init__(self, keys: int) -> None:
        self.open = keys
        self.maybe: set[bytes] = set()
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class SeenPages:
    """Looks up whether pages are stored, for all attempts of a process. One event loop per object.

    Args:
        shared: the cluster's set; None (embedded): every key is left to the database.
        remembered: most keys in the local cache (about 0.2 KB each); 0: no cache.
        batch: most keys in one round trip; 1: each key travels alone.
    """

    def __init__(self, shared: SharedSet | None, *, remembered: int = REMEMBERED, batch: int = BATCH) -> None:
        if remembered < 0 or batch < 1:
            raise ValueError(f"remembered {remembered}, batch {batch}: at least 0 and 1")
        self._shared = shared
        self._most = remembered
        self._batch = batch
        self._cache: OrderedDict[bytes, None] = OrderedDict()
        self._waiting: deque[tuple[bytes, _Lookup]] = deque()
        self._trips: set[asyncio.Task[None]] = set()
        self._unshared: deque[bytes] = deque(maxlen=_MOST_UNSHARED)
        self._sharing: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    async def look_up(self, keys: Sequence[bytes]) -> SeenKeys:
        """Sort keys of pages into those surely stored, those that may be, and the rest, which is new."""
        sure = frozenset(key for key in keys if self._remembers(key))
        rest = [key for key in dict.fromkeys(keys) if key not in sure]
        if self._shared is None or not rest:
            return SeenKeys(sure, frozenset(rest))
        lookup = _Lookup(len(rest))
        self._waiting.extend((key, lookup) for key in rest)
        # Attempts that come to the same point in this turn of the loop share the round trip.
        asyncio.get_running_loop().call_soon(self._send)
        await lookup.answer
        return SeenKeys(sure, frozenset(lookup.maybe))

    def confirm(self, keys: Iterable[bytes]) -> None:
        """Remember pages that the database has."""
        if self._most == 0:
            return
        for key in keys:
            self._cache[key] = None
            self._cache.move_to_end(key)
        while len(self._cache) > self._most:
            self._cache.popitem(last=False)

    def add_stored(self, keys: Sequence[bytes]) -> None:
        """Remember pages that were committed just now, and add them to the shared set soon."""
        self.confirm(keys)
        if self._shared is None:
            return
        self._unshared.extend(keys)
        if len(self._unshared) >= self._batch:
            self._share_now()
        elif self._later is None and self._sharing is None:
            self._share_after(_LINGER_S)

    async def close(self) -> None:
        """Add the remaining pages to the shared set, if it is available."""
        if self._unshared:
            self._share_now()
        if self._sharing is not None:
            await self._sharing
        self._stop_waiting()

    def _remembers(self, key: bytes) -> bool:
        if key not in self._cache:
            return False
        self._cache.move_to_end(key)
        return True

    # --- look-ups -------------------------------------------------------------------------------------------

    def _send(self) -> None:
        while self._waiting and len(self._trips) < _TRIPS:
            batch = [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]
            trip = asyncio.get_running_loop().create_task(self._trip(batch))
            self._trips.add(trip)
            trip.add_done_callback(self._finish_trip)

    def _finish_trip(self, trip: asyncio.Task[None]) -> None:
        self._trips.discard(trip)
        self._send()

    async def _trip(self, batch: Sequence[tuple[bytes, _Lookup]]) -> None:
        assert self._shared is not None
        try:
            answers = await self._shared.has([key for key, _ in batch])
        except Exception as error:
            for _, lookup in batch:
                if not lookup.answer.done():
                    lookup.answer.set_exception(error)
            return
        for place, (key, lookup) in enumerate(batch):
            if answers is None or answers[place]:
                lookup.maybe.add(key)
            lookup.open -= 1
            if lookup.open == 0 and not lookup.answer.done():  # done: its attempt was cancelled
                lookup.answer.set_result(None)

    # --- additions to the shared set ------------------------------------------------------------------------

    def _share_after(self, delay_s: float) -> None:
        self._later = asyncio.get_running_loop().call_later(delay_s, self._share_now)

    def _stop_waiting(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _share_now(self) -> None:
        self._stop_waiting()
        if self._sharing is None:
            self._sharing = asyncio.get_running_loop().create_task(self._share())

    async def _share(self) -> None:
        assert self._shared is not None
        try:
            while self._unshared:
                batch = [self._unshared.popleft() for _ in range(min(self._batch, len(self._unshared)))]
                if not await self._shared.add(batch):
                    self._unshared.extendleft(reversed(batch))
                    self._share_after(_RETRY_S)
                    return
        finally:
            self._sharing = None
