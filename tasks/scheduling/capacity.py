"""How many attempts a host's limits can feed: pure arithmetic, shared by production and the simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splitter.catalog.model import Limits

_HAIR = 1e-9
"""What a division leaves over is no attempt more."""


@dataclass(frozen=True, slots=True)
class Feeding:
    """Attempts that use up what may be asked of a host.

    Attributes:
        more: by all addresses together, beside those that ask it now.
        alone: by one address; at least 1.
    """

    more: int
    alone: int


def pace(limits: Limits, request_s: float, lanes: int) -> float:
    """Requests a second of one attempt: as many as its lanes can, and one address may.

    Args:
        limits: of the host, in requests per second.
        request_s: seconds of one request, from one to the next in a lane; positive.
        lanes: requests an attempt has in flight at once.
    """
    return min(limits.per_address_per_s, lanes / request_s)


def feeding(limits: Limits, per_s: float, load_per_s: float = 0.0) -> Feeding:
    """How many attempts a host feeds.

    Args:
        limits: of the host, in requests per second.
        per_s: requests a second of one attempt there; positive.
        load_per_s: of those that ask it now.
    """
    return Feeding(
        max(0, math.ceil((limits.total_per_s - load_per_s) / per_s - _HAIR)),
        max(1, math.ceil(limits.per_address_per_s / per_s - _HAIR)),
    )
