"""How long questions about themes take over a million reviews of 5,000 products, on SQLite and on PostgreSQL.

The store is made by SQL, as a crawl of three years leaves it: pages of up to 28 reviews at 12 sites, a quarter of them
complaints, and one product with 4.5 % of all reviews. Every answer is whole: counts, shares, states, trends and quotes.
Pages are asked for over HTTP, each for the first time, after the sweep has judged the week.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import requests

from app.insight.themes import judge_rises, list_themes
from app.run.setting_fields import Settings
from app.run.version import MIGRATIONS
from app.views.moments import local_time
from app.web.address import listening
from app.web.server import serving
from research.tools.scale_store import SERVERS
from research.tools.verify_store import settle
from splitter.catalog.load import builtin
from tasks.store.content import counted_reviews
from tasks.store.queries import themes
from tasks.store.queries.themes import Period
from tasks.store.queue.upkeep import store_value
from tasks.store.sql import schema
from tasks.store.sql.database import Store, lift_limits
from tasks.store.sql.transaction import Transaction

_NOW = datetime.now(UTC)
_TODAY = local_time(_NOW).date()
_BEGUN = _NOW - timedelta(days=1_100)
_DAYS = 1_090
_MOST_DELAY = 7
_THEMES = (
    "foreign_matter",
    "spoiled",
    "smell_taste",
    "malfunction",
    "packaging_damage",
    "delivery",
    "service",
    "price",
)
_CATALOG = "today"
_SITES = list(builtin(_CATALOG).sites)[::5][:12]
_VOICES = ("complaint", "praise", "question", "other")
_SHARES = (25, 60, 5, 10)
_LARGEST = 0.045
_PAGE = 28
_AT_ONCE = 4_000
_TEXT = "这个牛奶喝了第一口就发现结块了打电话给客服也没有人理会" * 3
_TRIES = 3
_REVIEW_COLUMNS = ("key", "title", "body", "author", "date_text", "day", "voice", "themes", "collected_at")


def run(_shared: object, smallest: bool) -> dict[str, Any]:
    """Measure both databases.

    Returns:
        ``ratios``: by database, milliseconds of the themes of the largest product (all days, and 90), of the whole page
        of the largest product, and of the list by complaints, by change and summed by brand. ``figures``: seconds of
        judging all products, and sizes.
    """
    reviews = 5_000 if smallest else 1_000_000
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {"reviews": reviews}
    for name, started in SERVERS.items():
        with (
            tempfile.TemporaryDirectory(prefix="reviewloop-insight-") as folder,
            started(Path(folder)) as server,
            closing(Store.open(url := server.url("insight"))) as store,
        ):
            _fill(store, reviews)
            begin_s = time.perf_counter()
            with store.begin(now=_NOW) as tx:
                store_value(tx, themes.RISES, tx.now, judge_rises(tx, _TODAY, {}))
            figures[f"{name}.judging_all_s"] = round(time.perf_counter() - begin_s, 1)
            for question, ask in _QUESTIONS.items():
                ratios[f"{name}.{question}_ms"] = round(1000 * _time(store, ask), 1)
            for page, seconds in _time_pages(url, store).items():
                ratios[f"{name}.{page}_ms"] = round(1000 * seconds, 1)
    return {"bench": "insight", "ratios": ratios, "figures": figures}


def _time(store: Store, ask: Callable[[Transaction], object]) -> float:
    """Return the seconds of the fastest of some answers."""
    found = []
    for _ in range(_TRIES):
        with store.read(now=_NOW) as tx:
            begin_s = time.perf_counter()
            ask(tx)
            found.append(time.perf_counter() - begin_s)
    return min(found)


def _time_pages(url: str, store: Store) -> dict[str, float]:
    """Return the seconds of the fastest whole answer of each page, each with a period that was not asked for before."""
    settings = Settings(database_url=url, sites=_CATALOG)
    found: dict[str, float] = {}
    with (
        requests.Session() as session,
        listening("127.0.0.1", 0) as sock,
        serving(settings, store, sock) as address,
    ):
        session.trust_env = False
        session.get(f"{address}products/2").raise_for_status()  # it loads the modules
        for name, path in _PAGES.items():
            times = []
            for days in range(88, 88 + _TRIES):
                begin_s = time.perf_counter()
                session.get(f"{address}{path}", params={"days": days}).raise_for_status()
                times.append(time.perf_counter() - begin_s)
            found[name] = min(times)
    return found


_PAGES = {
    "product_page": "products/1",
    "products_page": "products",
    "products_by_change": "products?sort=change",
    "products_by_brand": "products?by=brand",
}
_RECENT = Period(_TODAY - timedelta(days=90), _TODAY)


_QUESTIONS: dict[str, Callable[[Transaction], object]] = {
    "themes": lambda tx: list_themes(tx, {1: "1"}, Period(), _TODAY, {}),
    "themes_90_days": lambda tx: list_themes(tx, {1: "1"}, _RECENT, _TODAY, {}),
}


def _fill(store: Store, reviews: int) -> None:
    schema.upgrade(store, MIGRATIONS)
    rng = Random(2)
    products = max(2, reviews // 200)
    weights = [1 / (number + 20) for number in range(products)]
    weights[0] = _LARGEST * sum(weights[1:]) / (1 - _LARGEST)
    columns = ("id", "name", "name_key", "keywords", "aliases", "created_at")
    with store.begin() as tx:
        made: list[tuple[Any, ...]] = [
            (number, str(number), str(number), [], [], tx.now) for number in range(1, products + 1)
        ]
        tx.insert("products", columns, made)
        rounds: list[tuple[Any, ...]] = [
            (number, ["蒙牛", "牛奶"], [], tx.now) for number in range(1, products + 1)
        ]
        tx.insert("virtual_tasks", ("product_id", "keywords", "aliases", "created_at"), rounds)
    chosen = rng.choices(range(1, products + 1), weights, k=reviews)
    page_id = 0
    for at in range(0, reviews, _AT_ONCE):
        with store.begin() as tx, lift_limits(tx):
            for product_id, n in _pages(sorted(chosen[at : at + _AT_ONCE])):
                page_id += 1
                _insert_page(tx, rng, page_id, product_id, n)
            counted_reviews.add_pages(tx, range(max(1, page_id - _AT_ONCE), page_id + 1))
    settle(store)


def _pages(products: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the product and the number of reviews of each page."""
    for product_id, left in sorted(Counter(products).items()):
        while left > 0:
            yield product_id, min(left, _PAGE)
            left -= _PAGE


def _insert_page(tx: Transaction, rng: Random, page_id: int, product_id: int, n: int) -> None:
    site = rng.choice(_SITES)
    url = f"http://{site}/{page_id}"
    columns = ("id", "url", "url_key", "site", "content_hash", "encoding", "node", "fetched_at", "reviews")
    tx.insert(
        "pages", columns, [(page_id, url, page_id.to_bytes(16, "big"), site, "x", "utf-8", "n", tx.now, n)]
    )
    tx.insert("page_products", ("page_id", "product_id", "linked_at"), [(page_id, product_id, _BEGUN)])
    rows: list[tuple[Any, ...]] = []
    for key in range(n):
        (voice,) = rng.choices(_VOICES, _SHARES)
        day = _TODAY - timedelta(days=rng.randrange(_DAYS))
        found = [(rng.choice(_THEMES), -1, 2, 12)] if voice == "complaint" else None
        seen = _NOW - timedelta(
            days=(_TODAY - day).days - min(rng.randrange(_MOST_DELAY), (_TODAY - day).days)
        )
        rows.append((str(key), "", _TEXT, "", "", day, voice, found, seen))
    shared = {
        "page_id": page_id, "url": url, "site": site, "text_hash": bytes(16), "node": "n",
    }  # fmt: skip
    tx.insert("reviews", _REVIEW_COLUMNS, rows, shared=shared)
