"""Turns of the scheduler on a store that holds a long queue: what `research.bench.scale` measures with real tables.

The queue is put in by SQL; so are, outside of what is timed, the ends of attempts between two turns: what was leased is
DONE, and as many new subtasks are queued behind the others, so that a queue stays as long as it is and no row is leased
twice. Statistics of every (site, node) are there, as after some days.

Every size has a database of its own, all on one server, and they take turns, so that a machine that slows down slows
all of them. Beside the time on the clock stands CPU time: of this process and, where Linux tells it, of the server.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import MappingProxyType

from sqlalchemy import insert, make_url, text, update

from app.run.cluster.servers import PostgresServer
from app.run.version import MIGRATIONS
from research.tools.meter import cpu_s
from research.tools.pages import catalog_of
from research.tools.processes import running
from splitter.catalog.names import Kind
from tasks.fetching.hosts import HostCatalog
from tasks.jobs.context import Context, LoopSettings
from tasks.jobs.scheduler_state import SchedulerState
from tasks.jobs.ticks import tick
from tasks.store.queue import nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql import schema, tables
from tasks.store.sql.database import Store, lift_limits
from tasks.store.sql.tables import pair_stats, products, tasks, virtual_tasks
from tasks.store.sql.transaction import Transaction

_ENGINES = 8


@dataclass(frozen=True, slots=True)
class Server:
    """Where databases are.

    Attributes:
        url: of a database by its name.
        pid: of the server; None: the database is a library of this process.
    """

    url: Callable[[str], str]
    pid: int | None = None

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server so far; 0 without one."""
        return cpu_s(self.pid) if self.pid is not None else 0.0


@contextmanager
def _sqlite(folder: Path) -> Iterator[Server]:
    yield Server(lambda name: f"sqlite:///{folder / name}.db")


@contextmanager
def _postgres(folder: Path) -> Iterator[Server]:
    server = PostgresServer(folder / "postgres", folder / "postgres.log", lambda _line: None)
    with running(server) as pid:
        yield Server(lambda name: _created(server.url, name), pid)


def _created(url: str, name: str) -> str:
    """Create a database, and return its URL."""
    store = Store.open(url)
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.exec_driver_sql(f'CREATE DATABASE "{name}"')
    store.close()
    return make_url(url).set(database=name).render_as_string(hide_password=False)


SERVERS = MappingProxyType({"sqlite": _sqlite, "postgres": _postgres})
"""Starts each kind, with its data in a folder."""


@dataclass(frozen=True, slots=True)
class _Turn:
    clock_s: float
    cpu_s: float
    given: int


def measure_turns(
    server: Server,
    nodes_and_sites: tuple[int, int],
    slots: int,
    sizes: Sequence[int],
    count: int,
    leases: int,
) -> dict[str, float]:
    """Measure `count` turns of `leases` leases each with each of `sizes` subtasks in PRIORITY.

    Returns:
        By size: milliseconds of a turn on the clock, the median (``full_ms``), leases a second on the clock (``leases_per_s``),
        microseconds of CPU a lease (``lease_cpu_us``), and milliseconds of the first turn (``first_ms``: everything is read then).
    """
    names = [f"n{n}" for n in range(nodes_and_sites[0])]
    sites = [f"site{n}.cn" for n in range(nodes_and_sites[1])]
    figures: dict[str, float] = {}
    with ExitStack() as stack:
        loops: dict[int, _Loop] = {}
        for size in sizes:
            store = Store.open(server.url(f"scale_{size}"))
            stack.callback(store.close)
            loops[size] = _Loop(server, store, names, sites, slots, size)
            figures[f"first_ms.{size}"] = round(loops[size].turn(leases).clock_s * 1e3, 1)
        measured = {size: list[_Turn]() for size in sizes}
        for loop in loops.values():
            loop.turn(leases)  # not counted: the number of open nodes has just changed
        for _ in range(count):
            for size, loop in loops.items():
                measured[size].append(loop.turn(leases))
    for size, each in measured.items():
        figures[f"full_ms.{size}"] = round(statistics.median(one.clock_s for one in each) * 1e3, 1)
        figures[f"leases_per_s.{size}"] = round(statistics.median(one.given / one.clock_s for one in each), 1)
        used_s, given = sum(one.cpu_s for one in each), sum(one.given for one in each)
        figures[f"lease_cpu_us.{size}"] = round(1e6 * used_s / given, 1)
    return figures


class _Loop:
    """A database with a queue that stays as long as it is, and the scheduler that leases it out."""

    def __init__(
        self,
        server: Server,
        store: Store,
        names: Sequence[str],
        sites: Sequence[str],
        slots: int,
        size: int,
    ) -> None:
        self._server, self._store = server, store
        self._names, self._slots, self._sites = names, slots, len(sites)
        self._context = _context(sites)
        self._made = 0
        schema.upgrade(store, MIGRATIONS)
        with store.begin() as load, lift_limits(load):
            _begin(load, sites, names, slots)
            self._queue(load, size)
        if not store.is_sqlite:  # the product collects no statistics of a SQLite file
            with store.engine.connect() as conn:
                # The load is no part of what is measured, neither is writing it to the disk.
                for statement in ("VACUUM ANALYZE", "CHECKPOINT"):
                    conn.exec_driver_sql(statement)

    def turn(self, leases: int) -> _Turn:
        """Free slots for `leases`, then measure a turn of the scheduler, committed."""
        with self._store.begin() as conn:
            now = conn.now
            self._queue(conn, conn.engine_connection.execute(text(_DONE)).rowcount)
            conn.engine_connection.execute(update(tables.nodes).values(seen_at=now, drained=True))
            open_ones = tables.nodes.c.name.in_(self._names[: -(-leases // self._slots)])
            conn.engine_connection.execute(update(tables.nodes).where(open_ones).values(drained=False))
        server_s, begin_cpu_s, begin_s = self._server.cpu_s(), time.process_time(), time.perf_counter()
        with self._store.begin() as conn:
            given = tick(conn, self._context, ("admit", "allocate"))
        clock_s, used_s = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
        return _Turn(clock_s, used_s + self._server.cpu_s() - server_s, len(given))

    def _queue(self, tx: Transaction, count: int) -> None:
        """So many more subtasks in PRIORITY."""
        sqlite = self._store.is_sqlite
        numbers = _NUMBERS["sqlite" if tx.is_sqlite else "postgresql"]
        statement = f"{numbers} {_SUBTASKS}"
        if sqlite:  # WITH may not come before INSERT ... SELECT there, but within it may
            head, tail = _SUBTASKS.split("SELECT", 1)
            statement = f"{head} {numbers} SELECT {tail}"
        now = tx.now
        told = now.replace(tzinfo=None).isoformat(" ") if sqlite else now.isoformat(" ")
        told_by = {"sites": self._sites, "least": self._made, "size": self._made + count, "now": told}
        if count:
            tx.engine_connection.execute(text(statement), told_by)
        self._made += count


def _context(sites: Sequence[str]) -> Context:
    catalog = catalog_of(sites, [f"engine{n}" for n in range(_ENGINES)])
    settings = LoopSettings()
    # Nodes take what their slots hold: what is measured is a turn, not how long a buffer lasts.
    settings = replace(settings, buffer=replace(settings.buffer, slots_over=0, refill_s=0.0))
    return Context(catalog, settings, HostCatalog(catalog), Random(1), SchedulerState(settings.strategy))


def _begin(tx: Transaction, sites: Sequence[str], names: Sequence[str], slots: int) -> None:
    """Nodes, one product with a task a site, and statistics."""
    rng, now = Random(1), tx.now
    for name in names:
        nodes.register(tx, Node(name, frozenset({Kind.META}), slots))
    row: Mapping[str, object] = {"keywords": [], "aliases": [], "created_at": now}
    tx.engine_connection.execute(insert(products), [{"name": "scale", **row}])
    tx.engine_connection.execute(insert(virtual_tasks), [{"product_id": 1, "planned_at": now, **row}])
    tx.engine_connection.execute(
        insert(tasks),
        [
            {
                "virtual_task_id": 1,
                "product_id": 1,
                "site": site,
                "engine": f"engine{n % _ENGINES}",
                "kind": "meta",
                "created_at": now,
            }
            for n, site in enumerate(sites)
        ],
    )
    tx.engine_connection.execute(
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

_DONE = """
UPDATE subtasks SET state = 'DONE', lease_token = NULL, lease_node = NULL, lease_deadline = NULL,
lease_started = false, attempt_id = NULL WHERE state = 'CRAWL'
"""
_SUBTASKS = """
INSERT INTO subtasks (task_id, product_id, site, kind, chunk, state, failed_on, "left", created_at, changed_at)
SELECT 1 + n % :sites, 1, 'site' || (n % :sites) || '.cn', 'meta', 1, 'PRIORITY', '[]', 1 + n % 50, :now, :now
FROM numbers
"""
_NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS (SELECT :least UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :size)",
    "postgresql": "WITH numbers AS (SELECT generate_series(:least, :size - 1) AS n)",
}
