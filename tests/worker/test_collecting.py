"""One address to what is stored of it: parts of a review list, conditions, a sign-in again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from splitter.catalog.rules import PageRules, ResultRules
from splitter.spans import CHINA
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.page_key import page_key
from tasks.domain.pages import Response
from tasks.fetching.permits import WaitTooLong
from tasks.store.content.pages import NewPage
from tasks.store.queue.leases import Lease, WorkTarget
from tasks.worker.counters import Timing
from tasks.worker.page_collector import PageCollector
from tasks.worker.page_reader import PageReader
from tasks.worker.settings import CrawlSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIRST = "http://a.cn/p/1"
LEASE = Lease(subtask_id=1, attempt_id=1, token="t", node="n1", site="a.cn", quota=20, budget_s=30.0)
BY_ID = PageRules(review="div.r", id="@data-id", body="p", next="a.next")
BY_PLACE = PageRules(review="div.r", body="p", next="a.next")
RESULTS = ResultRules(hit="li", link="a@href", title="a", blocked=("请登录",))


class Fetched:
    """Stands for the fetcher: answers by address; a list is used up answer by answer."""

    def __init__(self, timing: Timing, answers: Mapping[str, Any], *, signs_in: bool = False) -> None:
        self._timing = timing
        self._answers = dict(answers)
        self._signs_in = signs_in
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.refusals: list[ErrorClass] = []

    async def page(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        blocked: tuple[str, ...] = (),
        search: bool = False,
    ) -> Response:
        assert self._timing.under_way, "what is fetched counts as active"
        assert search == bool(blocked)
        assert blocked in ((), RESULTS.blocked)
        self.asked.append((url, dict(headers or {})))
        answer = self._answers.get(url, FetchError(ErrorClass.NOT_FOUND, "404"))
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Response):
            return answer
        return Response(
            url=url,
            status=200,
            headers={"content-type": "text/html; charset=utf-8"},
            body=answer.encode(),
            elapsed_s=0.1,
        )

    async def sign_in_again(self, _url: str, error: FetchError) -> bool:
        self.refusals.append(error.error)
        return self._signs_in

    @property
    def urls(self) -> list[str]:
        return [url for url, _ in self.asked]


class Desk:
    """A collector over scripted answers."""

    def __init__(
        self,
        answers: Mapping[str, Any],
        rules: PageRules = BY_ID,
        *,
        parts: int = 20,
        signs_in: bool = False,
        hint: str = "",
    ) -> None:
        self.timing = Timing(lambda: 0.0)
        self.fetched = Fetched(self.timing, answers, signs_in=signs_in)
        self.reader = PageReader()
        deps: Any = SimpleNamespace(
            settings=CrawlSettings(list_parts=parts),
            now=lambda: NOW,
            reader=self.reader,
            pseudonyms=None,
        )
        catalog: Any = SimpleNamespace(
            engine_of=lambda _: SimpleNamespace(results=RESULTS, headers={}, redirects=(), discover="search"),
            rules_of=lambda _: rules,
            renders=lambda _: False,
            zone_of=lambda _: CHINA,
            sites={"a.cn": SimpleNamespace(encoding=hint, judge=False, group=None)},
        )
        fetcher: Any = self.fetched
        self.met: list[tuple[str, ErrorClass]] = []
        self.collector = PageCollector(LEASE, deps, catalog, fetcher, self.timing, self._met)

    async def _met(self, url: str, error: FetchError) -> None:
        self.met.append((url, error.error))

    def page(self, etag: str | None = None, last_modified: str | None = None) -> NewPage | None:
        target = WorkTarget(
            id=7,
            kind="hit",
            url=FIRST,
            key=page_key(FIRST),
            tries=0,
            etag=etag,
            last_modified=last_modified,
        )
        return self._run(lambda: self.collector.page(target))

    def read(self) -> NewPage:
        page = self.page()
        assert page is not None
        return page

    def results(self) -> Any:
        return self._run(lambda: self.collector.results(FIRST))

    def _run(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return asyncio.run(ask())  # type: ignore[arg-type]
        finally:
            self.reader.close()
            assert not self.timing.under_way, "however it ended, nothing is active any more"


def part(*records: tuple[str, str] | str, then: str = "", title: str = "标题") -> str:
    listed = "".join(
        f'<div class="r" data-id="{r[0]}"><p>{r[1]}</p></div>'
        if isinstance(r, tuple)
        else f'<div class="r"><p>{r}</p></div>'
        for r in records
    )
    link = f'<a class="next" href="{then}">下一页</a>' if then else ""
    return f"<html><head><title>{title}</title></head><body>{listed}{link}</body></html>"


def at(n: int) -> str:
    return f"{FIRST}?part={n}"


def told(page: NewPage) -> list[tuple[str, str]]:
    return [(review.key, review.body) for review in page.records]


def test_a_page_has_the_confidence_of_its_reading() -> None:
    text = part(("a", "买了两箱牛奶，打开以后发现有一半已经结块，客服说要等三天才给退款，我很生气。"))
    assert Desk({FIRST: text}).read().confidence == 1, "rules are certain"
    assert 0 < Desk({FIRST: text}, PageRules(main_text=True)).read().confidence < 0.9


# --- parts of a list ----------------------------------------------------------------------------------------


def test_the_parts_of_a_list_are_one_page() -> None:
    desk = Desk(
        {
            FIRST: part(("a", "一"), then="?part=2"),
            at(2): part(("b", "二"), then="?part=3", title="第二页"),
            at(3): part(("c", "三")),
        }
    )
    page = desk.read()
    assert told(page) == [("a", "一"), ("b", "二"), ("c", "三")]
    assert (page.target_id, page.url, page.key, page.title) == (7, FIRST, page_key(FIRST), "标题")
    assert desk.fetched.urls == [FIRST, at(2), at(3)]
    assert page.size == sum(
        len(text.encode())
        for text in (
            part(("a", "一"), then="?part=2"),
            part(("b", "二"), then="?part=3", title="第二页"),
            part(("c", "三")),
        )
    )


def test_a_change_in_any_part_is_a_change_of_the_page() -> None:
    first = part(("a", "一"), then="?part=2")
    was = Desk({FIRST: first, at(2): part(("b", "二"))}).read()
    same = Desk({FIRST: first, at(2): part(("b", "二"))}).read()
    changed = Desk({FIRST: first, at(2): part(("b", "二，追评"))}).read()
    assert was.content_hash == same.content_hash != changed.content_hash


def test_a_record_that_two_parts_show_is_one_review() -> None:
    desk = Desk(
        {
            FIRST: part(("top", "置顶"), ("a", "一"), then="?part=2"),
            at(2): part(("top", "置顶"), ("b", "二")),
        }
    )
    assert told(desk.read()) == [("top", "置顶"), ("a", "一"), ("b", "二")]


def test_records_without_ids_have_their_place_in_the_whole_list() -> None:
    desk = Desk({FIRST: part("一", "二", then="?part=2"), at(2): part("三", "四")}, BY_PLACE)
    assert told(desk.read()) == [("#0", "一"), ("#1", "二"), ("#2", "三"), ("#3", "四")]


@pytest.mark.parametrize(
    "then",
    [
        pytest.param("?part=1", id="itself"),
        pytest.param("/p/1", id="the first"),
        pytest.param("?part=2", id="back"),
    ],
)
def test_a_list_that_leads_in_a_circle_ends(then: str) -> None:
    desk = Desk(
        {
            FIRST: part(("a", "一"), then="?part=2"),
            at(2): part(("b", "二"), then="?part=3"),
            at(3): part(("c", "三"), then=then),
        }
        | {at(1): part(("d", "四"), then="?part=2")}
    )
    page = desk.read()
    assert told(page)[:3] == [("a", "一"), ("b", "二"), ("c", "三")]
    assert len(desk.fetched.urls) == len(set(desk.fetched.urls))


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_no_more_parts_are_read_than_may_be(parts: int) -> None:
    endless = {at(n): part((f"r{n}", f"第{n}"), then=f"?part={n + 1}") for n in range(2, 50)}
    desk = Desk({FIRST: part(("r1", "第1"), then="?part=2")} | endless, parts=parts)
    assert told(desk.read()) == [(f"r{n}", f"第{n}") for n in range(1, parts + 1)]
    assert len(desk.fetched.asked) == parts


@pytest.mark.parametrize(
    ("broken", "met"),
    [
        pytest.param(FetchError(ErrorClass.SERVER_ERROR, "500"), [ErrorClass.SERVER_ERROR], id="no answer"),
        pytest.param(part(), [ErrorClass.BAD_RULE], id="no review"),
        pytest.param(WaitTooLong("a.cn", 60.0), [], id="its host is asked too much"),
    ],
)
def test_a_part_that_cannot_be_had_keeps_those_before_it(broken: Any, met: list[ErrorClass]) -> None:
    desk = Desk(
        {
            FIRST: part(("a", "一"), then="?part=2"),
            at(2): part(("b", "二"), then="?part=3"),
            at(3): broken,
        }
    )
    assert told(desk.read()) == [("a", "一"), ("b", "二")]
    assert desk.met == [(at(3), error) for error in met]


def test_without_a_first_part_there_is_no_page() -> None:
    with pytest.raises(FetchError, match="bad_rule"):
        Desk({FIRST: part(then="?part=2"), at(2): part(("b", "二"))}).page()
    with pytest.raises(WaitTooLong):
        Desk({FIRST: WaitTooLong("a.cn", 60.0)}).page()


# --- asked again --------------------------------------------------------------------------------------------


def _answered(headers: Mapping[str, str], text: str = "", status: int = 200) -> Response:
    body = (text or part(("a", "一"))).encode()
    return Response(
        url=FIRST,
        status=status,
        headers={"content-type": "text/html; charset=utf-8", **headers},
        body=body,
        elapsed_s=0.1,
    )


@pytest.mark.parametrize(
    ("etag", "last_modified", "sent"),
    [
        (None, None, {}),
        ('"v1"', None, {"If-None-Match": '"v1"'}),
        (None, "Thu, 01 Jan 2026 00:00:00 GMT", {"If-Modified-Since": "Thu, 01 Jan 2026 00:00:00 GMT"}),
        ('"v1"', "x", {"If-None-Match": '"v1"', "If-Modified-Since": "x"}),
    ],
)
def test_a_known_page_is_asked_for_on_condition(
    etag: str | None, last_modified: str | None, sent: dict[str, str]
) -> None:
    desk = Desk({FIRST: part(("a", "一"), then="?part=2"), at(2): part(("b", "二"))})
    assert desk.page(etag, last_modified) is not None
    assert desk.fetched.asked == [(FIRST, sent), (at(2), {})]


def test_what_a_page_was_answered_with_is_kept_to_ask_again() -> None:
    page = Desk(
        {FIRST: _answered({"etag": 'W/"v1"', "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT"})}
    ).read()
    assert (page.etag, page.last_modified) == ('W/"v1"', "Thu, 01 Jan 2026 00:00:00 GMT")
    page = Desk({FIRST: _answered({})}).read()
    assert (page.etag, page.last_modified) == (None, None)


def test_of_a_list_in_parts_nothing_is_kept_to_ask_again() -> None:
    """Its first part may be the same although there are new reviews behind it."""
    first = _answered({"etag": '"v1"', "last-modified": "x"}, part(("a", "一"), then="?part=2"))
    page = Desk({FIRST: first, at(2): part(("b", "二"))}).read()
    assert (page.etag, page.last_modified) == (None, None)


@pytest.mark.parametrize("etag", ['"\udcff"', '"\x00"', '"版本"', ""])
def test_a_validator_no_database_takes_is_left_out(etag: str) -> None:
    assert Desk({FIRST: _answered({"etag": etag})}).read().etag is None


# --- signed in again ----------------------------------------------------------------------------------------

WALL = FetchError(ErrorClass.LOGIN_WALL, "请登录")


def test_after_a_login_wall_a_new_sign_in_gives_another_try() -> None:
    desk = Desk({FIRST: [WALL, part(("a", "一"))]}, signs_in=True)
    assert told(desk.read()) == [("a", "一")]
    assert desk.fetched.refusals == [ErrorClass.LOGIN_WALL]


def test_a_wall_behind_the_new_sign_in_is_the_end() -> None:
    desk = Desk({FIRST: [WALL, WALL, part(("a", "一"))]}, signs_in=True)
    with pytest.raises(FetchError, match="login_wall"):
        desk.page()
    assert len(desk.fetched.asked) == 2
    assert desk.fetched.refusals == [ErrorClass.LOGIN_WALL]


def test_without_a_sign_in_there_is_no_other_try() -> None:
    desk = Desk({FIRST: [WALL, part(("a", "一"))]})
    with pytest.raises(FetchError, match="login_wall"):
        desk.page()
    assert len(desk.fetched.asked) == 1


def test_the_condition_holds_after_the_new_sign_in_too() -> None:
    desk = Desk(
        {FIRST: [WALL, Response(url=FIRST, status=304, headers={}, body=b"", elapsed_s=0.1)]}, signs_in=True
    )
    assert desk.page('"v1"') is None
    assert [sent for _, sent in desk.fetched.asked] == [{"If-None-Match": '"v1"'}] * 2


def test_a_result_page_is_asked_again_after_a_new_sign_in() -> None:
    listed = '<html><body><ul><li><a href="http://b.cn/1">t</a></li></ul></body></html>'
    desk = Desk({FIRST: [WALL, listed]}, signs_in=True)
    assert [hit.url for hit in desk.results().hits] == ["http://b.cn/1"]
    with pytest.raises(FetchError, match="login_wall"):
        Desk({FIRST: [WALL, WALL, listed]}, signs_in=True).results()


# --- result pages -------------------------------------------------------------------------------------------


def test_hits_are_their_canonical_addresses_each_once() -> None:
    links = [
        "http://b.cn/1",
        "http://b.cn/1#top",
        "http://b.cn/1?utm_source=x",
        "javascript:go()",
        "http://b.cn/2",
    ]
    listed = "".join(f'<li><a href="{link}">t</a></li>' for link in links)
    read = Desk({FIRST: f"<html><body><ul>{listed}</ul></body></html>"}).results()
    assert [hit.url for hit in read.hits] == ["http://b.cn/1", "http://b.cn/2"]
    assert [hit.key for hit in read.hits] == [page_key("http://b.cn/1"), page_key("http://b.cn/2")]


def test_a_main_text_is_read_off_the_loop() -> None:
    text = "这家店的牛奶味道很好，包装也很结实，送货非常快，下次还会再来买。" * 8
    article = f"<html><head><title>评论</title></head><body><article><h1>评论</h1><p>{text}</p></article></body></html>"
    page = Desk({FIRST: article}, PageRules(main_text=True)).read()
    (review,) = page.records
    assert text[:30] in review.body


def test_an_id_longer_than_a_database_takes_is_none() -> None:
    page = Desk({FIRST: part(("a" * 200, "一"), ("a" * 201, "二"))}).read()
    assert told(page) == [("a" * 200, "一"), ("#1", "二")]


# --- the encoding that the catalog gives the site ---------------------------------------------------------------


@pytest.mark.parametrize(("hint", "encoding"), [("gbk", "gb18030"), ("", "utf-8")])
def test_the_sites_encoding_counts_where_the_page_says_nothing(hint: str, encoding: str) -> None:
    body = b'<div class="r" data-id="a"><p>' + "模式".encode("gbk") + b"</p></div>"
    desk = Desk({FIRST: Response(url=FIRST, status=200, headers={}, body=body, elapsed_s=0.1)}, hint=hint)
    page = desk.read()
    assert page.encoding == encoding
    assert (page.records[0].body == "模式") == bool(hint)
