"""Back-off per pair: how many attempts at once a node may have at a host that refused it.

A host refuses an address because of the requests it sent, and accepts it again after a while. A node that goes on as
before is refused again, and loses more time to rests than it gains. So each refusal halves the attempts the node may
have there, and they grow back with time. With s the attempts at once that were allowed when it was refused,

    share(t) = s / 2 * 2 ** ((t - refused at) / recovery)            (until it reaches all of the node's slots)

Multiplicative decrease as in congestion control (Chiu and Jain, 1989), with an increase by time, since a node that is
held back gathers no successes to increase by. A share below 1 is kept by waiting between attempts: after one that is
expected to take d seconds the next one begins d / share later.

A refused address that is granted less than its limit, as one that learned how often it may ask
(`tasks.fetching.thresholds`), is kept back by its permits. Its attempts are not held back besides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.domain.facts import SubtaskFacts
from tasks.scheduling.ready_queue import ReadyQueue

RECOVERY_S = 1800.0
"""Time in which the share of a refused node doubles."""

_LEAST = 1.0 / 64
"""The least share: an attempt of ten seconds every ten minutes still notices when a host becomes milder."""


@dataclass(slots=True)
class _Refused:
    at_s: float
    share: float
    next_s: float


class PairBackoff:
    """Shares of (host, node) pairs; it remembers refusals, and losing them costs a refusal or two.

    Args:
        recovery_s: time in which a share doubles.
    """

    def __init__(self, recovery_s: float = RECOVERY_S) -> None:
        self._recovery_s = recovery_s
        self._refused: dict[str, dict[str, _Refused]] = {}
        self._version = -1
        self._resting: frozenset[tuple[str, str]] = frozenset()

    def update(self, ready: ReadyQueue, now_s: float) -> None:
        """Count refusals that are new since the last update."""
        if ready.version == self._version:
            return
        self._version = ready.version
        # A host that answers nobody does so whatever was sent to it.
        resting = frozenset(
            (name, node) for name, view in ready.hosts.items() for node in view.resting - view.unanswered
        )
        for host, node in resting - self._resting:
            if ready.hosts[host].shares.get(node, 1.0) < 1.0:
                continue  # its permits are kept back already
            known = ready.nodes.get(node)
            before = min(
                self.share((host,), node, now_s), float(max(1, known.slots if known is not None else 1))
            )
            self._refused.setdefault(host, {})[node] = _Refused(now_s, max(_LEAST, before / 2.0), now_s)
        self._resting = resting

    def active(self) -> bool:
        """Whether any node was ever refused."""
        return bool(self._refused)

    def any(self, hosts: Iterable[str]) -> bool:
        """Whether one of these hosts ever refused a node."""
        return any(host in self._refused for host in hosts)

    def share(self, hosts: Iterable[str], node: str, now_s: float) -> float:
        """Attempts at once that the node may have at these hosts: fewer than 1 are kept by waiting; inf: any."""
        return min((self._one(host, node, now_s) for host in hosts), default=math.inf)

    def shares(
        self, examples: Sequence[SubtaskFacts], nodes: Sequence[str], now_s: float
    ) -> NDArray[np.float64]:
        """Attempts at once that each node may have at each site, of which one subtask is given. (sites, nodes)"""
        most = np.full((len(examples), len(nodes)), np.inf)
        for place, one in enumerate(examples):
            if self.any(one.hosts):
                most[place] = [self.share(one.hosts, node, now_s) for node in nodes]
        return most

    def allows(self, hosts: Iterable[str], node: str, now_s: float, ready: ReadyQueue) -> bool:
        """Whether the node may begin an attempt at these hosts now."""
        if not self._refused:
            return True
        for host in hosts:
            known = self._refused.get(host, {}).get(node)
            if known is None:
                continue
            share = self._one(host, node, now_s)
            if ready.capacity.held(host, node) >= max(1.0, share) or (share < 1.0 and now_s < known.next_s):
                return False
        return True

    def begun(self, hosts: Iterable[str], node: str, now_s: float, expected_s: float) -> None:
        """The node begins an attempt there that is expected to take so long."""
        for host in hosts:
            known = self._refused.get(host, {}).get(node)
            if known is not None:
                known.next_s = now_s + expected_s / min(1.0, self._one(host, node, now_s))

    def _one(self, host: str, node: str, now_s: float) -> float:
        known = self._refused.get(host, {}).get(node)
        if known is None:
            return math.inf
        return float(known.share * 2.0 ** min((now_s - known.at_s) / self._recovery_s, 60.0))
