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


def newest(scripts: Path) -> str:
    """The newest revision there is.

    Args:
        scripts: the folder ``migrations``.
    """
    return _known(scripts)[-1]


def _known(scripts: Path) -> list[str]:
    return sorted(path.name[:4] for path in (scripts / "versions").glob("[0-9][0-9][0-9][0-9]_*.py"))


def check_revision(conn: Connection, scripts: Path) -> None:
    """Refuse a database that is of another version; changes nothing.

    Args:
        scripts: the folder ``migrations``.

    Raises:
        WrongRevision: the message says which command brings it up.
    """
    known, found = _known(scripts), revision(conn)
    if found == known[-1]:
        return
    if found is None:
        raise WrongRevision("the database has no tables yet: make them with `reviewloop migrate`")
    if found not in known:
        raise WrongRevision(
            f"the database has revision {found}, which a newer version of reviewloop made; this one knows up to "
            f"{known[-1]}: update reviewloop"
        )
    raise WrongRevision(
        f"the database has revision {found}, and this version works with {known[-1]}: back it up, end what runs on it, "
        "then bring it up with `reviewloop migrate` (`run`, `up` and the control worker do so, too)"
    )
