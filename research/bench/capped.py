"""A query with more hits than its engine lists: what plain paging finds, and what asking range of time by range finds.

One product on one site with a known number of pages in the lab, whose engine lists 760 hits of a query. Each run has an
empty store and a lab of its own (another process) that serves every page: what is not found was not listed.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml
from sqlalchemy import Connection, select

from app.run import open_store
from app.run.embedded import EmbeddedRunner
from app.run.settings import Settings
from app.run.until import Until
from app.run.version import ROOT
from research.tools.labs import lab_process
from splitter.catalog.names import Kind
from splitter.query import product_query
from tasks.store import coverage, partitions, products, reports
from tasks.store.database import read_now
from tasks.store.nodes import Node
from tasks.store.products import NewProduct
from tasks.store.tables import tasks
from tasks.store.verify import verify

NAME = "光明高钙牛奶"
SITE = "cca.org.cn"
HITS = 3000
CAP = 760
_SECONDS = 600.0
_BASE = ROOT / "splitter" / "data" / "paper-2014.yaml"
_TIMES = {"params": {"gpc": "stf={from_s},{to_s}|stftype=1"}, "least": "hour"}


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Crawl twice: an engine that knows no ranges of time, then the same one that does.

    Returns:
        ``ratios``: share of the known pages that were stored; ``figures``: of each run pages known, stored, found and
        where that number comes from, requests asked of the engine, parts, seconds, violations that `verify` found.
    """
    told = {"plain": crawled(divides=False, hits=HITS), "split": crawled(divides=True, hits=HITS)}
    return {
        "bench": "capped",
        "ratios": {f"{name}.stored": round(one["stored"] / one["known"], 4) for name, one in told.items()},
        "figures": told,
    }


def crawled(*, divides: bool, hits: int) -> dict[str, Any]:
    """What three nodes find of a query with so many pages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sites, profile = folder / "sites.yaml", folder / "profile.yaml"
        sites.write_text(yaml.safe_dump(_catalog(divides=divides), allow_unicode=True), "utf-8")
        profile.write_text(yaml.safe_dump({"name": "capped", "hits": {SITE: hits}}), "utf-8")
        with lab_process(str(profile), sites=str(sites)) as address:
            settings = Settings(
                database_url=f"sqlite:///{folder}/run.db", sites=str(sites), lab=address, seed=1
            )
            return _crawled(settings, address)


def _crawled(settings: Settings, address: tuple[str, int]) -> dict[str, Any]:
    keywords = product_query(NAME).keywords
    catalog = settings.catalog()
    begin = time.monotonic()
    with open_store.opened_store(settings) as store:
        with store.begin() as conn:
            products.add(conn, read_now(conn), NewProduct(name=NAME, keywords=keywords))
        nodes = [Node(f"node{n}", frozenset(Kind), 4, f"127.0.0.{n + 1}") for n in range(1, 4)]
        until = Until(done=True, seconds=_SECONDS)
        asyncio.run(EmbeddedRunner(settings, catalog, store, nodes, until).run())
        seconds = time.monotonic() - begin
        with store.read() as conn:
            return _told(conn) | {
                "known": _known(address, keywords),
                "engine_requests": _asked(address, "www.baidu.com"),
                "seconds": round(seconds, 1),
            }


def _told(conn: Connection) -> dict[str, Any]:
    (task,) = conn.execute(select(tasks)).all()
    (covered,) = coverage.product_coverages(conn, lambda _: CAP).values()
    return {
        "stored": reports.totals(conn).pages,
        "found": task.found,
        "provenance": str(task.found_provenance),
        "reported": task.found_reported,
        "coverage": covered.share,
        "parts": len(partitions.partitions_of_tasks(conn, [task.id])),
        "violations": len(verify(conn, read_now(conn)).violations),
    }


def _catalog(*, divides: bool) -> dict[str, Any]:
    """The catalog of 2014 with this one site, the engine's cap, and limits that don't slow the run down."""
    document: dict[str, Any] = yaml.safe_load(_BASE.read_text("utf-8"))
    fast = {"per_address_per_s": 1000, "total_per_s": 10000}
    engine = document["engines"]["baidu"] | {"limits": fast, "max_hits": CAP}
    if divides:
        engine["times"] = _TIMES
    pages = CAP // engine["hits_per_page"]
    site = document["sites"][SITE] | {"limits": fast, "pages": pages, "chunk_pages": 10}
    return document | {"name": "capped", "engines": {"baidu": engine}, "sites": {SITE: site}}


def _known(address: tuple[str, int], keywords: tuple[str, ...]) -> int:
    """Different pages there are: by the lab's own account, which no cap of an engine shortens."""
    query = urlencode({"site": SITE, "keywords": ",".join(keywords), "all": "1"})
    return len(json.loads(_own(address, f"/__truth?{query}")))


def _asked(address: tuple[str, int], host: str) -> int:
    """Requests the lab answered for a host, but for its robots.txt."""
    entries = [json.loads(line) for line in _own(address, "/__log").splitlines()]
    return sum(one["host"] == host and one["outcome"] != "robots" for one in entries)


def _own(address: tuple[str, int], path: str) -> str:
    connection = HTTPConnection(*address, timeout=30)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()
