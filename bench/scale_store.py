"""Turns of the scheduler on a store that holds a long queue: what `bench.scale` measures with real tables.

The queue is put in by SQL; so are the ends of attempts between two turns, outside of what is timed. Statistics of
every (site, node) are there, as after some days.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from types import MappingProxyType

from sqlalchemy import Connection, func, insert, select, text, update

from app.cluster import processes
from app.cluster.servers import PostgresServer
from app.config import MIGRATIONS
from bench.pages import RESULT_RULES, RULES
from splitter.catalog.model import Catalog, Engine, Kind, Limits
from splitter.catalog.model import Site as CatalogSite
from tasks.crawl.hosts import HostBook
from tasks.jobs.context import Context, LoopSettings
from tasks.jobs.mind import Mind
from tasks.jobs.ticks import tick
from tasks.store import migrate, nodes, tables
from tasks.store.database import Store, read_now
from tasks.store.nodes import Node
from tasks.store.tables import pair_stats, products, tasks, virtual_tasks

_ENGINES = 8
_FULL = 1000
_FULL_TURNS = 5
_SMALL_TURNS = 8
_SMALL = 4


@contextmanager
def _sqlite(folder: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{folder / 'scale.db'}")
    try:
        migrate.upgrade(store, MIGRATIONS)
        yield store
    finally:
        store.close()


@contextmanager
def _postgres(folder: Path) -> Iterator[Store]:
    with ExitStack() as stack:
        server = PostgresServer(folder / "postgres", folder / "postgres.log", lambda _line: None)
        stack.callback(server.clean_up)
        server.prepare()
        process = processes.start(server.program)
        stack.callback(processes.stop, [(server.program, process)])
        server.wait(lambda: process.poll() is None)
        store = Store.open(server.url)
        stack.callback(store.close)
        migrate.upgrade(store, MIGRATIONS)
        yield store


STORES = MappingProxyType({"sqlite": _sqlite, "postgres": _postgres})
"""Opens an empty store of each kind in a folder."""


def turns(
    store: Store, node_count: int, site_count: int, slots: int, sizes: Sequence[int]
) -> dict[str, float]:
    """Measure turns with more and more in PRIORITY.

    Returns:
        By size: median milliseconds of a turn that gives `_FULL` leases (``full_ms``) or `_SMALL` (``small_ms``),
        leases a second of the former, and milliseconds of the first turn (``first_ms``: everything is read anew).
    """
    names = [f"n{n}" for n in range(node_count)]
    sites = [f"site{n}.cn" for n in range(site_count)]
    figures: dict[str, float] = {}
    with store.begin() as conn:
        _begin(conn, sites, names, slots)
    there = 0
    for size in sizes:
        _queue(store, site_count, there, size)
        there = size
        context = _context(sites)
        figures[f"first_ms.{size}"] = round(_turn(store, context, names, _FULL, slots)[0] * 1e3, 1)
        full = [_turn(store, context, names, _FULL, slots) for _ in range(_FULL_TURNS)]
        small = [_turn(store, context, names, _SMALL, slots) for _ in range(_SMALL_TURNS)]
        figures[f"full_ms.{size}"] = round(statistics.median(took for took, _ in full) * 1e3, 1)
        figures[f"small_ms.{size}"] = round(statistics.median(took for took, _ in small) * 1e3, 1)
        figures[f"leases_per_s.{size}"] = round(statistics.median(given / took for took, given in full), 1)
    return figures


def _turn(store: Store, context: Context, names: Sequence[str], leases: int, slots: int) -> tuple[float, int]:
    """Seconds of a turn, committed, and the leases it gave; before it, so many slots become free."""
    with store.begin() as conn:
        now = read_now(conn)
        conn.execute(text(_GIVEN_BACK))
        conn.execute(update(tables.nodes).values(seen_at=now, drained=True))
        open_ones = tables.nodes.c.name.in_(names[: -(-leases // slots)])
        conn.execute(update(tables.nodes).where(open_ones).values(drained=False))
    begin = time.perf_counter()
    with store.begin() as conn:
        given = tick(conn, read_now(conn), context, ("admit", "allocate"))
    return time.perf_counter() - begin, len(given)


def _context(sites: Sequence[str]) -> Context:
    limits = Limits(per_address_per_s=1000.0, total_per_s=10000.0)
    engines = {
        f"engine{n}": Engine(
            kind=Kind.META, url=f"http://engine{n}/s", params={"q": "{query}"}, results=RESULT_RULES
        )
        for n in range(_ENGINES)
    }
    named = {site: CatalogSite(engine=f"engine{n % _ENGINES}", rules="list") for n, site in enumerate(sites)}
    catalog = Catalog(name="scale", limits=limits, rules={"list": RULES}, engines=engines, sites=named)
    settings = LoopSettings()
    # Nodes take what their slots hold: what is measured is a turn, not how long a buffer lasts.
    settings = replace(settings, buffer=replace(settings.buffer, slots_over=0, refill_s=0.0))
    return Context(catalog, settings, HostBook(catalog), Random(1), Mind(settings.strategy))


def _begin(conn: Connection, sites: Sequence[str], names: Sequence[str], slots: int) -> None:
    """Nodes, one product with a task a site, and statistics."""
    rng, now = Random(1), read_now(conn)
    for name in names:
        nodes.register(conn, now, Node(name, frozenset({Kind.META}), slots))
    row: Mapping[str, object] = {"keywords": [], "aliases": [], "created_at": now}
    conn.execute(insert(products), [{"name": "scale", **row}])
    conn.execute(insert(virtual_tasks), [{"product_id": 1, "planned_at": now, **row}])
    conn.execute(
        insert(tasks),
        [
            {
                "virtual_task_id": 1,
                "product_id": 1,
                "site": site,
                "engine": f"engine{n % _ENGINES}",
                "kind": "meta",
                "chunks": [],
                "created_at": now,
            }
            for n, site in enumerate(sites)
        ],
    )
    conn.execute(
        insert(pair_stats),
        [
            {
                "site": site,
                "node": name,
                "faded_at": now,
                **{f"{f}{key}": value for f in ("", "f_") for key, value in _SUMS.items()},
                "f_active_s": rng.uniform(30, 200),
            }
            for site in sites
            for name in names
        ],
    )


_SUMS = MappingProxyType({"attempts": 9, "failed": 1, "offered": 180, "tried": 180, "collected": 150})

_GIVEN_BACK = """
UPDATE subtasks SET state = 'PRIORITY', lease_token = NULL, lease_node = NULL, lease_deadline = NULL,
lease_started = false, attempt_id = NULL WHERE state = 'CRAWL'
"""
_SUBTASKS = """
INSERT INTO subtasks (task_id, product_id, site, kind, chunk, state, failed_on, "left", created_at, changed_at)
SELECT 1 + n % :sites, 1, 'site' || (n % :sites) || '.cn', 'meta', 1, 'PRIORITY', '[]', 1 + n % 50, :now, :now
"""
_NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS (SELECT :least UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :size) ",
    "postgresql": "WITH numbers AS (SELECT generate_series(:least, :size - 1) AS n) ",
}


def _queue(store: Store, sites: int, there: int, size: int) -> None:
    """Make as many subtasks as are missing to the size; what earlier turns took is made up for."""
    with store.begin() as conn:
        now = read_now(conn)
        queued = conn.execute(select(func.count()).select_from(tables.subtasks))
        least = int(queued.scalar_one())
        statement = _NUMBERS[store.engine.dialect.name] + _SUBTASKS + " FROM numbers"
        if store.is_sqlite:  # WITH may not come before INSERT ... SELECT there, but within it may
            head, tail = _SUBTASKS.split("SELECT", 1)
            statement = f"{head}{_NUMBERS['sqlite']} SELECT{tail} FROM numbers"
        told = now.isoformat(sep=" ") if not store.is_sqlite else now.replace(tzinfo=None).isoformat(" ")
        conn.execute(
            text(statement), {"sites": sites, "least": least, "size": least + size - there, "now": told}
        )
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql("ANALYZE" if store.is_sqlite else "VACUUM ANALYZE")
