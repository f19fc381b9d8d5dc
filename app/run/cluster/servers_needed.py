"""The servers that a cluster needs."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from app.run.setting_fields import Settings
from splitter.errors import InputError

_PING_S = 2.0
_SCHEMES = ("redis", "rediss", "sentinel")


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


def servers_answer(settings: Settings) -> bool:
    """Return True if PostgreSQL and Redis answer within a few seconds."""
    # `check` is called by every program of a cluster, and must not make all of them import these.
    from redis.exceptions import RedisError
    from sqlalchemy.exc import DBAPIError

    from app.run.cluster.broker import open_redis
    from tasks.store.sql.database import open_engine

    async def ping() -> None:
        async with asyncio.timeout(_PING_S), open_redis(settings) as redis:
            await redis.ping()

    engine = open_engine(settings.database_url, pool_size=1, connect_s=round(_PING_S))
    try:
        asyncio.run(ping())
        engine.connect().close()
    except (TimeoutError, RedisError, DBAPIError):
        return False
    finally:
        engine.dispose()
    return True


def _hidden(url: str) -> str:
    """A URL without its password, for messages."""
    password = urlsplit(url).password
    return url.replace(f":{password}@", ":***@") if password else url
