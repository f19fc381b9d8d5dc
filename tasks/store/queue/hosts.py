"""Hosts: robots.txt as fetched, and breakers of node addresses they refuse or don't answer (`tasks.domain.breaker`).

A breaker without a row is closed. With one it is open until the row's time, then half-open until a page comes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from tasks.domain.breaker import Breaker, BreakerState, Rest
from tasks.domain.host_wait import UNREACHABLE
from tasks.store.sql.rows import storable
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


def save_robots(tx: Transaction, robots: Robots) -> None:
    """Keep a host's robots.txt, in place of an older one."""
    tx.later(_SAVE_ROBOTS, **{**asdict(robots), "text": storable(robots.text)})


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


def rest_hosts(
    tx: Transaction, refusals: Sequence[tuple[str, Rest]], names: Collection[str] = ()
) -> dict[tuple[str, str], Breaker]:
    """Open the breakers of hosts that refused the addresses of nodes, for longer with each refusal in a row.

    A refusal while the breaker is open belongs to a request that was in flight: it does not count again and never
    shortens the rest.

    Args:
        refusals: in their order, each with the node that was refused.
        names: further hosts.

    Returns:
        The breakers of all these hosts that are not closed, locked, by host and node.
    """
    hosts = {rest.host for _, rest in refusals}.union(names)
    if not hosts:
        return {}
    new = {(rest.host, node): rest.cause for node, rest in refusals}
    rows = [(*pair, cause) for pair, cause in sorted(new.items())]
    tx.insert("host_rests", _PAIR, rows, shared={"until": tx.now, "times": 0}, skip_known=True)
    rests = {(one.host, one.node): one for one in tx.records(Breaker, _LOCK, now=tx.now, names=hosts)}
    longer = {}
    for node, rest in refusals:
        row = rests[rest.host, node]
        times = row.times if row.until > tx.now else row.times + 1
        until = tx.now + timedelta(seconds=rest.seconds(times))
        if until > row.until:
            row = replace(row, cause=rest.cause, state=BreakerState.OPEN, until=until, times=times)
            longer[rest.host, node] = rests[rest.host, node] = row
    store_rests(tx, longer.values())
    return rests


_PAIR = ("host", "node", "cause")
_RESTS = f"""
    SELECT host, node, cause, until, times,
        CASE WHEN until > :now THEN '{BreakerState.OPEN}' ELSE '{BreakerState.HALF_OPEN}' END AS state
    FROM host_rests
"""
_LOCK = f"{_RESTS} WHERE host IN :names ORDER BY host, node FOR UPDATE"


def store_rests(tx: Transaction, breakers: Iterable[Breaker]) -> None:
    """Store how long hosts rest, by breakers that are locked."""
    rows = [{name: getattr(one, name) for name in (*_PAIR, "until", "times")} for one in breakers]
    tx.update("host_rests", _PAIR[:2], rows)


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
_CLOSE = "DELETE FROM host_rests WHERE host = :host AND node = :node AND until <= :now"


def shorten_rests(tx: Transaction, by: timedelta) -> None:
    """End all rests earlier by this time, though not before now: the clock was set back."""
    rests = tx.records(Breaker, f"{_RESTS} WHERE until > :now ORDER BY host, node FOR UPDATE", now=tx.now)
    store_rests(tx, [replace(one, until=max(tx.now, one.until - by)) for one in rests])


def list_rests(tx: Transaction) -> list[Breaker]:
    """Return every breaker that is not closed, by node and host."""
    return tx.records(Breaker, _ALL, now=tx.now)


_ALL = f"{_RESTS} ORDER BY node, host"
