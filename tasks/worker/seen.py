"""Which hits of a result page may be stored already: a local cache first, then a shared set, asked in batches.

The double buffer of [2022 buffering]: a bounded cache of answers (least recently used goes first) before a remote
filter that is asked only about the rest, in as few round trips as the batch allows. Known means committed: only what
the database has is put in. A stored page never goes away, so the local cache is believed; the shared set's yes is not.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

BATCH = 400
REMEMBERED = 200_000

# Round trips under way at once. What is asked meanwhile leaves together when one of them is back: the longer a round
# trip takes, the more travels with the next, up to the batch.
_TRIPS = 4
# A page told this much later costs, at worst, that another node fetches it in that time.
_LINGER_S = 0.5
_RETRY_S = 5.0
_MOST_UNTOLD = 100_000


class SharedSet(Protocol):
    """A set of pages that every process of a cluster sees; it may err towards yes, and may be lost."""

    async def has(self, keys: Sequence[bytes]) -> Sequence[bool] | None:
        """Of each key whether it may be in the set; None: cannot tell now. One round trip."""

    async def add(self, keys: Sequence[bytes]) -> bool:
        """Add keys of committed pages; False: not now. One round trip."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of the keys that were asked about; those in neither set are new, as far as anybody was told.

    Attributes:
        sure: stored, for certain.
        maybe: to be confirmed in the database.
    """

    sure: frozenset[bytes]
    maybe: frozenset[bytes]


class _Question:
    """Keys of one `ask` that are under way."""

    __slots__ = ("answer", "maybe", "open")

    def __init__(self, keys: int) -> None:
        self.open = keys
        self.maybe: set[bytes] = set()
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class SeenPages:
    """Asks whether pages are stored, for all attempts of a process. One event loop per object.

    Args:
        shared: the cluster's set; None (embedded): the database itself has to say.
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
        self._waiting: deque[tuple[bytes, _Question]] = deque()
        self._trips: set[asyncio.Task[None]] = set()
        self._untold: deque[bytes] = deque(maxlen=_MOST_UNTOLD)
        self._telling: asyncio.Task[None] | None = None
        self._later: asyncio.TimerHandle | None = None

    async def ask(self, keys: Sequence[bytes]) -> Asked:
        """Sort keys of pages into those surely stored, those that may be, and the rest, which is new."""
        sure = frozenset(key for key in keys if self._remembers(key))
        rest = [key for key in dict.fromkeys(keys) if key not in sure]
        if self._shared is None or not rest:
            return Asked(sure, frozenset(rest))
        question = _Question(len(rest))
        self._waiting.extend((key, question) for key in rest)
        # Not before attempts that come to the same point of the loop have asked, too.
        asyncio.get_running_loop().call_soon(self._send)
        await question.answer
        return Asked(sure, frozenset(question.maybe))

    def confirmed(self, keys: Iterable[bytes]) -> None:
        """Remember pages the database was found to have."""
        if self._most == 0:
            return
        for key in keys:
            self._cache[key] = None
            self._cache.move_to_end(key)
        while len(self._cache) > self._most:
            self._cache.popitem(last=False)

    def stored(self, keys: Sequence[bytes]) -> None:
        """Remember pages that were stored just now, and tell the others soon. Never before their commit."""
        self.confirmed(keys)
        if self._shared is None:
            return
        self._untold.extend(keys)
        if len(self._untold) >= self._batch:
            self._tell_now()
        elif self._later is None and self._telling is None:
            self._tell_after(_LINGER_S)

    async def close(self) -> None:
        """Tell what is still untold, as far as the shared set takes it now."""
        if self._untold:
            self._tell_now()
        if self._telling is not None:
            await self._telling
        self._stop_waiting()

    def _remembers(self, key: bytes) -> bool:
        if key not in self._cache:
            return False
        self._cache.move_to_end(key)
        return True

    # --- questions ------------------------------------------------------------------------------------------

    def _send(self) -> None:
        while self._waiting and len(self._trips) < _TRIPS:
            batch = [self._waiting.popleft() for _ in range(min(self._batch, len(self._waiting)))]
            trip = asyncio.get_running_loop().create_task(self._trip(batch))
            self._trips.add(trip)
            trip.add_done_callback(self._returned)

    def _returned(self, trip: asyncio.Task[None]) -> None:
        self._trips.discard(trip)
        self._send()

    async def _trip(self, batch: Sequence[tuple[bytes, _Question]]) -> None:
        assert self._shared is not None
        try:
            answers = await self._shared.has([key for key, _ in batch])
        except Exception as error:
            for _, question in batch:
                if not question.answer.done():
                    question.answer.set_exception(error)
            return
        for place, (key, question) in enumerate(batch):
            if answers is None or answers[place]:
                question.maybe.add(key)
            question.open -= 1
            if question.open == 0 and not question.answer.done():  # done: its attempt was cancelled
                question.answer.set_result(None)

    # --- what the others are told ---------------------------------------------------------------------------

    def _tell_after(self, delay_s: float) -> None:
        self._later = asyncio.get_running_loop().call_later(delay_s, self._tell_now)

    def _stop_waiting(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _tell_now(self) -> None:
        self._stop_waiting()
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        assert self._shared is not None
        try:
            while self._untold:
                batch = [self._untold.popleft() for _ in range(min(self._batch, len(self._untold)))]
                if not await self._shared.add(batch):
                    self._untold.extendleft(reversed(batch))
                    self._tell_after(_RETRY_S)
                    return
        finally:
            self._telling = None
