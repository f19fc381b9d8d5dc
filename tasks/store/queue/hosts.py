"""Hosts: robots.txt as fetched, and breakers of node addresses they refuse or don't answer (`tasks.domain.breaker`).

A breaker without a row is closed. With one it is open until the row's time, then half-open until a page comes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from tasks.domain.breaker import BreakerState
from tasks.domain.host_wait import UNREACHABLE
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
        state: at the time of the transaction; a half-open pair gets one attempt at a time.
        until: when its rest ends, or ended.
        times: refusals in a row.
    """

    host: str
    node: str
    cause: str
    state: BreakerState
    until: datetime
    times: int

    @property
    def unanswered(self) -> int:
        """Attempts in a row that the host did not answer; 0 if it refused the last one."""
        return self.times if self.cause == UNREACHABLE else 0


def save_robots(tx: Transaction, robots: Robots) -> None:
    """Keep a host's robots.txt, in place of an older one."""
    tx.later(_SAVE_ROBOTS, **asdict(robots))


_SAVE_ROBOTS = """
    INSERT INTO hosts (host, robots, robots_status, robots_at) VALUES (:host, :text, :status, :fetched_at)
    ON CONFLICT (host) DO UPDATE
    SET robots = excluded.robots, robots_status = excluded.robots_status, robots_at = excluded.robots_at
"""


def load_robots(tx: Transaction, names: Iterable[str], newer_than: datetime) -> dict[str, Robots]:
    """Return the robots.txt of these hosts, as far as fetched after `newer_than`."""
    found = tx.records(Robots, _ROBOTS, names=list(names), newer_than=newer_than)
    return {one.host: one for one in found}


_ROBOTS = """
    SELECT host, robots_status AS status, coalesce(robots, '') AS text, robots_at AS fetched_at
    FROM hosts WHERE host IN :names AND robots_at > :newer_than
"""


def rest_host(tx: Transaction, node: str, rest: Rest) -> float:
    """Open the breaker of a host that refused a node's address, for longer with each refusal in a row.

    A refusal while the breaker is open belongs to a request that was in flight: it does not count again and never
    shortens the rest.

    Returns:
        Seconds until the host may get a request again.
    """
    key = {"host": rest.host, "node": node}
    tx.later(_NEW_REST, cause=rest.cause, now=tx.now, **key)
    (row,) = tx.records(_RestRow, f"{_REST} {_PAIR} FOR UPDATE", **key)
    times = row.times if row.until > tx.now else row.times + 1
    until = tx.now + timedelta(seconds=rest.seconds(times))
    if until > row.until:
        tx.later(_PROLONG, cause=rest.cause, until=until, times=times, **key)
    return (max(until, row.until) - tx.now).total_seconds()


class _RestRow(NamedTuple):
    node: str
    cause: str
    until: datetime
    times: int


_REST = "SELECT node, cause, until, times FROM host_rests"
_PAIR = "WHERE host = :host AND node = :node"
_NEW_REST = """
    INSERT INTO host_rests (host, node, cause, until, times) VALUES (:host, :node, :cause, :now, 0)
    ON CONFLICT DO NOTHING
"""
_PROLONG = f"UPDATE host_rests SET cause = :cause, until = :until, times = :times {_PAIR}"


def rest_for_all(tx: Transaction, node: str, others: Collection[str], rest: Rest) -> None:
    """Let a host that answers no node rest for every address. One address probes it instead of each.

    Every address gets the highest number `n` of refusals in a row among them. The address that could ask next, except
    the one that has just asked, probes the host after the rest for `n`. All others rest as for `n` + 1: they wait for
    the answer to that probe, or make it if that address does not.

    Args:
        node: that has just asked.
        others: further nodes that may ask.
    """
    rows = tx.records(_RestRow, _SILENT, host=rest.host)
    able = [row for row in rows if row.node != node and row.node in others] or [
        row for row in rows if row.node == node
    ]
    if not able:
        return
    times = max(row.times for row in rows)
    next_one = min(able, key=lambda row: row.until)
    for row in rows:
        until = tx.now + timedelta(seconds=rest.seconds(times if row is next_one else times + 1))
        values = {"cause": row.cause, "until": max(until, row.until), "times": times}
        tx.later(_PROLONG, host=rest.host, node=row.node, **values)


_SILENT = f"{_REST} WHERE host = :host AND cause = '{UNREACHABLE}' ORDER BY node FOR UPDATE"


def close_breakers(tx: Transaction, pairs: Collection[tuple[str, str]]) -> None:
    """Close the half-open breakers of these (host, node), after the host gave the node a page.

    Open breakers stay open: that page was in flight when the host refused another. A host that did not answer and now
    does may be probed from every other address at once.
    """
    for statement in (_MAY_BE_PROBED, _CLOSE):
        for host, node in sorted(pairs):
            tx.later(statement, host=host, node=node, now=tx.now)


_MAY_BE_PROBED = f"""
    UPDATE host_rests SET until = :now
    WHERE cause = '{UNREACHABLE}' AND until > :now AND host = :host AND EXISTS (
        SELECT 1 FROM host_rests back
        WHERE back.host = :host AND back.node = :node AND back.until <= :now AND back.cause = '{UNREACHABLE}'
    )
"""
_CLOSE = f"DELETE FROM host_rests {_PAIR} AND until <= :now"


def list_rests(tx: Transaction) -> list[Breaker]:
    """Return every breaker that is not closed, by node and host."""
    return tx.records(Breaker, _RESTS, now=tx.now)


_RESTS = f"""
    SELECT host, node, cause, until, times,
        CASE WHEN until > :now THEN '{BreakerState.OPEN}' ELSE '{BreakerState.HALF_OPEN}' END AS state
    FROM host_rests ORDER BY node, host
"""
