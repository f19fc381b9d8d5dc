"""Whether a database has the schema that this version works with; without Alembic, which is slow to import."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from tasks.domain.errors import WrongRevision


def revision(conn: Connection) -> str | None:
    """The database's revision; None where it has no tables of ours."""
    if not inspect(conn).has_table("alembic_version"):
        return None
    found: str | None = conn.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return found


def check_revision(conn: Connection, scripts: Path) -> None:
    """Refuse a database that is of another version; changes nothing.

    Args:
        scripts: the folder ``migrations``.

    Raises:
        WrongRevision: the message says which command brings it up.
    """
    known = sorted(path.name[:4] for path in (scripts / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))
    found, newest = revision(conn), known[-1]
    if found == newest:
        return
    if found is None:
        raise WrongRevision("the database has no tables yet: make them with `reviewloop migrate`")
    if found not in known:
        raise WrongRevision(
            f"the database has revision {found}, which a newer version of reviewloop made; this one knows up to "
            f"{newest}: update reviewloop"
        )
    raise WrongRevision(
        f"the database has revision {found}, and this version works with {newest}: back it up, end what runs on it, "
        "then bring it up with `reviewloop migrate` (`run`, `up` and the control worker do so, too)"
    )
