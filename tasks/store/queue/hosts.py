"""Hosts: robots.txt as fetched, and breakers of node addresses they refuse or don't answer (`tasks.domain.breaker`).

A breaker without a row is closed. With one it is open until the row's time, then half-open until a page comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import bindparam, delete, exists, select, update

from tasks.domain.breaker import BreakerState, state_of
from tasks.domain.host_wait import UNREACHABLE
from tasks.store.sql.database import insert_new, insert_or
from tasks.store.sql.prepared import Prepared, defer
from tasks.store.sql.tables import host_rests, hosts
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Robots:
    """A robots.txt as fetched.

    Attributes:
        status: HTTP status; None = no answer.
        text: the body of a 200.
    """

    host: str
    status: int | None
    text: str
    fetched_at: datetime


@dataclass(frozen=True, slots=True)
class Rest:
    """A host that refuses a node's address, or does not answer it.

    Attributes:
        cause: the refusal's error class, or `UNREACHABLE`.
        seconds: how long to rest, by the refusals in a row, this one included.
    """

    host: str
    cause: str
    seconds: Callable[[int], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """A breaker that is not closed.

    Attributes:
        cause: error class of the last refusal that counted, or `UNREACHABLE`.
        until: when its rest ends, or ended.
        times: refusals in a row.
    """

    host: str
    node: str
    cause: str
    state: BreakerState
    until: datetime
    times: int


def save_robots(conn: Transaction, robots: Robots) -> None:
    """Keep a host's robots.txt, in place of an older one."""
    values = {"robots": robots.text, "robots_status": robots.status, "robots_at": robots.fetched_at}
    statement = insert_or(conn.dialect, hosts).values(host=robots.host, **values)
    conn.execute(statement.on_conflict_do_update(index_elements=[hosts.c.host], set_=values))


def load_robots(conn: Transaction, names: Iterable[str], newer_than: datetime) -> dict[str, Robots]:
    """The robots.txt of these hosts, as far as fetched after `newer_than`."""
    rows = conn.execute(select(hosts).where(hosts.c.host.in_(list(names)), hosts.c.robots_at > newer_than))
    return {r.host: Robots(r.host, r.robots_status, r.robots or "", r.robots_at) for r in rows}


def rest_host(conn: Transaction, now: datetime, node: str, rest: Rest) -> float:
    """A host refused a node's address: open its breaker, for longer with each refusal in a row.

    A refusal that comes while the breaker is open is of a request that was in flight: it does not count again and never
    shortens the rest.

    Returns:
        Seconds until the host may get a request again.
    """
    key = {"host": rest.host, "node": node}
    mine = (host_rests.c.host == rest.host) & (host_rests.c.node == node)
    defer(
        conn,
        insert_new(conn.dialect, host_rests),
        [{**key, "cause": rest.cause, "until": now, "times": 0}],
    )
    row = conn.execute(select(host_rests).where(mine).with_for_update()).one()
    times = row.times if row.until > now else row.times + 1
    until = now + timedelta(seconds=rest.seconds(times))
    if until > row.until:
        values = {"cause": rest.cause, "until": until, "times": times}
        defer(conn, update(host_rests).where(mine).values(values))
    return float((max(until, row.until) - now).total_seconds())


def rest_for_all(conn: Transaction, now: datetime, node: str, others: Collection[str], rest: Rest) -> None:
    """A host answers nobody: it rests for every address, and is probed from one of them instead of from each.

    All count as many refusals in a row as the one with the most. The address that was to ask next, but not the one that
    has just asked, probes the host after the rest of so many. Each other one waits as after one more: for the answer to
    that probe, or in its place where it makes none.

    Args:
        node: that has just asked.
        others: nodes that may ask, too.
    """
    its = (host_rests.c.host == rest.host) & _SILENT
    rows = conn.execute(select(host_rests).where(its).order_by(host_rests.c.node).with_for_update()).all()
    able = [row for row in rows if row.node != node and row.node in others] or [
        row for row in rows if row.node == node
    ]
    if not able:
        return
    times = max(row.times for row in rows)
    next_one = min(able, key=lambda row: row.until)
    for row in rows:
        until = now + timedelta(seconds=rest.seconds(times if row is next_one else times + 1))
        values = {"until": max(until, row.until), "times": times}
        defer(conn, update(host_rests).where(its, host_rests.c.node == row.node).values(values))


def recovered(conn: Transaction, now: datetime, pairs: Collection[tuple[str, str]]) -> None:
    """Close the half-open breakers of these (host, node), after the host gave the node a page.

    Open breakers stay open: that page was in flight when the host refused another. A host that did not answer and now
    does may be probed from every other address at once.
    """
    if pairs:
        rows = [{"of_host": host, "of_node": node, "now": now} for host, node in sorted(pairs)]
        _MAY_BE_PROBED.defer(conn, rows)
        _CLOSE.defer(conn, rows)


_now = bindparam("now", type_=host_rests.c.until.type)
_HALF_OPEN = (
    (host_rests.c.host == bindparam("of_host"))
    & (host_rests.c.node == bindparam("of_node"))
    & (host_rests.c.until <= _now)
)
_SILENT = host_rests.c.cause == UNREACHABLE
_back = host_rests.alias("back")
_MAY_BE_PROBED = Prepared(
    update(host_rests)
    .where(
        _SILENT,
        host_rests.c.until > _now,
        host_rests.c.host == bindparam("of_host"),
        exists().where(
            _back.c.host == host_rests.c.host,
            _back.c.node == bindparam("of_node"),
            _back.c.until <= _now,
            _back.c.cause == UNREACHABLE,
        ),
    )
    .values(until=_now)
)
_CLOSE = Prepared(delete(host_rests).where(_HALF_OPEN))


def rests_s(conn: Transaction, now: datetime) -> dict[str, dict[str, float]]:
    """For which nodes each host rests now (breaker open), and for how long: host to node to seconds."""
    found: dict[str, dict[str, float]] = {}
    for row in _RESTS.rows(conn, {"now": now}):
        found.setdefault(row.host, {})[row.node] = (row.until - now).total_seconds()
    return found


def unanswered(conn: Transaction, now: datetime) -> dict[str, list[str]]:
    """The nodes of those that rest now (breaker open) because the host does not answer them, by host."""
    found: dict[str, list[str]] = {}
    for row in _UNANSWERED.rows(conn, {"now": now}):
        found.setdefault(row.host, []).append(row.node)
    return found


def probing(conn: Transaction, now: datetime) -> dict[str, dict[str, str]]:
    """Nodes whose rests are over without a page since (breaker half-open): host to node to cause.

    Give each of these pairs one attempt at a time.
    """
    found: dict[str, dict[str, str]] = {}
    for row in _PROBING.rows(conn, {"now": now}):
        found.setdefault(row.host, {})[row.node] = row.cause
    return found


@dataclass(frozen=True, slots=True)
class RestAt:
    """A breaker that is not closed: its cause, when its rest ends, or ended, and refusals in a row."""

    cause: str
    until: datetime
    times: int


def rests_at(conn: Transaction, names: Collection[str]) -> dict[tuple[str, str], RestAt]:
    """Breakers of these hosts that are not closed, by (host, node)."""
    rows = conn.execute(select(host_rests).where(host_rests.c.host.in_(names)))
    return {(row.host, row.node): RestAt(row.cause, row.until, row.times) for row in rows}


def breakers(conn: Transaction, now: datetime) -> list[Breaker]:
    """Every breaker that is not closed, by node and host."""
    rows = conn.execute(select(host_rests).order_by(host_rests.c.node, host_rests.c.host))
    return [Breaker(**row._mapping, state=state_of(row.until, now)) for row in rows]


_RESTING = select(host_rests).where(host_rests.c.until > _now)
_RESTS = Prepared(_RESTING)
_UNANSWERED = Prepared(_RESTING.where(_SILENT))
_PROBING = Prepared(select(host_rests).where(host_rests.c.until <= _now))
