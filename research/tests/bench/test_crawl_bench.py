"""What `bench crawl` compares is comparable: same pages, same fields, ratios taken round by round."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from research.bench import crawl, registry
from research.bench.crawl import CONTESTANTS, Turn, figures, ratios
from research.bench.peers.agreement import Agreement, BenchError, page_digests
from research.bench.peers.by_selectolax import with_selectolax
from research.bench.peers.by_soup import with_soup
from research.bench.peers.contest import Page, stored_in
from research.tools.addresses import PAGES_OF_A_PRODUCT, PAGES_OF_A_SITE, keyword, number_of, review_path
from research.tools.pages import RESULT_RULES, review_page
from research.tools.pageserver import Answers
from splitter.errors import InputError
from splitter.query import ProductQuery
from splitter.split import SearchScope, urls_of
from tasks.reading.results import read_results


def _turns(**pages_per_s: Sequence[float]) -> dict[str, list[Turn]]:
    turns = {one.name: [Turn(1, 1000.0, 0.1, 50.0, 0.5)] * 2 for one in CONTESTANTS}
    for name, rates in pages_per_s.items():
        turns[name.replace("__", ".")] = [Turn(100, 100 / rate, 0.2, 50.0, 0.5) for rate in rates]
    return turns


def _stored(path: Path, pages: dict[int, Page]) -> dict[int, bytes]:
    with stored_in(path) as rows:
        for number, page in pages.items():
            rows.page(f"http://127.0.0.1:1{review_path(number)}", *page)
    return page_digests(path)


@pytest.fixture
def pages() -> dict[int, Page]:
    return {number: with_selectolax(review_page(number)) for number in range(2)}


def test_a_ratio_is_taken_against_the_best_variant_of_the_same_round() -> None:
    turns = _turns(ours=[600, 400], scrapy__page=[100, 50], scrapy__selectolax=[60, 200])
    found = ratios(turns, lambda turn: turn.pages_per_s)
    assert found["vs_scrapy"] == pytest.approx((600 / 100 + 400 / 200) / 2)
    assert set(found) == {"vs_scrapy", "vs_crawlee", "vs_requests_bs4", "of_limit"}


def test_a_ratio_by_cpu_time_does_not_see_that_others_had_the_core() -> None:
    turns = _turns(ours=[600, 60], scrapy__page=[100, 50])
    assert ratios(turns, lambda turn: turn.pages_per_cpu_s)["vs_scrapy"] == pytest.approx(1.0)


def test_figures_tell_median_least_and_most() -> None:
    told = figures([Turn(100, seconds, 0.2, 50.0, 0.5) for seconds in (1.0, 4.0, 2.0)])
    assert told["pages_per_s"] == [50.0, 25.0, 100.0]
    assert told["cpu_ms_per_page"] == [2.0, 2.0, 2.0]
    assert told["core_share"] == [0.1, 0.05, 0.2]


def test_contestants_that_stored_the_same_agree(tmp_path: Path, pages: dict[int, Page]) -> None:
    agreement = Agreement()
    agreement.check("one", _stored(tmp_path / "one.db", pages), 2)
    agreement.check("another", _stored(tmp_path / "another.db", dict(reversed(pages.items()))), 2)


@pytest.mark.parametrize("field", range(6))
def test_a_field_that_differs_is_an_error(tmp_path: Path, pages: dict[int, Page], field: int) -> None:
    agreement = Agreement()
    agreement.check("one", _stored(tmp_path / "one.db", pages), 2)
    title, records = pages[1]
    last = (*records[-1][:field], 9.5 if field == 5 else "other", *records[-1][field + 1 :])
    changed = {**pages, 1: (title, [*records[:-1], last])}
    with pytest.raises(BenchError, match=r"another and one .* page 1"):
        agreement.check("another", _stored(tmp_path / "another.db", changed), 2)


def test_a_missing_page_is_an_error(tmp_path: Path, pages: dict[int, Page]) -> None:
    with pytest.raises(BenchError, match="1 pages instead of 2"):
        Agreement().check("one", _stored(tmp_path / "one.db", {0: pages[0]}), 2)


def test_a_page_stored_twice_is_an_error(tmp_path: Path, pages: dict[int, Page]) -> None:
    _stored(tmp_path / "one.db", pages)
    with closing(sqlite3.connect(tmp_path / "one.db")) as connection, connection:
        connection.execute(f"INSERT INTO pages (url, title) VALUES ('http://other{review_path(1)}', '')")
    with pytest.raises(BenchError, match="page 1 is stored twice"):
        page_digests(tmp_path / "one.db")


@pytest.mark.parametrize("parser", ["lxml", "html.parser"])
def test_beautifulsoup_reads_what_selectolax_reads(parser: str) -> None:
    body = review_page(7)
    assert with_soup(body, parser, "utf-8") == with_selectolax(body)


def test_parsel_reads_what_selectolax_reads() -> None:
    parsel = pytest.importorskip("parsel", reason="the bench's peers are not installed")
    from research.bench.peers.by_parsel import with_parsel

    body = review_page(7)
    assert with_parsel(parsel.Selector(text=body.decode())) == with_selectolax(body)


def test_the_searches_for_a_product_find_each_of_its_pages_once() -> None:
    found = _found_of_a_product(PAGES_OF_A_PRODUCT)
    assert sorted(found) == list(range(PAGES_OF_A_PRODUCT, 2 * PAGES_OF_A_PRODUCT))


def test_the_first_site_has_the_first_pages_of_a_product() -> None:
    found = _found_of_a_product(PAGES_OF_A_SITE)
    assert sorted(found) == list(range(PAGES_OF_A_PRODUCT, PAGES_OF_A_PRODUCT + PAGES_OF_A_SITE))


def _found_of_a_product(pages: int) -> list[int]:
    from research.bench.peers.ours import catalog

    answers, found = Answers(pages=1), []
    searched = catalog(pages)
    for name in searched.sites:
        for page in urls_of(SearchScope(searched, (name,)), ProductQuery("", (keyword(1),))):
            request = f"GET {page.url.removeprefix('http://search.example')} HTTP/1.1"
            body = answers.to(request.encode()).partition(b"\r\n\r\n")[2].decode()
            hits = read_results(body, page.url, RESULT_RULES).hits
            assert all(hit.url.startswith(f"http://{name}/") for hit in hits)
            found += [number_of(hit.url) for hit in hits]
    return found


def test_the_page_server_answers_pages_robots_and_nothing_else() -> None:
    answers = Answers(pages=1)
    assert answers.to(b"GET /p/0.html HTTP/1.1\r\nHost: shop0.example").endswith(review_page(0, "product0"))
    assert answers.to(b"GET /robots.txt HTTP/1.1").startswith(b"HTTP/1.1 200 ")
    assert answers.to(b"GET /p/1.html HTTP/1.1").startswith(b"HTTP/1.1 404 ")
    assert answers.to(b"GET / HTTP/1.1").startswith(b"HTTP/1.1 404 ")


def test_a_peer_that_is_not_installed_is_named_and_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_spec", lambda name: None if name == "scrapy" else object())
    assert registry.BENCHES["crawl"].peers_not_installed == ["scrapy"]
    there = {name: turns for name, turns in _turns().items() if not name.startswith("scrapy")}
    found = ratios(there, lambda turn: turn.pages_per_s)
    assert found["vs_scrapy"] is None
    assert found["vs_crawlee"] == pytest.approx(1.0)


def test_one_core_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crawl.os, "sched_getaffinity", lambda _pid: {0})
    with pytest.raises(InputError, match="two cores"):
        crawl.run(Path())
