"""Diagnosis of a stall: the queues, the nodes and the database's sessions at that moment, as one line."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from tasks.store import nodes, queue_counts
from tasks.store.postgres import open_transactions


def stood_still(conn: Connection, now: datetime) -> str:
    """Queues that hold something, when each node was heard of last, and the oldest transactions."""
    queues = ", ".join(f"{n} in {state}" for state, n in queue_counts.counts(conn).items() if n)
    heard = ", ".join(
        f"{node.node.name} {(now - node.seen_at).total_seconds():.0f} s ago"
        for node in nodes.listed(conn)
        if node.seen_at is not None
    )
    sessions = "; ".join(
        f"{state}, waits for {waits or 'nothing'}, {seconds:.0f} s: {' '.join(query.split())}"
        for state, waits, seconds, query in open_transactions(conn)
    )
    return f"{queues or 'nothing in any queue'}; heard of {heard}; transactions: {sessions or 'none'}"
