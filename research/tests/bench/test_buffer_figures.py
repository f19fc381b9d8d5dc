"""The arithmetic of the buffer bench, and that its web is what it says: 40 hits, 32 of them known."""

from __future__ import annotations

import pytest

from research.bench import buffers
from research.bench.buffer_peers.counted import Run, count_at
from research.bench.buffer_peers.server import Answers
from research.bench.buffer_peers.web import (
    HITS,
    KNOWN,
    POOL_OF_A_SITE,
    SITES,
    catalog,
    hits,
    known_url,
    result_url,
)
from splitter.query import ProductQuery
from splitter.split import SearchScope, task_chunks
from tasks.reading.results import read_results


def run_of(*counts: tuple[float, int]) -> Run:
    return Run(counts, {}, 10.0)


def test_a_count_grows_evenly_between_two_looks_and_stays_after_the_last() -> None:
    counts = [(0.0, 0), (2.0, 10), (4.0, 40)]
    assert [count_at(counts, at) for at in (0.0, 1.0, 2.0, 3.0, 9.0)] == [0, 5, 10, 25, 40]


def test_rates_with_the_start_without_it_and_at_the_end() -> None:
    run = run_of((0.0, 0), (5.0, 0), (6.0, 20), (10.0, 100))
    assert run.rate() == 10.0
    assert run.rate(6.0) == pytest.approx(20 / 6)
    assert run.rate_since_first() == 20.0
    assert run.rate_of_last_half() == 20.0
    assert run.first_s == 6.0
    assert run.seconds_for(21) == 10.0
    assert run.seconds_for(101) is None


def test_a_run_that_read_nothing_has_no_first_and_no_rate() -> None:
    run = run_of((0.0, 0), (10.0, 0))
    assert run.first_s is None
    assert run.rate() == run.rate_since_first() == run.rate_of_last_half() == 0.0


def test_each_second_has_what_was_read_in_it() -> None:
    counts = [(0.0, 0), (0.5, 2), (1.5, 6), (3.2, 6)]
    assert buffers.each_second(counts, 25.0) == [(1.0, 4.0), (2.0, 2.0), (3.0, 0.0)]
    assert buffers.each_second(counts, 1.0) == [(1.0, 4.0)]


def test_ratios_compare_runs_over_the_same_time() -> None:
    runs = {
        "both": {
            0: run_of((0.0, 0), (60.0, 6000)),
            10: run_of((0.0, 0), (20.0, 1000), (60.0, 5700)),
            90: run_of((0.0, 0), (60.0, 3000)),
        },
        "none": {10: run_of((0.0, 0), (20.0, 100))},
    }
    assert buffers.ratios(runs, {10: {"results_per_s": 1.9}}) == {
        "both_10ms_vs_0ms": 0.95,
        "both_90ms_vs_0ms": 0.5,
        "both_vs_none_10ms": 10.0,
        "vs_scrapy_redis_10ms": 50.0,
    }
    assert buffers.ratios(runs, {10: {"results_per_s": 0.0}})["vs_scrapy_redis_10ms"] is None


@pytest.mark.parametrize("number", [0, 7, 123])
def test_a_result_page_lists_forty_hits_thirty_two_of_them_from_the_pool(number: int) -> None:
    answer = Answers(number + 1).to(f"GET {result_url(number)} HTTP/1.1\r\nHost: x".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    read = read_results(body.decode(), result_url(number), catalog().engines["search"].results)
    pool = {known_url(number % SITES, place) for place in range(POOL_OF_A_SITE)}
    found = [hit.url for hit in read.hits]
    assert tuple(found) == hits(number)
    assert len(set(found)) == HITS
    assert len(pool.intersection(found)) == KNOWN


def test_the_searches_of_a_product_are_the_result_pages_of_that_number() -> None:
    wanted = catalog()
    sites = tuple(wanted.sites)
    plan = SearchScope(wanted, sites)
    urls = [
        page.url
        for site in sites
        for chunk in task_chunks(plan, site, ProductQuery("product3", ("product3",)))
        for page in chunk
    ]
    assert urls == [result_url(3 * SITES + number) for number in range(SITES)]
