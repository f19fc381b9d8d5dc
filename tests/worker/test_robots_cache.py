"""robots.txt: asked once, kept in memory and in the store, asked again soon where nobody answered."""

from __future__ import annotations

import asyncio

import pytest

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.store.sql.database import Store
from tasks.store.sql.tables import hosts
from tasks.store.sql.writer import Writer
from tasks.worker.robots_cache import KEEP_UNANSWERED_S, RobotsCache

PAGE = "http://a.cn/x"


class Host:
    """Answers robots.txt, and counts how often it was asked."""

    def __init__(self, status: int | None, text: str = "") -> None:
        self.status, self.text, self.asked = status, text, 0

    async def __call__(self, url: str) -> Response:
        assert url == "http://a.cn/robots.txt"
        self.asked += 1
        await asyncio.sleep(0)
        if self.status is None:
            raise FetchError(ErrorClass.CONNECT, "refused")
        response = Response(url=url, status=self.status, headers={}, body=self.text.encode(), elapsed_s=0.0)
        if self.status >= 400:
            raise FetchError(ErrorClass.OTHER_STATUS, str(self.status), response=response)
        return response


@pytest.fixture
def writer(sqlite_url):
    store = Store.open(sqlite_url)
    made = Writer(store)
    yield made
    made.close()
    store.close()


def test_many_pages_ask_once_and_another_process_reads_the_store(writer):
    host = Host(200, "User-agent: *\nDisallow: /y")

    async def scenario():
        book = RobotsCache(writer)
        rules = await asyncio.gather(*(book.rules(PAGE, host) for _ in range(9)))
        assert all(r.allows(PAGE, "reviewloop") for r in rules)
        again = await RobotsCache(writer).rules("http://a.cn/y", host)
        assert not again.allows("http://a.cn/y", "reviewloop")

    asyncio.run(scenario())
    assert host.asked == 1


def test_memory_serves_for_a_day(writer):
    host, now = Host(404), [0.0]

    async def scenario():
        book = RobotsCache(writer, clock=lambda: now[0])
        assert (await book.rules(PAGE, host)).allows(PAGE, "reviewloop")
        writer.call(lambda _tx: None)  # what is queued is stored
        writer.call(lambda tx: tx.engine_connection.execute(hosts.delete()))
        now[0] = 24 * 3600 - 1
        await book.rules(PAGE, host)
        assert host.asked == 1
        now[0] += 1
        await book.rules(PAGE, host)
        assert host.asked == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("status", [None, 503])
def test_no_answer_allows_nothing_and_is_kept_only_shortly(writer, status):
    host, now = Host(status), [0.0]

    async def scenario():
        book = RobotsCache(writer, clock=lambda: now[0])
        assert not (await book.rules(PAGE, host, "127.0.0.2")).allows(PAGE, "reviewloop")
        await book.rules(PAGE, host, "127.0.0.2")
        assert host.asked == 1
        await book.rules(PAGE, host, "127.0.0.3")  # what one address was not answered says nothing of another
        assert host.asked == 2
        now[0] = KEEP_UNANSWERED_S
        await book.rules(PAGE, host, "127.0.0.2")
        assert host.asked == 3

    asyncio.run(scenario())
