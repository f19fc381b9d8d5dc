"""Back-off per pair: limit the number of concurrent attempts of a node at a host that refused it.

A host refuses an address because of its requests, and accepts it again after a while. A node that continues as
before is refused again, and loses more time to rests than it gains. So each refusal halves the number of attempts
that the node may have there, and it grows back with time. With s concurrent attempts allowed at the refusal,

    share(t) = s / 2 * 2 ** ((t - refused at) / recovery)            (until it reaches all of the node's slots)

This is a multiplicative decrease as in congestion control (Chiu and Jain, 1989). The increase is by time, since a
limited node has too few successes to count. A share below 1 means waiting between attempts: after an attempt that is
expected to take d seconds, the next one begins d / share later.

A refused address that is granted less than its limit, as one that learned how often it may ask
(`tasks.fetching.thresholds`), is already limited by its permits. Its attempts are not limited in addition.
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
"""Seconds until the share of a refused node doubles."""

_LEAST = 1.0 / 64
"""Minimum share. An attempt of ten seconds every ten minutes still notices that a host accepts more requests."""


@dataclass(slots=True)
class _Refused:
    at_s: float
    share: float
    next_s: float


class PairBackoff:
    """Shares of (host, node) pairs. They come from refusals in memory; losing these costs a few further refusals.

    Args:
        recovery_s: seconds until a share doubles.
    """

    def __init__(self, recovery_s: float = RECOVERY_S) -> None:
        self._recovery_s = recovery_s
        self._refused: dict[str, dict[str, _Refused]] = {}
        self._version = -1
        self._resting: frozenset[tuple[str, str]] = frozenset()

    def update(self, ready: ReadyQueue, now_s: float) -> None:
        """Count the refusals since the last update."""
        if ready.version == self._version:
            return
        self._version = ready.version
        # A host that answers no node does so regardless of the requests.
        resting = frozenset(
            (name, node) for name, view in ready.hosts.items() for node in view.resting - view.unanswered
        )
        for host, node in resting - self._resting:
            if ready.hosts[host].shares.get(node, 1.0) < 1.0:
                continue  # its permits are limited already
            known = ready.nodes.get(node)
            before = min(
                self.share((host,), node, now_s), float(max(1, known.slots if known is not None else 1))
            )
            self._refused.setdefault(host, {})[node] = _Refused(now_s, max(_LEAST, before / 2.0), now_s)
        self._resting = resting

    def active(self) -> bool:
        """Return True if any node was ever refused."""
        return bool(self._refused)

    def any(self, hosts: Iterable[str]) -> bool:
        """Return True if one of these hosts ever refused a node."""
        return any(host in self._refused for host in hosts)

    def share(self, hosts: Iterable[str], node: str, now_s: float) -> float:
        """Return the number of concurrent attempts of the node at these hosts. Below 1 it waits; inf is no limit."""
        return min((self._one(host, node, now_s) for host in hosts), default=math.inf)

    def shares(
        self, examples: Sequence[SubtaskFacts], nodes: Sequence[str], now_s: float
    ) -> NDArray[np.float64]:
        """Return the number of concurrent attempts of each node at the site of each example. (sites, nodes)"""
        most = np.full((len(examples), len(nodes)), np.inf)
        for place, one in enumerate(examples):
            if self.any(one.hosts):
                most[place] = [self.share(one.hosts, node, now_s) for node in nodes]
        return most

    def allows(self, hosts: Iterable[str], node: str, now_s: float, ready: ReadyQueue) -> bool:
        """Return True if the node may begin an attempt at these hosts now."""
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
        """Record that the node begins an attempt there that is expected to take `expected_s` seconds."""
        for host in hosts:
            known = self._refused.get(host, {}).get(node)
            if known is not None:
                known.next_s = now_s + expected_s / min(1.0, self._one(host, node, now_s))

    def _one(self, host: str, node: str, now_s: float) -> float:
        known = self._refused.get(host, {}).get(node)
        if known is None:
            return math.inf
        return float(known.share * 2.0 ** min((now_s - known.at_s) / self._recovery_s, 60.0))
