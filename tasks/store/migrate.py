"""Bringing a database to the newest schema, by Alembic's migrations."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from tasks.store.database import Store, unhurried

_LOCK = 7_203_118  # any number, the same in every process


def upgrade(store: Store, scripts: Path) -> None:
    """Bring the database to the newest schema; processes that start at once wait for each other.

    Args:
        scripts: the folder ``migrations``.
    """
    with store.begin() as conn, unhurried(conn):
        if not store.is_sqlite:
            conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        if current(conn) != newest(scripts):
            command.upgrade(config(scripts, conn), "head")


def config(scripts: Path, conn: Connection | None = None) -> Config:
    """Alembic's configuration, for an open connection."""
    made = Config()
    made.set_main_option("script_location", str(scripts))
    made.attributes["connection"] = conn
    return made


def current(conn: Connection) -> str | None:
    """The database's revision; None for an empty one."""
    return MigrationContext.configure(conn).get_current_revision()


def newest(scripts: Path) -> str | None:
    """The newest revision there is."""
    return ScriptDirectory.from_config(config(scripts)).get_current_head()
