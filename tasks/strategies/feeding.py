"""How many attempts a host's limits can feed: pure arithmetic, shared by production and the simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass

from splitter.catalog.model import Limits


@dataclass(frozen=True, slots=True)
class Feeding:
    """Attempts that use up what may be asked of a host.

    Attributes:
        feeds: by all addresses together.
        alone: by one address.
    """

    feeds: int
    alone: int


def feeding(limits: Limits, request_s: float, lanes: int) -> Feeding:
    """How many attempts a host feeds; at least one each.

    Args:
        limits: of the host, in requests per second.
        request_s: seconds of one request, from one to the next in a lane; positive.
        lanes: requests an attempt has in flight at once.
    """
    fastest = lanes / request_s
    return Feeding(
        max(1, math.ceil(limits.total_per_s / min(limits.per_address_per_s, fastest))),
        max(1, math.ceil(limits.per_address_per_s / fastest)),
    )
