"""Does each kind of fault to the cluster, and undoes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random

from research.chaos import spoiled_rows
from research.chaos.cluster import DATABASE_LINK, REDIS_LINK, ChaosCluster
from research.chaos.faults import CONTROLS, Fault, FaultKind
from research.chaos.messages import MessageThief, Trick
from research.chaos.proxy import Proxy
from research.chaos.world import SITES
from tasks.jobs.queues import CONTROL, crawl_queue
from tasks.store.sql.database import Store

Undo = Callable[[], str]
"""Ends a fault; says what came of it, or nothing."""

_DELAY_S = (0.05, 0.25)
_LOSE_COMMITS = 3
_ANSWERS = (1, 2, 3, 5)
_TRANSACTION_S = 5.0
"""Within this time a node or a control worker as a rule has a transaction."""
_TRICKS = {
    FaultKind.LOST_MESSAGES: Trick.LOSE,
    FaultKind.DOUBLED_MESSAGES: Trick.DOUBLE,
    FaultKind.LATE_MESSAGES: Trick.DELAY,
}
_KILLS = {
    FaultKind.KILL_NODE,
    FaultKind.KILL_CONTROL,
    FaultKind.KILL_BEAT,
    FaultKind.KILL_POSTGRES,
    FaultKind.KILL_REDIS,
}
_FREEZES = {
    FaultKind.FREEZE_NODE,
    FaultKind.FREEZE_CONTROL,
    FaultKind.FREEZE_BEAT,
    FaultKind.FREEZE_POSTGRES,
    FaultKind.FREEZE_REDIS,
}
_SILENT = {FaultKind.SILENT_DATABASE: DATABASE_LINK, FaultKind.SILENT_REDIS: REDIS_LINK}
_SLOW = {FaultKind.SLOW_DATABASE: DATABASE_LINK, FaultKind.SLOW_REDIS: REDIS_LINK}


class Inflicter:
    """Inflicts faults.

    Args:
        store: opened past all links.
        write_sites: writes the catalog with these sites.
    """

    def __init__(
        self,
        cluster: ChaosCluster,
        proxy: Proxy,
        store: Store,
        write_sites: Callable[[Sequence[str]], None],
    ) -> None:
        self._cluster = cluster
        self._proxy = proxy
        self._store = store
        self._write_sites = write_sites
        self._before: dict[str, int | None] = {}

    def inflict(self, fault: Fault) -> Undo:
        """Begin a fault; returns what ends it."""
        rng = Random(fault.seed)
        target = fault.target
        if fault.kind in _KILLS:
            self._cluster.kill(target)
            return _nothing
        if fault.kind in _FREEZES:
            return self._freeze(fault, rng)
        if fault.kind in _SILENT:
            return self._silence(target, _SILENT[fault.kind], rng)
        if fault.kind in _SLOW:
            return self._slow(target, _SLOW[fault.kind], round(rng.uniform(*_DELAY_S), 3))
        if fault.kind in _TRICKS:
            return self._steal(_TRICKS[fault.kind], rng)
        if fault.kind is FaultKind.LOST_COMMIT:
            return self._lose_commits(target)
        if fault.kind is FaultKind.CATALOG:
            return self._take_out_of_catalog(target, rng)
        return self._spoil(rng)

    def out_of_order(self, fault: Fault) -> tuple[str, ...]:
        """Nodes whose leases can't go on while the fault lasts."""
        cut_off = fault.kind in _KILLS | _FREEZES or fault.kind in _SILENT
        return (fault.target,) if cut_off and fault.target in self._cluster.node_names else ()

    def restarted(self) -> bool:
        """Whether every program that was asked to end, to be started anew, has done so and come up."""
        now = self._cluster.pids(tuple(self._before))
        if not all(now[name] not in (None, before) for name, before in self._before.items()):
            return False
        return not self._before or self._cluster.ready()

    def _freeze(self, fault: Fault, rng: Random) -> Undo:
        """Freeze a program; one that has transactions, in the middle of one: its locks stay."""
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
            after = "its connections were cut" if cut else "what was said arrived late"
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

    def _steal(self, trick: Trick, rng: Random) -> Undo:
        queues = (CONTROL, *(crawl_queue(name) for name in self._cluster.node_names))
        thief = MessageThief(self._cluster.redis_url, queues, trick, rng)
        return lambda: f"{thief.stop()} messages"

    def _lose_commits(self, target: str) -> Undo:
        before = self._proxy.lost_commits(target, DATABASE_LINK)
        self._proxy.lose_commits(target, DATABASE_LINK, _LOSE_COMMITS)

        def end() -> str:
            self._proxy.lose_commits(target, DATABASE_LINK, 0)
            return f"{self._proxy.lost_commits(target, DATABASE_LINK) - before} lost"

        return end

    def _take_out_of_catalog(self, target: str, rng: Random) -> Undo:
        """A site leaves `sites.yaml`; one control worker and one node are started anew with it, the others are not."""
        gone, control = rng.choice(SITES), rng.choice(CONTROLS)

        def write(*sites: str) -> None:
            self._write_sites(sites)
            self._before = self._cluster.pids((control, target))
            for name in self._before:
                self._cluster.end(name)

        write(*(site for site in SITES if site != gone))

        def end() -> str:
            write(*SITES)
            return f"{gone} was gone"

        return end

    def _spoil(self, rng: Random) -> Undo:
        end_at = time.monotonic() + 5
        spoiled = None
        while spoiled is None and time.monotonic() < end_at:
            with self._store.begin() as conn:
                spoiled = spoiled_rows.spoil(conn, rng)
        if spoiled is None:
            return lambda: "no subtask waited: nothing was spoiled"
        row = spoiled

        def end() -> str:
            with self._store.begin() as conn:
                spoiled_rows.repair(conn, row)
            return f"{row.of.table}.{row.of.column} of subtask {row.subtask_id} was {row.of.value}"

        return end


def _nothing() -> str:
    return ""
