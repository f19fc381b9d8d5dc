"""The servers that a cluster needs."""

from __future__ import annotations

from urllib.parse import urlsplit

from app.run.settings import Settings
from splitter.errors import InputError

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


def _hidden(url: str) -> str:
    """A URL without its password, for messages."""
    password = urlsplit(url).password
    return url.replace(f":{password}@", ":***@") if password else url
