"""A chaos run: faults one after the other, then the work to its end, then what is stored beside a calm run's."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy.exc import DBAPIError

from app.run.cluster.supervisor import Cluster
from app.run.open_store import open_store
from app.run.setting_fields import Settings
from research.chaos.cluster import ChaosCluster, Files
from research.chaos.compare import Difference, difference
from research.chaos.faults import POSTGRES, Fault, FaultKind, planned
from research.chaos.inflict import Inflicter
from research.chaos.movement import can_go_on, contents
from research.chaos.proxy import running_proxy
from research.chaos.records import FaultRecord, Report, Session
from research.chaos.report import reported
from research.chaos.stall import StallWatch
from research.chaos.watch import Watch
from research.chaos.world import FAST_PER_S, PLENTY, Products, Supply, names, write_catalog
from splitter.errors import ReviewloopError
from tasks.domain.failures import FailureReason
from tasks.store.queries import reports
from tasks.store.queue import manual, snapshot, tasks, transitions
from tasks.store.sql.database import Store, read_now

log = logging.getLogger("reviewloop.chaos")

SHORTENED: dict[str, Any] = {"silent_after_s": 10.0, "request_timeout_s": 5.0, "backoff_s": 0.5}
"""Settings that a chaos run shortens, so that many faults fit into a quarter of an hour."""

_TICK_S = 0.1
_FEED_EVERY_S = 3.0
_LAST_ANSWER_S = 0.5
"""A database that is killed may still have an answer under way."""
_TO_A_PERSON = {
    FaultKind.CATALOG: FailureReason.UNKNOWN_SITE,
    FaultKind.ROW: FailureReason.UNREADABLE,
}
"""The failure reason of subtasks that only a person can mend, by the fault that causes it."""

_START_S = 180.0
_GIVE_UP_S = 60.0
_CALM_S = 600.0

Say = Callable[[str], None]


class ChaosFailed(ReviewloopError):
    """The run itself did not get going: no fault of the cluster's."""


def run(settings: Settings, session: Session, folder: Path, say: Say, supply: Supply = PLENTY) -> Report:
    """Run a session to its end, or until a signal.

    Args:
        settings: what is not fixed by the world; no server may be named.
        folder: of the session; all that is left behind is in it.

    Raises:
        ReviewloopError: the cluster did not come up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = Files(folder)
    write_catalog(files.sites, supply.site_per_s)
    write_catalog(files.all_sites, supply.site_per_s)
    write_catalog(files.calm_sites, FAST_PER_S)
    own = settings.with_(**SHORTENED)
    with (
        Cluster(own, folder, say) as cluster,
        tempfile.TemporaryDirectory(prefix="reviewloop-") as links,
        running_proxy(Path(links)) as proxy,
        open_store(cluster.settings) as store,
    ):
        programs = ChaosCluster(cluster, proxy, files, session.nodes)
        inflicter = Inflicter(programs, proxy, store, partial(write_catalog, files.sites, supply.site_per_s))
        return ChaosRun(programs, inflicter, store, session, files, supply, say).run()


class ChaosRun:
    """One run; belongs to the main thread.

    Args:
        store: opened past all links.
    """

    def __init__(
        self,
        cluster: ChaosCluster,
        inflicter: Inflicter,
        store: Store,
        session: Session,
        files: Files,
        supply: Supply,
        say: Say,
    ) -> None:
        self._cluster = cluster
        self._inflicter = inflicter
        self._store = store
        self._session = session
        self._files = files
        self._supply = supply
        self._say = say
        with store.read() as conn:
            self._products = Products(store, supply, reports.totals(conn).products)
        self._began_s = time.monotonic()
        self._feed_at_s = 0.0

    def run(self) -> Report:
        """Inflict the faults of the plan, let the work come to its end, and compare with a calm run."""
        session = self._session
        kinds = [FaultKind(kind) for kind in session.kinds]
        plan = planned(session.seed, session.kills, self._cluster.node_names, kinds)
        with self._watching() as watch:
            self._watch = watch
            with self._cluster.running():
                self._start()
                for fault in plan:
                    if self._cluster.ended:
                        break
                    self._strike(fault)
                if self._cluster.ended or not self._finish():
                    return self._report(None)
                return self._report(self._compared())

    # --- the beginning --------------------------------------------------------------------------------------

    def _start(self) -> None:
        while self._products.added < self._supply.first:
            self._products.add()
        self._say(f"The cluster starts; its folder is {self._files.folder}")
        begin_s = time.monotonic()
        if not self._until(lambda: self._at_work(begin_s), _START_S) and not self._cluster.ended:
            raise ChaosFailed(
                f"the cluster did not begin to work within {_START_S:g} s: see {self._files.folder}/logs"
            )

    def _at_work(self, begin_s: float) -> bool:
        return self._cluster.ready() and self._watch.moved_since(begin_s)

    # --- a fault --------------------------------------------------------------------------------------------

    def _strike(self, fault: Fault) -> None:
        """Inflict a fault, end it, let the cluster alone for a while, and record what it cost."""
        self._until(self._supplied, _GIVE_UP_S)
        if fault.kind is FaultKind.CATALOG:
            # By catalogs with all sites; a program that starts now would read one without.
            self._until(lambda: self._cluster.ready() and self._all_planned(), _START_S)
        begin_s = time.monotonic()
        away = fault.server is not None
        without = self._inflicter.out_of_order(fault)
        free_s = None if away else begin_s
        stall = StallWatch(self._watch, self._store, without, free_s, self._cluster.waits, time.monotonic)
        undo = self._inflicter.inflict(fault)
        self._until(self._inflicter.restarted, _GIVE_UP_S, stall)
        # A long fault must not run out of work; a product planned without a site would lack it for good.
        self._until(_never, fault.for_s, stall, feed=not away and fault.kind is not FaultKind.CATALOG)
        note = undo()
        if self._cluster.ended:
            return
        if free_s is None:
            undone_s = time.monotonic()
            self._until(lambda: self._back(fault, undone_s), _GIVE_UP_S)
            free_s = time.monotonic()
            stall.returned(free_s)
        self._until(_never, fault.pause_s, stall)
        # It may be that only what was under way went on: something new has to come after the pause, too.
        asked_s = time.monotonic()
        self._until(lambda: self._goes_on(asked_s, without), _GIVE_UP_S, stall)
        self._until(self._inflicter.restarted, _GIVE_UP_S, stall)
        first_s = self._watch.first_after(free_s)
        record = FaultRecord(
            no=fault.no,
            kind=fault.kind,
            target=fault.target,
            for_s=fault.for_s,
            at_s=round(begin_s - self._began_s, 1),
            note=note,
            first_s=None if first_s is None else round(first_s - free_s, 2),
            standstill_s=round(self._watch.standstill_s(begin_s, time.monotonic()), 2),
            stalled=stall.stalled,
        )
        self._keep(record)

    def _goes_on(self, asked_s: float, without: Collection[str]) -> bool:
        """Whether something moved since a time, or nothing is there that could."""
        if self._watch.moved_since(asked_s):
            return True
        with self._store.read() as conn:
            return not can_go_on(conn, read_now(conn), without)

    def _keep(self, record: FaultRecord) -> None:
        session = self._session
        session.records.append(record)
        lasted = f" for {record.for_s:g} s" if record.for_s else ""
        of = f" {record.target}" if record.target and record.target not in record.kind else ""
        told = f", {record.note}" if record.note else ""
        stall = f"; STALLED: {record.stalled}" if record.stalled else ""
        self._say(
            f"{record.no}/{session.kills} at {record.at_s:.0f} s: {record.kind}{of}{lasted}{told}; nothing moved for "
            f"{record.standstill_s:.1f} s{stall}"
        )

    # --- the end --------------------------------------------------------------------------------------------

    def _finish(self) -> bool:
        """Let all be done; False where a signal came first."""
        self._say("All faults are over; the work goes on to its end")
        moved_s = time.monotonic()

        def done() -> bool:
            nonlocal moved_s
            self._retry()
            if self._watch.moved_since(moved_s):
                moved_s = time.monotonic()
            with self._store.read() as conn:
                settled = snapshot.all_settled(conn) and not transitions.count_queues(conn)["MANUAL"]
            return settled or time.monotonic() > moved_s + _GIVE_UP_S

        self._until(done, _CALM_S)
        return not self._cluster.ended

    def _compared(self) -> Difference | None:
        """The calm run, and how it differs; None where it did not get to its end."""
        self._say("A calm run of the same world")
        self._files.calm_database.unlink(missing_ok=True)
        url = f"sqlite:///{self._files.calm_database}"
        wanted = list(islice(names(), self._products.added))
        options = ("--until-done", "--nodes", "3", "--slots", "8", "--sites", str(self._files.calm_sites))
        lab = "{}:{}".format(*self._cluster.lab)
        words = ("run", "--json", "--db", url, "--lab", lab, *options, *wanted)
        program = self._cluster.command("calm", words)
        if not self._cluster.run_to_end(program, _CALM_S, self._tick):
            self._say(f"The calm run did not end well: see {program.log}")
            return None
        calm = Store.open(url)
        try:
            with self._store.read() as here, calm.read() as there:
                return difference(contents(here), contents(there))
        finally:
            calm.close()

    def _report(self, compared: Difference | None) -> Report:
        session = self._session
        session.seconds = time.monotonic() - self._began_s
        return reported(self._store, session, compared)

    # --- meanwhile ------------------------------------------------------------------------------------------

    @contextmanager
    def _watching(self) -> Iterator[Watch]:
        watch = Watch(self._store)
        try:
            yield watch
        finally:
            watch.stop()

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
        """Wait until a condition holds, at most so long; True where it does. A database that is away holds none."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not self._cluster.ended:
            self._tick()
            try:
                if feed:
                    self._feed()
                if stall is not None:
                    stall.look()
                if condition():
                    return True
            except DBAPIError as error:
                log.debug("the database is away: %s", error)
        return False

    def _feed(self) -> None:
        """Add products as work runs low, every few seconds. Raises what the database raises."""
        if time.monotonic() >= self._feed_at_s:
            self._feed_at_s = time.monotonic() + _FEED_EVERY_S
            self._products.feed()

    def _supplied(self) -> bool:
        self._products.feed()
        self._retry()
        return True

    def _retry(self) -> None:
        """Do what a person does: try again, now that the site is back and the row can be read.

        Subtasks that came to a person for another reason are noted: nothing was wrong that a person could have cured.
        """
        expected = {reason for kind, reason in _TO_A_PERSON.items() if kind in self._session.kinds}
        with self._store.begin() as conn:
            now = read_now(conn)
            for row in manual.listed(conn):
                if row.reason not in expected:
                    self._session.to_a_person[row.subtask_id] = (
                        f"{row.reason} at {row.site} on {', '.join(row.nodes)}: {row.why}"
                    )
                manual.retry(conn, now, row.subtask_id)

    def _all_planned(self) -> bool:
        with self._store.read() as conn:
            return not tasks.unplanned(conn, 1)

    def _back(self, fault: Fault, undone_s: float) -> bool:
        """Whether the server that a fault took away answers again."""
        if fault.server == POSTGRES:
            return self._watch.answered_s > undone_s + _LAST_ANSWER_S
        return self._cluster.redis_answers()


def _never() -> bool:
    return False
