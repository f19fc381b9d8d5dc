"""An attempt on a site whose pages are found in its lists: sitemaps with their index, and pages of links."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator

import pytest
from test_attempt import SITE, World, complaint

from splitter.catalog.model import Engine
from splitter.catalog.names import Kind
from splitter.catalog.rules import EVERY_LINK
from splitter.urls import list_url, listed_keywords
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Hit, Response
from tasks.domain.states import State
from tasks.store.sql.tables import pages, targets
from tasks.worker import list_cache, list_searcher
from tasks.worker.list_cache import ListCache, ListEntries

INDEX = f"http://{SITE}/sitemap.xml"
NEW, OLD = f"http://{SITE}/new.xml.gz", f"http://{SITE}/old.xml"
ENGINE = Engine(kind=Kind.META, discover="list", url=INDEX)
SEARCH = list_url(ENGINE, [("牛奶",)], 1)


def page(name: str) -> str:
    return f"http://{SITE}/c/{name}.html"


def index(*parts: tuple[str, str]) -> str:
    inner = "".join(f"<sitemap><loc>{loc}</loc><lastmod>{day}</lastmod></sitemap>" for loc, day in parts)
    return f"<sitemapindex>{inner}</sitemapindex>"


def urlset(**titles: str) -> str:
    inner = "".join(
        f"<url><loc>{page(n)}</loc><news:title>{title}</news:title></url>" for n, title in titles.items()
    )
    return f"<urlset>{inner}</urlset>"


class Lists(World):
    """The subtask's site is found by its sitemap; answers in bytes are sent as they are."""

    def __init__(self, url: str, engine: Engine = ENGINE, search: str = SEARCH) -> None:
        super().__init__(url, urls=(search,))
        self.catalog = self.catalog.model_copy(update={"engines": {**self.catalog.engines, "baidu": engine}})
        fetch = self.web.fetch

        async def sent(url: str, **how: object) -> Response:
            response = await fetch(url, **how)
            answer = self.web.answers.get(url)
            if not isinstance(answer, bytes):
                return response
            return Response(
                url=url, status=200, headers={"content-type": "application/gzip"}, body=answer, elapsed_s=0.1
            )

        self.web.fetch = sent  # type: ignore[method-assign]

    @property
    def asked(self) -> list[str]:
        return [url for url in self.web.asked if "robots" not in url]


@pytest.fixture
def world(sqlite_url) -> Iterator[Lists]:
    made = Lists(sqlite_url)
    yield made
    made.store.close()


def test_what_mentions_the_product_is_a_hit_by_title_or_address(world):
    encoded = f"http://{SITE}/c/%E7%89%9B%E5%A5%B6.html"
    world.web.answers |= {
        INDEX: index((OLD, "2024-01-01"), (NEW, "2026-01-01"), ("http://elsewhere.cn/s.xml", "2026-02-01")),
        NEW: gzip.compress(urlset(a="牛奶胀包", b="酸奶很好").encode()),
        OLD: f"<urlset><url><loc>{encoded}</loc></url><url><loc>http://elsewhere.cn/牛奶.html</loc></url></urlset>",
        page("a"): complaint("一"),
        encoded: complaint("二"),
    }
    assert world.run()
    assert world.subtask.state == State.SLEEP
    assert world.asked == [INDEX, NEW, OLD, page("a"), encoded], (
        "the newest sitemap first, and no other site's"
    )
    assert [one.url for one in world.rows(pages)] == [page("a"), encoded]
    assert (world.attempt.outcome, world.attempt.offered, world.attempt.collected) == ("succeeded", 2, 2)


def test_a_list_that_mentions_nothing_is_a_proven_empty_answer(world):
    world.web.answers[INDEX] = urlset(a="酸奶")
    assert world.run()
    assert (world.subtask.state, world.attempt.offered) == (State.SLEEP, 0)


def test_robots_txt_holds_for_every_file(world):
    secret = f"http://{SITE}/private/s.xml"
    world.web.answers |= {INDEX: index((secret, "2026-01-01"), (OLD, "2025-01-01")), OLD: urlset(a="牛奶")}
    world.web.answers[page("a")] = complaint("一")
    assert world.run()
    assert world.asked == [INDEX, OLD, page("a")]
    assert world.attempt.errors == {"robots": 1}


def test_a_sitemap_that_is_gone_costs_only_what_it_lists(world):
    world.web.answers |= {
        INDEX: index((NEW, "2026-01-01"), (OLD, "2025-01-01")),
        NEW: FetchError(ErrorClass.NOT_FOUND, "404"),
        OLD: urlset(a="牛奶"),
        page("a"): complaint("一"),
    }
    assert world.run()
    assert [one.url for one in world.rows(pages)] == [page("a")]


def test_an_index_is_read_to_a_bound(world, monkeypatch):
    monkeypatch.setattr(list_searcher, "MOST_FILES", 3)
    parts = [f"http://{SITE}/{n}.xml" for n in range(9)]
    world.web.answers |= {INDEX: index(*((part, "2026-01-01") for part in parts))}
    world.web.answers |= dict.fromkeys(parts, "<urlset></urlset>")
    assert world.run()
    assert len(world.asked) == 3


def test_a_bomb_is_refused(world):
    world.web.answers[INDEX] = gzip.compress(b"<urlset>" + b" " * 60_000_000, 9)
    assert world.run()
    (target,) = world.rows(targets)
    assert target.state == "todo"
    assert world.attempt.errors == {"too_large": 1}


def test_a_list_in_pages(sqlite_url):
    engine = ENGINE.model_copy(
        update={
            "url": f"http://{SITE}/list-{{page}}.html",
            "results": EVERY_LINK.model_copy(
                update={"hit": "li", "link": "a@href", "title": "a", "next": "a.n"}
            ),
        }
    )
    made = Lists(sqlite_url, engine, list_url(engine, [("蒙牛", "酸奶"), ("蒙牛", "牛奶")], 1))
    made.web.answers |= {
        f"http://{SITE}/list-1.html": f'<ul><li><a href="{page("a")}">蒙牛 牛奶</a></li>'
        '<li><a href="/x">x</a></li></ul>'
        '<a class="n" href="/list-2.html">下一页</a>',
        page("a"): complaint("一"),
    }
    assert made.run()
    assert made.attempt.more
    assert [one.url for one in made.rows(pages)] == [page("a")]
    made.store.close()


def test_addresses_say_what_is_looked_for():
    url = list_url(ENGINE, [("A+B", "牛 奶"), ("特&仑苏",)], 2)
    assert url.startswith(f"{INDEX}#")
    assert listed_keywords(url) == (("A+B", "牛 奶"), ("特&仑苏",))
    assert listed_keywords(INDEX) == ()


class Reads:
    def __init__(self, n: int = 1) -> None:
        self.times, self.n = 0, n

    async def __call__(self) -> ListEntries:
        self.times += 1
        return ListEntries(tuple((Hit(f"http://a.cn/{i}", ""), "") for i in range(self.n)), more=False)


def test_a_list_is_read_once_an_hour_and_the_oldest_goes_first(monkeypatch):
    asyncio.run(read_often(monkeypatch))


async def read_often(monkeypatch):
    monkeypatch.setattr(list_cache, "MOST_KEPT", 5)
    now = [0.0]
    book, a, b = ListCache(lambda: now[0]), Reads(3), Reads(3)
    for _ in range(2):
        assert len((await book.get_list("a", a, 1)).hits) == 3
    assert a.times == 1
    now[0] = list_cache.KEEP_S
    await book.get_list("a", a, 1)
    assert a.times == 2
    await book.get_list("b", b, 1)
    await book.get_list("b", b, 1)
    await book.get_list("a", a, 1)
    assert (a.times, b.times) == (3, 1)
