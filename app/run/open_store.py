"""Opens the store that settings name. Without what crawls: commands that only read start at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.run.settings import MIGRATIONS, Settings
from tasks.domain.errors import WrongRevision
from tasks.store.database import Store
from tasks.store.revision import check_revision, newest, revision


@contextmanager
def opened_store(settings: Settings) -> Iterator[Store]:
    """The store, brought to the newest schema.

    Raises:
        WrongRevision: a newer version of reviewloop made it.
    """
    store = Store.open(settings.database_url)
    try:
        with store.begin() as conn:  # what may not be written to is told now
            is_newest = revision(conn) == newest(MIGRATIONS)
        if not is_newest:
            _upgrade(store)
        yield store
    finally:
        store.close()


def _upgrade(store: Store) -> None:
    from alembic.util import CommandError  # slow to import, and a store of this version does without

    from tasks.store import migrate

    try:
        migrate.upgrade(store, MIGRATIONS)
    except CommandError as error:
        raise WrongRevision(
            f"the database is of another version of reviewloop: {error}; update reviewloop"
        ) from error


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
