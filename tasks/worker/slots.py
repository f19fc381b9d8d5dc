"""A node's slots: how many of its attempts may be at work at once.

An attempt occupies a slot while it works: a request is in flight or an answer is being read. It takes one when it
begins to work, gives it back whenever it only waits (for a permit at a throttled host, for the database), and takes one
again without waiting when that is over, because a permit has to be used at its time. Only attempts that have not worked
yet wait for a slot.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum, auto


class Slots:
    """The slots of one node; for the coroutines of one event loop.

    Args:
        most: slots.
        on_idle: called when a slot is free and no attempt waits for it.
    """

    def __init__(self, most: int, on_idle: Callable[[], None] = lambda: None) -> None:
        self._most = most
        self._on_idle = on_idle
        self._taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def free(self) -> int:
        """Number of free slots that no attempt waits for; negative if there are fewer slots than attempts."""
        return self._most - self._taken - len(self._queue)

    async def _take(self) -> None:
        if self._taken < self._most and not self._queue:
            self._taken += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()  # its turn came at the same moment
            elif turn in self._queue:  # `_give` drops a turn that was cancelled before its coroutine could
                self._queue.remove(turn)
            raise

    def _give(self) -> None:
        self._taken -= 1
        while self._queue and self._taken < self._most:
            turn = self._queue.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
        if self._taken < self._most:
            self._on_idle()


class _State(Enum):
    OUT = auto()
    WORKING = auto()
    WAITING = auto()


class SlotUse:
    """One attempt's use of its node's slots."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._state = _State.OUT

    @property
    def waits(self) -> bool:
        """True while it has begun to work and only waits now."""
        return self._state is _State.WAITING

    async def enter(self) -> None:
        """Wait for a slot, and take it."""
        await self._slots._take()
        self._state = _State.WORKING

    def busy(self) -> None:
        """Take a slot again, without waiting for it."""
        if self._state is _State.WAITING:
            self._state = _State.WORKING
            self._slots._taken += 1

    def idle(self) -> None:
        """Give the slot back while the attempt only waits."""
        if self._state is _State.WORKING:
            self._state = _State.WAITING
            self._slots._give()

    def leave(self) -> None:
        """Give the slot back at the end of the attempt."""
        self.idle()
        self._state = _State.OUT
