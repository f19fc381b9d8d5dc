"""One attempt against an in-memory web: what it stores, how it ends, what it counts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from decision_path import record_path
from sqlalchemy import select

from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog
from splitter.catalog.names import Kind
from splitter.errors import Message
from tasks.domain.breaker import Rest
from tasks.domain.failures import ErrorClass, FailureReason, FetchError
from tasks.domain.hit_count import NewPartition
from tasks.domain.page_floor import NO_FLOOR, PageFloor
from tasks.domain.pages import Response
from tasks.domain.reasons import Reason, because
from tasks.domain.states import State, Transition
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.permits import LocalPermits
from tasks.reading.page_jobs import ReadingJob, run
from tasks.scheduling.recall import RecallSettings
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import attempts as queue_attempts
from tasks.store.queue import leases, nodes, tasks, transitions
from tasks.store.queue.hosts import rest_hosts
from tasks.store.queue.leases import Grant
from tasks.store.queue.nodes import Node
from tasks.store.queue.tasks import NewTask
from tasks.store.sql import tables
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, host_rests, pages, pair_stats, reviews, subtasks, targets
from tasks.store.sql.writer import Writer
from tasks.worker.attempt import Attempt
from tasks.worker.fetcher import Dependencies
from tasks.worker.page_reader import PageReader
from tasks.worker.robots_cache import RobotsCache
from tasks.worker.seen import SeenPages
from tasks.worker.settings import CrawlSettings

SITE = "315tousu.org"
SEARCH = "http://www.baidu.com/s?wd=a&pn=0"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """Seconds that pass only where somebody sleeps or a request takes time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


class Web:
    """Answers by URL; what is not there is 404. Each entry is text, an error, or a list of them in turn."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.answers: dict[str, object] = {}
        self.asked: list[str] = []
        self.before: dict[str, object] = {}  # what happens before a URL is answered
        self.takes_s = 0.1

    async def fetch(self, url: str, *, timeout_s: float, headers, before_request, trusts, **_how) -> Response:
        await before_request(url)
        self.asked.append(url)
        await self.clock.sleep(self.takes_s)
        if url in self.before:
            await self.before[url]()
        answer = self.answers.get(url, FetchError(ErrorClass.NOT_FOUND, "404"))
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, FetchError):
            raise answer
        headers = {"content-type": "text/html; charset=utf-8"}
        first_byte_s = 0.05 if SITE in url else 0.01
        return Response(
            url=url,
            status=200,
            headers=headers,
            body=str(answer).encode(),
            elapsed_s=0.1,
            first_byte_s=first_byte_s,
        )


def result_page(*hits: str, found: int | None = None, more: bool = False) -> str:
    listed = "".join(
        f'<div class="result"><h3 class="t"><a href="{u}">t</a></h3><div class="c-abstract">a</div></div>'
        for u in hits
    )
    count = f"<p>百度为您找到相关结果约{found}个</p>" if found is not None else ""
    following = '<a class="n" rel="next" href="#">下一页</a>' if more else ""
    return f"<html><title>r</title><body>{count}{listed}{following}</body></html>"


EMPTY = "<html><body>很抱歉，没有找到与 x 相关的网页</body></html>"


def complaint(text: str) -> str:
    return (
        f'<html><title>投诉 {text}</title><div class="complaint" data-id="{text}"><h1 class="complaint-title">T</h1>'
        f'<div class="complaint-body">牛奶变质 {text}</div><span class="complaint-date">2013-05-06</span></div></html>'
    )


def hit(n: int) -> str:
    return f"http://{SITE}/c/{n}.html"


class ReaderInPlace(PageReader):
    """Reads without a thread, so that requests come in the same order every time."""

    async def read(self, job: ReadingJob[Any]) -> Any:
        return run(job)


class World:
    """A store with one subtask, and everything an attempt needs."""

    def __init__(self, url: str, *, urls: tuple[str, ...] = (SEARCH,), **crawl: object) -> None:
        self.store = Store.open(url)
        self.clock = Clock()
        self.web = Web(self.clock)
        self.web.answers["http://www.baidu.com/robots.txt"] = "User-agent: *\nAllow: /"
        self.web.answers[f"http://{SITE}/robots.txt"] = "User-agent: *\nDisallow: /private/"
        self.catalog = builtin("paper-2014")
        self.crawl = CrawlSettings(**crawl)
        self.floor = NO_FLOOR
        with self.store.begin(now=NOW) as tx:
            products.add(tx, NewProduct(name="牛奶", keywords=("牛奶",)))
            (wanted,) = tasks.list_unplanned(tx, 1)
            planned = NewTask(SITE, "baidu", "meta", (NewPartition(("牛奶",), len(urls), len(urls)),))
            tasks.plan(tx, wanted, [planned], lambda *_: urls)
            self.subtask_id = tx.engine_connection.scalar(select(subtasks.c.id))
            transitions.move(tx, Transition.ADMIT, [transitions.Move(self.subtask_id)])
        with self.store.begin() as tx:
            nodes.register(tx, Node("n1", frozenset(Kind), 1))

    def other_node(self) -> None:
        """A live node that knows nothing against any host."""
        with self.store.begin() as tx:
            nodes.register(tx, Node("n2", frozenset(Kind), 1))

    def run(self, *, quota: int = 100, budget_s: float = 100.0, during=None) -> bool:
        """One attempt, from grant to close; `during(attempt)` runs beside it."""
        writer = Writer(self.store)
        try:
            return asyncio.run(self._run(writer, quota, budget_s, during))
        finally:
            writer.close()

    async def _run(self, writer: Writer, quota: int, budget_s: float, during) -> bool:
        wanted = Grant(self.subtask_id, "n1", quota, budget_s, {}, self.floor)
        within = RecallSettings()
        (lease,) = await writer.run(lambda tx: leases.grant(tx, [wanted], within_s(within)))
        deps = Dependencies(
            downloader=self.web,
            permits=LocalPermits(self.clock),
            robots=RobotsCache(writer),
            hosts=HostCatalog(self.catalog),
            address="127.0.0.2",
            settings=self.crawl,
            now=lambda: NOW,
            seen=SeenPages(None),
            sleep=self.clock.sleep,
            reader=ReaderInPlace(),
        )
        attempt = Attempt(lease, deps, self.catalog, writer, within, clock=self.clock)
        if during is None:
            return await attempt.run()
        running = asyncio.ensure_future(attempt.run())
        await during(attempt, writer, lease)
        return await running

    def wake(self) -> None:
        """Back to WAIT by hand, as a recall would."""
        with self.store.begin(now=NOW) as tx:
            transitions.move(tx, Transition.RECALL, [transitions.Move(self.subtask_id)])

    def rows(self, table):
        with self.store.read() as tx:
            return tx.engine_connection.execute(select(table).order_by(*table.primary_key)).all()

    @property
    def subtask(self):
        return self.rows(subtasks)[0]

    @property
    def attempt(self):
        return self.rows(attempts)[-1]

    def hits(self) -> dict[str, tuple[str, str | None, int]]:
        return {t.url: (t.state, t.reason, t.tries) for t in self.rows(targets) if t.kind == "hit"}


def within_s(settings: RecallSettings) -> timedelta:
    return timedelta(seconds=settings.silent_after_s)


@pytest.fixture
def world(sqlite_url):
    made = World(sqlite_url)
    yield made
    made.store.close()


def test_hits_become_pages_and_reviews_with_their_origin(world):
    world.web.answers[SEARCH] = result_page(hit(1), hit(2), found=2)
    world.web.answers |= {hit(1): complaint("一"), hit(2): complaint("二")}
    assert world.run()
    assert world.subtask.state == State.SLEEP
    assert [p.url for p in world.rows(pages)] == [hit(1), hit(2)]
    review = world.rows(reviews)[0]
    assert (review.body, review.site, review.node, review.attempt_id) == (
        "牛奶变质 一",
        SITE,
        "n1",
        world.attempt.id,
    )
    a = world.attempt
    assert (a.outcome, a.found, a.found_provenance) == ("succeeded", 2, "counted")
    assert (a.offered, a.tried, a.collected, a.errors) == (2, 2, 2, {})
    assert a.active_s > 0
    assert a.wait_s > 0
    assert world.rows(tables.tasks)[0].found == 2


def test_the_path_from_the_last_page_to_the_closed_attempt_grows_no_longer(world):
    world.web.answers[SEARCH] = result_page(hit(1), found=1)
    world.web.answers[hit(1)] = complaint("1")
    with record_path(begins_with="Attempt._close") as path:
        assert world.run()
    assert len(path.modules) <= 19, sorted(path.modules)
    assert len(path.records) <= 11, sorted(path.records)


def test_a_proven_empty_answer_is_a_success_with_nothing(world):
    world.web.answers[SEARCH] = EMPTY
    assert world.run()
    assert world.subtask.state == State.SLEEP
    assert (world.attempt.found, world.attempt.offered) == (0, 0)


def test_a_captcha_page_is_blocked_not_empty_and_the_host_rests(world):
    world.web.answers[SEARCH] = "<html><title>百度安全验证</title><body>百度安全验证</body></html>"
    assert world.run()
    assert (world.subtask.state, world.subtask.reason) == (State.FAILED, "blocked")
    (rest,) = world.rows(host_rests)
    assert (rest.host, rest.node, rest.cause) == ("www.baidu.com", "n1", "captcha")
    (target,) = world.rows(targets)
    assert (target.state, target.tries) == ("todo", 0)


def test_hosts_that_give_pages_after_a_rest_refuse_the_node_no_more(world):
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    with world.store.begin(now=long_ago) as tx:
        for host in ("www.baidu.com", SITE, "elsewhere.cn"):
            rest_hosts(tx, [("n1", Rest(host, "captcha", lambda _times: 600.0))])
    world.web.answers[SEARCH] = result_page(hit(1), found=1)
    world.web.answers[hit(1)] = complaint("一")
    assert world.run()
    assert [rest.host for rest in world.rows(host_rests)] == ["elsewhere.cn"]


def test_a_page_the_rules_find_nothing_in_is_a_bad_rule(world):
    world.web.answers[SEARCH] = "<html><body><p>a new layout</p></body></html>"
    assert world.run()
    assert world.subtask.reason == "bad_rule"
    last = world.attempt.last_response
    assert "div.result" in last["detail"]
    assert str(Message.from_document(last["problem"])) == last["detail"]


def test_a_host_nobody_answers_at_costs_no_try(world):
    world.web.answers[SEARCH] = FetchError(ErrorClass.CONNECT, "refused")
    world.other_node()
    assert world.run()
    assert (world.subtask.state, world.subtask.reason) == (State.FAILED, "host_unreachable")
    assert world.rows(targets)[0].tries == 0


def fault() -> FetchError:
    return FetchError(ErrorClass.SERVER_ERROR, "503")


def test_an_attempt_below_its_floor_leaves_the_rest_to_others(world):
    world.floor = PageFloor(least_share=0.7, slack=0.7)
    world.web.answers[SEARCH] = result_page(*(hit(n) for n in range(8)))
    world.web.answers |= {hit(n): fault() for n in range(8)}
    assert world.run()
    assert (world.subtask.state, world.subtask.left) == (State.FAILED, 8)
    assert (world.attempt.tried, world.attempt.offered) == (2, 2)
    # It was the pair that failed: the targets lost none of their tries.
    assert [(state, tries) for state, _, tries in world.hits().values()] == [("todo", 0)] * 8


def test_a_floor_that_is_kept_ends_nothing(world):
    world.floor = PageFloor(least_share=0.7, slack=0.7)
    world.web.answers[SEARCH] = result_page(*(hit(n) for n in range(8)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(8)} | {hit(3): fault()}
    assert world.run()
    assert world.attempt.collected == 7
    assert world.attempt.tried == 8
    assert world.hits()[hit(3)] == ("todo", "server_error", 1)


@pytest.mark.parametrize(("least_share", "at_once"), [(0.0, 4), (0.7, 2)])
def test_where_a_node_may_turn_out_bad_as_many_requests_go_first_as_failures_end_it(
    world, least_share, at_once
):
    world.floor = PageFloor(least_share, 1.0)
    in_flight, most = set(), []
    world.web.answers[SEARCH] = result_page(*(hit(n) for n in range(8)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(8)}
    fetch = world.web.fetch

    async def counted(url, **how):
        in_flight.add(url)
        if "/c/" in url:
            most.append(len(in_flight))
        try:
            return await fetch(url, **how)
        finally:
            in_flight.discard(url)

    world.web.fetch = counted
    assert world.run()
    assert most[:at_once] == list(range(1, at_once + 1))
    assert max(most) == 4
    assert world.attempt.collected == 8


def test_one_lane_of_an_attempt_waits_for_its_host_at_a_time(world):
    """Permits are reserved one spacing ahead, however many lanes want one."""
    waits = []
    reserve = LocalPermits.reserve

    async def noted(self, host, address, limits):
        waits.append((host, await reserve(self, host, address, limits)))
        return waits[-1][1]

    world.web.takes_s = 0.0
    world.web.answers[SEARCH] = result_page(*(hit(n) for n in range(6)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(6)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalPermits, "reserve", noted)
        assert world.run()
    spacing_s = 1.02 / HostCatalog(world.catalog).limits(SITE).per_address_per_s
    of_site = [wait_s for host, wait_s in waits if host == SITE]
    assert len(of_site) >= 6
    assert max(of_site) <= spacing_s + 1e-6


def test_a_host_that_answers_no_node_rests_and_the_subtask_waits(world):
    world.web.answers[SEARCH] = FetchError(ErrorClass.CONNECT, "refused")
    assert world.run()
    a = world.subtask
    assert (a.state, a.failed_on, a.recalls, a.idle_releases) == (
        State.WAIT,
        [],
        0,
        0,
    )  # robots.txt was answered
    (rest,) = world.rows(host_rests)
    assert (rest.host, rest.node, rest.cause, rest.times) == ("www.baidu.com", "n1", "unreachable", 1)
    assert (a.wait_host, a.wait_reason, a.not_before) == ("www.baidu.com", "unreachable", rest.until)


def test_a_host_that_answers_not_even_for_robots_txt_counts_as_unanswered(world):
    world.web.answers["http://www.baidu.com/robots.txt"] = FetchError(ErrorClass.CONNECT, "refused")
    assert world.run()
    assert (world.subtask.state, world.subtask.idle_releases) == (State.WAIT, 1)
    assert world.rows(host_rests)[0].cause == "unreachable"


@pytest.mark.parametrize(("timeouts", "rests"), [(2, 0), (3, 1)])
def test_timeouts_in_a_row_are_no_answer(sqlite_url, timeouts, rests):
    world = World(sqlite_url, lanes=1)
    world.web.answers[SEARCH] = result_page(*map(hit, range(timeouts)))
    world.web.answers |= {hit(n): FetchError(ErrorClass.TIMEOUT, "30 s") for n in range(timeouts)}
    assert world.run()
    assert [rest.cause for rest in world.rows(host_rests)] == ["unreachable"] * rests
    world.store.close()


def test_one_refused_connection_of_a_host_that_answers_is_no_rest(sqlite_url):
    world = World(sqlite_url, lanes=1)
    world.web.answers[SEARCH] = result_page(*map(hit, range(3)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(3)}
    world.web.answers[hit(1)] = FetchError(ErrorClass.CONNECT, "refused")
    assert world.run()
    assert world.rows(host_rests) == []
    assert world.attempt.collected == 2
    world.store.close()


def test_quota_leaves_the_rest_to_a_follow_up_and_out_of_offered(world):
    world.web.answers[SEARCH] = result_page(*map(hit, range(9)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(9)}
    assert world.run(quota=4)
    assert (world.attempt.offered, world.attempt.tried, world.attempt.collected) == (4, 4, 4)
    assert world.subtask.left == 5


def test_the_budget_of_active_seconds_ends_an_attempt(sqlite_url):
    world = World(sqlite_url, lanes=1)
    world.web.answers[SEARCH] = result_page(*map(hit, range(9)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(9)}
    assert world.run(budget_s=0.35)
    a = world.attempt
    assert 0 < a.collected < 9
    assert a.offered == a.tried == a.collected
    world.store.close()


def test_a_broken_page_is_tried_three_times_then_given_up(world):
    world.web.answers[SEARCH] = result_page(hit(1))
    world.web.answers[hit(1)] = FetchError(ErrorClass.SERVER_ERROR, "500")
    for tries in (1, 2):
        assert world.run()
        assert (world.subtask.state, world.subtask.reason) == (State.FAILED, "nothing_stored")
        assert world.hits()[hit(1)] == ("todo", "server_error", tries)
        world.wake()
    assert world.run()
    assert world.hits()[hit(1)] == ("given_up", "server_error", 3)
    assert world.subtask.state == State.SLEEP
    assert world.web.asked.count(SEARCH) == 1


def test_a_page_that_is_gone_is_refused_at_once_and_robots_is_obeyed(world):
    private = f"http://{SITE}/private/1.html"
    world.web.answers[SEARCH] = result_page(hit(1), hit(2), private, "ftp://x.cn/a")
    world.web.answers |= {hit(1): complaint("一"), private: complaint("secret")}
    assert world.run()
    assert world.hits() == {
        hit(1): ("stored", None, 1),
        hit(2): ("refused", "not_found", 1),
        private: ("refused", "robots", 1),
    }
    assert private not in world.web.asked
    assert (world.attempt.offered, world.attempt.tried, world.attempt.collected) == (2, 2, 1)


def test_where_the_catalog_says_so_robots_txt_is_not_asked(world):
    data = world.catalog.model_dump()
    data["sites"][SITE]["robots"] = {"obey": False, "reason": "a host of our own"}
    world.catalog = Catalog.model_validate(data)
    private = f"http://{SITE}/private/1.html"
    world.web.answers |= {SEARCH: result_page(private), private: complaint("一")}
    assert world.run()
    assert world.hits() == {private: ("stored", None, 1)}
    assert world.web.asked == ["http://www.baidu.com/robots.txt", SEARCH, private]


def test_hits_of_a_host_that_does_not_answer_are_offered_and_not_tried(world):
    world.web.answers[SEARCH] = result_page(hit(1), hit(2))
    world.web.answers[f"http://{SITE}/robots.txt"] = FetchError(ErrorClass.CONNECT, "refused")
    assert world.run()
    assert (world.subtask.wait_host, world.subtask.wait_reason) == (SITE, "unreachable")
    a = world.attempt
    assert (a.offered, a.tried, a.collected, a.errors) == (2, 0, 0, {"connect": 2})
    assert set(world.hits().values()) == {("todo", "connect", 0)}


def test_a_block_in_the_middle_keeps_the_pages_and_leaves_the_rest_in_offered(sqlite_url):
    world = World(sqlite_url, lanes=1)
    world.web.answers[SEARCH] = result_page(*map(hit, range(6)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(6)}
    world.web.answers[hit(2)] = FetchError(ErrorClass.RATE_LIMITED, "429", retry_after_s=7)
    assert world.run()
    a = world.attempt
    assert (a.outcome, a.offered, a.tried, a.collected) == ("succeeded", 6, 3, 2)
    assert world.rows(host_rests)[0].host == SITE
    assert world.subtask.left == 4
    world.store.close()


def test_hits_of_a_host_that_refused_while_they_waited_are_dropped_and_the_attempt_goes_on(world):
    other = "http://other.cn/c/1.html"
    world.web.answers[SEARCH] = result_page(hit(1), hit(2), hit(3), hit(4), other)
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(2, 5)}
    world.web.answers |= {hit(1): FetchError(ErrorClass.FORBIDDEN, "403"), other: complaint("五")}
    world.web.answers["http://other.cn/robots.txt"] = "User-agent: *\nAllow: /"
    assert world.run()
    assert world.web.asked.count(hit(1)) == 1
    assert not {hit(2), hit(3), hit(4)} & set(world.web.asked)
    assert world.hits() == {
        hit(1): ("todo", "forbidden", 0),
        **{hit(n): ("todo", None, 0) for n in range(2, 5)},
        other: ("stored", None, 1),
    }
    a = world.attempt
    # Nothing is left over: a limit did not end it. The dropped hits are offered and not tried.
    assert (a.outcome, a.offered, a.tried, a.collected) == ("succeeded", 5, 2, 1)
    assert (world.subtask.state, world.subtask.left) == (State.SLEEP, 4)


SECOND, LINK = "http://www.baidu.com/s?wd=a&pn=10", "http://www.baidu.com/link?url=1"


def world_with_links(url: str) -> World:
    """Two result pages. The first one lists a link of the engine's own, which the engine refuses to resolve."""
    world = World(url, urls=(SEARCH, SECOND))
    data = world.catalog.model_dump()
    data["engines"]["baidu"]["redirects"] = (r"^http://www\.baidu\.com/link\?",)
    world.catalog = Catalog.model_validate(data)
    world.web.answers |= {
        LINK: FetchError(ErrorClass.FORBIDDEN, "403"),
        SECOND: result_page(hit(2)),
        hit(1): complaint("一"),
    }
    return world


def state_of(world: World, url: str) -> str:
    (state,) = [target.state for target in world.rows(targets) if target.url == url]
    return state


def test_hits_are_asked_for_though_the_host_of_the_next_result_page_refused_meanwhile(sqlite_url):
    world = world_with_links(sqlite_url)
    world.web.answers[SEARCH] = result_page(LINK, hit(1), more=True)
    assert world.run()
    assert SECOND not in world.web.asked
    assert world.hits()[hit(1)] == ("stored", None, 1)
    assert state_of(world, SECOND) == "todo"
    a = world.attempt
    assert (a.outcome, a.collected) == ("succeeded", 1)
    # The link, and a result page that was not read.
    assert (world.subtask.state, world.subtask.left) == (State.SLEEP, 1 + leases.HITS_UNREAD)
    assert [(rest.host, rest.cause) for rest in world.rows(host_rests)] == [("www.baidu.com", "forbidden")]
    world.store.close()


def test_a_result_page_of_a_host_that_refused_meanwhile_ends_an_attempt_without_other_hits(sqlite_url):
    world = world_with_links(sqlite_url)
    world.web.answers[SEARCH] = result_page(LINK, more=True)
    assert world.run()
    assert SECOND not in world.web.asked
    assert (state_of(world, SECOND), state_of(world, LINK)) == ("todo", "todo")
    a = world.attempt
    assert (a.outcome, a.reason, a.tried, a.collected) == ("released", None, 0, 0)
    assert world.subtask.state == State.WAIT
    world.store.close()


OTHER = "http://other.cn/c/1.html"


@pytest.mark.parametrize(
    ("resting", "from_request", "stored"),
    [
        ("www.baidu.com", 3, [hit(1), hit(2), OTHER]),  # behind robots.txt and the first result page
        (SITE, 2, [OTHER]),
        (SITE, 3, [hit(1), OTHER]),
        ("other.cn", 1, [hit(1), hit(2)]),
        ("other.cn", 2, [hit(1), hit(2)]),
    ],
)
@pytest.mark.parametrize("lanes", [1, 4])
def test_hits_are_not_held_back_because_another_host_rests(
    sqlite_url, monkeypatch, resting, from_request, stored, lanes
):
    reserve = LocalPermits.reserve
    reserved: list[str] = []

    async def reserve_or_wait(self, host, address, limits):
        reserved.append(host)
        if host == resting and reserved.count(host) >= from_request:
            return 3600.0
        return await reserve(self, host, address, limits)

    monkeypatch.setattr(LocalPermits, "reserve", reserve_or_wait)
    world = World(sqlite_url, urls=(SEARCH, SECOND), lanes=lanes)
    world.web.answers |= {
        SEARCH: result_page(hit(1), hit(2), OTHER, more=True),
        SECOND: result_page(),
        "http://other.cn/robots.txt": "User-agent: *\nAllow: /",
        hit(1): complaint("一"),
        hit(2): complaint("二"),
        OTHER: complaint("三"),
    }
    if resting != "www.baidu.com":
        world.web.answers[SEARCH] = result_page(hit(1), hit(2), OTHER)
    assert world.run()
    hits = world.hits()
    assert [url for url, (state, _, _) in hits.items() if state == "stored"] == stored
    assert {hits[url] for url in hits if url not in stored} <= {("todo", None, 0)}
    a = world.attempt
    # What waits for its host is left for another attempt, and not offered to this one.
    assert (a.outcome, a.offered, a.tried, a.collected) == (
        "succeeded",
        len(stored),
        len(stored),
        len(stored),
    )
    assert world.subtask.state == State.SLEEP
    world.store.close()


def test_where_all_hits_wait_for_their_host_the_subtask_does(sqlite_url, monkeypatch):
    reserve = LocalPermits.reserve

    async def reserve_or_wait(self, host, address, limits):
        return 3600.0 if host == SITE else await reserve(self, host, address, limits)

    monkeypatch.setattr(LocalPermits, "reserve", reserve_or_wait)
    world = World(sqlite_url)
    world.web.answers[SEARCH] = result_page(hit(1), hit(2))
    assert world.run()
    a = world.attempt
    assert (a.outcome, a.offered, a.tried, a.collected) == ("released", 0, 0, 0)
    assert (world.subtask.state, world.subtask.recalls) == (State.WAIT, 0)
    world.store.close()


def test_the_same_page_under_two_addresses_is_fetched_once(world):
    world.web.answers[SEARCH] = result_page(hit(1), hit(1) + "?utm_source=x", hit(1) + "#top")
    world.web.answers[hit(1)] = complaint("一")
    assert world.run()
    assert world.web.asked.count(hit(1)) == 1
    assert len(world.rows(pages)) == 1


def test_interrupting_keeps_what_is_stored_and_costs_no_recall(sqlite_url):
    world = World(sqlite_url, lanes=1)
    world.web.answers[SEARCH] = result_page(*map(hit, range(6)))
    world.web.answers |= {hit(n): complaint(str(n)) for n in range(6)}

    async def drain(attempt, writer, lease):
        async def stop():
            attempt.interrupt(because(Reason.NODE_DRAINED))
            await asyncio.Event().wait()

        world.web.before[hit(2)] = stop

    assert world.run(during=drain)
    assert (world.subtask.state, world.subtask.recalls) == (State.WAIT, 0)
    a = world.attempt
    assert a.outcome == "released"
    assert (a.offered, a.tried, a.collected) == (2, 2, 2)
    assert len(world.rows(pages)) == 2
    assert world.subtask.left == 4
    world.store.close()


def test_pages_that_come_after_the_recall_are_kept_and_marked_late(sqlite_url):
    world = World(sqlite_url, lanes=1)
    world.web.answers[SEARCH] = result_page(hit(1))
    world.web.answers[hit(1)] = complaint("一")

    async def take_back(attempt, writer, lease):
        def two_minutes_later(tx):
            tx._now = tx.now + timedelta(minutes=2)
            queue_attempts.silence(tx, {lease: FailureReason.SILENT})

        async def silence():
            await writer.run(two_minutes_later)

        world.web.before[hit(1)] = silence

    assert not world.run(during=take_back)
    assert world.subtask.state == State.FAILED
    assert (world.attempt.outcome, world.attempt.collected, world.attempt.late) == ("silent", 0, 1)
    assert [p.late for p in world.rows(pages)] == [True]
    assert len(world.rows(reviews)) == 1
    world.store.close()


def test_a_page_number_beyond_the_last_is_not_asked(sqlite_url):
    second = "http://www.baidu.com/s?wd=a&pn=10"
    world = World(sqlite_url, urls=(SEARCH, second))
    world.web.answers[SEARCH] = result_page(hit(1))
    world.web.answers[hit(1)] = complaint("一")
    assert world.run()
    assert second not in world.web.asked
    assert [t.reason for t in world.rows(targets) if t.kind == "result"] == ["read", "past_end"]
    assert world.rows(tables.tasks)[0].found_provenance == "counted"
    world.store.close()


def test_a_timeout_counts_as_a_slow_answer_and_not_as_a_fast_one(world, monkeypatch):
    told = []

    async def observe(_self, _host, _address, _limits, answer):
        told.append((answer.error, answer.elapsed_s))

    monkeypatch.setattr(LocalPermits, "observe", observe)
    world.web.answers[SEARCH] = result_page(hit(1), found=1)
    world.web.answers[hit(1)] = FetchError(ErrorClass.TIMEOUT, "silence")
    world.run()
    assert (ErrorClass.TIMEOUT, CrawlSettings().request_timeout_s) in told


def test_how_soon_the_site_answers_is_stored_with_the_pair_its_engine_does_not_count(world):
    world.web.answers[SEARCH] = result_page(hit(1), hit(2), hit(3))
    world.web.answers |= {
        hit(n): complaint(str(n)) for n in (1, 2)
    }  # the third is no page, and no word on how far
    assert world.run()
    (pair,) = world.rows(pair_stats)
    assert pair.rtt_ms == pytest.approx(50.0)
    assert pair.rtt_n == 3  # with robots.txt


def test_two_answers_tell_nothing_of_how_far_the_site_is(world):
    world.web.answers[SEARCH] = result_page(hit(1))
    world.web.answers[hit(1)] = complaint("一")
    assert world.run()
    (pair,) = world.rows(pair_stats)
    assert (pair.rtt_ms, pair.rtt_n) == (None, 0)
