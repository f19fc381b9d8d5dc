"""Opens the store that settings name. Without what crawls: commands that only read start at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.run.setting_fields import Settings
from app.run.version import MIGRATIONS
from tasks.store.sql.database import Store
from tasks.store.sql.schema import check_revision, newest, revision, upgrade


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """Open the store and bring it to the newest schema.

    Raises:
        WrongRevision: a newer version of reviewloop made it, or one before 0.9.0.
    """
    store = Store.open(settings.database_url)
    try:
        with store.begin() as conn:  # what may not be written to is told now
            is_newest = revision(conn) == newest(MIGRATIONS)
        if not is_newest:
            upgrade(store, MIGRATIONS)
        yield store
    finally:
        store.close()


@contextmanager
def store_as_it_is(settings: Settings) -> Iterator[Store]:
    """The store, with the schema it has.

    Raises:
        WrongRevision: that is not this version's.
    """
    store = Store.open(settings.database_url)
    try:
        with store.read() as conn:
            check_revision(conn, MIGRATIONS)
        yield store
    finally:
        store.close()
