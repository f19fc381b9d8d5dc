"""Which leases of a batch are in force: what is stored for them is asked about that first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row

from tasks.store import transitions
from tasks.store.leases import Lease
from tasks.store.tables import subtasks

Owners = Mapping[tuple[int, str], Row[Any]]
"""Leases in force, by (subtask, token), with the columns of their subtask."""


def owned(lease: Lease) -> tuple[int, str]:
    """What a lease is found by among `Owners`."""
    return lease.subtask_id, lease.token


def owners_of(conn: Connection, leases: Iterable[Lease]) -> Owners:
    """Lock the subtasks of these leases; those that are in force."""
    tokens: dict[int, set[str]] = {}
    for lease in leases:
        tokens.setdefault(lease.subtask_id, set()).add(lease.token)
    return transitions.in_force(conn, tokens, subtasks.c.task_id, subtasks.c.product_id, subtasks.c.part_id)
