"""The cluster's Celery application and its Redis, made from the settings (see docs/cluster.md)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from celery import Celery
from celery.signals import after_setup_logger, after_setup_task_logger
from kombu.connection import Connection
from kombu.transport.redis import Channel
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig

from app.run.cluster.servers_needed import check
from app.run.cluster.signing import checked_task, sign_messages, signing_key
from app.run.logs import format_worker_log, warnings_as_json
from app.run.setting_fields import Settings
from tasks.jobs.queues import CLOCKS_S, CONTROL
from tasks.jobs.schedule import SWEEPS, interval_s

_KOMBU_ACK = Channel.basic_ack
_SENTINEL_PORT = 26379

# Redis hands a message that nobody acknowledged out again after this time. Nothing depends on it: recall is a sweep
# over leases, and a notification this old is over. It is only kept from happening while an attempt runs.
_VISIBILITY_S = 86_400

# An attempt waits for a Redis that is away (a restart, a failover), however long: that is nobody's failure.
_FOR_EVER = -1
_RETRY_FIRST_S, _RETRY_MOST_S = 0.1, 1.0
_RECONNECT_MOST_S = 5.0
_ANSWER_S = 5.0
_BROKER_ANSWER_S = 10.0
"""Waiting for a message is asked anew every second, so a broker that says nothing for so long is gone."""


class PromptConnection(Connection):
    """A connection to the broker that is tried again soon: kombu's own pauses grow to half a minute."""

    def ensure_connection(self, *given: Any, **options: Any) -> Any:
        """Connect, however often that fails."""
        return super().ensure_connection(*given, **options, interval_max=_RECONNECT_MOST_S)  # type: ignore[no-untyped-call]


def make_app(settings: Settings) -> Celery:
    """The Celery application: JSON only, late acknowledgement, no results, queue `control` by default.

    With a secret key, messages are signed, and a worker takes no others (`app.run.cluster.signing`).

    Raises:
        InputError: the settings don't name a Redis and a PostgreSQL.
    """
    check(settings)
    if settings.log_format == "json":
        warnings_as_json()
    # A worker that loses its broker while it holds an unacknowledged message must not die of trying to put it back:
    # kombu has closed the connection it would need, and raises an AttributeError. Nothing depends on such a message.
    Channel.do_restore = False
    Channel.basic_ack = _acknowledge  # type: ignore[method-assign, assignment]
    key = signing_key(settings.secret_key) if settings.secret_key else None
    sign_messages(key)
    app = Celery(
        "reviewloop",
        broker=settings.redis_url,
        set_as_current=True,
        task_cls=checked_task(key) if key else None,
    )
    app.amqp.Connection = PromptConnection
    app.conf.update(
        imports=("tasks.jobs.celery_tasks",),
        task_serializer="json",
        accept_content=["json"],
        event_serializer="json",
        result_backend=None,
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        task_default_queue=CONTROL,
        # Celery's own commands (shutdown, revoke) are not signed, and nothing here sends them.
        worker_enable_remote_control=key is None,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_S,
            "master_name": settings.redis_master,
            "health_check_interval": 15,
            "socket_timeout": _BROKER_ANSWER_S,
            "socket_connect_timeout": _ANSWER_S,
            "socket_keepalive": True,
        },
        # An attempt needs no broker: its lease and its pages are in the database.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_prefetch_count_reduction=False,
        timezone="UTC",
        beat_scheduler="app.run.cluster.beat:PulsedScheduler",
        reviewloop_pulse_file=settings.pulse_file,
        beat_schedule=beat_schedule(settings.silent_after_s),
    )

    def logs(logger: logging.Logger, format: str, **_: Any) -> None:
        format_worker_log(logger, format, settings.log_level, settings.log_format)

    for signal in (after_setup_logger, after_setup_task_logger):
        signal.disconnect(dispatch_uid="reviewloop")
        signal.connect(logs, weak=False, dispatch_uid="reviewloop")
    return app


def _acknowledge(channel: Channel, delivery_tag: str, multiple: bool = False) -> None:
    """Acknowledge a message, unless its connection is gone: kombu raises an AttributeError, which ends the worker."""
    if channel.connection is not None:
        _KOMBU_ACK(channel, delivery_tag, multiple)  # type: ignore[no-untyped-call]


def beat_schedule(silent_after_s: float) -> dict[str, dict[str, Any]]:
    """Return the schedule table in the form that beat reads."""
    entries = {}
    for sweep in SWEEPS:
        every_s = interval_s(sweep, silent_after_s)
        entries[sweep.name] = {
            "task": "sweep",
            "args": (sweep.name,),
            "schedule": every_s,
            "options": {"queue": CONTROL, "expires": every_s + CLOCKS_S},
        }
    return entries


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """A client of the cluster's Redis, on this event loop; it waits through its restarts and failovers."""
    options: dict[str, Any] = {
        # Each costs every connection a round trip, and nothing here reads them.
        "driver_info": None,
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        "retry": Retry(ExponentialBackoff(cap=_RETRY_MOST_S, base=_RETRY_FIRST_S), _FOR_EVER),
        "retry_on_error": [RedisConnectionError, RedisTimeoutError],
        "socket_timeout": _ANSWER_S,
        "socket_connect_timeout": _ANSWER_S,
    }
    if not settings.redis_url.startswith("sentinel:"):
        async with Redis.from_url(settings.redis_url, **options) as redis:
            yield redis
        return
    places, of_master = sentinels(settings.redis_url)
    watching = Sentinel(places, socket_timeout=_ANSWER_S)  # type: ignore[no-untyped-call]
    try:
        async with watching.master_for(settings.redis_master, **options, **of_master) as redis:
            yield redis
    finally:
        for sentinel in watching.sentinels:
            await sentinel.aclose()


def sentinels(url: str) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Host and port of each sentinel in a URL, and what it says of the master: user, password, database."""
    parts = [urlsplit(part) for part in url.split(";")]
    master: dict[str, Any] = {}
    for part in parts:
        if part.username:
            master["username"] = unquote(part.username)
        if part.password:
            master["password"] = unquote(part.password)
        if part.path.strip("/"):
            master["db"] = int(part.path.strip("/"))
    return [(part.hostname or "", part.port or _SENTINEL_PORT) for part in parts], master
