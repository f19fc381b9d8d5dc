"""Sites and nodes that a store knows: to tell a wrong name from one that has nothing yet. Reads only."""

from __future__ import annotations

from sqlalchemy import Connection, exists, or_, select

from tasks.store.sql.tables import attempts, nodes, pages, tasks


def has_site(conn: Connection, name: str) -> bool:
    """Whether there is a task, an attempt or a page of a site."""
    of_site = (exists().where(table.c.site == name) for table in (tasks, attempts, pages))
    return bool(conn.execute(select(or_(*of_site))).scalar_one())


def node_names(conn: Connection) -> list[str]:
    """The nodes that are registered, or had an attempt, by name."""
    known = select(nodes.c.name).union(select(attempts.c.node))
    return sorted(conn.scalars(known))
