"""Hosts: their robots.txt as fetched, and which node addresses they refuse at present."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from tasks.store.database import insert_or
from tasks.store.tables import host_rests, hosts


@dataclass(frozen=True, slots=True)
class Robots:
    """A robots.txt as fetched.

    Attributes:
        status: HTTP status; None = nobody answered.
        text: the body of a 200.
    """

    host: str
    status: int | None
    text: str
    fetched_at: datetime


def save_robots(conn: Connection, robots: Robots) -> None:
    """Keep a host's robots.txt, in place of an older one."""
    values = {"robots": robots.text, "robots_status": robots.status, "robots_at": robots.fetched_at}
    statement = insert_or(conn.dialect, hosts).values(host=robots.host, **values)
    conn.execute(statement.on_conflict_do_update(index_elements=[hosts.c.host], set_=values))


def load_robots(conn: Connection, names: Iterable[str], newer_than: datetime) -> dict[str, Robots]:
    """The robots.txt of these hosts, as far as fetched after `newer_than`."""
    rows = conn.execute(select(hosts).where(hosts.c.host.in_(list(names)), hosts.c.robots_at > newer_than))
    return {r.host: Robots(r.host, r.robots_status, r.robots or "", r.robots_at) for r in rows}


def resting(conn: Connection, now: datetime) -> dict[str, dict[str, str]]:
    """Which nodes each host refuses now: host to node to cause."""
    found: dict[str, dict[str, str]] = {}
    for row in conn.execute(select(host_rests).where(host_rests.c.until > now)):
        found.setdefault(row.host, {})[row.node] = row.cause
    return found
