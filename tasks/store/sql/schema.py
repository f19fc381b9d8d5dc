"""The schema of a database: its revision, and the upgrade to this version's revision.

An empty database gets the declared tables. One of an older version is upgraded by Alembic's migrations, which are slow
to import. A test compares the two schemas.
"""

from __future__ import annotations

from pathlib import Path

from splitter.errors import Message
from sqlalchemy import Column, MetaData, PrimaryKeyConstraint, String, Table, inspect

from tasks.domain.errors import WrongRevision
from tasks.store.sql.database import Store, lift_limits
from tasks.store.sql.outages import show_place
from tasks.store.sql.tables import metadata
from tasks.store.sql.transaction import Transaction

_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
"""Alembic's own table, as Alembic makes it."""
_LOCK = 7_203_118  # any number, the same in every process


def revision(tx: Transaction) -> str | None:
    """Return the database's revision; `None` if it has no tables of reviewloop."""
    if not inspect(tx.engine_connection).has_table("alembic_version"):
        return None
    found: str | None = tx.value("SELECT version_num FROM alembic_version")
    return found


def newest(scripts: Path) -> str:
    """Return the newest revision in the folder ``migrations``."""
    return _list_revisions(scripts)[-1]


def _list_revisions(scripts: Path) -> list[str]:
    return sorted(path.name[:4] for path in (scripts / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


def _show_place(tx: Transaction) -> Message | str:
    return show_place(tx.engine_connection.engine.url)


def check_revision(tx: Transaction, scripts: Path) -> None:
    """Refuse a database that has another revision than this version's; change nothing.

    Args:
        scripts: the folder ``migrations``.

    Raises:
        WrongRevision: its message names the command that upgrades the database.
    """
    found = upgradable_revision(tx, scripts)
    if found is None:
        raise WrongRevision(
            "{place} has no tables yet: make them with `reviewloop migrate`", place=_show_place(tx)
        )
    if found != newest(scripts):
        raise WrongRevision(
            "{place} has revision {found}, and this version works with {newest}: back it up, end what "
            "runs on it, then bring it up with `reviewloop migrate` (`run`, `up` and the control worker do "
            "so, too)",
            place=_show_place(tx),
            found=found,
            newest=newest(scripts),
        )


def upgradable_revision(tx: Transaction, scripts: Path) -> str | None:
    """Return the database's revision, `None` for an empty database; raise `WrongRevision` if it can't be upgraded."""
    known, found = _list_revisions(scripts), revision(tx)
    if found is None and tx.is_sqlite and inspect(tx.engine_connection).get_table_names():
        raise WrongRevision(
            "{place} holds tables of another program: name another file with --db", place=_show_place(tx)
        )
    if found is None or found in known:
        return found
    if found > known[-1]:
        raise WrongRevision(
            "{place} has revision {found}, which a newer version of reviewloop made; this one knows up "
            "to {newest}: update reviewloop",
            place=_show_place(tx),
            found=found,
            newest=known[-1],
        )
    raise WrongRevision(
        "{place} has revision {found}, which a version of reviewloop before 0.9.0 made; this one "
        "upgrades from {oldest} on: upgrade it with version 0.9.0 first (its command `migrate` does)",
        place=_show_place(tx),
        found=found,
        oldest=known[0],
    )


def upgrade(store: Store, scripts: Path) -> None:
    """Bring the database to the newest schema; processes that start at once wait for each other.

    Args:
        scripts: the folder ``migrations``.

    Raises:
        WrongRevision: a newer version made the database, or one before 0.9.0.
    """
    with store.begin() as conn, lift_limits(conn):
        if not store.is_sqlite:
            conn.run("SELECT pg_advisory_xact_lock(:lock)", lock=_LOCK)
        found = upgradable_revision(conn, scripts)
        if found is None:
            _create_tables(conn, newest(scripts))
        elif found != newest(scripts):
            _run_migrations(conn, scripts)


def _create_tables(tx: Transaction, revision: str) -> None:
    metadata.create_all(tx.engine_connection)
    _VERSION.create(tx.engine_connection)
    tx.run("INSERT INTO alembic_version (version_num) VALUES (:revision)", revision=revision)


def _run_migrations(tx: Transaction, scripts: Path) -> None:
    from alembic import command  # slow to import, and a store of this version does without
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts))
    config.attributes["connection"] = tx.engine_connection
    command.upgrade(config, "head")
