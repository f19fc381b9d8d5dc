"""The state of a scheduler process between sweeps: caches of the store, and the allocation strategy.

A new process begins without caches and reads everything. Statistics are read completely once, then only pairs that
changed: 200 nodes and 2,000 sites have 400,000 pairs, and a turn changes a few of them.

A change is found by `faded_at`, the database's time when the transaction began that added an attempt to the pair. That
transaction may commit after a later read. So each read goes back `_SHORT` before the last one, longer than a
transaction of the loop usually takes; and every `_LONG_EVERY` a read goes back `_LONG`, twice as long as a transaction
may wait for SQLite's lock before it fails (`tasks.store.sql.database.BUSY_TIMEOUT_S`). Reading a row twice changes
nothing, and a row that was missed all the same comes with the pair's next attempt.

Round trips change slowly, and computing the coordinates of all hosts takes a second at that size. So they are computed
every 10 minutes, and every minute while there are too few round trips. The strategy is then replaced and loses only
its plan. The same holds for trained run times of nodes (`tasks.jobs.run_time_training`), checked every minute.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from splitter.catalog.entries import catalog_hash

from tasks.domain.grants import Grants
from tasks.jobs.measurements import SweepTimes
from tasks.scheduling.balance.curves import Curve
from tasks.scheduling.balance.learned import Trained
from tasks.scheduling.balance.parameters import NodeParameters
from tasks.scheduling.decision import AllocationStrategy, Distances
from tasks.scheduling.proximity.coordinates import Delays
from tasks.scheduling.ready_queue import Backlog, ReadyQueue
from tasks.scheduling.statistics import Knowledge
from tasks.store.queries import pairs
from tasks.store.queue import attempts, nodes, snapshot, upkeep
from tasks.store.queue.nodes import NodeRow
from tasks.store.sql.transaction import Transaction

_SHORT = timedelta(seconds=2)
_LONG = timedelta(seconds=60)
_LONG_EVERY = timedelta(seconds=30)

_MEASURE_EVERY = timedelta(minutes=10)
_MEASURE_FIRST = timedelta(minutes=1)

_RUN_TIMES_EVERY = timedelta(minutes=1)

_COUNT_EVERY_S = 30.0
_COUNT_SHARE = 0.02
"""Maximum share of time spent on counting queued subtasks."""


_REPEAT_AFTER_S = (0.5, 8.0)
"""First and longest time in seconds after which a decision without leases is made again if nothing changes."""


@dataclass(frozen=True, slots=True)
class EmptyDecision:
    """A decision that gave nothing to any node.

    Attributes:
        facts: those of its facts that change often.
        again_at: time at which it is made again in any case.
        after_s: seconds from the decision until then.
    """

    facts: Hashable
    again_at: datetime
    after_s: float

    def still_holds(self, facts: Hashable, now: datetime) -> bool:
        """Return True if nothing is known that would change the decision now."""
        made_at = self.again_at - timedelta(seconds=self.after_s)
        return facts == self.facts and made_at <= now < self.again_at

    @classmethod
    def record(cls, facts: Hashable, now: datetime, before: EmptyDecision | None) -> EmptyDecision:
        """Return a decision made now. `before` is the decision before, if that gave nothing either."""
        first_s, most_s = _REPEAT_AFTER_S
        again = before is not None and before.facts == facts
        after_s = min(most_s, 2 * before.after_s) if before is not None and again else first_s
        return cls(facts, now + timedelta(seconds=after_s), after_s)


class SchedulerState:
    """The caches of one scheduler; used by one thread at a time.

    Args:
        make: makes an allocation strategy with these distances and run times of nodes.
        clock: monotonic seconds.

    Attributes:
        knowledge: the statistics, as of the last `learn`.
        request_s: seconds between two requests of an attempt by site, over all nodes; sites without data are missing.
        strategy: of allocation; another one after `measure`, with another ready queue.
        ready: nodes and hosts as of the last turn.
        grants: rates that hosts grant, as last reported by the keeper of permits.
        turned_at_event: the newest event of the last turn (`tasks.jobs.turn`).
        next_turn_at: time at which the next turn may find new work; `None` if no such time is known.
        empty_decision: the decision of the last turn, if it gave nothing.
        sweep_times: durations of sweeps and turns by name.
    """

    def __init__(
        self,
        make: Callable[[Distances | None, Mapping[str, Curve]], AllocationStrategy],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make = make
        self._clock = clock
        self._round_trips: dict[tuple[str, str], float] = {}
        self._measured: datetime | None = None
        self._distances: Delays | None = None
        self._run_times: dict[str, Curve] = {}
        self._run_times_read: datetime | None = None
        self._run_times_of: tuple[datetime, Mapping[str, object]] | None = None
        self.grants: Grants = {}
        self._catalog: str | None = None
        self._lacks: dict[str, tuple[str, frozenset[str]]] = {}
        self.sweep_times: defaultdict[str, SweepTimes] = defaultdict(SweepTimes)
        self.begin_anew()
        self.forget()

    def begin_anew(self) -> None:
        """Replace the strategy by a new one without a memory."""
        self.strategy = self.new_strategy()
        self.ready = ReadyQueue()
        self._count_at_s: float | None = None

    def new_strategy(self) -> AllocationStrategy:
        """Return a new strategy with the last distances and run times."""
        return self._make(self._distances, self._run_times)

    def measure(self, tx: Transaction) -> None:
        """Update the distances of sites and nodes if that is due. Must not be called within a decision."""
        every = _MEASURE_FIRST if self._distances is None else _MEASURE_EVERY
        if self._measured is not None and abs(tx.now - self._measured) < every:
            return
        self._measured = tx.now
        round_trips = {
            (one.site, one.node): one.rtt_ms for one in pairs.list_pairs(tx) if one.rtt_ms is not None
        }
        if round_trips == self._round_trips:
            return
        self._round_trips = round_trips
        before, self._distances = self._distances, Delays.estimate(round_trips)
        if before is not None or self._distances is not None:
            self.begin_anew()

    def read_run_times(self, tx: Transaction) -> None:
        """Update the trained run times of nodes if that is due. Must not be called within a decision."""
        if self._run_times_read is not None and abs(tx.now - self._run_times_read) < _RUN_TIMES_EVERY:
            return
        self._run_times_read = tx.now
        model = upkeep.load_value(tx, upkeep.RUN_TIME_MODEL)
        if model is None:
            return
        machines = pairs.list_node_parameters(tx)
        made_of = model.at, machines
        if made_of == self._run_times_of:
            return
        network = Trained.read_json(model.data["network"])
        self._run_times = {node: network.curve(NodeParameters.read(of)) for node, of in machines.items()}
        self._run_times_of = made_of
        self.begin_anew()

    def forget(self) -> None:
        """Read all statistics again next time, as the last ones may have been rolled back."""
        self.knowledge = Knowledge()
        self.request_s: dict[str, float] = {}
        self._asked: dict[tuple[str, str], tuple[int, float]] = {}
        self._asked_of: dict[str, tuple[int, float]] = {}
        self._learned_in: Transaction | None = None
        self._looked: datetime | None = None
        self._looked_far: datetime | None = None
        self.looked_at: datetime | None = None
        self.turned_at_event: int | None = None
        self.next_turn_at: datetime | None = None
        self.empty_decision: EmptyDecision | None = None

    def learn(self, tx: Transaction) -> Knowledge:
        """Update the statistics, once per transaction."""
        if tx is self._learned_in:
            return self.knowledge
        self._learned_in = tx
        sites: set[str] = set()
        now_s = tx.now.timestamp()
        for row in attempts.list_changed(tx, self._since(tx.now)):
            age_s = (tx.now - row.faded_at).total_seconds()
            self.knowledge.put(row.site, row.node, row.fade(age_s), now_s)
            self._count_requests(row)
            sites.add(row.site)
        for site in sites:
            self._time_requests(site, now_s)
        self.knowledge.set_running(attempts.list_running(tx))
        return self.knowledge

    def _since(self, now: datetime) -> datetime | None:
        """Return the time since which changes must be read; `None` for all."""
        last, far, self._looked = self._looked, self._looked_far, now
        if last is None or far is None:
            self._looked_far = now
            return None
        begin = min(last, now)  # a clock may be set back
        if abs(now - far) < _LONG_EVERY:
            return begin - _SHORT
        self._looked_far = now
        return begin - _LONG

    def lacks(
        self, tx: Transaction, entries: Mapping[str, str], rows: Sequence[NodeRow]
    ) -> dict[str, frozenset[str]]:
        """Return the sites that nodes can't crawl, by node: they lack the site, have another entry, or lack a browser.

        Args:
            entries: hashes of the entries in the scheduler's catalog.
            rows: the nodes.
        """
        if self._catalog is None:
            self._catalog = catalog_hash(entries)
        told = {row.name: row.catalog for row in rows if row.catalog is not None}
        known = {
            name: self._lacks[name] for name, of in told.items() if self._lacks.get(name, ("",))[0] == of
        }
        for name, of in told.items():
            if name not in known and of != self._catalog:
                has = nodes.get_entries(tx, name)
                known[name] = of, frozenset(site for site in entries if has.get(site) != entries[site])
        self._lacks = known
        return {name: sites for name, (_, sites) in known.items()}

    def count_queued(self, tx: Transaction) -> None:
        """Count the subtasks in PRIORITY for the ready queue: every 30 s, less often if counting takes long."""
        begin_s = self._clock()
        if self._count_at_s is not None and begin_s < self._count_at_s:
            return
        self.ready.set_pending({site: Backlog(n, left) for site, n, left in snapshot.count_pending(tx)})
        end_s = self._clock()
        self._count_at_s = end_s + max(_COUNT_EVERY_S, (end_s - begin_s) / _COUNT_SHARE)

    def _count_requests(self, row: attempts.ChangedPair) -> None:
        pair = row.site, row.node
        tried, wait_s = self._asked_of.get(row.site, (0, 0.0))
        old_tried, old_wait_s = self._asked.get(pair, (0, 0.0))
        self._asked[pair] = row.all_tried, row.wait_s
        self._asked_of[row.site] = tried + row.all_tried - old_tried, wait_s + row.wait_s - old_wait_s

    def _time_requests(self, site: str, now_s: float) -> None:
        """Estimate the seconds between two requests: active seconds and the wait for the next send time.

        If attempts wait because of the host's limit, they share its rate, so the wait does not raise the number of
        attempts. If granting a send time takes long, the wait shows how slow attempts are.
        """
        seen = self.knowledge.site(site, now_s)
        tried, wait_s = self._asked_of[site]
        if seen.tried >= 1:
            # Tries of running attempts count in `seen` before any attempt that tried something has closed.
            waited_s = wait_s / tried if tried else 0.0
            self.request_s[site] = max(0.01, seen.active_s / seen.tried + waited_s)
