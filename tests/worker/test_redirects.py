"""Links of an engine's own: where they lead, and hits known by the pages' own addresses."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_server import answer, lab

from splitter.catalog.load import builtin
from splitter.catalog.model import Engine
from splitter.catalog.names import Kind
from splitter.catalog.rules import ResultRules
from splitter.spans import CHINA
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.page_key import page_key
from tasks.domain.pages import Response
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.pace import AnswerSample
from tasks.fetching.permits import WaitTooLong
from tasks.reading.interstitials import address_in, redirect_target
from tasks.worker.counters import Timing
from tasks.worker.failures import Failures
from tasks.worker.fetcher import Fetcher, NotAsked
from tasks.worker.page_reader import PageReader
from tasks.worker.searcher import Searcher
from tasks.worker.settings import CrawlSettings

LINK = "https://www.baidu.com/link?url=abc"
ENGINE = Engine(
    kind=Kind.META,
    url="https://www.baidu.com/s",
    params={"wd": "{query}"},
    headers={"Referer": "https://www.baidu.com/"},
    redirects=(r"^https?://www\.baidu\.com/link\?",),
    results=ResultRules(hit="li", link="a@href", title="a", blocked=(r"wappass\.baidu\.com",)),
)

NOSCRIPT = '<noscript><META http-equiv="refresh" content="0;URL=\'http://a.cn/1?a=1&amp;b=2\'"></noscript>'


def response(status: int = 200, body: str = "", **headers: str) -> Response:
    return Response(url=LINK, status=status, headers=headers, body=body.encode(), elapsed_s=0.1)


@pytest.mark.parametrize(
    ("answered", "address"),
    [
        (response(302, location="http://a.cn/1"), "http://a.cn/1"),
        (response(301, location="/home"), "https://www.baidu.com/home"),
        (response(302, location="javascript:x"), None),
        (response(302, location=LINK), None),
        (response(302), None),
        (response(200, location="http://a.cn/1"), None),
        (response(200, NOSCRIPT), "http://a.cn/1?a=1&b=2"),
        (response(200, '<meta content="0; url=http://a.cn/2" http-equiv=refresh>'), "http://a.cn/2"),
        (response(200, '<script>window.location.replace("http://a.cn/3")</script>'), "http://a.cn/3"),
        (response(200, "<script>location.href='https:\\/\\/a.cn\\/4'</script>"), "https://a.cn/4"),
        (response(200, 'var u = "https://a.cn/5";var r = 1;'), "https://a.cn/5"),
        (response(200, "<p>http://a.cn/6</p>"), None),
        (response(200, ""), None),
    ],
)  # fmt: skip
def test_where_an_answer_leads(answered, address):
    assert redirect_target(answered) == address


def test_hostile_pages_are_scanned_in_no_time():
    for piece in ("<meta ", "<meta content=0;url=", "location=", "var u='http:" + "/" * 50):
        assert redirect_target(response(200, piece * 200_000)) is None


class Fetched:
    def __init__(self, page: str, leads: Mapping[str, Any]) -> None:
        self.text = page
        self.leads = leads
        self.asked: list[str] = []
        self.headers: list[Mapping[str, str] | None] = []

    async def page(
        self, url: str, headers: Mapping[str, str] | None = None, *, blocked: Any, **_how: Any
    ) -> Response:
        assert blocked == ENGINE.results.blocked
        self.headers.append(headers)
        return Response(
            url=url,
            status=200,
            headers={"content-type": "text/html; charset=utf-8"},
            body=self.text.encode(),
            elapsed_s=0.1,
        )

    async def redirect_target(self, url: str, headers: Mapping[str, str] | None = None) -> str | None:
        self.asked.append(url)
        self.headers.append(headers)
        await asyncio.sleep(0)
        led = self.leads[url.partition("url=")[2]]
        if isinstance(led, Exception):
            raise led
        return led


def search(leads: Mapping[str, Any], *links: str, times: int = 1, lanes: int = 2, engine: Engine = ENGINE):
    listed = "".join(f'<li><a href="{link}">t</a></li>' for link in links)
    fetched: Any = Fetched(listed, leads)
    met: list[tuple[str, ErrorClass]] = []

    async def tell(url: str, error: FetchError) -> None:
        met.append((url, error.error))

    deps: Any = SimpleNamespace(
        settings=CrawlSettings(lanes=lanes), now=lambda: datetime(2026, 1, 1, tzinfo=UTC), reader=PageReader()
    )
    searcher = Searcher(engine, CHINA, deps, fetched, tell)

    async def run():
        for _ in range(times):
            result = await searcher.read("https://www.baidu.com/s?wd=x")
        return result

    return asyncio.run(run()), fetched, met


def link(name: str) -> str:
    return f"https://www.baidu.com/link?url={name}"


def test_hits_are_known_by_the_pages_own_addresses():
    leads = {"a": "http://a.cn/1#x", "b": "http://a.cn/1", "c": None}
    result, fetched, met = search(leads, link("a"), link("b"), "http://b.cn/2", link("c"), times=2)
    assert [hit.url for hit in result.hits] == ["http://a.cn/1", "http://b.cn/2", link("c")]
    assert [hit.key for hit in result.hits] == [page_key(hit.url) for hit in result.hits]
    assert sorted(fetched.asked) == sorted([link("a"), link("b"), link("c"), link("c")]), (
        "known ones not again"
    )
    assert all(headers == {"Referer": "https://www.baidu.com/"} for headers in fetched.headers)
    assert met == []


def test_an_address_that_the_link_holds_is_not_asked_for():
    bing = "https://cn.bing.com/ck/a?!&amp;&amp;p=9f&amp;u=a1aHR0cHM6Ly9hLmNuLzE_eD0y&amp;ntb=1"
    engine = ENGINE.model_copy(update={"redirects": (r"^https?://(?:www|cn)\.bing\.com/ck/a\?",)})
    result, fetched, _ = search({}, bing, engine=engine)
    assert [hit.url for hit in result.hits] == ["https://a.cn/1?x=2"]
    assert fetched.asked == []


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a1",
        "a1%%%",
        "a1aHR0",
        "b1aHR0cHM6Ly9hLmNu",
        "a1amF2YXNjcmlwdDp4",
        "a1aHR0cHM6Ly91OnBAYS5jbi8",
        "a1_w",
    ],
)
def test_a_link_that_holds_no_address(value):
    assert address_in(f"https://cn.bing.com/ck/a?u={value}") == ""


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (WaitTooLong("www.baidu.com", 99), []),
        (NotAsked(ErrorClass.ROBOTS, "robots"), []),
        (FetchError(ErrorClass.CAPTCHA, "x"), [ErrorClass.CAPTCHA]),
        (FetchError(ErrorClass.CONNECT, "x"), [ErrorClass.CONNECT]),
    ],
)
def test_an_engine_that_has_enough_of_it_is_asked_no_further(trouble, told):
    names = "abcdefgh"
    result, fetched, met = search(dict.fromkeys(names, trouble), *map(link, names), lanes=1)
    assert [hit.url for hit in result.hits] == [link(name) for name in names]
    assert len(fetched.asked) == 1
    assert [error for _, error in met] == told


def test_a_link_that_is_gone_costs_itself_only():
    leads = {"a": FetchError(ErrorClass.NOT_FOUND, "404"), "b": "http://b.cn/"}
    result, _, met = search(leads, link("a"), link("b"))
    assert [hit.url for hit in result.hits] == [link("a"), "http://b.cn/"]
    assert [error for _, error in met] == [ErrorClass.NOT_FOUND]


def test_a_link_that_leads_to_the_captcha_stays_as_it_is():
    result, _, _ = search({"a": "https://wappass.baidu.com/static/captcha/?x"}, link("a"))
    assert [hit.url for hit in result.hits] == [link("a")]


CAPTCHA = "https://wappass.baidu.com/static/captcha/tuxing.html?backurl=x"


class Redirects:
    """A downloader whose answers lead on, from address to address, and robots.txt that lets everybody in."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []

    async def fetch(self, url: str, *, before_request: Any, **_how: Any) -> Response:
        for address in (url, *self.addresses):
            await before_request(address)
            self.asked.append(address)
        return Response(url=self.asked[-1], status=200, headers={}, body=b"", elapsed_s=0.1)


def fetch(
    downloader: Any, url: str, blocked: tuple[str, ...], observed: list[ErrorClass | None] | None = None
) -> Response:
    """Fetch as an attempt does, which notes the error."""

    class Grants:
        async def reserve(self, *_: Any) -> float:
            return 0.0

        async def observe(self, _host: str, _address: str, _limits: Any, answer: AnswerSample) -> None:
            if observed is not None:
                observed.append(answer.error)

        async def push_back(self, *_: Any) -> None:
            return

    class Robots:
        async def rules(self, url: str, _ask: Any, _address: str) -> Any:
            assert "wappass" not in url, "its robots.txt is not asked"
            state = SimpleNamespace(answered=True)
            return SimpleNamespace(state=state, allows=lambda *_: True, crawl_delay_s=lambda *_: None)

    deps: Any = SimpleNamespace(
        downloader=downloader,
        permits=Grants(),
        robots=Robots(),
        hosts=HostCatalog(builtin("paper-2014")),
        address="127.0.0.2",
        settings=CrawlSettings(),
        sign_ins=None,
        requests=None,
        rng=Random(0),
    )
    fetcher = Fetcher(deps, Timing(lambda: 0.0), lambda _: None)

    async def page() -> Response:
        try:
            return await fetcher.page(url, blocked=blocked)
        except FetchError as error:
            await Failures(deps).note_error(url, error)
            raise

    return asyncio.run(page())


def test_a_redirect_to_the_captcha_is_a_refusal_and_not_followed():
    web = Redirects("https://www.baidu.com/s2?x", CAPTCHA)
    with pytest.raises(FetchError) as told:
        fetch(web, "https://www.baidu.com/s?wd=x", (r"wappass\.baidu\.com/static/captcha",))
    assert told.value.error is ErrorClass.CAPTCHA
    assert not isinstance(told.value, NotAsked)
    assert web.asked == ["https://www.baidu.com/s?wd=x", "https://www.baidu.com/s2?x"]


def test_a_redirect_that_says_too_often_slows_the_host_down_once():
    observed: list[ErrorClass | None] = []
    with pytest.raises(FetchError) as told:
        fetch(Redirects("https://s.cn/error?频繁"), "https://s.cn/s?wd=x", ("频繁",), observed)
    assert told.value.error is ErrorClass.RATE_LIMITED
    assert observed == [ErrorClass.RATE_LIMITED]


def test_the_address_asked_for_is_no_refusal_whatever_it_says():
    url = "https://www.baidu.com/s?wd=captcha"
    assert fetch(Redirects(), url, ("captcha",)).url == url


def test_the_downloader_stops_at_a_redirect_if_asked_to():
    async def handler(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(status="302 Found", headers="Location: http://a.cn/1\r\n"))

    async def run() -> tuple[Response, int]:
        async with lab(handler) as (downloader, server):
            return await downloader.fetch(LINK.replace("https", "http"), follow=False), len(server.heads)

    got, requests = asyncio.run(run())
    assert (got.status, got.headers["location"], requests) == (302, "http://a.cn/1", 1)
    assert redirect_target(got) == "http://a.cn/1"
