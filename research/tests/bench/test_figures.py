"""Arithmetic of the benches, on counts made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import func, select

from research.bench import buffers, coroutines
from research.bench.buffer_peers.cluster import Run, count_at
from research.bench.buffer_peers.web import (
    HITS,
    KNOWN,
    POOL_OF_A_SITE,
    SITES,
    Answers,
    catalog,
    hits,
    known_url,
    result_url,
)
from research.bench.coroutine_peers.window import Moment, Order, told
from research.bench.politeness import Case, fullest, judge
from research.tools import plots
from research.tools.pageserver import SharedLink
from research.tools.scale_store import SERVERS, _Loop
from splitter.catalog.model import Limits
from splitter.errors import InputError
from tasks.reading.results import read_results
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, subtasks


def run_of(*counts):
    return Run(counts, {})


def test_rates_of_a_run_with_its_start_and_without_it():
    assert [count_at([(0.0, 0), (2.0, 10), (4.0, 40)], at) for at in (1.0, 3.0, 9.0)] == [5, 25, 40]
    run = run_of((0.0, 0), (5.0, 0), (6.0, 20), (10.0, 100))
    assert (run.rate(), run.rate_since_first(), run.first_s) == (10.0, 20.0, 6.0)
    assert run.rate(6.0) == pytest.approx(20 / 6)
    assert (run.seconds_for(21), run.seconds_for(101)) == (10.0, None)
    assert run_of((0.0, 0), (10.0, 0)).rate_since_first() == 0.0
    assert buffers.each_second([(0.0, 0), (0.5, 2), (1.5, 6), (3.2, 6)], 25.0) == [(1, 4), (2, 2), (3, 0)]


def test_ratios_of_buffers_compare_runs_over_the_same_time():
    both = {ms: run_of((0.0, 0), (60.0, pages)) for ms, pages in ((0, 6000), (90, 3000))}
    both[10] = run_of((0.0, 0), (20.0, 1000), (60.0, 5700))
    runs = {"both": both, "none": {10: run_of((0.0, 0), (20.0, 100))}}
    assert buffers.ratios(runs, {10: {"results_per_s": 1.9}}) == {
        "both_10ms_vs_0ms": 0.95,
        "both_90ms_vs_0ms": 0.5,
        "both_vs_none_10ms": 10.0,
        "vs_scrapy_redis_10ms": 50.0,
    }
    assert buffers.ratios(runs, {10: {"results_per_s": 0.0}})["vs_scrapy_redis_10ms"] is None


@pytest.mark.parametrize("number", [0, 123])
def test_a_result_page_of_buffers_lists_forty_hits_thirty_two_of_them_known(number):
    answer = Answers(number + 1).to(f"GET {result_url(number)} HTTP/1.1\r\nHost: x".encode())
    rules = catalog().engines["search.example"].results
    found = [hit.url for hit in read_results(answer.partition(b"\r\n\r\n")[2].decode(), "", rules).hits]
    pool = {known_url(number % SITES, place) for place in range(POOL_OF_A_SITE)}
    assert tuple(found) == hits(number)
    assert (len(set(found)), len(pool.intersection(found))) == (HITS, KNOWN)


def test_a_window_is_described_by_what_happened_within_it():
    opened = Moment(at_s=10.0, pages=100, cpu_s=1.0, voluntary=50, involuntary=5)
    half = Moment(at_s=12.0, pages=200, cpu_s=1.1, voluntary=60, involuntary=5)
    ended = Moment(at_s=14.0, pages=500, cpu_s=1.4, voluntary=850, involuntary=9)
    figures = told([opened, half, ended], 42.0)
    assert figures == {
        "pages_per_s": 100, "cpu_us_per_page": pytest.approx(1000.0), "voluntary_per_page": 2,
        "involuntary_per_page": 0.01, "peak_mb": 42.0, "pages_at": [(2.0, 100), (4.0, 400)],
    }  # fmt: skip
    with pytest.raises(RuntimeError, match="not one page"):
        told([opened, opened], 1.0)
    with pytest.raises(RuntimeError, match="19 bytes"):
        Order(port=1, lanes=1, window_s=1.0, samples=1, body_bytes=20).check(19)


def test_the_median_of_rounds_and_the_slope_of_memory():
    rounds = [
        {"pages_per_s": 30.06, "peak_mb": 5.0, "pages_at": [(1.0, 1)]},
        {"pages_per_s": 10.0, "peak_mb": 9.0},
    ]
    rounds.append({"pages_per_s": 20.0, "peak_mb": 7.0})
    assert coroutines.median_of(rounds) == {
        "pages_per_s": 20.0,
        "peak_mb": 7.0,
        "rounds_pages_per_s": [30.1, 10.0, 20.0],
    }
    assert coroutines.kb_per_connection([(10, 37.0), (500, 1.0), (1010, 87.0)]) == 50.0


class Client:
    """A transport that counts the bytes it is given."""

    def __init__(self):
        self.sent = 0

    def is_closing(self):
        return False

    def write(self, data):
        self.sent += len(data)


class Loop:
    """An event loop whose time is set by the test."""

    def __init__(self):
        self.now, self.call = 0.0, None

    def time(self):
        return self.now

    def call_later(self, _seconds, call):
        self.call = call

    def tick(self, seconds):
        self.now += seconds
        call, self.call = self.call, None
        if call is not None:
            call()


def test_answers_share_a_link_that_carries_what_its_rate_allows(monkeypatch):
    loop, link, clients = Loop(), SharedLink(8_000_000), [Client(), Client()]  # 1,000,000 bytes a second
    monkeypatch.setattr("research.tools.pageserver.asyncio.get_running_loop", lambda: loop)
    for client in clients:
        link.send(client, b"x" * 20_000)
    for n in range(1, 11):
        loop.tick(0.002)
        assert sum(client.sent for client in clients) <= n * 2_000 + 1460
        assert abs(clients[0].sent - clients[1].sent) <= 1460
    loop.tick(1.0)
    assert [client.sent for client in clients] == [20_000, 20_000]
    loop.now += 5.0  # an idle link saves nothing up
    link.send(clients[0], b"x" * 20_000)
    loop.tick(0.002)
    assert clients[0].sent <= 22_000 + 1460


@given(st.lists(st.integers(0, 60), max_size=40))
def test_the_fullest_window_holds_both_of_its_ends(times):
    times.sort()
    counted = [sum(start <= time <= start + 10 for time in times) for start in times]
    assert fullest([float(time) for time in times]) == max(counted, default=0)


def test_a_host_asked_exactly_at_its_limit_is_within_it_and_one_address_over_its_own_shows():
    case = Case("", "h.cn", Limits(per_address_per_s=1, total_per_s=2), 30)
    judged = judge(case, {"n1": [float(t) for t in range(31)], "n2": [t + 0.5 for t in range(30)]})
    assert (judged["max_over_limit_10s"], judged["most_in_10s"]) == (1.0, {"total": 21, "address": 11})
    assert judged["used_of_limit"] == pytest.approx(60 / (2 * 29.5), abs=1e-3)
    case = Case("", "h.cn", Limits(per_address_per_s=1, total_per_s=100), 30)
    over = judge(case, {"n1": [t / 2 for t in range(61)]})["over_limit_10s"]
    assert over["total"] < 1 < over["address"]


def test_a_measured_queue_stays_as_long_as_it_is_and_no_row_is_leased_twice(tmp_path):
    size, nodes, slots = 60, 3, 5
    with SERVERS["sqlite"](tmp_path) as server:
        store = Store.open(server.url("scale"))
        names, sites = [f"n{n}" for n in range(nodes)], [f"site{n}.cn" for n in range(4)]
        loop = _Loop(server, store, names, sites, slots, size)
        given = [loop.turn(nodes * slots).given for _ in range(4)]
        with store.read() as tx:
            counted = select(subtasks.c.state, func.count()).group_by(subtasks.c.state)
            states = {row[0]: row[1] for row in tx.engine_connection.execute(counted)}
            leased = list(tx.engine_connection.scalars(select(attempts.c.subtask_id)))
        store.close()
    assert all(0 < count <= nodes * slots for count in given)
    assert (states["CRAWL"], states["DONE"]) == (given[-1], sum(given[:-1]))
    assert states.get("PRIORITY", 0) + states["WAIT"] + states["CRAWL"] == size
    assert len(leased) == len(set(leased)) == sum(given)


def test_a_plot_is_a_png_and_needs_matplotlib(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib", reason="plots need `make research`")
    path = tmp_path / "new" / "one.png"
    plots.lines(path, "t", ("x", "y"), {"a": [(0, 0), (1, 2)], "limit": [(0, 1), (1, 1)]}, "shows nothing")
    assert path.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(plots, "find_spec", lambda _name: None)
    with pytest.raises(InputError, match="make research"):
        plots._drawable(None, None, tmp_path)
