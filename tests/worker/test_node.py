"""A crawl node: slots are work, a notification may be lost or doubled, and stopping loses nothing."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from patience import PATIENCE_S
from sqlalchemy import select

from splitter.catalog.load import builtin
from splitter.catalog.names import Kind
from tasks.domain.hit_count import NewPartition
from tasks.domain.pages import Response
from tasks.domain.reasons import Reason, because
from tasks.domain.states import State, Transition
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.robots import RobotsRules
from tasks.scheduling.recall import RecallSettings
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import leases, nodes, tasks, transitions
from tasks.store.queue.attempts import release
from tasks.store.queue.leases import Grant, Lease
from tasks.store.queue.nodes import Node
from tasks.store.queue.tasks import NewTask
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, events, pages, subtasks
from tasks.store.sql.tables import nodes as node_table
from tasks.store.sql.writer import Writer
from tasks.store.verify.verify import verify
from tasks.worker.attempt import Attempt
from tasks.worker.fetcher import Dependencies
from tasks.worker.node import _ASKING_BEATS, CrawlNode
from tasks.worker.seen import SeenPages
from tasks.worker.settings import CrawlSettings

SITE = "315tousu.org"
CATALOG = builtin("paper-2014")
SILENT = timedelta(seconds=60)


class Web:
    """Gives every page when it is let; each search lists two pages of its own.

    Attributes:
        inside: addresses under way. `most`: so many at once at the most. `asked`: all that were ever under way.
        open: what is not held back.
    """

    def __init__(self) -> None:
        self.inside: list[str] = []
        self.asked: list[str] = []
        self.most = 0
        self.open: Callable[[str], bool] = lambda _url: True
        self.broken: Exception | None = None
        self.changed = asyncio.Event()

    async def fetch(
        self, url: str, *, before_request: Callable[[str], Awaitable[Any]], **_how: Any
    ) -> Response:
        await before_request(url)
        self.inside.append(url)
        self.asked.append(url)
        self.most = max(self.most, len(self.inside))
        self.changed.set()
        try:
            await self.until(lambda: self.open(url))
        finally:
            self.inside.remove(url)
            self.changed.set()
        if self.broken is not None:
            raise self.broken
        text = _results(url) if "/s?" in url else _complaint(url)
        return Response(
            url=url,
            status=200,
            headers={"content-type": "text/html; charset=utf-8"},
            body=text.encode(),
            elapsed_s=0.1,
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                self.changed.clear()
                await self.changed.wait()
                self.changed.set()  # for whoever else waits
                await asyncio.sleep(0)

    def let(self, open_: Callable[[str], bool]) -> None:
        self.open = open_
        self.changed.set()


def _results(url: str) -> str:
    name = url.rpartition("=")[2]
    listed = "".join(
        f'<div class="result"><h3 class="t"><a href="http://{SITE}/{name}/{n}">t</a></h3>'
        '<div class="c-abstract">a</div></div>'
        for n in (1, 2)
    )
    return f"<html><title>r</title><body>{listed}</body></html>"


def _complaint(url: str) -> str:
    return (
        f'<html><title>投诉</title><div class="complaint" data-id="1"><h1 class="complaint-title">T</h1>'
        f'<div class="complaint-body">牛奶变质 {url}</div></div></html>'
    )


class Turns:
    """Send times: at once, unless a wait is named for the next who asks."""

    def __init__(self) -> None:
        self.waits: deque[float] = deque()

    async def reserve(self, *_: object) -> float:
        return self.waits.popleft() if self.waits else 0.0

    async def push_back(self, *_: object) -> None:
        return

    async def observe(self, *_: object) -> None:
        return


class Allowed:
    """Every robots.txt allows all."""

    async def rules(self, *_: object) -> RobotsRules:
        return RobotsRules.parse("User-agent: *\nAllow: /", 200)


class Scene:
    """A store with waiting subtasks, a writer, and one node over a scripted web."""

    def __init__(self, store: Store, slots: int) -> None:
        self.store = store
        self.writer = Writer(store)
        self.web = Web()
        self.turns = Turns()
        self.sleeping = asyncio.Event()
        self.wake = asyncio.Event()
        self.gone = 0
        self.asked = 0
        deps: Any = Dependencies(
            downloader=self.web,  # type: ignore[arg-type]
            permits=self.turns,
            robots=Allowed(),  # type: ignore[arg-type]
            hosts=HostCatalog(CATALOG),
            address="127.0.0.2",
            settings=CrawlSettings(lanes=1),
            now=lambda: self.now,
            seen=SeenPages(None),
            sleep=self._sleep,
        )
        self.node = CrawlNode(
            Node("n1", frozenset({Kind.META}), slots),
            deps,
            CATALOG,
            self.writer,
            RecallSettings(),
            self._ask,
            clock=lambda: 0.0,
        )
        self._run = self.node._run
        self.node._run = self._counted  # type: ignore[method-assign]

    def _ask(self) -> None:
        self.asked += 1

    async def _counted(self, attempt: Attempt) -> None:
        try:
            await self._run(attempt)
        finally:
            self.gone += 1
            self.web.changed.set()

    async def _sleep(self, _seconds: float) -> None:
        self.sleeping.set()
        await self.wake.wait()

    async def lease(self, name: str) -> Lease:
        """A subtask of its own, granted to the node."""

        def grant(tx: Any) -> Lease:
            self.now = tx.now
            assert products.add(tx, NewProduct(name=name, keywords=(name,)))
            (wanted,) = tasks.list_unplanned(tx, 1)
            partition = NewPartition((name,), 1, 1)
            planned = [NewTask(SITE, "baidu", "meta", (partition,))]
            tasks.plan(tx, wanted, planned, lambda *_: [f"http://www.baidu.com/s?wd={name}"])
            subtask_id = tx.engine_connection.scalar(
                select(subtasks.c.id).order_by(subtasks.c.id.desc()).limit(1)
            )
            transitions.move(tx, Transition.ADMIT, [transitions.Move(subtask_id)])
            (lease,) = leases.grant(tx, [Grant(subtask_id, "n1", 20, 100.0, {})], SILENT)
            return lease

        return await self.writer.run(grant)

    async def leases(self, *names: str) -> list[Lease]:
        return [await self.lease(name) for name in names]

    async def settled(self) -> None:
        """Whatever could happen now has happened."""
        for _ in range(4):
            await self.writer.run(lambda _tx: None)
            for _ in range(20):
                await asyncio.sleep(0)

    async def ended(self, n: int) -> None:
        """So many attempts have ended."""
        await self.web.until(lambda: self.gone >= n)

    def rows(self, table: Any) -> Any:
        with self.store.read() as tx:
            return tx.engine_connection.execute(select(table).order_by(*table.primary_key)).all()

    @property
    def states(self) -> list[str]:
        return [row.state for row in self.rows(subtasks)]


@pytest.fixture
def run(sqlite_store: Store) -> Iterator[Callable[..., None]]:
    """Plays a story on a loop of its own; afterwards `verify` must find nothing."""

    @asynccontextmanager
    async def scene(slots: int) -> Any:
        made = Scene(sqlite_store, slots)
        try:
            await made.writer.run(lambda tx: nodes.register(tx, made.node.node))
            yield made
            made.web.let(lambda _url: True)
            made.wake.set()
            await made.node.stop(because(Reason.RUN_STOPS))
        finally:
            made.writer.close()

    def play(story: Callable[[Scene], Awaitable[None]], *, slots: int = 1) -> None:
        async def on_scene() -> None:
            async with scene(slots) as made:
                await story(made)

        asyncio.run(on_scene())

    yield play
    with sqlite_store.begin() as tx:
        assert verify(tx).violations == ()


# --- slots --------------------------------------------------------------------------------------------------


def test_while_every_slot_works_nothing_is_begun(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        scene.web.let(lambda _url: False)
        scene.node.offer(await scene.leases(*"abcde"))
        await scene.web.until(lambda: len(scene.web.inside) == 2)
        await scene.settled()
        assert len(scene.web.asked) == 2
        assert sum(row.started_at is not None for row in scene.rows(attempts)) == 2

    run(story, slots=2)


def test_all_that_is_offered_is_crawled_and_hardly_more_at_once_than_there_are_slots(
    run: Callable[..., None],
) -> None:
    async def story(scene: Scene) -> None:
        scene.node.offer(await scene.leases(*"abcdefgh"))
        await scene.ended(8)
        assert scene.states == [State.SLEEP] * 8
        assert len(scene.rows(pages)) == 16
        assert scene.web.most <= 3, "those at work, less one, and those that were beginning"

    run(story, slots=2)


def test_an_attempt_that_waits_for_its_turn_frees_its_slot(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        scene.turns.waits.append(20.0)
        first, second = await scene.leases(*"ab")
        scene.node.offer([first])
        await scene.sleeping.wait()
        scene.web.let(lambda _url: False)
        scene.node.offer([second])
        await scene.web.until(lambda: len(scene.web.inside) == 1)
        await scene.node._heartbeat()
        (row,) = scene.rows(node_table)
        assert (row.idle, row.backlog) == (1, 0)
        scene.web.let(lambda _url: True)
        scene.wake.set()
        await scene.ended(2)
        assert scene.states == [State.SLEEP] * 2

    run(story)


# --- notifications ----------------------------------------------------------------------------------------------


def test_a_doorbell_that_rings_again_and_again_is_one_attempt(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        lease = await scene.lease("a")
        scene.web.let(lambda _url: False)
        scene.node.offer([lease, lease])
        scene.node.offer([lease])
        await scene.web.until(lambda: len(scene.web.inside) == 1)
        scene.node.offer([lease])
        scene.web.let(lambda _url: True)
        await scene.ended(1)
        scene.node.offer([lease])
        await scene.ended(2)
        assert len(scene.web.asked) == 3, "one result page, two pages"
        assert [row.outcome for row in scene.rows(attempts)] == ["succeeded"]

    run(story, slots=3)


def test_a_lost_doorbell_is_healed_by_the_heartbeat(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        await scene.lease("a")
        scene.node.open()
        await scene.ended(1)
        assert scene.states == [State.SLEEP]

    run(story)


def test_a_lease_taken_back_since_is_not_begun(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        scene.web.let(lambda _url: False)
        first, second = await scene.leases(*"ab")
        scene.node.offer([first, second])
        await scene.web.until(lambda: len(scene.web.inside) == 1)
        assert await scene.writer.run(
            lambda tx: release(tx, {second: because(Reason.OTHER, text="rebalanced")})
        )
        await scene.node._heartbeat()
        scene.web.let(lambda _url: True)
        await scene.ended(1)
        await scene.settled()
        assert scene.gone == 1
        assert scene.states == [State.SLEEP, State.WAIT]

    run(story)


def test_an_attempt_whose_lease_is_over_counts_for_no_throughput(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        lease = await scene.lease("a")
        await scene.writer.run(lambda tx: release(tx, {lease: because(Reason.OTHER, text="rebalanced")}))
        scene.node.offer([lease])
        await scene.ended(1)
        assert (scene.node._throughput.per_second(0.0), scene.states) == (0.0, [State.WAIT])
        scene.node.offer([await scene.lease("b")])
        await scene.ended(2)
        assert scene.node._throughput.per_second(0.0) == 1.0

    run(story)


def test_a_doorbell_that_rings_while_the_heartbeat_is_on_its_way_is_heard(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        scene.web.let(lambda _url: False)
        scene.node.offer([await scene.lease("a")])
        await scene.web.until(lambda: len(scene.web.inside) == 1)
        writer = scene.writer

        class Slow:
            """Its answers travel so long that a lease is given meanwhile."""

            @staticmethod
            async def run(operation: Any) -> Any:
                answer = await writer.run(operation)
                scene.node.offer([await scene.lease("b")])
                return answer

        scene.node._writer = Slow()  # type: ignore[assignment]
        await scene.node._heartbeat()
        scene.node._writer = writer
        scene.web.let(lambda _url: True)
        await scene.ended(2)
        assert scene.states == [State.SLEEP] * 2

    run(story)


def test_a_node_without_work_asks_for_it_a_few_times_and_anew_after_an_attempt(
    run: Callable[..., None],
) -> None:
    async def story(scene: Scene) -> None:
        for n in (1, 2):
            scene.node.offer([await scene.lease(f"product {n}")])
            await scene.ended(n)
            await scene.settled()
            asked = scene.asked
            for _ in range(20):
                await scene.node._heartbeat()
            assert scene.asked == asked + _ASKING_BEATS

    run(story)


def test_a_heartbeat_without_a_database_ends_no_node(
    run: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(scene: Scene) -> None:
        lease = await scene.lease("a")
        writer = scene.writer

        class Away:
            @staticmethod
            async def run(_operation: Any) -> Any:
                raise ConnectionError("the database is away")

        scene.node._writer = Away()  # type: ignore[assignment]
        await scene.node._heartbeat()
        scene.node._writer = writer
        assert "the database is away" in caplog.text
        scene.node.offer([lease])
        await scene.ended(1)

    run(story)


# --- drained, stopped, broken -------------------------------------------------------------------------------


def test_a_drained_node_ends_what_runs_and_gives_back_the_rest_until_it_is_resumed(
    run: Callable[..., None],
) -> None:
    async def story(scene: Scene) -> None:
        scene.web.let(lambda _url: False)
        first, second = await scene.leases(*"ab")
        unheard = await scene.lease("c")
        scene.node.offer([first, second])
        await scene.web.until(lambda: len(scene.web.inside) == 1)
        await scene.writer.run(lambda tx: nodes.set_drained(tx, "n1", True))
        await scene.node._heartbeat()
        assert scene.node.drained
        assert scene.states == [State.CRAWL, State.WAIT, State.WAIT]
        scene.web.let(lambda _url: True)
        await scene.ended(1)
        late = await scene.lease("d")
        scene.node.offer([late, unheard])
        await scene.settled()
        assert scene.gone == 1
        await scene.writer.run(lambda tx: nodes.set_drained(tx, "n1", False))
        await scene.node._heartbeat()
        await scene.ended(2)
        assert scene.states == [State.SLEEP, State.WAIT, State.WAIT, State.SLEEP]

    run(story)


def test_stopping_gives_back_what_was_not_begun_and_keeps_the_pages_of_what_runs(
    run: Callable[..., None], sqlite_store: Store
) -> None:
    async def story(scene: Scene) -> None:
        scene.web.let(lambda url: url.endswith(("wd=a", "/a/1")))
        begun, waiting = await scene.leases(*"ab")
        await scene.lease("c")
        scene.node.offer([begun, waiting])
        await scene.web.until(lambda: f"http://{SITE}/a/2" in scene.web.inside)
        await scene.node.stop(because(Reason.RUN_STOPS))
        assert scene.states == [State.WAIT] * 3
        assert [page.url for page in scene.rows(pages)] == [f"http://{SITE}/a/1"]
        (row,) = scene.rows(node_table)
        assert row.seen_at is None, "nobody is to give it anything now"

    run(story)
    with sqlite_store.read() as tx:
        told = tx.engine_connection.execute(select(attempts).order_by(attempts.c.id)).all()
        recalls = tx.engine_connection.scalars(select(subtasks.c.recalls)).all()
    assert [(row.outcome, row.offered, row.collected) for row in told] == [
        ("released", 1, 1),
        ("released", 0, 0),
        ("released", 0, 0),
    ]
    assert recalls == [0, 0, 0]


def test_stopping_while_an_attempt_begins_gives_it_back_too(run: Callable[..., None]) -> None:
    async def story(scene: Scene) -> None:
        scene.web.let(lambda _url: False)
        scene.node.offer(await scene.leases(*"abc"))
        await scene.node.stop(because(Reason.RUN_STOPS))
        assert scene.states == [State.WAIT] * 3
        assert [row.outcome for row in scene.rows(attempts)] == ["released"] * 3

    run(story, slots=2)


def test_stopping_between_begin_and_its_answer_gives_it_back(run: Callable[..., None]) -> None:
    """The database has begun the attempt, and its node hears of it only after it was told to stop."""

    async def story(scene: Scene) -> None:
        (lease,) = await scene.leases("a")
        scene.node.offer([lease])
        await asyncio.sleep(0)  # now it has asked to begin
        (attempt,) = scene.node._running.values()
        attempt.interrupt(because(Reason.RUN_STOPS))
        await scene.ended(1)
        assert scene.states == [State.WAIT]
        (row,) = scene.rows(attempts)
        assert (row.outcome, row.offered, row.requests) == ("released", 0, 0)
        assert row.started_at is not None
        assert scene.web.asked == []

    run(story)


def test_an_attempt_that_breaks_is_closed_with_its_cause_and_the_next_one_runs(
    run: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(scene: Scene) -> None:
        scene.web.let(lambda _url: False)
        first, second = await scene.leases(*"ab")
        scene.node.offer([first])
        await scene.web.until(lambda: len(scene.web.inside) == 1)
        scene.web.let(lambda url: not url.endswith("/1"))
        await scene.web.until(lambda: any(url.endswith("/1") for url in scene.web.inside))
        scene.web.broken = RuntimeError("no such thing")
        scene.web.let(lambda _url: True)
        await scene.ended(1)
        scene.web.broken = None
        scene.node.offer([second])
        await scene.ended(2)
        assert scene.states == [State.FAILED, State.SLEEP]
        (failed,) = [row for row in scene.rows(events) if row.transition == Transition.FAIL]
        assert (failed.reason, failed.detail["because"]["parameters"]) == (
            "node_error",
            {"error": "RuntimeError", "text": "no such thing"},
        )

    run(story)
    assert "no such thing" in caplog.text


def test_a_lease_by_another_entry_of_its_site_goes_back(
    run: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(scene: Scene) -> None:
        scene.node._entries = {SITE: "mine"}
        other, mine, unknown = await scene.leases(*"abc")
        scene.node.offer([replace(other, entry="other"), replace(mine, entry="mine")])
        scene.node.offer([replace(unknown, site="gone.example.com")])
        await scene.ended(1)
        await scene.settled()
        assert scene.states == [State.WAIT, State.SLEEP, State.WAIT]
        released = [row for row in scene.rows(events) if row.transition == Transition.RELEASE]
        assert [row.detail["because"] for row in released] == [
            {"reason": "entry_differs", "parameters": {"node": "n1", "site": site}}
            for site in (SITE, "gone.example.com")
        ]

    run(story)
    assert "restart it with the scheduler's catalog" in caplog.text


def test_an_attempt_that_cannot_even_begin_holds_no_slot(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(scene: Scene) -> None:
        broken, fine = await scene.leases(*"ab")
        with monkeypatch.context() as patch:
            patch.setattr("tasks.worker.node.Attempt", _no_attempt)
            scene.node.offer([broken])
        await scene.settled()
        assert scene.states == [State.FAILED, State.WAIT] or scene.states == [State.FAILED, State.CRAWL]
        scene.node.offer([fine])
        await scene.ended(1)
        assert scene.states == [State.FAILED, State.SLEEP]
        (failed,) = [row for row in scene.rows(events) if row.transition == Transition.FAIL]
        assert (failed.reason, failed.detail["because"]["parameters"]) == (
            "node_error",
            {"error": "KeyError", "text": "'no rules'"},
        )

    run(story)


def _no_attempt(*_: object, **__: object) -> Attempt:
    raise KeyError("no rules")


def test_a_node_tells_how_far_its_clock_is_off(
    run: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    async def story(scene: Scene) -> None:
        await scene.leases("a")
        scene.now = scene.now + timedelta(days=1)
        await scene.node._heartbeat()
        (row,) = scene.rows(node_table)
        assert 86_400 - PATIENCE_S < row.clock_s <= 86_400, "less what passed since the lease was given"
        await scene.settled()

    run(story)
    assert re.search(r"the clock here is \+8\d{4} s off the database's", caplog.text)
