"""What `bench crawl` compares is comparable: same pages, same fields, ratios taken round by round."""

from __future__ import annotations

import sqlite3
from contextlib import closing, nullcontext

import pytest

from research.bench import crawl, crawl_guard
from research.bench.crawl import CONTESTANTS, RATIOS, Turns, ratios, with_start, without_start
from research.bench.crawl_peers.contest import (
    Agreement,
    Figures,
    number_of,
    page_digests,
    review_path,
    stored_in,
)
from research.bench.crawl_peers.ours import catalog
from research.bench.crawl_peers.readers import with_parsel, with_selectolax, with_soup, with_turbohtml
from research.bench.crawl_peers.web import PAGES_OF_A_PRODUCT, PAGES_OF_A_SITE, Answers, keyword
from research.tools.meter import BenchError
from research.tools.pages import RESULT_RULES, review_page
from splitter.errors import InputError
from splitter.keywords import ProductQuery
from splitter.split import SearchScope, urls_of
from tasks.reading.results import read_results


def turn_of(pages, cpu_s):
    return Figures(pages, 1000.0, 0.1, 50.0, 0.5, process_cpu_s=cpu_s)


def costs_of(**ms):
    """Costs of two rounds: ten milliseconds a page, but for those that are given; `__` stands for a dot."""
    costs = {one.name: [10.0, 10.0] for one in CONTESTANTS}
    return costs | {name.replace("__", "."): rounds for name, rounds in ms.items()}


def stored(path, pages):
    with stored_in(str(path)) as rows:
        for number, page in pages.items():
            rows.store(f"http://127.0.0.1:1{review_path(number)}", page)
    return page_digests(path)


@pytest.fixture
def pages():
    return {number: with_selectolax(review_page(number)) for number in range(2)}


def test_a_ratio_is_taken_against_the_fastest_variant_of_the_same_round():
    found = ratios(costs_of(ours=[1.0, 2.0], scrapy__aiohttp=[6.0, 20.0], scrapy__selectolax=[9.0, 4.0]))
    assert found["vs_scrapy"] == pytest.approx((6 / 1 + 4 / 2) / 2)
    assert found["vs_crawlee"] == pytest.approx((10 / 1 + 10 / 2) / 2)
    assert set(found) == set(RATIOS)
    there = {name: rounds for name, rounds in costs_of().items() if not name.startswith("scrapy")}
    assert ratios(there)["vs_scrapy"] is None


@pytest.mark.parametrize("start_s", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("pages", "few"), [(4000, 1000), (3, 2)])
def test_the_slope_leaves_the_start_out_and_the_whole_counts_it(start_s, pages, few):
    page_s = 0.002
    turns = Turns(*({"ours": [turn_of(n, start_s + n * page_s)] * 3} for n in (pages, few)))
    assert without_start(turns)["ours"] == pytest.approx([page_s] * 3)
    assert with_start(turns.all)["ours"] == pytest.approx([page_s + start_s / pages] * 3)


def test_the_limit_is_that_of_selectolax_however_fast_another_parser_is():
    found = ratios(costs_of(ours=[4.0, 4.0], limit__selectolax=[2.0, 2.0], limit__turbohtml=[1.0, 1.0]))
    assert (found["of_limit"], found["of_limit_turbohtml"]) == (0.5, 0.25)


@pytest.mark.parametrize(
    ("pairs_ms", "reached", "taken"),
    [
        ([(10.0, 2.0)], True, 1),
        ([(10.0, 2.5)], True, 1),
        ([(10.0, 2.6), (10.0, 2.4)], True, 2),
        ([(10.0, 2.6), (9.0, 2.6), (10.0, 2.5)], True, 3),
        ([(10.0, 2.6), (10.0, 2.6), (10.0, 2.6)], False, 3),
    ],
)
def test_the_guard_takes_the_best_of_three_pairs(monkeypatch, pairs_ms, reached, taken):
    turns = [turn_of(1000, ms) for pair in pairs_ms for ms in pair]
    left = iter(turns)
    monkeypatch.setattr(crawl_guard, "course", lambda *_: nullcontext(lambda _one, _pages: next(left)))
    assert crawl_guard.is_reached(5.0) is reached
    assert len(turns) - len(list(left)) == 2 * taken


@pytest.mark.parametrize("field", range(6))
def test_a_field_that_differs_is_an_error(tmp_path, pages, field):
    agreement = Agreement()
    agreement.check("one", stored(tmp_path / "one.db", pages), 2)
    agreement.check("same", stored(tmp_path / "same.db", dict(reversed(pages.items()))), 2)
    title, records = pages[1]
    last = (*records[-1][:field], 9.5 if field == 5 else "other", *records[-1][field + 1 :])
    changed = {**pages, 1: (title, [*records[:-1], last])}
    with pytest.raises(BenchError, match=r"another and one .* page 1"):
        agreement.check("another", stored(tmp_path / "another.db", changed), 2)


def test_a_missing_page_and_one_stored_twice_are_errors(tmp_path, pages):
    with pytest.raises(BenchError, match="1 pages instead of 2"):
        Agreement().check("one", stored(tmp_path / "one.db", {0: pages[0]}), 2)
    stored(tmp_path / "two.db", pages)
    with closing(sqlite3.connect(tmp_path / "two.db")) as connection, connection:
        connection.execute(f"INSERT INTO pages (url, title) VALUES ('http://other{review_path(1)}', '')")
    with pytest.raises(BenchError, match="page 1 is stored twice"):
        page_digests(tmp_path / "two.db")


def test_all_readers_read_the_same():
    parsel = pytest.importorskip("parsel", reason="the peers are not installed")
    pytest.importorskip("turbohtml", reason="the peers are not installed")
    body = review_page(7)
    assert with_turbohtml(body) == with_selectolax(body)
    assert with_soup(body, "utf-8") == with_selectolax(body)
    assert with_parsel(parsel.Selector(text=body.decode())) == with_selectolax(body)


@pytest.mark.parametrize("pages", [PAGES_OF_A_PRODUCT, PAGES_OF_A_SITE])
def test_the_searches_for_a_product_find_each_of_its_pages_once(pages):
    answers, found, searched = Answers(pages=1), [], catalog(pages)
    for name in searched.sites:
        for page in urls_of(SearchScope(searched, (name,)), ProductQuery("", (keyword(1),))):
            request = f"GET {page.url.removeprefix('http://search.example')} HTTP/1.1"
            body = answers.to(request.encode()).partition(b"\r\n\r\n")[2].decode()
            hits = read_results(body, page.url, RESULT_RULES).hits
            assert all(hit.url.startswith(f"http://{name}/") for hit in hits)
            found += [number_of(hit.url) for hit in hits]
    assert sorted(found) == list(range(PAGES_OF_A_PRODUCT, PAGES_OF_A_PRODUCT + pages))


def test_the_page_server_answers_pages_robots_and_nothing_else():
    answers = Answers(pages=1)
    assert answers.to(b"GET /p/0.html HTTP/1.1\r\nHost: shop0.example").endswith(review_page(0, "product0"))
    assert answers.to(b"GET /robots.txt HTTP/1.1").startswith(b"HTTP/1.1 200 ")
    assert answers.to(b"GET /p/1.html HTTP/1.1").startswith(b"HTTP/1.1 404 ")


def test_one_core_is_not_enough(monkeypatch, tmp_path):
    monkeypatch.setattr(crawl, "cores", lambda: ({0}, {0}))
    with pytest.raises(InputError, match="two cores"):
        crawl.run(tmp_path, False)
