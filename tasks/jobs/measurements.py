"""Measurements: times of sweeps and grants of hosts, stored for metrics by the scheduler; and the load of a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from tasks.domain.grants import AddressGrants, Grants, HostGrants
from tasks.scheduling.rebalancing import BufferRule, NodeLoad, start_rate
from tasks.store.queue import upkeep
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.transaction import Transaction

_NAME = "scheduler"


@dataclass(slots=True)
class SweepTimes:
    """Number and duration of a sweep's runs, without their commits.

    Attributes:
        longest_s: longest run since the times were last stored, in seconds.
    """

    count: int = 0
    seconds: float = 0.0
    longest_s: float = 0.0

    def add(self, seconds: float) -> None:
        """Add a run that took `seconds`."""
        self.count += 1
        self.seconds += seconds
        self.longest_s = max(self.longest_s, seconds)


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements that a scheduler stored last.

    Attributes:
        sweeps: times of the sweeps by name, since the process began.
        grants: grants by host, for hosts that grant less than their limits.
    """

    at: datetime
    sweeps: Mapping[str, SweepTimes]
    grants: Grants


def save_measurements(tx: Transaction, sweeps: Mapping[str, SweepTimes], grants: Grants) -> None:
    """Store the measurements in place of the earlier ones."""
    data = {
        "sweeps": {name: asdict(times) for name, times in sweeps.items()},
        "hosts": {
            host: [one.share, one.next_s, {address: asdict(own) for address, own in one.addresses.items()}]
            for host, one in grants.items()
            if one.share < 1.0 or one.next_s or one.addresses
        },
    }
    upkeep.store_value(tx, _NAME, tx.now, data)
    for times in sweeps.values():
        times.longest_s = 0.0


def load_measurements(tx: Transaction) -> Measured | None:
    """Return the measurements stored last; `None` if no scheduler has run yet."""
    found = upkeep.load_value(tx, _NAME)
    if found is None:
        return None
    sweeps = {name: SweepTimes(**times) for name, times in found.data["sweeps"].items()}
    return Measured(found.at, sweeps, {host: _grants(*one) for host, one in found.data["hosts"].items()})


def _grants(share: float, next_s: float, addresses: Mapping[str, Mapping[str, float]]) -> HostGrants:
    of_addresses = {name: AddressGrants(**one) for name, one in addresses.items()}
    return HostGrants(share=share, next_s=next_s, addresses=of_addresses)


def load_of(row: NodeRow, now: datetime, rule: BufferRule) -> NodeLoad:
    """Return the load of a node from its leases and its last heartbeat."""
    idle = min(row.idle, row.running)
    waited_s = (now - row.waits_since).total_seconds() if row.waits_since is not None else 0.0
    rate = start_rate(row.slots, row.running - idle, row.attempts_per_s, waited_s)
    return NodeLoad(
        name=row.name,
        kinds=frozenset(row.kinds),
        slots=row.slots,
        prefetched=row.waiting,
        free=max(0, rule.max_leases(row.slots, idle, rate.per_s) - row.running - row.waiting),
        rate=rate,
    )
