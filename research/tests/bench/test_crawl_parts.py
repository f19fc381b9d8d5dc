"""The parts of `bench crawl`: CPU time by thread and timed function, and the same rows written by sqlite3 alone."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from research.bench.crawl_peers.raw_writing import raw_writing_s
from research.tools.cpu_parts import CpuParts
from tasks.store.sql import schema
from tasks.store.sql.database import Store


def test_a_function_has_its_own_part_less_what_it_calls() -> None:
    cpu_s = [0.0]

    def work(seconds: float) -> None:
        cpu_s[0] += seconds

    parts = CpuParts({"MainThread": "lanes"}, lambda: cpu_s[0])
    inner = parts.timed("inner", work)

    def outer() -> None:
        inner(1.0)
        work(2.0)
        inner(4.0)

    timed = parts.timed("outer", outer)
    with parts.measured() as told:
        timed()
        timed()
    assert told["inner"] == 10.0
    assert told["outer"] == 4.0
    assert told["lanes"] == pytest.approx(
        -14.0, abs=1.0
    )  # of the thread's own clock, which shows next to nothing


def test_every_row_is_written_once_more(tmp_path, migrations) -> None:
    crawled, copy = tmp_path / "crawled.db", tmp_path / "copy.db"
    store = Store.open(f"sqlite:///{crawled}")
    schema.upgrade(store, migrations)
    with store.begin() as tx:
        tx.insert(
            "pages",
            ("url", "url_key", "site", "content_hash", "encoding", "fetched_at", "node"),
            [(f"http://a/{n}", bytes([n]) * 16, "a", "", "utf-8", tx.now, "n1") for n in range(3)],
        )
        tx.insert("nodes", ("name", "kinds", "slots"), [("n1", [], 1)], shared={"registered_at": tx.now})
    store.close()
    assert raw_writing_s(crawled, copy) > 0

    def rows(path) -> list[object]:
        with closing(sqlite3.connect(path)) as file:
            return [*file.execute("SELECT * FROM pages"), *file.execute("SELECT * FROM nodes")]

    assert rows(copy) == rows(crawled)
    assert len(rows(copy)) == 4
