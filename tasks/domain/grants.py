"""The grants of hosts now: the one truth that the keeper of send permits and the scheduler share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

LONGEST_QUEUE_S = 5.0
"""Seconds. A node is given nothing at a host that grants it no permit within this time, or whose permits are
reserved so far ahead: it could only wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressGrants:
    """The grant of a host to one node address.

    Attributes:
        share: of the address's limit, in (0, 1].
        next_s: seconds until it may send its next request; 0: now.
    """

    share: float = 1.0
    next_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostGrants:
    """The grants of a host.

    Attributes:
        share: of its limit for all addresses, in (0, 1].
        next_s: how far ahead its permits are reserved, in seconds; 0: no request waits for one.
        addresses: by node address; one that is missing has its full share now.
        answers_well: it answers some address well, and lately: faults of another one are not the host's.
    """

    share: float = 1.0
    next_s: float = 0.0
    addresses: Mapping[str, AddressGrants] = field(default_factory=lambda: MappingProxyType({}))
    answers_well: bool = False

    def grant_for(self, address: str) -> AddressGrants:
        """Return the grant to this address."""
        return self.addresses.get(address, _FULL)


_FULL = AddressGrants()

Grants = Mapping[str, HostGrants]
"""Grants by host. A host that is missing grants its limits."""
