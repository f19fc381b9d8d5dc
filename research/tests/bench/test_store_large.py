"""Reads of pages and metrics do not grow with the store, and `verify` grows in proportion: SQLite's steps are counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from research.tools import verify_store
from tasks.store.queries import pairs as pair_queries
from tasks.store.queries import products as product_queries
from tasks.store.queries import queues as queue_queries
from tasks.store.queue import manual
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.verify import verify

EVENTS = 2_000
TIMES = 4
NEWEST = 100
WAITING = 24
"""Subtasks in MANUAL, as many in each store."""

READS: dict[str, Callable[[Transaction], object]] = {
    "recent attempts": pair_queries.list_recent_attempts,
    "search URLs": lambda tx: product_queries.list_search_urls(tx, 1),
    "confidence of a site": lambda tx: queue_queries.count_confident_pages(tx, "site1.cn"),
    "causes": manual.list_causes,
    "failed tasks": lambda tx: manual.list_manual(tx, most=10),
    "failed tasks, the second page": lambda tx: manual.list_manual(tx, after=30, most=10),
    "failed tasks of a cause": lambda tx: manual.list_manual(tx, most=10, reason="blocked", site="site1.cn"),
    "all of a cause": lambda tx: manual.list_ids(tx, reason="blocked", site="site1.cn"),
    "the oldest that waits": queue_queries.get_waiting_summary,
}


def _filled(path: Path, events: int) -> Store:
    store = Store.open(f"sqlite:///{path}")
    verify_store.fill(store, events)
    with store.begin() as tx:
        tx.engine_connection.execute(text("UPDATE subtasks SET state = 'PRIORITY' WHERE id % 3 = 0"))
        of_cause = "UPDATE subtasks SET state = 'MANUAL', reason = 'blocked' WHERE id % 3 = 1 AND id < :most"
        tx.engine_connection.execute(text(of_cause), {"most": 3 * WAITING})
    verify_store.settle(store)
    return store


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, Store]:
    folder = tmp_path_factory.mktemp("large")
    return _filled(folder / "small.db", EVENTS), _filled(folder / "large.db", TIMES * EVENTS)


def _steps(store: Store, read: Callable[[Transaction], object]) -> int:
    """Instructions that SQLite's machine executes for it."""
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    with store.read() as tx:
        read(tx)  # statements are prepared, the schema is read
        driver = tx.engine_connection.connection.driver_connection
        assert driver is not None
        driver.set_progress_handler(step, 1)
        try:
            read(tx)
        finally:
            driver.set_progress_handler(None, 1)
    return steps


@pytest.mark.parametrize("name", READS)
def test_four_times_the_rows_take_no_more_steps(
    name: str, stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair_queries, "NEWEST_ATTEMPTS", NEWEST)
    monkeypatch.setattr(queue_queries, "NEWEST_PAGES", NEWEST)
    small, large = (_steps(store, READS[name]) for store in stores)
    assert 0 < large < 1.3 * small


def test_verify_takes_steps_in_proportion_to_the_rows(stores: tuple[Store, Store]) -> None:
    small, large = (_steps(store, verify) for store in stores)
    assert 0 < large < 1.1 * TIMES * small
