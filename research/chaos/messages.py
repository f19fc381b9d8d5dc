"""Celery messages that are lost, doubled or late: taken out of their queues before their receivers see them.

A second consumer waits at the queues beside the workers; Redis gives each message to whoever waits longest, so that it
gets about as many as a worker. What it does with them is the fault.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from random import Random
from threading import Event, Thread

from redis import Redis
from redis.exceptions import RedisError

from research.chaos.faults import FaultKind

log = logging.getLogger("reviewloop.chaos")

_LOOK_EVERY_S = 1
_LATE_S = (1.0, 8.0)
_STEP_ASIDE_S = 0.1
"""After a message was put back: or the thief would be the first to take it again."""


class MessageThief:
    """Takes messages until it is stopped.

    Args:
        url: of the Redis, not through a proxy.
        queues: whose messages it takes.
        kind: what it does with them.
    """

    def __init__(self, url: str, queues: Sequence[str], kind: FaultKind, rng: Random) -> None:
        self._url = url
        self._queues = queues
        self._kind = kind
        self._rng = rng
        self._stop = Event()
        self._late: list[tuple[float, bytes, bytes]] = []
        self._known: set[bytes] = set()
        self.taken = 0
        self._thread = Thread(target=self._run, name="chaos-messages", daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Give back what is late, and end; returns how many messages were taken."""
        self._stop.set()
        self._thread.join()
        return self.taken

    def _run(self) -> None:
        try:
            with Redis.from_url(self._url, socket_timeout=_LOOK_EVERY_S + 5) as redis:
                while not self._stop.is_set():
                    self._take(redis)
                    self._give_back(redis, time.monotonic())
                self._give_back(redis, float("inf"))
        except RedisError as error:
            log.warning("messages are left alone, Redis is away: %s", error)

    def _take(self, redis: Redis) -> None:
        found = redis.brpop(list(self._queues), timeout=_LOOK_EVERY_S)
        if not isinstance(found, (list, tuple)):
            return
        queue, message = (part if isinstance(part, bytes) else part.encode() for part in found)
        if message in self._known:
            redis.lpush(queue, message)
            self._stop.wait(_STEP_ASIDE_S)
            return
        self._known.add(message)
        self.taken += 1
        if self._kind is FaultKind.DOUBLED_MESSAGES:
            redis.lpush(queue, message, message)
            self._stop.wait(_STEP_ASIDE_S)
        elif self._kind is FaultKind.LATE_MESSAGES:
            self._late.append((time.monotonic() + self._rng.uniform(*_LATE_S), queue, message))

    def _give_back(self, redis: Redis, now_s: float) -> None:
        for entry in [one for one in self._late if one[0] <= now_s]:
            self._late.remove(entry)
            redis.lpush(entry[1], entry[2])
