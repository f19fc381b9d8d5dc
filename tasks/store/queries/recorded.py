"""Attempts that show how long nodes take, and the parameters of the nodes' machines, for run times to be learned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from tasks.store.sql.tables import attempts, nodes


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """An attempt that tried pages, with its node, its number of URLs and its active time in seconds."""

    attempt_id: int
    node: str
    urls: int
    seconds: float


def recorded_runs(conn: Connection, nodes: Collection[str], newest: int | None = None) -> list[RecordedRun]:
    """Attempts of these nodes that succeeded, tried pages and took time, the oldest first.

    Args:
        newest: maximum number of attempts, the newest ones; `None` returns all.
    """
    rows = conn.execute(
        select(attempts.c.id, attempts.c.node, attempts.c.tried, attempts.c.active_s)
        .where(
            attempts.c.outcome == "succeeded",
            attempts.c.tried > 0,
            attempts.c.active_s > 0,
            attempts.c.node.in_(list(nodes)),
        )
        .order_by(attempts.c.id.desc())
        .limit(newest)
    )
    return [RecordedRun(*row) for row in rows][::-1]


def recorded_parameters(conn: Connection) -> dict[str, Mapping[str, float | None]]:
    """Return the parameters of each node's machine, if the node reported them."""
    rows = conn.execute(select(nodes.c.name, nodes.c.parameters).order_by(nodes.c.name))
    return {name: parameters for name, parameters in rows if parameters}
