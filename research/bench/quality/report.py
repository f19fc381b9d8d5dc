"""Whether each sentence of a report is right: all are counted again from the reviews alone (`research.bench.quality.report_check`).

The reviews are drawn: products of every kind that a report tells apart, such as new ones, sparse ones and ones with a
rise, and reviews that are copies, undated, not read, or seen late. The reports are of random products, periods and
languages.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from app.insight.themes import judge_rises
from app.reports.report import report
from app.run.version import MIGRATIONS
from app.views.words import switch_language
from research.bench.quality.report_check import Checker, count_rows, load_reviews, read_claims
from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog
from splitter.catalog.names import Group, Kind
from splitter.normalize import name_key
from tasks.domain.page_key import page_key
from tasks.store.content import counted_reviews
from tasks.store.queries.themes import RISES, Period
from tasks.store.queue.upkeep import store_value
from tasks.store.sql import schema
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction, as_pattern

_TODAY = date(2026, 11, 28)
_NOW = datetime(2026, 11, 28, 4, tzinfo=UTC)
_PRODUCTS, _REPORTS = 60, 50
_SHOPS = (
    "jd.com",
    "tmall.com",
    "weibo.com",
    "suning.com",
    "dangdang.com",
    "vip.com",
    "zhihu.com",
    "own.example",
)
_COMPLAINTS = (
    "12315.com",
    "tousu.sina.com.cn",
    "21315.com.cn",
    "315online.com",
    "xfb315.com",
    "news.example",
)
_THEMES = (
    *("safety", "foreign_matter", "spoiled", "smell_taste", "malfunction", "performance", "packaging_damage"),
    *("wrong_missing", "misleading", "price", "delivery", "service"),
)
_VOICES, _SHARES = ("complaint", "praise", "question", "", "news"), (30, 50, 8, 4, 8)
_SAMPLE = "试用装"
"""A word in titles, which some products exclude."""
_TEXT = "喝到一半发现有黑色颗粒，打电话给客服也没有人理会"
_REVIEW_COLUMNS = (
    *("page_id", "key", "title", "body", "author", "date_text", "day", "url", "site", "text_hash"),
    *("collected_at", "node", "voice", "themes", "same_as"),
)

_PLAN_COLUMNS = ("id", "product_id", "keywords", "aliases", "created_at", "planned_at")
_TASK_COLUMNS = (
    *(
        "id",
        "virtual_task_id",
        "product_id",
        "site",
        "engine",
        "kind",
        "found",
        "found_provenance",
        "created_at",
    ),
)
_SUBTASK_COLUMNS = (
    *(
        "id",
        "task_id",
        "product_id",
        "site",
        "kind",
        "chunk",
        "state",
        "failed_on",
        "created_at",
        "changed_at",
    ),
)


def run(_shared: object, smallest: bool) -> dict[str, Any]:
    """Write reports about drawn reviews, and count their sentences again.

    Returns:
        ``ratios``: the share of the sentences, rows and cells that are supported. ``figures``: their numbers, and those of
        the sentences by kind; ``below``: what is not supported.
    """
    counts: Counter[str] = Counter()
    rows = 0
    faults: list[str] = []
    with tempfile.TemporaryDirectory(prefix="reviewloop-report-") as folder:
        file = Path(folder) / "r.db"
        pages = write_reports(file, 12 if smallest else _PRODUCTS, 4 if smallest else _REPORTS)
        checker = load_checker(file)
    for number, page in enumerate(pages):
        counts.update(claim.values["kind"] for claim in read_claims(page))
        rows += count_rows(page)
        faults += [f"report {number}: {fault}" for fault in checker.list_faults(page)]
    checked = counts.total() + rows
    figures = {"reports": len(pages), "sentences": counts.total(), "rows": rows, "unsupported": len(faults)}
    return {
        "bench": "report",
        "ratios": {"supported": 1 - len(faults) / checked},
        "figures": {**figures, "kinds": dict(counts), "below": faults},
    }


def write_reports(file: Path, products: int, reports: int) -> list[str]:
    """Fill a new SQLite file with drawn reviews, and return reports about them."""
    rng = Random(48)
    catalog = builtin("today")
    pages = []
    with closing(Store.open(f"sqlite:///{file}")) as store:
        names = fill(store, catalog, rng, products)
        with store.begin(now=_NOW) as tx:
            store_value(tx, RISES, _NOW, judge_rises(tx, _TODAY, _groups(catalog)))
        for number in range(reports):
            chosen = () if number % 10 == 0 else tuple(rng.sample(names, rng.randint(1, 3)))
            pages.append(_write(store, catalog, chosen, _draw_period(rng), ("zh", "en")[number % 2]))
    return pages


def write_report(file: Path) -> str:
    """Write a report about all days of the products with most complaints."""
    with closing(Store.open(f"sqlite:///{file}")) as store:
        return _write(store, builtin("today"), (), Period(), "en")


def load_checker(file: Path) -> Checker:
    """Load the reviews of a file to check reports with."""
    catalog = builtin("today")
    groups = {site: None if one is None else str(one) for site, one in _groups(catalog).items()}
    return Checker(load_reviews(file, _TODAY, groups, catalog.sites_for(None, None)))


def _groups(catalog: Catalog) -> dict[str, Group | None]:
    return {site: one.group for site, one in catalog.sites.items()}


def _write(store: Store, catalog: Catalog, names: tuple[str, ...], period: Period, language: str) -> str:
    with switch_language(language), store.begin(now=_NOW) as tx:
        return report(tx, catalog, names, period)


def _draw_period(rng: Random) -> Period:
    days = rng.choice([7, 30, 90, 90, 365, None, 0])
    if days is None:
        return Period()
    if days:
        return Period(_TODAY - timedelta(days=days - 1), _TODAY)
    since = _TODAY - timedelta(days=rng.randrange(30, 900))
    return rng.choice(
        [Period(since), Period(None, since), Period(since, since + timedelta(days=rng.randrange(200)))]
    )


def fill(store: Store, catalog: Catalog, rng: Random, products: int) -> list[str]:
    """Fill an empty store, and return the names of its products."""
    schema.upgrade(store, MIGRATIONS)
    names = [f"{rng.choice('光明蒙牛伊利')}{chr(0x4E00 + 7 * number)}牛奶" for number in range(products)]
    with store.begin(now=_NOW) as tx:
        made: list[tuple[Any, ...]] = [
            (number, name, name_key(name), [], [], _NOW) for number, name in enumerate(names, 1)
        ]
        tx.insert("products", ("id", "name", "name_key", "keywords", "aliases", "created_at"), made)
        page = 0
        for number in range(1, products + 1):
            page = _insert_product(tx, rng, number, page)
            if number % 3 == 0:
                _insert_crawl(tx, rng, number, rng.sample(catalog.sites_for(None, None), 20))
        excluded = [(number, _SAMPLE, as_pattern(_SAMPLE)) for number in range(2, products + 1, 4)]
        tx.insert("excluded_words", ("product_id", "word", "pattern"), excluded)
        archived = [(number, rng.choice(_THEMES), _NOW) for number in range(5, products + 1, 5)]
        tx.insert("archived_themes", ("product_id", "theme", "archived_at"), archived)
        counted_reviews.add_pages(tx, range(1, page + 1))
    return names


def _insert_product(tx: Transaction, rng: Random, product: int, page: int) -> int:
    """Insert the reviews of a product, a page for each, and return the number of the last page."""
    kind = product % 6
    weeks = {1: 16, 2: 330, 3: 60}.get(kind, 156)
    rate = {3: 10, 7: 0.03}.get(product % 10) or rng.choice([2, 6, 10])
    is_late = kind == 4
    sites = [*rng.sample(_SHOPS, rng.randint(1, len(_SHOPS))), *rng.sample(_COMPLAINTS, rng.randint(1, 6))]
    usual = rng.sample(_THEMES, 7)
    special = rng.choice([theme for theme in _THEMES if theme not in usual])
    rows: list[tuple[Any, ...]] = []
    for week in range(weeks):
        for _ in range(rng.randrange(int(2 * rate) + 1) if rate >= 1 else int(rng.random() < rate)):
            day = _TODAY - timedelta(weeks=weeks - week) + timedelta(days=rng.randrange(7))
            (voice,) = rng.choices(_VOICES, _SHARES)
            theme = rng.choice(usual)
            if _is_special(rng, kind, weeks - week):
                voice, theme = "complaint", special
            site = rng.choice(sites) if voice == "complaint" else sites[0]
            if product % 10 == 3 and weeks - week <= 6 and rng.random() < 0.5:
                voice, site = "complaint", sites[0]  # all complaints rise, about whatever it is
            seen = day + timedelta(days=min(int(rng.expovariate(1 / 6)), 40)) if is_late else _TODAY
            if seen <= _TODAY:
                page += 1
                rows.append(_make_review(rng, page, site, day, seen, voice, theme, usual))
    if rows:
        _insert_pages(tx, rng, product, rows)
    return page


def _is_special(rng: Random, kind: int, weeks_left: int) -> bool:
    """Return True if a review is a complaint that rises, is new, or was quiet for a while."""
    if kind in (4, 5):
        return weeks_left <= 9 and rng.random() < 0.3
    if kind == 0:
        return weeks_left <= 5 and rng.random() < 0.3
    return kind == 2 and (weeks_left <= 4 or 60 < weeks_left < 160) and rng.random() < 0.08


def _make_review(
    rng: Random, page: int, site: str, day: date, seen: date, voice: str, theme: str, usual: list[str]
) -> tuple[Any, ...]:
    themes: list[Any] | None = None
    if voice in ("complaint", "praise", "news") and rng.random() < (0.9 if voice == "complaint" else 0.1):
        themes = [[theme, -1, 0, 11]]
        further = rng.choice(usual)
        if further != theme and rng.random() < 0.3:
            themes.append([further, rng.choice([-1, 1]), 12, 24])
    if rng.random() < 0.03:
        themes = []
    at = datetime.combine(seen, datetime.min.time(), UTC)
    shown_day = None if rng.random() < 0.04 else day
    url = f"http://{site}/{page}"
    return (
        page,
        "1",
        _SAMPLE if rng.random() < 0.05 else "",
        _TEXT,
        "",
        "",
        shown_day,
        url,
        site,
        bytes(16),
        at,
        "n",
        voice or None,
        themes,
        None,
    )


def _insert_pages(tx: Transaction, rng: Random, product: int, rows: list[tuple[Any, ...]]) -> None:
    pages = [(row[0], row[7], page_key(row[7]), row[8], "x", "utf-8", "n", row[10], 1) for row in rows]
    columns = ("id", "url", "url_key", "site", "content_hash", "encoding", "node", "fetched_at", "reviews")
    tx.insert("pages", columns, pages)
    links = [(row[0], product, row[10], "review" if rng.random() < 0.95 else "wrong_product") for row in rows]
    tx.insert("page_products", ("page_id", "product_id", "linked_at", "verdict"), links)
    tx.insert("reviews", _REVIEW_COLUMNS, rows)
    known = [number for (number,) in tx.rows("SELECT id FROM reviews ORDER BY id DESC LIMIT :n", n=len(rows))]
    copies = rng.sample(known[:-1], len(known) // 20)
    tx.update("reviews", ("id",), [{"id": number, "same_as": known[-1]} for number in copies])
    corrected = [
        (3 * product, None, True),
        (3 * product + 1, "complaint", False),
        (3 * product + 2, None, False),
    ]
    made = [(number, voice, hidden, "", "tester", _NOW) for number, voice, hidden in corrected]
    tx.insert("corrections", ("id", "voice", "hidden", "because", "who", "at"), made)
    tx.insert("correction_products", ("correction_id", "product_id"), [(3 * product + 2, product)])
    chosen = rng.sample(sorted({*known[:-1]} - {*copies}), len(known) // 10)
    tx.update(
        "reviews", ("id",), [{"id": number, "correction_id": 3 * product + number % 3} for number in chosen]
    )


def _insert_crawl(tx: Transaction, rng: Random, product: int, sites: list[str]) -> None:
    """Insert tasks at sites: some with hits, some that were not asked, some that did not end."""
    tx.insert("virtual_tasks", _PLAN_COLUMNS, [(product, product, ["牛奶"], [], _NOW, _NOW)])
    for place, site in enumerate(sites):
        task = 100 * product + place
        found = None if product % 2 == 0 else rng.randrange(5, 90)
        provenance = "unknown" if found is None else "reported"
        planned = (task, product, product, site, "baidu", Kind.META, found, provenance, _NOW)
        tx.insert("tasks", _TASK_COLUMNS, [planned])
        state = rng.choice(["DONE", "DONE", "DONE", "PRIORITY", "WAIT", "MANUAL", "SLEEP", "CANCELLED"])
        subtask: tuple[Any, ...] = (task, task, product, site, Kind.META, 0, state, [], _NOW, _NOW)
        tx.insert("subtasks", _SUBTASK_COLUMNS, [subtask])
        hits = []
        for number in range(rng.randrange(found or 4)):
            url = f"http://{site}/h{product}/{number}"
            state = rng.choice(["stored", "stored", "todo", "refused"])
            hits.append((task, task, "hit", url, page_key(url), state))
        if hits:
            tx.insert("targets", ("task_id", "subtask_id", "kind", "url", "url_key", "state"), hits)
