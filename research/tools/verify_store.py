"""A store with a long event log: a short story of the loop, copied by SQL with other numbers.

The story: a product is planned, each of its subtasks begun, its hits stored as pages with a review, and done; every
eighth fails once and is recalled. A copy is all of its rows with numbers moved by as many as there are, addresses and
names of its own; the sums of (site, node) grow with the copies.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy import Column, Table, func, select, text

from app.run.version import MIGRATIONS
from tasks.domain.attempt_end import AttemptReport, Counters
from tasks.domain.failures import FailureReason
from tasks.domain.hit_count import NewPartition
from tasks.domain.page_key import page_key
from tasks.domain.pages import Hit, ResultPage, Review
from tasks.domain.pair_stats import SUMS
from tasks.domain.states import Transition
from tasks.scheduling.after_attempt import after_attempt
from tasks.scheduling.recall import RecallSettings
from tasks.store.content import counted_reviews, pages, products
from tasks.store.content.pages import NewPage
from tasks.store.content.products import NewProduct
from tasks.store.content.reviews import PageOrigin, record_of
from tasks.store.queue import attempts, leases, tasks, transitions
from tasks.store.queue.attempts import Close
from tasks.store.queue.leases import Grant, Lease, Renewal, WorkTarget
from tasks.store.queue.result_pages import FoundHit, ResultPageToStore
from tasks.store.queue.tasks import NewTask
from tasks.store.queue.transitions import Move
from tasks.store.queue.upkeep import store_value
from tasks.store.sql import schema
from tasks.store.sql.database import Store, lift_limits
from tasks.store.sql.tables import events, metadata, pair_stats, subtasks
from tasks.store.sql.transaction import Transaction

_SITES = 96
_HITS = 5
_FAILS = 8
_HEAD, _TAIL, _OTHER = 4, "aaaaaaaaaaaa", "'b'"
"""Bytes of a page's key that the story's own keeps, the others, and what one of them becomes with each copy."""
_LEASE = timedelta(seconds=60)
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_COPIED = (
    *("products", "virtual_tasks", "tasks", "task_parts", "subtasks", "attempts", "targets", "pages"),
    *("page_products", "reviews", "events", "queue_counts"),
)
_NUMBERED = {"part_id": "task_parts", "attempt_id": "attempts"}
"""Columns that are numbers of rows without being foreign keys of the tables."""


def fill(store: Store, least_events: int) -> None:
    """Migrate an empty store and fill it with at least so many events."""
    schema.upgrade(store, MIGRATIONS)
    with store.begin(now=_NOW) as conn:
        _story(conn)
    with store.begin() as conn, lift_limits(conn):
        for name in ("targets", "pages"):
            head = f"substr(url_key, 1, {_HEAD}) || "
            key = f"{head}'{_TAIL}'" if store.is_sqlite else f"{head}'{_TAIL}'::bytea"
            conn.engine_connection.execute(
                text(f"UPDATE {name} SET url_key = " + (f"CAST({key} AS BLOB)" if store.is_sqlite else key))
            )
        made = conn.engine_connection.execute(select(func.count()).select_from(events)).scalar_one()
        copies, doubled = 1, 0
        while made * copies < least_events:
            _copy(conn, doubled)
            copies, doubled = 2 * copies, doubled + 1
        values = {name: pair_stats.c[name] * copies for name in (*SUMS, "wait_s", "requests")}
        conn.engine_connection.execute(pair_stats.update().values(values))
        newest = conn.value("SELECT max(id) FROM reviews")
        store_value(conn, "counted_reviews", conn.now, {"after": 0, "upto": newest})
    while store.write(counted_reviews.fill):
        pass
    settle(store)


def settle(store: Store) -> None:
    """Let PostgreSQL learn what it holds, as it does by itself in time; SQLite does not."""
    if store.is_sqlite:
        return
    with store.engine.connect() as conn:
        driver: Any = conn.connection.driver_connection
        conn.detach()  # what is lifted from it now, it keeps
        driver.patient = True
        conn.exec_driver_sql("SET statement_timeout = 0")
        conn.exec_driver_sql("VACUUM ANALYZE")


_AFTER = partial(after_attempt, rules=RecallSettings())


def _story(tx: Transaction) -> None:
    words = ("光明", "牛奶")
    products.add(tx, NewProduct(name="光明牛奶", keywords=words))
    (wanted,) = tasks.list_unplanned(tx, 1)
    planned = [NewTask(f"site{n}.cn", "baidu", "meta", (NewPartition(words, 1, 1),)) for n in range(_SITES)]
    tasks.plan(tx, wanted, planned, lambda query, _pages: [f"http://engine/{query.site}"])
    ids = list(tx.engine_connection.scalars(select(subtasks.c.id).order_by(subtasks.c.id)))
    transitions.move(tx, Transition.ADMIT, [Move(one) for one in ids])
    for subtask_id in ids:
        if subtask_id % _FAILS == 0:
            lease = _begun(tx, subtask_id)
            report = AttemptReport(counters=Counters(requests=1), reason=FailureReason.BLOCKED)
            attempts.close_many(tx, [Close(lease, report, _AFTER)])
            values = {"recalls": 1, "not_before": _NOW}
            detail = {"delay_s": 0.0}
            again = Move(subtask_id, values, None, None, lease.node, FailureReason.BLOCKED, detail)
            transitions.move(tx, Transition.RECALL, [again])
        _collected(tx, subtask_id)


def _begun(tx: Transaction, subtask_id: int) -> Lease:
    grant = Grant(subtask_id, f"n{subtask_id % 4}", 20, 30.0, {"why": "bench"})
    (lease,) = leases.grant(tx, [grant], _LEASE)
    return lease


def _collected(tx: Transaction, subtask_id: int) -> None:
    lease = _begun(tx, subtask_id)
    (work,) = leases.start_many(tx, [Renewal(lease, _LEASE)])
    assert work is not None
    urls = [f"http://{lease.site}/{subtask_id}/{n}" for n in range(_HITS)]
    page = ResultPage(len(urls), tuple(Hit(url, "标题") for url in urls), empty=False, more=False)
    hits = [FoundHit(url, page_key(url)) for url in urls]
    read = ResultPageToStore(lease=lease, target=work.targets[0], page=page, hits=hits)
    (stored,) = pages.save_result_pages(tx, [read])
    assert stored is not None
    saved = [_page(lease, one) for one in stored.todo]
    pages.save_pages(tx, saved)
    counters = Counters(offered=_HITS, tried=_HITS, collected=_HITS, requests=_HITS + 1, active_s=1.0)
    attempts.close_many(tx, [Close(lease, AttemptReport(counters=counters), _AFTER)])
    done = Move(subtask_id, {"left": 0}, node=lease.node, detail={"left": 0})
    transitions.move(tx, Transition.WAKE, [done])


def _page(lease: Lease, target: WorkTarget) -> NewPage:
    review = Review("1", "标题", f"投诉 {target.url}", "作者", "2014-03-15", None, None)
    origin = PageOrigin(target.url, lease.site, lease.node, lease.attempt_id)
    return NewPage(
        lease=lease,
        target_id=target.id,
        url=target.url,
        key=target.key,
        title="标题",
        content_hash="0" * 32,
        encoding="utf-8",
        size=1000,
        records=[record_of(origin, review)],
    )


def _copy(tx: Transaction, doubled: int) -> None:
    """All rows once more, with numbers behind those that there are, for the so-manieth time."""
    most = {
        name: tx.engine_connection.execute(select(func.max(metadata.tables[name].c.id))).scalar_one()
        for name in _COPIED
        if "id" in metadata.tables[name].c
    }
    for name in _COPIED:
        table = metadata.tables[name]
        columns = {column.name: _copied(tx, table, column, most, doubled) for column in table.columns}
        named = ", ".join(f'"{column}"' for column in columns)
        tx.engine_connection.execute(
            text(f"INSERT INTO {name} ({named}) SELECT {', '.join(columns.values())} FROM {name}")
        )


def _copied(tx: Transaction, table: Table, column: Column[Any], most: dict[str, int], doubled: int) -> str:
    """The SQL of a column of a copy."""
    name = column.name
    if name == "id":
        return f"id + {most[table.name]}"
    to = next((key.column.table.name for key in column.foreign_keys), _NUMBERED.get(name))
    if to is not None:
        return f"{name} + {most[to]}"
    step = most["products"]
    if name == "url_key":  # one more byte of its tail is another one
        of = f"substr(url_key, 1, {15 - doubled}) || {{}} || substr(url_key, {17 - doubled})"
        sqlite = tx.is_sqlite
        return f"CAST({of.format(_OTHER)} AS BLOB)" if sqlite else of.format(f"{_OTHER}::bytea")
    if name == "url" or (table.name == "products" and name in ("name", "name_key")):
        return f"{name} || '.{step}'"
    return f'"{name}"'
