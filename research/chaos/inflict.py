"""Does each kind of fault to the cluster, and undoes it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from research.chaos.cluster import DATABASE_LINK, REDIS_LINK, ChaosCluster
from research.chaos.faults import Fault, FaultKind
from research.chaos.messages import MessageThief
from research.chaos.proxy import Proxy
from tasks.jobs.queues import CONTROL, crawl_queue

Undo = Callable[[], str]
"""Ends a fault, and returns a note about what came of it."""

_DELAY_S = (0.05, 0.25)
_LOSE_COMMITS = 3
_ANSWERS = (1, 2, 3, 5)
_TRANSACTION_S = 5.0
"""Within this time a node or a control worker as a rule has a transaction."""
_REDIS_LINKS = (FaultKind.SILENT_REDIS, FaultKind.SLOW_REDIS)


class Inflicter:
    """Inflicts faults."""

    def __init__(self, cluster: ChaosCluster, proxy: Proxy) -> None:
        self._cluster = cluster
        self._proxy = proxy

    def inflict(self, fault: Fault) -> Undo:
        """Begin a fault; return what ends it."""
        rng = Random(fault.seed)
        link = REDIS_LINK if fault.kind in _REDIS_LINKS else DATABASE_LINK
        if fault.kind.kills:
            self._cluster.kill(fault.target)
            return lambda: ""
        if fault.kind.freezes:
            return self._freeze(fault, rng)
        if fault.kind.silences:
            return self._silence(fault.target, link, rng)
        if fault.kind.slows:
            return self._slow(fault.target, link, round(rng.uniform(*_DELAY_S), 3))
        if fault.kind.steals:
            return self._steal(fault.kind, rng)
        return self._lose_commits(fault.target)

    def out_of_order(self, fault: Fault) -> tuple[str, ...]:
        """Return the nodes whose leases can't go on while the fault lasts."""
        cut_off = fault.kind.kills or fault.kind.freezes or fault.kind.silences
        return (fault.target,) if cut_off and fault.target in self._cluster.node_names else ()

    def _freeze(self, fault: Fault, rng: Random) -> Undo:
        """Freeze a program. A node or control worker is frozen inside a transaction, so that its locks stay."""
        within = ""
        if fault.kind in (FaultKind.FREEZE_NODE, FaultKind.FREEZE_CONTROL):
            within = self._silence_in_transaction(fault.target, rng)
        self._cluster.freeze(fault.target)
        if within:
            self._proxy.hear(fault.target, DATABASE_LINK, cut=False)  # it is not listening now

        def end() -> str:
            self._cluster.thaw()
            return within

        return end

    def _silence(self, target: str, link: str, rng: Random) -> Undo:
        within = self._silence_in_transaction(target, rng) if link == DATABASE_LINK else ""
        if not within:
            self._proxy.silence(target, link)
        cut = rng.random() < 0.5

        def end() -> str:
            self._proxy.hear(target, link, cut=cut)
            after = "its connections were cut" if cut else "its data arrived late"
            return f"{within}, {after}" if within else after

        return end

    def _silence_in_transaction(self, target: str, rng: Random) -> str:
        answers = rng.choice(_ANSWERS)
        fell = self._proxy.silence_in_transaction(target, DATABASE_LINK, answers, _TRANSACTION_S)
        return "in a transaction" if fell else "in no transaction"

    def _slow(self, target: str, link: str, delay_s: float) -> Undo:
        self._proxy.slow(target, link, delay_s)

        def end() -> str:
            self._proxy.slow(target, link, 0.0)
            return f"{delay_s * 1000:.0f} ms each way"

        return end

    def _steal(self, kind: FaultKind, rng: Random) -> Undo:
        queues = (CONTROL, *(crawl_queue(name) for name in self._cluster.node_names))
        thief = MessageThief(self._cluster.redis_url, queues, kind, rng)
        return lambda: f"{thief.stop()} messages"

    def _lose_commits(self, target: str) -> Undo:
        before = self._proxy.lost_commits(target, DATABASE_LINK)
        self._proxy.lose_commits(target, DATABASE_LINK, _LOSE_COMMITS)

        def end() -> str:
            self._proxy.lose_commits(target, DATABASE_LINK, 0)
            return f"{self._proxy.lost_commits(target, DATABASE_LINK) - before} lost"

        return end
