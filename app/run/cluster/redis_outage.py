"""Log one line when a Celery process loses Redis, and one when Redis is back.

Celery, kombu and our own clients find out separately, again and again, and some of them log a traceback each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from threading import Event, Lock, Thread

from celery.beat import SchedulingError
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app.run.open_store import ping_redis
from app.run.setting_fields import Settings
from tasks.domain.outage import Outage

log = logging.getLogger("reviewloop.worker")

_LIBRARIES = ("celery", "kombu", "redis")
LOSSES = (RedisError, OSError)
"""Errors of a client that has lost Redis. TimeoutError is an OSError."""
_OF_DRIVER = (OperationalError, RedisConnectionError, RedisTimeoutError)
_PING_EVERY_S = 1.0
_ADVICE = "CPendingDeprecationWarning"
"""Name of Celery's warning that comes with every lost broker; it is about a setting that `make_app` makes."""
_SILENT_BROKER = "Redis BRPOP got no reply"
"""Beginning of kombu's line about a connection that fell silent; the line has no exception."""


class RedisOutage(logging.Filter):
    """Replaces all log records about a lost Redis by one line per outage. Several threads may use it.

    The first record starts a thread that pings Redis until Redis answers. So the log shows the end of an outage at
    once, even if clients connect again only later.

    Args:
        ping: function that pings Redis; raises RedisError or OSError.
        outage: writes the lines to the log.
    """

    def __init__(self, ping: Callable[[], None], outage: Outage) -> None:
        super().__init__()
        self._ping = ping
        self._outage = outage
        self._lock = Lock()
        self._watching: Thread | None = None
        self._pause = Event()

    @classmethod
    def from_settings(cls, settings: Settings) -> RedisOutage:
        """Return a filter for outages of the Redis that the settings name."""
        outage = Outage(log, "Redis is away, new work waits", "Redis is back")
        return cls(lambda: asyncio.run(ping_redis(settings)), outage)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False for a log record about a lost Redis, and start to watch Redis.

        Also drop Celery's advice about it.
        """
        if record.name == "py.warnings" and _ADVICE in record.getMessage():
            return False
        error = _find_loss(record)
        if error is None:
            return True
        self.note_loss(error)
        return False

    def note_loss(self, error: object) -> None:
        """Note that a client lost Redis. If Redis doesn't answer a ping, log that, and later log its return."""
        with self._lock:
            if self._watching is not None:
                return
            self._watching = Thread(target=self._watch, args=(error,), name="redis-outage", daemon=True)
            self._watching.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait at most `timeout_s` until Redis answers again. Return True if it answers."""
        watching = self._watching
        if watching is not None:
            watching.join(timeout_s)
        return self._watching is None

    def _watch(self, error: object) -> None:
        while not self._answers():
            self._outage.note_loss(error)
            self._pause.wait(_PING_EVERY_S)
        self._outage.note_return()
        with self._lock:
            self._watching = None

    def _answers(self) -> bool:
        try:
            self._ping()
        except LOSSES:
            return False
        return True


def _find_loss(record: logging.LogRecord) -> object | None:
    """Return the error of a lost Redis that a log record reports, or None if the record reports something else."""
    is_of_library = record.name.partition(".")[0] in _LIBRARIES
    if is_of_library and str(record.msg).startswith(_SILENT_BROKER):
        return record.getMessage()
    given = list(record.args) if isinstance(record.args, tuple) else []
    if record.exc_info and record.exc_info[1] is not None:
        given.insert(0, record.exc_info[1])
    for error in given:
        # Beat wraps errors of sending.
        cause = error.__context__ if isinstance(error, SchedulingError) else error
        if isinstance(cause, _OF_DRIVER):
            return cause
        if is_of_library and isinstance(cause, (ConnectionError, TimeoutError)):
            return cause
    return None
