"""A chaos run: faults one after the other, then the work to its end, then a comparison with a calm run."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

from app.run.cluster.supervisor import Cluster
from app.run.open_store import open_store
from app.run.setting_fields import Settings
from research.chaos.cluster import ChaosCluster, ChaosFailed
from research.chaos.faults import POSTGRES, Fault, FaultKind, plan_faults
from research.chaos.inflict import Inflicter
from research.chaos.movement import can_go_on, contents
from research.chaos.proxy import running_proxy
from research.chaos.report import Difference, FaultRecord, Report, compare, make_report
from research.chaos.watch import StallWatch, Watch
from research.chaos.world import FAST_PER_S, PLENTY, Products, Supply, names, write_catalog
from tasks.domain.errors import StoreFailed
from tasks.store.queue import manual, snapshot, transitions
from tasks.store.sql.database import Store

log = logging.getLogger("reviewloop.chaos")

SHORTENED: dict[str, Any] = {"silent_after_s": 10.0, "request_timeout_s": 5.0, "backoff_s": 0.5}
"""Settings that a chaos run shortens, so that many faults fit into a quarter of an hour."""

_TICK_S = 0.1
_FEED_EVERY_S = 3.0
_LAST_ANSWER_S = 0.5
"""A database that is killed may still have an answer under way."""

_START_S = 180.0
_GIVE_UP_S = 60.0
_CALM_S = 600.0

Say = Callable[[str], None]


def run(
    folder: Path,
    say: Say,
    *,
    seed: int,
    kills: int,
    nodes: int,
    kinds: Sequence[FaultKind],
    supply: Supply = PLENTY,
) -> Report:
    """Run to the end of all faults and of the work, or until a signal.

    Args:
        folder: of the run; it holds all that is left behind.
        kinds: the faults that may happen.

    Raises:
        ReviewloopError: the cluster did not come up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_catalog(folder / "sites.yaml", supply.site_per_s)
    write_catalog(folder / "calm-sites.yaml", FAST_PER_S)
    # The environment is not read: only servers that this run starts are tried.
    with (
        Cluster(Settings().replace(**SHORTENED), folder, say) as cluster,
        tempfile.TemporaryDirectory(prefix="reviewloop-") as links,
        running_proxy(Path(links)) as proxy,
        open_store(cluster.settings) as store,
    ):
        programs = ChaosCluster(cluster, proxy, folder, nodes)
        plan = plan_faults(seed, kills, programs.node_names, kinds)
        chaos = ChaosRun(programs, Inflicter(programs, proxy), store, folder, supply, say)
        compared = chaos.run(plan)
        return make_report(
            store,
            compared,
            chaos.to_a_person,
            seed=seed,
            nodes=nodes,
            seconds=time.monotonic() - chaos.began_s,
            faults=chaos.records,
        )


class ChaosRun:
    """One run; belongs to the main thread.

    Args:
        store: opened past all links.

    Attributes:
        records: what each fault came to.
        to_a_person: by subtask that came to a person, why.
    """

    def __init__(
        self,
        cluster: ChaosCluster,
        inflicter: Inflicter,
        store: Store,
        folder: Path,
        supply: Supply,
        say: Say,
    ) -> None:
        self._cluster = cluster
        self._inflicter = inflicter
        self._store = store
        self._folder = folder
        self._supply = supply
        self._say = say
        self._products = Products(store, supply)
        self._watch = Watch(store)
        self._feed_at_s = 0.0
        self.began_s = time.monotonic()
        self.records: list[FaultRecord] = []
        self.to_a_person: dict[int, str] = {}

    def run(self, plan: Sequence[Fault]) -> Difference | None:
        """Inflict the faults, let the work end, and compare with a calm run; None if a signal came first."""
        with self._watch.running(), self._cluster.running():
            self._start()
            for fault in plan:
                if self._cluster.ended:
                    break
                self._strike(fault)
            return self._compared() if self._finish() else None

    # --- the beginning --------------------------------------------------------------------------------------

    def _start(self) -> None:
        while self._products.added < self._supply.first:
            self._products.add()
        self._say(f"The cluster starts; its folder is {self._folder}")
        begin_s = time.monotonic()

        def at_work() -> bool:
            return self._cluster.ready() and self._watch.moved_s > begin_s

        if not self._until(at_work, _START_S) and not self._cluster.ended:
            raise ChaosFailed(
                f"the cluster did not begin to work within {_START_S:g} s: see {self._folder}/logs"
            )

    # --- a fault --------------------------------------------------------------------------------------------

    def _strike(self, fault: Fault) -> None:
        """Inflict a fault, end it, let the cluster alone for a while, and record what came of it."""
        self._until(self._supplied, _GIVE_UP_S)
        begin_s = time.monotonic()
        away = fault.kind.server is not None
        without = self._inflicter.out_of_order(fault)
        stall = StallWatch(self._store, without, lambda: self._watch.moved_s)
        stall.free_s = None if away else begin_s
        undo = self._inflicter.inflict(fault)
        # A long fault must not run out of work.
        self._until(_never, fault.for_s, stall, feed=not away)
        note = undo()
        if self._cluster.ended:
            return
        if away:
            undone_s = time.monotonic()
            self._until(lambda: self._is_back(fault, undone_s), _GIVE_UP_S)
            stall.free_s = time.monotonic()
        self._until(_never, fault.pause_s, stall)
        # Perhaps only work that was under way went on: something new has to come after the pause, too.
        asked_s = time.monotonic()
        self._until(lambda: self._goes_on(asked_s, without), _GIVE_UP_S, stall)
        record = FaultRecord(
            **asdict(fault),
            at_s=round(begin_s - self.began_s, 1),
            note=note,
            stalled=stall.stalled,
        )
        self.records.append(record)
        self._say(
            f"{record.no} at {record.at_s:.0f} s: {record.kind} {record.target} {record.for_s:g} s {record.note}"
            + (f"; STALLED: {record.stalled}" if record.stalled else "")
        )

    def _goes_on(self, asked_s: float, without: Collection[str]) -> bool:
        """Return True if something moved since a time, or nothing is there that could."""
        if self._watch.moved_s > asked_s:
            return True
        with self._store.read() as tx:
            return not can_go_on(tx, without)

    def _is_back(self, fault: Fault, undone_s: float) -> bool:
        """Return True if the server that a fault took away answers again."""
        if fault.kind.server == POSTGRES:
            return self._watch.answered_s > undone_s + _LAST_ANSWER_S
        return self._cluster.redis_answers()

    # --- the end --------------------------------------------------------------------------------------------

    def _finish(self) -> bool:
        """Let all be done; False if a signal came first."""
        if self._cluster.ended:
            return False
        self._say("All faults are over; the work goes on to its end")
        begin_s = time.monotonic()

        def done() -> bool:
            self._retry()
            with self._store.read() as tx:
                settled = snapshot.all_settled(tx) and not transitions.count_queues(tx)["MANUAL"]
            return settled or time.monotonic() > max(begin_s, self._watch.moved_s) + _GIVE_UP_S

        self._until(done, _CALM_S)
        return not self._cluster.ended

    def _compared(self) -> Difference | None:
        """Return how the store differs from a calm run's, or None if the calm run did not get to its end."""
        self._say("A calm run of the same world")
        database = self._folder / "calm.db"
        database.unlink(missing_ok=True)
        url = f"sqlite:///{database}"
        wanted = list(islice(names(), self._products.added))
        sites = str(self._folder / "calm-sites.yaml")
        options = ("--until-done", "--nodes", "3", "--slots", "8", "--sites", sites)
        lab = "{}:{}".format(*self._cluster.lab)
        words = ("run", "--json", "--db", url, "--lab", lab, *options, *wanted)
        program = self._cluster.command("calm", words)
        if not self._cluster.run_to_end(program, _CALM_S, self._tick):
            self._say(f"The calm run did not end well: see {program.log}")
            return None
        calm = Store.open(url)
        try:
            with self._store.read() as here, calm.read() as there:
                return compare(contents(here), contents(there))
        finally:
            calm.close()

    # --- meanwhile ------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self._cluster.check()
        time.sleep(_TICK_S)

    def _until(
        self,
        condition: Callable[[], bool],
        seconds: float,
        stall: StallWatch | None = None,
        *,
        feed: bool = False,
    ) -> bool:
        """Wait until a condition holds, at most `seconds`, and return True if it does.

        No condition holds while the database is away.
        """
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not self._cluster.ended:
            self._tick()
            try:
                if feed and time.monotonic() >= self._feed_at_s:
                    self._feed_at_s = time.monotonic() + _FEED_EVERY_S
                    self._products.feed()
                if stall is not None:
                    stall.look()
                if condition():
                    return True
            except StoreFailed as error:
                log.debug("the database is away: %s", error)
        return False

    def _supplied(self) -> bool:
        self._products.feed()
        self._retry()
        return True

    def _retry(self) -> None:
        """Retry what came to a person, and note it: nothing was wrong that a person could have mended."""
        with self._store.begin() as tx:
            for row in manual.list_manual(tx):
                self.to_a_person[row.subtask_id] = (
                    f"{row.reason} at {row.site} on {', '.join(row.nodes)}: {row.why}"
                )
                manual.retry(tx, row.subtask_id)


def _never() -> bool:
    return False
