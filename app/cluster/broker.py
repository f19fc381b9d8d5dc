"""The cluster's Celery application and its Redis, made from the settings (see docs/cluster.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from celery import Celery
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig

from app.config import Settings
from splitter.errors import InputError
from tasks.jobs.celery_tasks import CLOCKS_S, CONTROL
from tasks.jobs.schedule import SWEEPS, interval_s

_SCHEMES = ("redis", "rediss", "sentinel")
_SENTINEL_PORT = 26379

# Redis hands a message that nobody acknowledged out again after this time. Nothing depends on it: recall is a sweep
# over leases, and a notification this old is over. It is only kept from happening while an attempt runs.
_VISIBILITY_S = 86_400

# An attempt waits this long for a Redis that is away (a restart, a failover) before it fails.
_RETRIES, _RETRY_FIRST_S, _RETRY_MOST_S = 12, 0.1, 2.0
_ANSWER_S = 5.0


def make_app(settings: Settings) -> Celery:
    """The Celery application: JSON only, late acknowledgement, no results, queue `control` by default.

    Raises:
        InputError: the settings don't name a Redis and a PostgreSQL.
    """
    check(settings)
    app = Celery("reviewloop", broker=settings.redis_url, set_as_current=True)
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
        broker_connection_retry_on_startup=True,
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_S,
            "master_name": settings.redis_master,
            "health_check_interval": 15,
        },
        # An attempt needs no broker: its lease and its pages are in the database.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_prefetch_count_reduction=False,
        timezone="UTC",
        # The intervals are short: where beat stood before a restart is not worth a file.
        beat_scheduler="celery.beat:Scheduler",
        beat_schedule=beat_schedule(settings.silent_after_s),
    )
    return app


def check(settings: Settings) -> None:
    """Refuse settings a cluster cannot run on. Raises InputError."""
    if urlsplit(settings.redis_url).scheme not in _SCHEMES:
        raise InputError(
            f"REVIEWLOOP_REDIS_URL={_hidden(settings.redis_url)!r}: a cluster needs a Redis: redis://HOST:6379/0, "
            "rediss://... or sentinel://HOST:26379;sentinel://HOST:26379"
        )
    if not settings.database_url.startswith("postgresql"):
        raise InputError(
            f"REVIEWLOOP_DATABASE_URL={_hidden(settings.database_url)!r}: a cluster needs a PostgreSQL: "
            "postgresql+psycopg2://USER:PASSWORD@HOST/NAME"
        )


def beat_schedule(silent_after_s: float) -> dict[str, dict[str, Any]]:
    """The schedule table as beat reads it."""
    entries = {}
    for sweep in SWEEPS:
        every_s = interval_s(sweep, silent_after_s)
        own_task = sweep.name in ("plan", "report", "reposts", "seen", "train")
        entries[sweep.name] = {
            "task": sweep.name if own_task else "tick",
            "args": () if own_task else (sweep.name,),
            "schedule": every_s,
            "options": {"queue": CONTROL, "expires": every_s + CLOCKS_S},
        }
    return entries


@asynccontextmanager
async def open_redis(settings: Settings) -> AsyncIterator[Redis]:
    """A client of the cluster's Redis, on this event loop; it waits through a restart or failover of about 15 s."""
    options: dict[str, Any] = {
        # Each costs every connection a round trip, and nothing here reads them.
        "driver_info": None,
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        "retry": Retry(ExponentialBackoff(cap=_RETRY_MOST_S, base=_RETRY_FIRST_S), _RETRIES),
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


def _hidden(url: str) -> str:
    """A URL without its password, for messages."""
    password = urlsplit(url).password
    return url.replace(f":{password}@", ":***@") if password else url
