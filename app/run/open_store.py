"""Open the store and the Redis that the settings name, and hold locks on a database or folder.

The drivers are imported late, so that a command with wrong arguments ends fast.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.run.version import MIGRATIONS
from splitter.errors import InputError, Message
from tasks.domain.errors import StoreFailed, StoreUnavailable
from tasks.domain.given_address import read_redis

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from app.run.setting_fields import Settings
    from tasks.store.sql.database import Store

ANSWER_S = 5.0
"""Maximum seconds that Redis may take to answer."""
_PING_S = 2.0
_PORTS = {"redis": 6379, "rediss": 6379, "sentinel": 26379}
# An attempt waits through a restart or failover of Redis, however long it takes.
_FOR_EVER = -1
_RETRY_FIRST_S, _RETRY_MOST_S = 0.1, 1.0
_RIGHT = "REVIEWLOOP_REDIS_URL"
_NO_HOST = Message("no name server knows the host of {place}: correct it in {right}", right=_RIGHT)
_NO_LOGIN = Message("{place} asks for a password: write it as ://:PASSWORD@ in {right}", right=_RIGHT)
_NO_NUMBER = Message(
    "{place} has no database of this number: correct the number at the end of {right}", right=_RIGHT
)
_NO_REDIS = Message(
    "what answers at {place} is no Redis, or speaks TLS (rediss://): correct {right}", right=_RIGHT
)
_REDIS_PROBLEMS: Mapping[str, Message] = {
    "username-password": Message("{place} refuses user or password: correct them in {right}", right=_RIGHT),
    "Authentication required": _NO_LOGIN,
    "without any password configured": Message(
        "{place} has no password: leave it out of {right}", right=_RIGHT
    ),
    "no permissions": Message(
        "{place} refuses its user a command ({text}): grant it (ACL), or name another user in {right}",
        right=_RIGHT,
    ),
    **dict.fromkeys(("DB index", "Invalid Database"), _NO_NUMBER),
    **dict.fromkeys(("not known", "name resolution", "No address associated"), _NO_HOST),
    "No master found": Message(
        "no sentinel of {place} knows a master of this name: start them, or correct REVIEWLOOP_REDIS_MASTER"
    ),
    "'SENTINEL'": Message(
        "what answers at {place} is no sentinel: write redis:// in {right} for a Redis itself", right=_RIGHT
    ),
    "loading the dataset": Message("{place} is loading its data: try again in a moment"),
    "max number of clients": Message(
        "{place} has no free connection: end other programs, or raise its maxclients"
    ),
    **dict.fromkeys(("Protocol Error", "SSL", "VERSION_NUMBER"), _NO_REDIS),
}
"""Problems of Redis in words for people, by parts of the client's texts. The first part that a text contains counts."""


@contextmanager
def open_store(settings: Settings, *, upgrade: bool = True) -> Iterator[Store]:
    """Open the store. If `upgrade`, bring its schema to the newest revision.

    Raises:
        WrongRevision: the store is too new or older than 0.9.0, or has another schema and `upgrade` is False.
    """
    from tasks.store.sql import schema
    from tasks.store.sql.database import Store

    store = Store.open(settings.database_url)
    try:
        # A store that will be written to is refused now if it is read-only.
        with store.begin() if upgrade else store.read() as conn:
            if not upgrade:
                schema.check_revision(conn, MIGRATIONS)
            is_newest = schema.revision(conn) == schema.newest(MIGRATIONS)
        if not is_newest:
            schema.upgrade(store, MIGRATIONS)
        yield store
    finally:
        store.close()


@asynccontextmanager
async def open_redis(settings: Settings, tries: int = _FOR_EVER) -> AsyncIterator[Redis]:
    """Open a client of the cluster's Redis on this event loop.

    Args:
        tries: how often each command is tried. By default the client tries until Redis is back.
    """
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.asyncio.sentinel import Sentinel
    from redis.backoff import ExponentialBackoff
    from redis.exceptions import ConnectionError as RedisConnectionError
    from redis.exceptions import TimeoutError as RedisTimeoutError
    from redis.maint_notifications import MaintNotificationsConfig

    retries = tries if tries == _FOR_EVER else tries - 1
    options: dict[str, Any] = {
        # Each of these costs a round trip per connection, and their results are not used.
        "driver_info": None,
        "maint_notifications_config": MaintNotificationsConfig(enabled=False),
        "retry": Retry(ExponentialBackoff(cap=_RETRY_MOST_S, base=_RETRY_FIRST_S), retries),
        "retry_on_error": [RedisConnectionError, RedisTimeoutError],
        "socket_timeout": ANSWER_S,
        "socket_connect_timeout": ANSWER_S,
    }
    if not settings.redis_url.startswith("sentinel:"):
        async with Redis.from_url(settings.redis_url, **options) as redis:
            yield redis
        return
    places, of_master = sentinels(settings.redis_url)
    watching = Sentinel(places, socket_timeout=ANSWER_S)  # type: ignore[no-untyped-call]
    try:
        async with watching.master_for(settings.redis_master, **options, **of_master) as redis:
            yield redis
    finally:
        for sentinel in watching.sentinels:
            await sentinel.aclose()


def sentinels(url: str) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """Read a URL of Redis sentinels: return host and port of each, and user, password and database of the master."""
    parts = read_redis(url)
    master: dict[str, Any] = {}
    for part in parts:
        if part.user:
            master["username"] = part.user
        if part.password:
            master["password"] = part.password
        if part.path.strip("/"):
            master["db"] = int(part.path.strip("/"))
    return [(part.host, part.port or _PORTS["sentinel"]) for part in parts], master


async def ping_redis(settings: Settings, seconds: float = _PING_S) -> None:
    """Ping Redis once, and wait at most `seconds`. Raises RedisError, OSError or TimeoutError."""
    async with asyncio.timeout(seconds), open_redis(settings, tries=1) as redis:
        await redis.ping()


def explain_redis(settings: Settings, error: Exception) -> Message:
    """Return why Redis can't be used. The message has the address of Redis, but not its password."""
    from redis.exceptions import ResponseError

    text = " ".join(str(error).split())
    problem = next((one for part, one in _REDIS_PROBLEMS.items() if part in text), None)
    if problem is None and isinstance(error, ResponseError):
        problem = Message("{place} refuses this program: {text}")
    elif problem is None:
        problem = Message(
            "no Redis answers at {place}: start it, or correct host and port in {right}", right=_RIGHT
        )
    places = [
        f"{one.scheme}://{one.host}:{one.port or _PORTS[one.scheme]}"
        for one in read_redis(settings.redis_url)
    ]
    return Message(problem.template, place=";".join(places), text=text, **problem.parameters)


def servers_answer(settings: Settings) -> bool:
    """Return True if PostgreSQL and Redis answer within a few seconds."""
    from redis.exceptions import RedisError

    from tasks.store.sql.database import Store

    store = Store.open(settings.database_url, pool_size=1, connect_s=round(_PING_S))
    try:
        asyncio.run(ping_redis(settings))
        with store.read():
            return True
    except (TimeoutError, RedisError, StoreUnavailable):
        return False
    except StoreFailed:
        return True
    finally:
        store.close()


def check_cluster(settings: Settings) -> None:
    """Raise InputError if a cluster can't run with these settings."""
    if not settings.redis_url:
        raise InputError(
            "REVIEWLOOP_REDIS_URL: a cluster needs a Redis: "
            "redis://HOST:6379/0, rediss://... or sentinel://HOST:26379;sentinel://HOST:26379"
        )
    if not settings.database_url.startswith("postgresql"):
        raise InputError(
            "REVIEWLOOP_DATABASE_URL: a cluster needs a PostgreSQL: "
            "postgresql+psycopg2://USER:PASSWORD@HOST/NAME"
        )


def try_redis(settings: Settings) -> Message | None:
    """Return why Redis does not answer now; `None` if it answers. Raises InputError if Redis refuses the login."""
    from redis.exceptions import AuthenticationError, RedisError, ResponseError

    try:
        asyncio.run(ping_redis(settings))
    except (AuthenticationError, ResponseError) as error:
        raise InputError("{problem}", problem=explain_redis(settings, error)) from None
    except (RedisError, OSError) as error:
        return explain_redis(settings, error)
    return None


@contextmanager
def hold(lock: Path, what: Message, instead: Message) -> Iterator[None]:
    """Hold a lock file during the block. The system releases the lock even if the process is killed.

    Args:
        what: description of the holder's work, for the message.
        instead: advice to the person.

    Raises:
        InputError: another process holds the lock. The message names that process and the time of its start.
    """
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "{what} ({holder}): {instead}", what=what, holder=_holder(lock), instead=instead
            ) from None
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"}))
        file.flush()
        yield


@contextmanager
def hold_database(database: Path | None) -> Iterator[None]:
    """Lock a SQLite file during the block, so that only one `run` works on it.

    Args:
        database: the file; `None` for other databases, which are not locked.

    Raises:
        InputError: another `run` holds the lock.
    """
    if database is None or database.is_dir() or not os.access(database.absolute().parent, os.W_OK):
        yield  # opening the database reports a wrong folder
        return
    what = Message("another `reviewloop run` works on {database}", database=database)
    instead = Message("end it, or name another database with --db")
    with hold(database.with_name(f"{database.name}.run"), what, instead):
        yield


def hold_folder(folder: Path) -> AbstractContextManager[None]:
    """Lock a folder during the block, so that only one cluster works in it.

    Raises:
        InputError: another process holds the lock.
    """
    return hold(
        folder / "lock",
        Message("another command works with {folder}", folder=folder),
        Message("end it, or name another folder with --data"),
    )


def is_busy(folder: Path) -> bool:
    """Return True if a cluster or a command holds the lock of a folder."""
    try:
        refuse_busy(folder)
    except InputError:
        return True
    return False


def refuse_busy(folder: Path) -> None:
    """Raise InputError if a cluster or a command holds the lock of a folder. No lock file is created."""
    if (folder / "lock").exists():
        with hold_folder(folder):
            pass


def _holder(lock: Path) -> Message:
    try:
        holder = json.loads(lock.read_text("utf-8"))
        return Message("process {pid}, since {since}", pid=holder["pid"], since=holder["since"])
    except (OSError, ValueError, LookupError, TypeError):
        return Message("it holds {lock}", lock=lock)
