"""Measurements of the scheduler's process, kept for metrics: how long its sweeps take, and what hosts grant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, select

from tasks.domain.grants import AddressGrants, Grants, HostGrants
from tasks.store.database import insert_or
from tasks.store.tables import measurements

_SCHEDULER = "scheduler"


@dataclass(slots=True)
class SweepTimes:
    """How often a sweep ran, and for how long, without its commit.

    Attributes:
        longest_s: since the times were kept last.
    """

    count: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0

    def add(self, seconds: float) -> None:
        """It ran for so long."""
        self.count += 1
        self.seconds += seconds
        self.longest_s = max(self.longest_s, seconds)


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements that a scheduler kept last.

    Attributes:
        at: when.
        sweeps: by name, since its process began.
        grants: by host, of those that don't grant all of their limits.
    """

    at: datetime
    sweeps: Mapping[str, SweepTimes]
    grants: Grants


def save(conn: Connection, now: datetime, sweeps: Mapping[str, SweepTimes], grants: Grants) -> None:
    """Keep this instead of what was kept before."""
    data = {
        "sweeps": {name: asdict(times) for name, times in sweeps.items()},
        "hosts": {
            host: {
                "share": one.share,
                "next_s": one.next_s,
                "addresses": {address: [own.share, own.next_s] for address, own in one.addresses.items()},
            }
            for host, one in grants.items()
            if one.share < 1.0 or one.next_s or one.addresses
        },
    }
    values = {"at": now, "data": data}
    statement = insert_or(conn.dialect, measurements).values(name=_SCHEDULER, **values)
    conn.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))
    for times in sweeps.values():
        times.longest_s = 0.0


def load(conn: Connection) -> Measured | None:
    """The measurements kept last; None: no scheduler has run yet."""
    row = conn.execute(select(measurements).where(measurements.c.name == _SCHEDULER)).one_or_none()
    if row is None:
        return None
    sweeps = {name: SweepTimes(**times) for name, times in row.data["sweeps"].items()}
    grants = {
        host: HostGrants(
            share=one["share"],
            next_s=one["next_s"],
            addresses={
                name: AddressGrants(share=share, next_s=next_s)
                for name, (share, next_s) in one["addresses"].items()
            },
        )
        for host, one in row.data["hosts"].items()
    }
    return Measured(row.at, sweeps, grants)
