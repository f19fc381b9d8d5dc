"""What each strategy adds: the same work in the lab's default profile, with one strategy switched off at a time.

Every run starts with an empty store and the same products, four nodes and a lab of its own (another process), and
lasts equally long; there is more work than can be done in it. Variants take turns within a seed, so that a machine
that slows down slows all of them.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.run import open_store
from app.run.embedded import EmbeddedRunner
from app.run.settings import Settings
from app.run.until import Until
from research.tools.labs import lab_process
from splitter.catalog.names import Kind
from splitter.query import product_query
from tasks.domain.pair_stats import PairStats
from tasks.store import products, queue_counts, reports
from tasks.store.database import read_now
from tasks.store.nodes import Node
from tasks.store.products import NewProduct

SEEDS = (1, 2, 3)
SECONDS = 30.0
CATALOG = "paper-2014"
NAMES = [
    "光明高钙牛奶",
    "特仑苏",
    "蒙牛早餐奶",
    "雀巢中老年奶粉",
    "伊利优酸乳",
    "伊利谷粒多",
    "蒙牛新养道",
    "蒙牛纯甄",
    "光明莫斯利安",
    "三元纯牛奶",
    "君乐宝酸奶",
    "旺仔牛奶",
    "伊利金典纯牛奶",
    "安怡高钙低脂奶粉",
    "伊利QQ星",
    "合生元奶粉",
]

VARIANTS: dict[str, dict[str, Any]] = {
    "all three": {},
    "allocation off": {"allocation": "random"},
    "modification off": {"modification": False},
    "recall off": {"recall": False},
}


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure every variant with every seed.

    Returns:
        ``ratios``: median over the seeds of pages stored, against all three strategies on; ``figures``: by variant
        the median, least and most of each count.
    """
    base = Settings(silent_after_s=10.0, rest_factor=0.05, request_timeout_s=5.0)
    counted: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
    for seed in SEEDS:
        for name, options in VARIANTS.items():
            counted[name].append(crawled(replace(base, seed=seed, **options), seed, SECONDS))
    figures = {name: _spread(runs) for name, runs in counted.items()}
    full = [r["pages"] for r in counted["all three"]]
    ratios = {
        f"pages.{name}": round(
            statistics.median(r["pages"] / max(1.0, f) for r, f in zip(runs, full, strict=True)), 3
        )
        for name, runs in counted.items()
    }
    return {"bench": "ablation", "ratios": ratios, "figures": {"seconds_a_run": SECONDS, **figures}}


def _spread(runs: list[dict[str, float]]) -> dict[str, list[float]]:
    return {
        key: [
            round(value, 3)
            for value in (
                statistics.median(r[key] for r in runs),
                min(r[key] for r in runs),
                max(r[key] for r in runs),
            )
        ]
        for key in runs[0]
    }


def crawled(settings: Settings, seed: int, seconds: float) -> dict[str, float]:
    """What four nodes crawl of a new lab in so many seconds, from an empty store."""
    with tempfile.TemporaryDirectory() as folder, lab_process("default", sites=CATALOG, seed=seed) as address:
        settings = replace(settings, database_url=f"sqlite:///{folder}/run.db", lab=address, sites=CATALOG)
        catalog = settings.catalog()
        with open_store.opened_store(settings) as store:
            with store.begin() as conn:
                now = read_now(conn)
                for name in NAMES:
                    products.add(
                        conn, now, NewProduct(name=name, keywords=product_query(name).keywords, pages=3)
                    )
            nodes = [Node(f"node{n}", frozenset(Kind), 4, f"127.0.0.{n + 1}") for n in range(1, 5)]
            runner = EmbeddedRunner(settings, catalog, store, nodes, Until(seconds=seconds))
            asyncio.run(runner.run())
            with store.read() as conn:
                totals = reports.totals(conn)
                pairs = reports.pairs(conn)
                queues = queue_counts.counts(conn)
    stats = sum((pair.stats for pair in pairs), PairStats())
    return {
        "pages": totals.pages,
        "reviews": totals.reviews,
        "completion": stats.completion or 0.0,
        "active_s_per_page": stats.active_s / max(1, totals.pages),
        "recalls": totals.recalls,
        "manual": queues["MANUAL"],
    }
