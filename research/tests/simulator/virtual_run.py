"""The loop of production in virtual time: store, turns, nodes and attempts are the real ones, the web is made up.

An event loop whose clock jumps to the next timer; a writer that writes at once; a web that answers each address of each
host with a latency and a chance of its own, and refuses it for a while after so many requests in so many seconds.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from urllib.parse import urlsplit

from sqlalchemy import func, select

from splitter.catalog.load import builtin
from splitter.catalog.model import Bounds, Limits
from splitter.catalog.names import Kind
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.hit_count import NewPartition
from tasks.domain.pages import Response
from tasks.domain.states import State
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.permits import LocalPermits
from tasks.jobs.context import Context, LoopSettings
from tasks.jobs.scheduler_state import SchedulerState
from tasks.jobs.ticks import tick
from tasks.reading import page_jobs
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import nodes, tasks
from tasks.store.queue.nodes import Node
from tasks.store.queue.tasks import NewTask
from tasks.store.sql.tables import attempts, subtasks
from tasks.worker.fetcher import Dependencies
from tasks.worker.node import CrawlNode
from tasks.worker.page_reader import PageReader
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages
from tasks.worker.settings import CrawlSettings
from tests.worker.test_attempt import complaint, result_page

START = datetime(2026, 1, 1, tzinfo=UTC)
ENGINE, ENGINE_HOST = "baidu", "www.baidu.com"
ENGINE_S = 0.05
TURN_S = 0.25


@dataclass(frozen=True, kw_only=True)
class Pair:
    """How a host answers a node."""

    seconds: float = 0.1
    completion: float = 1.0
    block: tuple[int, float, float] | None = None  # pages, window, how long


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A run: hits of each task by site, limits of every site, answers by (site, node).

    Attributes:
        away: by host, from when until when it refuses every connection.
        lasts_s: the run ends then at the latest.
    """

    hits: dict[str, list[int]]
    limits: Limits
    nodes: dict[str, int]
    pairs: dict[tuple[str, str], Pair]
    quota: Bounds = field(default_factory=lambda: Bounds(min=5, max=200))
    budget_s: Bounds = field(default_factory=lambda: Bounds(min=10, max=300))
    away: dict[str, tuple[float, float]] = field(default_factory=dict)
    lasts_s: float = 3600.0


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What came of a run."""

    ended_s: float
    pages: Counter
    tried: Counter
    attempts: Counter
    refused: Counter


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time goes on to the next timer once nothing else is left to do."""

    def __init__(self):
        super().__init__()
        self._virtual_s = 0.0

    def time(self):
        return self._virtual_s

    def run_in_executor(self, _executor, call, *args):
        future = self.create_future()
        future.set_result(call(*args))
        return future

    def _run_once(self):
        if not self._ready and self._scheduled:
            self._virtual_s = max(self._virtual_s, self._scheduled[0].when())
        super()._run_once()


class Writer:
    """Writes each item at once, at the virtual time."""

    def __init__(self, store, now):
        self._store, self._now = store, now

    async def run(self, operation):
        with self._store.begin(now=self._now()) as tx:
            return operation(tx)

    def later(self, kind, item):
        future = asyncio.get_running_loop().create_future()
        with self._store.begin(now=self._now()) as tx:
            (result,) = kind.run(tx, [item])
        future.set_result(result)
        return future

    soon = later

    def hurry(self):
        pass


class ReaderInPlace(PageReader):
    """Reads without a thread, which virtual time would not wait for."""

    async def read(self, job):
        return page_jobs.run(job)


class Web:
    """What one node's address is answered."""

    def __init__(self, wanted, node, rng, refused):
        self._wanted, self._node, self._rng, self._refused = wanted, node, rng, refused
        self._starts = {}
        self._until_s = {}

    async def fetch(self, url, *, before_request, **_options):
        await before_request(url)
        host, loop = urlsplit(url).hostname.removeprefix("www."), asyncio.get_running_loop()
        from_s, until_s = self._wanted.away.get(host, (0.0, 0.0))
        if from_s <= loop.time() < until_s:
            raise FetchError(ErrorClass.CONNECT, "refused")
        if url.endswith("/robots.txt"):
            return self._answer(url, "User-agent: *\nAllow: /", 0.001)
        if host == "baidu.com":
            await asyncio.sleep(ENGINE_S)
            site, product, count = urlsplit(url).query.removeprefix("wd=").split("_")
            hits = [f"http://{site}/c/{product}-{n}.html" for n in range(int(count))]
            return self._answer(url, result_page(*hits), ENGINE_S)
        pair = self._wanted.pairs.get((host, self._node), Pair())
        blocked = self._blocks(host, pair, loop.time())
        answered = self._rng.random() < pair.completion
        await asyncio.sleep(pair.seconds)
        if blocked:
            self._refused[host, self._node] += 1
            raise FetchError(ErrorClass.FORBIDDEN, "403")
        if not answered:
            raise FetchError(ErrorClass.SERVER_ERROR, "500")
        return self._answer(url, complaint(url), pair.seconds)

    def _blocks(self, host, pair, now):
        if pair.block is None:
            return False
        count, window_s, for_s = pair.block
        if now < self._until_s.get(host, 0.0):
            return True
        starts = self._starts.setdefault(host, deque())
        starts.append(now)
        while starts[0] <= now - window_s:
            starts.popleft()
        if len(starts) >= count:
            self._until_s[host] = now + for_s
            starts.clear()
        return False

    @staticmethod
    def _answer(url, body, took_s):
        return Response(
            url=url,
            status=200,
            headers={"content-type": "text/html; charset=utf-8"},
            body=body.encode(),
            elapsed_s=took_s,
            first_byte_s=took_s,
        )


def run(store, wanted, allocation, seed):
    """Run it to its end."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(_run(store, wanted, allocation, seed))
    finally:
        loop.close()


def _catalog(wanted):
    catalog = builtin("paper-2014")
    sites = {
        name: catalog.sites[name].model_copy(
            update={"limits": wanted.limits, "quota": wanted.quota, "budget_s": wanted.budget_s}
        )
        for name in wanted.hits
    }
    fast = Limits(per_address_per_s=100, total_per_s=400)
    engines = {name: one.model_copy(update={"limits": fast}) for name, one in catalog.engines.items()}
    return catalog.model_copy(update={"sites": sites, "engines": engines})


async def _run(store, wanted, allocation, seed):
    loop, catalog = asyncio.get_running_loop(), _catalog(wanted)
    writer = Writer(store, lambda: START + timedelta(seconds=loop.time()))
    settings = LoopSettings(allocation=allocation)
    context = Context(
        catalog, settings, HostCatalog(catalog), Random(seed), SchedulerState(settings.strategy, loop.time)
    )
    refused, permits, robots = Counter(), LocalPermits(loop.time), RobotsCache(writer, loop.time)
    free, seen = asyncio.Event(), SeenPages(None)
    _plan(store, wanted, catalog)
    crawling = {}
    for number, (name, slots) in enumerate(wanted.nodes.items(), 2):
        node = Node(name, frozenset(Kind), slots, f"127.0.0.{number}")
        await writer.run(lambda tx, node=node: nodes.register(tx, node))
        deps = Dependencies(
            downloader=Web(wanted, name, Random(f"{seed} {name}"), refused),
            permits=permits,
            robots=robots,
            hosts=context.hosts,
            address=node.address,
            settings=CrawlSettings(),
            now=lambda: START + timedelta(seconds=loop.time()),
            seen=seen,
            rng=Random(f"rests {seed} {name}"),
            reader=ReaderInPlace(),
        )
        crawling[name] = CrawlNode(node, deps, catalog, writer, settings.recall, free.set, clock=loop.time)
        crawling[name].open()
    while loop.time() < wanted.lasts_s:
        context.state.grants = await permits.get_grants(context.host_names)
        given = await writer.run(lambda tx: tick(tx, context, ("turn",)))
        for name, node in crawling.items():
            node.offer([lease for lease in given if lease.node == name])
        with store.read() as tx:
            states = {State(one) for one in tx.engine_connection.scalars(select(subtasks.c.state).distinct())}
        if all(state.settled for state in states):
            break
        await asyncio.sleep(TURN_S)
    ended_s = loop.time()
    await asyncio.gather(*(node.stop("the test ends") for node in crawling.values()))
    return _ran(store, ended_s, refused)


def _plan(store, wanted, catalog):
    most = max(map(len, wanted.hits.values()))
    with store.begin(now=START) as tx:
        for number in range(most):
            products.add(tx, NewProduct(name=f"牛奶{number}", keywords=("牛奶",)))
        for virtual in tasks.list_unplanned(tx, most):
            number = int(virtual.product.removeprefix("牛奶"))
            planned = [
                NewTask(
                    site,
                    catalog.sites[site].engine,
                    str(catalog.kind_of(site)),
                    (NewPartition(("牛奶",), 1, 1),),
                )
                for site, of in wanted.hits.items()
                if number < len(of)
            ]
            tasks.plan(tx, virtual, planned, partial(_urls, wanted, number))


def _urls(wanted, number, query, _pages):
    return [f"http://{ENGINE_HOST}/s?wd={query.site}_{number}_{wanted.hits[query.site][number]}"]


def _ran(store, ended_s, refused):
    with store.read() as tx:
        rows = tx.engine_connection.execute(
            select(
                attempts.c.site,
                attempts.c.node,
                func.count(),
                func.sum(attempts.c.tried),
                func.sum(attempts.c.collected),
            ).group_by(attempts.c.site, attempts.c.node)
        ).all()
    return Ran(
        ended_s=ended_s,
        pages=Counter({(site, node): collected for site, node, _, _, collected in rows}),
        tried=Counter({(site, node): tried for site, node, _, tried, _ in rows}),
        attempts=Counter({(site, node): count for site, node, count, _, _ in rows}),
        refused=refused,
    )
