"""The embedded runner: the whole crawl in one process, with several nodes and a SQLite file."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from threading import Event

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from app.run import sweep_wiring, wiring
from app.run.nodes import own_settings
from app.run.preflight import Preflight, UnaskedSites, preflight
from app.run.process import Until, run_coroutine
from app.run.setting_fields import Settings
from splitter.catalog.model import Catalog
from tasks.domain.errors import StoreFailed, StoreUnwritable
from tasks.domain.reasons import Reason, because
from tasks.fetching.permits import LocalPermits
from tasks.jobs.repost_linking import link_reposts
from tasks.jobs.schedule import SWEEPS, Sweep, interval_s
from tasks.jobs.ticks import tick
from tasks.jobs.turn_pace import TurnPace
from tasks.store.queue import attempts, nodes, snapshot
from tasks.store.queue.leases import Lease
from tasks.store.queue.nodes import Node
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Writer
from tasks.worker.fetcher import Dependencies
from tasks.worker.node import CrawlNode
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages

log = logging.getLogger("reviewloop.embedded")

_STOP_S = 10.0
"""Maximum seconds for giving leases back, as the database may be locked."""
_LAST_REPOSTS_S = 0.5
_LOOK_EVERY_S = 1.0
"""Maximum seconds between two turns, as other processes may change the store and hosts may grant more."""


def crawl(
    settings: Settings,
    store: Store,
    nodes: Sequence[Node],
    until: Until,
    watch: Callable[[], None],
    found: Preflight | None = None,
) -> None:
    """Run the loop in this process until the conditions `until` are met or a signal comes.

    Args:
        watch: called about twice a second, on another thread.
        found: result of an earlier preflight, if there is one.
    """
    runner = EmbeddedRunner(settings, settings.catalog(), store, nodes, until, watch, found)
    run_coroutine(runner.run())


class EmbeddedRunner:
    """Runs the loop until the conditions `until` are met or a signal comes. The next start continues the work.

    Args:
        watch: called about twice a second to show progress, not on the event loop.
        found: result of an earlier preflight, if there is one.
    """

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        store: Store,
        nodes: Sequence[Node],
        until: Until,
        watch: Callable[[], None] | None = None,
        found: Preflight | None = None,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._store = store
        self._node_rows = nodes
        self._until = until
        self._watch = watch
        self._unasked = UnaskedSites(partial(preflight, settings, catalog, search=False), found)
        self._loop: asyncio.AbstractEventLoop | None = None  # once the nodes are open
        self._unwritable: StoreUnwritable | None = None
        self._writer = Writer(store, on_unwritable=self._end_unwritable)
        self._control = sweep_wiring.control(
            settings, catalog, store, self._writer, Event(), write=self._writer.call
        )
        self._context = self._control.context
        self._permits = LocalPermits(time.monotonic, settings.crawl().longest_wait_s)
        self._nodes: dict[str, CrawlNode] = {}
        self._planner: Dependencies | None = None
        self._free = asyncio.Event()
        self._end = asyncio.Event()
        self._planning = asyncio.Lock()

    async def run(self) -> None:
        """Run to the end, and give all leases back.

        Raises:
            StoreUnwritable: the database's file can't be written: its disk is full, or this user may not write to it.
        """
        try:
            async with AsyncExitStack() as stack:
                self._listen_to_signals()
                await self._open_nodes(stack)
                self._loop = asyncio.get_running_loop()
                scheduler = self._scheduler()
                scheduler.start()
                helpers = [
                    asyncio.create_task(self._turns()),
                    asyncio.create_task(self._watching()),
                    asyncio.create_task(wiring.describe(self._writer, list(self._nodes))),
                ]
                try:
                    self._free.set()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._until.seconds):
                            await self._end.wait()
                finally:
                    self._control.ending.set()
                    scheduler.shutdown(wait=False)
                    for helper in helpers:
                        helper.cancel()
                    await asyncio.gather(*helpers, return_exceptions=True)
                    await self._stop_nodes()
                    await self._link_last_reposts()
        finally:
            self._writer.close()
        if self._unwritable:
            raise StoreUnwritable(
                "{problem}. What was committed is kept: run it again then", problem=self._unwritable.message
            )

    async def _stop_nodes(self) -> None:
        if self._unwritable:  # leases can't be given back; the next run takes them back
            await asyncio.gather(*(node.abandon() for node in self._nodes.values()))
            return
        try:
            async with asyncio.timeout(_STOP_S):
                await asyncio.gather(*(node.stop(because(Reason.RUN_STOPS)) for node in self._nodes.values()))
        except TimeoutError:
            log.warning("not all was given back within %.0f s: the next run takes it back", _STOP_S)
            await asyncio.gather(*(node.abandon() for node in self._nodes.values()))

    async def _link_last_reposts(self) -> None:
        """Compare the reviews that the sweep has not compared yet, to find reposts.

        It takes at most `_LAST_REPOSTS_S` of CPU time.
        """
        if self._unwritable:
            return
        try:
            async with asyncio.timeout(_STOP_S):
                await asyncio.to_thread(
                    link_reposts, self._store, self._writer.call, time.thread_time, _LAST_REPOSTS_S
                )
        except (TimeoutError, StoreFailed) as error:
            log.warning("the last reviews are compared by the next run: %s", error or "no answer in time")

    def _end_unwritable(self, error: StoreUnwritable) -> bool:
        """End the run, because the database's file can't be written. Called on the writer's thread."""
        if self._loop is None:
            return False
        self._unwritable = error
        self._loop.call_soon_threadsafe(self._end.set)
        return True

    def _register(self, tx: Transaction) -> int:
        """Register the nodes. Return the number of leases that a killed run left behind."""
        # A SQLite file has one run at a time, so an open lease belongs to a dead run.
        entries = wiring.entries_of_node(self._settings, self._catalog)
        back = attempts.release_leases(tx, None, because(Reason.RUN_KILLED)) if self._store.is_sqlite else 0
        for node in self._node_rows:
            machine = wiring.machine(own_settings(self._settings, node))
            nodes.register(tx, replace(node, machine=machine), entries)
        return back

    async def _open_nodes(self, stack: AsyncExitStack) -> None:
        if back := await self._writer.run(self._register):
            log.warning("the last run was killed: %d subtasks that it had under way are taken back", back)
        shared = await stack.enter_async_context(wiring.open_shared_tools(self._settings))
        shared.reader.start()
        robots, seen = RobotsCache(self._writer), SeenPages(None)
        for row in self._node_rows:
            own = own_settings(self._settings, row)
            tools = await stack.enter_async_context(
                wiring.open_tools(own, self._catalog, robots, self._permits, seen, shared)
            )
            self._planner = self._planner or tools
            self._nodes[row.name] = wiring.open_node(
                self._settings, row, tools, self._catalog, self._writer, self._free.set
            )

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            # Only the main thread may. In another thread `until` ends the run.
            with suppress(ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, self._end.set)

    def _scheduler(self) -> AsyncIOScheduler:
        scheduler = AsyncIOScheduler(timezone="UTC")
        for sweep in SWEEPS:
            scheduler.add_job(
                self._sweep,
                "interval",
                args=(sweep,),
                seconds=interval_s(sweep, self._settings.silent_after_s),
                id=sweep.name,
                max_instances=1,
                coalesce=True,
            )
        return scheduler

    async def _sweep(self, sweep: Sweep) -> None:
        # The scheduler cancels running sweeps when it shuts down, and would log that as an error.
        with suppress(asyncio.CancelledError):
            if sweep.name == "plan":
                await self._plan()
            elif sweep.run is not None:
                await asyncio.to_thread(sweep.run, self._control)
            else:
                await self._tick(sweep.name)

    async def _tick(self, name: str) -> float:
        """Run a sweep in the scheduler's transaction, and hand new leases to the nodes.

        Return the CPU seconds it took.
        """
        self._context.state.grants = await self._permits.get_grants(self._context.host_names)

        def run(tx: Transaction) -> tuple[list[Lease], float]:
            begin_s = time.thread_time()
            return tick(tx, self._context, (name,)), time.thread_time() - begin_s

        leases, took_s = await self._writer.run(run)
        # Nodes of other processes get no message. If they start a lease late, it is released.
        for name, node in self._nodes.items():
            if batch := [lease for lease in leases if lease.node == name]:
                node.offer(batch)
        return took_s

    async def _plan(self) -> None:
        tools = self._planner
        if tools is None or self._planning.locked():
            return
        async with self._planning:
            made = await sweep_wiring.make_tasks(self._writer, self._catalog, tools, self._unasked)
        if made:
            self._free.set()

    async def _turns(self) -> None:
        """Run a turn of the loop when a node has a free slot or the next turn is due.

        End the run when all work is settled.
        """
        planned = False
        pace = TurnPace()
        while True:
            await self._wait_for_request(self._until_next_turn_s())
            while pause_s := pace.pause_s(
                time.monotonic(), out_of_work=any(n.out_of_work for n in self._nodes.values())
            ):
                self._free.clear()
                await self._wait_for_request(pause_s)
            self._free.clear()
            took_s = 0.0
            try:
                if not planned:
                    await self._plan()
                    planned = True
                took_s = await self._tick("turn")
                if self._until.done and await self._writer.run(self._is_settled):
                    self._end.set()
            except Exception:
                log.exception("a turn of the loop failed; the next one comes")
            pace.record_end(time.monotonic(), took_s)

    def _is_settled(self, tx: Transaction) -> bool:
        return snapshot.all_settled(tx, self._settings.only_sites)

    async def _wait_for_request(self, seconds: float) -> None:
        """Wait until a turn is requested, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._free.wait()

    def _until_next_turn_s(self) -> float:
        """Return the seconds until the next turn is due if no turn is requested before."""
        next_at = self._context.state.next_turn_at
        if next_at is None:
            return _LOOK_EVERY_S
        return min(_LOOK_EVERY_S, max(0.0, (next_at - wiring.utc_now()).total_seconds()))

    async def _watching(self) -> None:
        while self._watch is not None:
            await asyncio.to_thread(self._watch)
            await asyncio.sleep(0.5)
