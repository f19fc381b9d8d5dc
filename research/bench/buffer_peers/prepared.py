"""The database the buffer bench begins with: products planned on every site, and the known pages stored.

All goes in once; each run gets a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sqlalchemy import URL, create_engine, func, insert, make_url, select
from sqlalchemy.pool import NullPool

from app.run import sweep_wiring
from app.run.open_store import open_store
from app.run.setting_fields import Settings
from research.bench.buffer_peers.web import POOL_OF_A_SITE, SITES, catalog, known_url
from research.bench.crawl_peers.web import keyword, site
from tasks.domain.page_key import canonical, page_key
from tasks.jobs import planning, sweeps
from tasks.jobs.partitioning import search_urls
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queue import tasks
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, pages, targets

_TEMPLATE = "prepared"


class Databases:
    """Makes the copies. Nobody may be connected to the prepared database meanwhile."""

    def __init__(self, server: str) -> None:
        self._server = make_url(server)

    def prepare(self, results: int) -> None:
        """Make the database with so many result pages to be read (a multiple of `SITES`)."""
        self._execute(f"CREATE DATABASE {_TEMPLATE}")
        settings = Settings(database_url=_text(self._server.set(database=_TEMPLATE)))
        with open_store(settings) as store:
            _store_known(store)
            _plan(store, [keyword(number) for number in range(results // SITES)])
            with store.begin() as conn:
                sweeps.admit(conn, sweep_wiring.context(settings, catalog()))

    @contextmanager
    def copy(self, name: str) -> Iterator[URL]:
        """A copy under a name, dropped at the end whoever is connected."""
        self._execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE} STRATEGY FILE_COPY", "CHECKPOINT")
        try:
            yield self._server.set(database=name)
        finally:
            self._execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _execute(self, *statements: str) -> None:
        engine = create_engine(self._server, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as conn:
            for statement in statements:
                conn.exec_driver_sql(statement)


def results_read(store: Store) -> int:
    """Result pages whose hits are stored."""
    with store.read() as conn:
        read = (targets.c.kind == "result") & (targets.c.reason == "read")
        return int(conn.engine_connection.execute(select(func.count()).where(read)).scalar_one())


def attempts_of(store: Store) -> dict[str, int]:
    """Attempts by outcome; those that run: "open"."""
    with store.read() as conn:
        rows = conn.engine_connection.execute(
            select(attempts.c.outcome, func.count()).group_by(attempts.c.outcome)
        )
        return {outcome or "open": n for outcome, n in rows}


def _store_known(store: Store) -> None:
    """Store the known pages, as if they had been imported."""
    with store.begin() as conn:
        now = conn.now
        urls = [
            (site(n), canonical(known_url(n, place))) for n in range(SITES) for place in range(POOL_OF_A_SITE)
        ]
        shared = {"content_hash": "", "encoding": "utf-8", "fetched_at": now, "node": ""}
        conn.engine_connection.execute(
            insert(pages), [{"url": url, "url_key": page_key(url), "site": of, **shared} for of, url in urls]
        )


def _plan(store: Store, names: list[str]) -> None:
    wanted = catalog()
    with store.begin() as conn:
        for name in names:
            products.add(conn, NewProduct(name=name, keywords=(name,)))
        for virtual_task in tasks.list_unplanned(conn, len(names)):
            planned = planning.plan_tasks(wanted, virtual_task, tuple(site(n) for n in range(SITES)))
            tasks.plan(conn, virtual_task, planned, partial(search_urls, wanted))


def _text(url: URL) -> str:
    return url.render_as_string(hide_password=False)
