"""How long questions about themes take over a million reviews of 5,000 products, on SQLite and on PostgreSQL.

The store is made by SQL, as a crawl of three years leaves it: pages of up to 28 reviews at 12 sites, a quarter of them
complaints, and one product with 4.5 % of all reviews. Every answer is whole: counts, shares, states, trends and quotes.
Pages are asked for over HTTP, each for the first time, after the sweep has judged the week. Time on the clock grows with
whatever else the machine does, so CPU time stands beside it: of this process, and of the PostgreSQL server.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import requests

from app.insight.themes import judge_rises, list_themes
from app.run.process import collect_seldom
from app.run.setting_fields import Settings
from app.run.version import MIGRATIONS
from app.views.moments import local_time
from app.web.address import listening
from app.web.server import serving
from research.tools.scale_store import SERVERS, Server
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
_PAGES_AT_ONCE = 200
_TEXT = "这个牛奶喝了第一口就发现结块了打电话给客服也没有人理会" * 3
_TRIES = 5


def run(_shared: object, smallest: bool) -> dict[str, Any]:
    """Measure both databases.

    Returns:
        ``ratios``: by database and answer, milliseconds on the clock of the fastest of some tries. ``figures``: medians of
        the tries on the clock and in CPU (`_Took`). Answers: the themes of the largest product (all days, and 90), the
        pages of `_PAGES`, and what the sweep judges once a day.
    """
    collect_seldom()  # as every command does
    reviews = 5_000 if smallest else 1_000_000
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {"reviews": reviews}
    for name, started in SERVERS.items():
        with (
            tempfile.TemporaryDirectory(prefix="reviewloop-insight-") as folder,
            started(Path(folder)) as server,
            closing(Store.open(server.url("insight"))) as store,
        ):
            fill(store, reviews)
            for answer, tries in measure(server, store).items():
                ratios[f"{name}.{answer}_ms"] = round(min(one.clock_ms for one in tries), 1)
                for kind, values in zip(Took._fields, zip(*tries, strict=True), strict=True):
                    figures[f"{name}.{answer}.{kind}"] = round(statistics.median(values), 1)
    return {"bench": "insight", "ratios": ratios, "figures": figures}


class Took(NamedTuple):
    """Milliseconds of an answer: on the clock, of CPU in this process, and of CPU in the database's server."""

    clock_ms: float
    cpu_ms: float
    server_cpu_ms: float


def measure(server: Server, store: Store) -> dict[str, list[Took]]:
    """Ask each question some times, and return what each answer took."""

    def take(ask: Callable[..., object], *given: object) -> Took:
        server_s, cpu_s, begin_s = server.cpu_s(), time.process_time(), time.perf_counter()
        ask(*given)
        taken = time.perf_counter() - begin_s, time.process_time() - cpu_s, server.cpu_s() - server_s
        return Took(*(1000 * seconds for seconds in taken))

    def read(ask: Callable[[Transaction], object]) -> None:
        with store.read(now=_NOW) as tx:
            ask(tx)

    def judge() -> None:
        with store.begin(now=_NOW) as tx, lift_limits(tx):
            store_value(tx, themes.RISES, tx.now, judge_rises(tx, _TODAY, {}))

    found = {"judging_all": [take(judge) for _ in range(_TRIES)]}
    for question, ask in _QUESTIONS.items():
        found[question] = [take(read, ask) for _ in range(_TRIES)]
    settings = Settings(database_url=store.engine.url.render_as_string(hide_password=False), sites=_CATALOG)
    with (
        requests.Session() as session,
        listening("127.0.0.1", 0) as sock,
        serving(settings, store, sock) as address,
    ):
        session.trust_env = False

        def get(path: str, query: Mapping[str, str]) -> None:
            session.get(f"{address}{path}", params=query).raise_for_status()

        for path, _ in _PAGES.values():  # they load their modules
            get(path, {"days": "7"})
        for page, (path, query) in _PAGES.items():
            found[page] = [take(get, path, query(n)) for n in range(_TRIES)]
    return found


def _last_90(n: int) -> dict[str, str]:
    """Return a period that was not asked for before."""
    return {"days": str(90 - n)}


def _all_days(n: int) -> dict[str, str]:
    return {"from": (_BEGUN - timedelta(days=n)).date().isoformat(), "to": _TODAY.isoformat()}


_PAGES: dict[str, tuple[str, Callable[[int], dict[str, str]]]] = {
    "product_page": ("products/1", _last_90),
    "product_page_all_days": ("products/1", _all_days),
    "products_page": ("products", _last_90),
    "products_by_change": ("products?sort=change", _last_90),
    "products_by_brand": ("products?by=brand", _last_90),
    "reviews_page": ("reviews", _last_90),
    "reviews_page_all_days": ("reviews", _all_days),
}
_RECENT = Period(_TODAY - timedelta(days=90), _TODAY)


_QUESTIONS: dict[str, Callable[[Transaction], object]] = {
    "themes": lambda tx: list_themes(tx, {1: "1"}, Period(), _TODAY, {}),
    "themes_90_days": lambda tx: list_themes(tx, {1: "1"}, _RECENT, _TODAY, {}),
}


def fill(store: Store, reviews: int) -> None:
    """Make the tables of an empty store, and fill them."""
    schema.upgrade(store, MIGRATIONS)
    rng = Random(2)
    products = max(2, reviews // 200)
    with store.begin() as tx:
        columns = ("id", "name", "name_key", "keywords", "aliases", "created_at")
        made: list[tuple[Any, ...]] = [
            (number, str(number), str(number), [], [], tx.now) for number in range(1, products + 1)
        ]
        tx.insert("products", columns, made)
        rounds: list[tuple[Any, ...]] = [
            (number, ["蒙牛", "牛奶"], [], tx.now) for number in range(1, products + 1)
        ]
        tx.insert("virtual_tasks", ("product_id", "keywords", "aliases", "created_at"), rounds)
    pages = list(_draw_pages(rng, products, reviews))
    rng.shuffle(pages)
    for at in range(0, len(pages), _PAGES_AT_ONCE):
        with store.begin() as tx, lift_limits(tx):
            some = pages[at : at + _PAGES_AT_ONCE]
            _insert_pages(tx, rng, at + 1, some)
            counted_reviews.add_pages(tx, range(at + 1, at + 1 + len(some)))
    settle(store)


def _draw_pages(rng: Random, products: int, reviews: int) -> Iterator[tuple[int, int]]:
    """Yield the product and the number of reviews of each page."""
    weights = [1 / (number + 20) for number in range(products)]
    weights[0] = _LARGEST * sum(weights[1:]) / (1 - _LARGEST)
    for product_id, left in Counter(rng.choices(range(1, products + 1), weights, k=reviews)).items():
        while left > 0:
            yield product_id, min(left, _PAGE)
            left -= _PAGE


def _insert_pages(tx: Transaction, rng: Random, first: int, pages: Sequence[tuple[int, int]]) -> None:
    """Insert pages, numbered from `first` on, with their links and reviews."""
    stored: list[tuple[Any, ...]] = []
    links: list[tuple[Any, ...]] = []
    reviews: list[tuple[Any, ...]] = []
    for page_id, (product_id, n) in enumerate(pages, first):
        site = rng.choice(_SITES)
        url = f"http://{site}/{page_id}"
        stored.append((page_id, url, page_id.to_bytes(16, "big"), site, n))
        links.append((page_id, product_id))
        for key in range(n):
            (voice,) = rng.choices(_VOICES, _SHARES)
            age = rng.randrange(_DAYS)
            seen = _NOW - timedelta(days=age - min(rng.randrange(_MOST_DELAY), age))
            found = [(rng.choice(_THEMES), -1, 2, 12)] if voice == "complaint" else None
            day = _TODAY - timedelta(days=age)
            reviews.append((page_id, url, site, str(key), day, voice, found, seen))
    tx.insert(
        "pages",
        ("id", "url", "url_key", "site", "reviews"),
        stored,
        shared=_OF_PAGES | {"fetched_at": tx.now},
    )
    tx.insert("page_products", ("page_id", "product_id"), links, shared={"linked_at": _BEGUN})
    columns = ("page_id", "url", "site", "key", "day", "voice", "themes", "collected_at")
    tx.insert("reviews", columns, reviews, shared=_OF_REVIEWS)


_OF_PAGES = {"content_hash": "x", "encoding": "utf-8", "node": "n"}
_OF_REVIEWS = {
    "title": "", "body": _TEXT, "author": "", "date_text": "", "text_hash": bytes(16), "node": "n",
}  # fmt: skip
