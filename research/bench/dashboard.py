"""How long each page of the dashboard takes on a store with a million subtasks.

The store: a story of the loop copied by SQL (`research.tools.verify_store`), and then subtasks with their attempts and
targets alone: a third of them in PRIORITY, a twentieth of the others in MANUAL, WAIT as full as it gets. Each page is
asked for over HTTP, once and several times more; before them one that reads nothing, since the server makes its routes
for its first answer.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select, text

from app.run.settings import Settings
from app.web.address import listening
from app.web.server import serving
from research.tools import scale_store, verify_store
from splitter.catalog.names import Kind
from tasks.jobs.context import LoopSettings
from tasks.store import nodes
from tasks.store.database import Store, read_now, unhurried
from tasks.store.nodes import Node
from tasks.store.tables import attempts, metadata, subtasks, targets

SUBTASKS = 1_000_000
EVENTS = 100_000
TIMES = 5
PATHS = (
    "healthz", "", "matrix", "failed", "failed/1", "reviews", "reviews?q=投诉", "reviews/1", "products", "products/1",
    "schedules", "nodes", "sites", "sites/12315.com", "audit", "metrics",
)  # fmt: skip


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure both databases.

    Returns:
        ``ratios``: by database `slowest_ms`, the median of the slowest page, `slowest_first_ms` of first times, and
        `slowest_cpu_ms` and `slowest_first_cpu_ms`, of CPU time of server and database. ``figures``: the same by page.
    """
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {"subtasks": SUBTASKS}
    for name, started in scale_store.SERVERS.items():
        with (
            tempfile.TemporaryDirectory(prefix="reviewloop-dashboard-") as folder,
            started(Path(folder)) as server,
        ):
            url = server.url("dashboard")
            store = Store.open(url)
            try:
                fill(store, SUBTASKS)
                taken = _asked(store, Settings(database_url=url, sites="paper-2014"), server)
            finally:
                store.close()
        for n, what in enumerate(("first_ms", "ms", "first_cpu_ms", "cpu_ms")):
            figures |= {f"{name}./{path}.{what}": of[n] for path, of in taken.items()}
            ratios[f"{name}.slowest_{what}"] = max(of[n] for of in taken.values())
    return {"bench": "dashboard", "ratios": ratios, "figures": figures}


def fill(store: Store, n: int) -> None:
    """Migrate an empty store and fill it with at least so many subtasks, each with an attempt and a target."""
    verify_store.fill(store, min(EVENTS, n))
    with store.begin() as conn:
        for name in ("n0", "n1", "n2", "n3"):
            nodes.register(conn, read_now(conn), Node(name, frozenset({Kind.META}), 4))
        there = conn.execute(select(func.count()).select_from(subtasks)).scalar_one()
    while there < n:
        with store.begin() as conn, unhurried(conn):
            _double(conn)
        there *= 2
    with store.begin() as conn, unhurried(conn):
        conn.execute(
            text("UPDATE subtasks SET state = 'PRIORITY' WHERE id % 3 = 0 AND parent_id IS NOT NULL")
        )
        conn.execute(
            text(
                "UPDATE subtasks SET state = 'MANUAL', reason = 'blocked' "
                "WHERE id % 20 = 7 AND state = 'DONE' AND parent_id IS NOT NULL"
            )
        )
        # WAIT is bounded (`tasks.scheduling.admission`).
        conn.execute(
            text(
                "UPDATE subtasks SET state = 'WAIT' WHERE id IN (SELECT id FROM subtasks "
                "WHERE state = 'DONE' AND parent_id IS NOT NULL ORDER BY id DESC LIMIT :most)"
            ),
            {"most": LoopSettings().wait_limit},
        )
    verify_store.settle(store)


def _double(conn: Connection) -> None:
    """Each subtask once more, as one that carries on the first, with its attempts and result pages."""
    most = conn.execute(select(func.max(subtasks.c.id))).scalar_one()
    for table in (subtasks, attempts, targets):
        own = conn.execute(select(func.max(table.c.id))).scalar_one()
        changed = {
            "id": f"id + {own}",
            "parent_id": "id",
            "subtask_id": f"subtask_id + {most}",
            "attempt_id": "NULL",
            "url": f"url || '.{own}'",
            "url_key": _key(conn, f"id + {own}"),
        }
        columns = [column.name for column in metadata.tables[table.name].columns]
        values = ", ".join(changed.get(name, f'"{name}"') for name in columns)
        named = ", ".join(f'"{name}"' for name in columns)
        only = " WHERE kind = 'result'" if table is targets else ""
        conn.execute(text(f"INSERT INTO {table.name} ({named}) SELECT {values} FROM {table.name}{only}"))


def _key(conn: Connection, number: str) -> str:
    """Sixteen bytes that only one number has, as SQL."""
    if conn.dialect.name == "sqlite":
        return f"CAST(printf('%016d', {number}) AS BLOB)"
    return f"lpad(({number})::text, 16, '0')::bytea"


def _asked(
    store: Store, settings: Settings, server: scale_store.Server
) -> dict[str, tuple[float, float, float, float]]:
    """Milliseconds of each page: the first time, the median of some more; the CPU time of both."""
    with store.read() as conn:
        site, node = conn.execute(
            select(attempts.c.site, attempts.c.node).order_by(attempts.c.id).limit(1)
        ).one()
    with listening("127.0.0.1", 0) as sock, serving(settings, store, sock) as address:
        taken = {}
        for path in (*PATHS, f"pairs/{site}/{node}"):
            url = address + urllib.parse.quote(path, safe="/?=")
            began_s = server.cpu_s()
            first, first_s = _get_ms(url), server.cpu_s()
            others = [_get_ms(url) for _ in range(TIMES)]
            cpu_ms = 1000 * (server.cpu_s() - first_s) / TIMES
            first_cpu_ms = 1000 * (first_s - began_s)
            taken[path] = (first, statistics.median(others), round(first_cpu_ms, 1), round(cpu_ms, 1))
        return taken


def _get_ms(url: str) -> float:
    began_s = time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=600) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        raise RuntimeError(f"{url}: {error.code}") from None
    return round(1000 * (time.monotonic() - began_s), 1)
