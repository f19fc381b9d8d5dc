"""The embedded runner: the whole loop in one process over a SQLite file, several nodes with their own addresses."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from apscheduler.schedulers.asyncio import AsyncIOScheduler
from sqlalchemy import Connection

from app import loops, wiring
from app.config import Settings
from app.summary import write_report
from splitter.catalog.model import Catalog, Kind
from tasks.fetching.permits import LocalPermits
from tasks.jobs.context import Context
from tasks.jobs.repost_linking import link_reposts
from tasks.jobs.run_time_training import train_run_times
from tasks.jobs.schedule import SWEEPS, interval_s
from tasks.jobs.ticks import tick
from tasks.jobs.turn_pace import TurnPace
from tasks.store import nodes, reports
from tasks.store.database import Store
from tasks.store.leases import Lease
from tasks.store.nodes import Node
from tasks.store.writer import Writer
from tasks.worker.fetcher import Dependencies
from tasks.worker.node import CrawlNode
from tasks.worker.robots_book import RobotsBook
from tasks.worker.seen import SeenPages

log = logging.getLogger("reviewloop.embedded")

_LOOK_EVERY_S = 1.0
"""A turn comes at the latest after so long: other processes may have changed something, or a host grants more."""


@dataclass(frozen=True, slots=True)
class Until:
    """When to end: when all is settled, or after so many seconds; neither: on a signal only."""

    done: bool = False
    seconds: float | None = None


def numbered_nodes(count: int, slots: int, *, lab: bool) -> list[Node]:
    """node1, node2, ...: towards the lab each from its own address, otherwise as the system chooses."""
    return [
        Node(f"node{n}", frozenset(Kind), slots, f"127.0.0.{n + 1}" if lab else None)
        for n in range(1, count + 1)
    ]


def crawl(
    settings: Settings, store: Store, nodes: Sequence[Node], until: Until, watch: Callable[[], None]
) -> None:
    """Run the loop until `until` or a signal; `watch` is called about twice a second, from another thread."""
    loops.run(EmbeddedRunner(settings, settings.catalog(), store, nodes, until, watch).run())


class EmbeddedRunner:
    """Runs the loop until `until`, or a signal; work goes on at the next start.

    Args:
        watch: called about twice a second with the store, to show progress; not on the event loop.
    """

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog,
        store: Store,
        nodes: Sequence[Node],
        until: Until,
        watch: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._catalog = catalog
        self._store = store
        self._node_rows = nodes
        self._until = until
        self._watch = watch
        self._context: Context = wiring.context(settings, catalog)
        self._writer = Writer(store)
        self._permits = LocalPermits(time.monotonic, settings.crawl().longest_wait_s)
        self._nodes: dict[str, CrawlNode] = {}
        self._control: Dependencies | None = None
        self._free = asyncio.Event()
        self._end = asyncio.Event()
        self._planning = asyncio.Lock()
        self._settled_at_event: int | None = None
        self._settled_look_s = 0.0

    async def run(self) -> None:
        """Run to the end; every lease is given back on the way out."""
        try:
            async with AsyncExitStack() as stack:
                await self._open_nodes(stack)
                self._listen_to_signals()
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
                    self._end.set()
                    scheduler.shutdown(wait=False)
                    for helper in helpers:
                        helper.cancel()
                    await asyncio.gather(*helpers, return_exceptions=True)
                    await asyncio.gather(*(node.stop("the runner stops") for node in self._nodes.values()))
        finally:
            self._writer.close()

    def _register(self, conn: Connection, now: datetime) -> None:
        for node in self._node_rows:
            nodes.register(conn, now, replace(node, machine=wiring.machine(self._settings)))

    async def _open_nodes(self, stack: AsyncExitStack) -> None:
        await self._writer.run(self._register)
        robots = RobotsBook(self._writer)
        permits = self._permits
        seen = SeenPages(None)
        for node in self._node_rows:
            tools = await stack.enter_async_context(
                wiring.deps(self._settings, self._catalog, robots, permits, seen, address=node.address)
            )
            self._control = self._control or tools
            recall = self._context.settings.recall
            crawl_node = CrawlNode(node, tools, self._catalog, self._writer, recall, self._free.set)
            crawl_node.open()
            self._nodes[node.name] = crawl_node

    def _listen_to_signals(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            # Only the main thread may; a runner in a thread is ended by `until`.
            with suppress(ValueError, RuntimeError):
                asyncio.get_running_loop().add_signal_handler(number, self._end.set)

    def _scheduler(self) -> AsyncIOScheduler:
        scheduler = AsyncIOScheduler(timezone="UTC")
        for sweep in SWEEPS:
            scheduler.add_job(
                self._scheduled,
                "interval",
                args=(sweep.name,),
                seconds=interval_s(sweep, self._settings.silent_after_s),
                id=sweep.name,
                max_instances=1,
                coalesce=True,
            )
        return scheduler

    async def _scheduled(self, name: str) -> None:
        # The scheduler cancels running sweeps when it shuts down, and would log that as an error.
        with suppress(asyncio.CancelledError):
            await self._sweep(name)

    async def _sweep(self, name: str) -> None:
        if name == "plan":
            await self._plan()
        elif name == "seen":
            return  # one process: the database itself is the shared set
        elif name == "report":
            await asyncio.to_thread(write_report, self._store, self._settings.report_file)
        elif name == "reposts":
            await asyncio.to_thread(link_reposts, self._store, self._writer.call, time.thread_time)
        elif name == "train":
            await self._train()
        elif name == "admit":
            await self._tick(("admit", "allocate"))
        else:
            await self._tick((name,))

    async def _train(self) -> None:
        if self._context.settings.uses_run_times:
            await asyncio.to_thread(
                train_run_times,
                self._store,
                self._writer.call,
                go_on=lambda: not self._end.is_set(),
            )

    async def _tick(self, names: Sequence[str]) -> float:
        """Run sweeps and notify the nodes; returns the seconds they took, waiting for the database left out."""
        self._context.state.grants = await self._permits.granted(self._context.host_names)

        def run(conn: Connection, now: datetime) -> tuple[list[Lease], float]:
            begin_s = time.monotonic()
            return tick(conn, now, self._context, names), time.monotonic() - begin_s

        leases, took_s = await self._writer.run(run)
        # A node of another process can't be reached from here: its lease is released when it is not started in time.
        for name, node in self._nodes.items():
            if batch := [lease for lease in leases if lease.node == name]:
                node.offer(batch)
        return took_s

    async def _plan(self) -> None:
        tools = self._control
        if tools is None or self._planning.locked():
            return
        async with self._planning:
            made = await wiring.make_tasks(self._writer, self._catalog, tools)
        if made:
            self._free.set()

    async def _turns(self) -> None:
        """Run a turn whenever a node has a free slot, or the time for something comes; end the run when all is done."""
        planned = False
        pace = TurnPace()
        while True:
            await self._asked_within(self._until_next_turn_s())
            while pause_s := pace.pause_s(time.monotonic(), dry=any(n.dry for n in self._nodes.values())):
                self._free.clear()
                await self._asked_within(pause_s)
            self._free.clear()
            took_s = 0.0
            try:
                if not planned:
                    await self._plan()
                    planned = True
                took_s = await self._tick(("turn",))
                await self._end_if_settled()
            except Exception:
                log.exception("a turn of the loop failed; the next one comes")
            pace.ended(time.monotonic(), took_s)

    async def _asked_within(self, seconds: float) -> None:
        """Return when a turn is asked for, after so long at the latest."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._free.wait()

    def _until_next_turn_s(self) -> float:
        """Seconds until a turn is due that nobody asks for."""
        next_at = self._context.state.next_turn_at
        if next_at is None:
            return _LOOK_EVERY_S
        return min(_LOOK_EVERY_S, max(0.0, (next_at - wiring.utc_now()).total_seconds()))

    async def _end_if_settled(self) -> None:
        """End the run when all is done; looks only where something has happened since, or after a while."""
        if not self._until.done:
            return
        event, now_s = self._context.state.turned_at_event, time.monotonic()
        if event == self._settled_at_event and now_s < self._settled_look_s + _LOOK_EVERY_S:
            return
        self._settled_at_event, self._settled_look_s = event, now_s
        if await self._writer.run(lambda conn, _now: reports.all_settled(conn)):
            self._end.set()

    async def _watching(self) -> None:
        while self._watch is not None:
            await asyncio.to_thread(self._watch)
            await asyncio.sleep(0.5)
