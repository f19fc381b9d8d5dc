"""Reviews of two years of two products: one with a contamination in its last weeks, and one without."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random

from splitter.catalog.names import Group
from splitter.normalize import name_key
from tasks.store.content import counted_reviews

TODAY = date(2026, 11, 28)
CLEAN, SPOILT = "光明高钙牛奶", "特仑苏纯牛奶"
TEXT = "喝到一半发现有黑色颗粒，打电话给客服也没有人理会"
GROUPS = {"jd.com": Group.SHOP, "12315.com": Group.COMPLAINTS}
CONTAMINATED_WEEKS = 8
"""Weeks before today in which the second product is contaminated."""


def fill(store):
    with store.begin(now=datetime(2026, 11, 28, 4, tzinfo=UTC)) as tx:
        names = [(1, CLEAN), (2, SPOILT)]
        products = [(number, name, name_key(name), [], [], tx.now) for number, name in names]
        tx.insert("products", ("id", "name", "name_key", "keywords", "aliases", "created_at"), products)
        rounds = [(1, ["光明", "牛奶"], [], tx.now), (2, ["特仑苏"], [], tx.now)]
        tx.insert("virtual_tasks", ("product_id", "keywords", "aliases", "created_at"), rounds)
        _insert_reviews(tx, list(_draw(Random(5))))


def _draw(rng):
    """Yield product, site, voice, theme and day of reviews."""
    for product in (1, 2):
        for week in range(104):
            for _ in range(20):
                day = TODAY - timedelta(weeks=104 - week) + timedelta(days=rng.randrange(7))
                is_complaint = rng.random() < 0.25
                theme = rng.choice(["service", "delivery", "price"])
                if product == 2 and week >= 104 - CONTAMINATED_WEEKS and rng.random() < 0.15:
                    is_complaint, theme = True, "foreign_matter"
                site = rng.choice(["jd.com", "jd.com", "12315.com"]) if is_complaint else "jd.com"
                yield product, site, "complaint" if is_complaint else "praise", theme, day
    for _ in range(3):
        yield 2, "jd.com", "complaint", "foreign_matter", None


def _insert_reviews(tx, drawn):
    pages, links, reviews = [], [], []
    for number, (product, site, voice, theme, day) in enumerate(drawn, 1):
        url = f"http://{site}/{number}"
        pages.append((number, url, number.to_bytes(16, "big"), site, "x", "utf-8", "n1", tx.now))
        links.append((number, product, tx.now))
        found = [(theme, -1, 2, 12)] if voice == "complaint" else None
        row = (number, "1", "", TEXT, "", "", day, url, site, bytes(16), tx.now, "n1", voice, found)
        reviews.append(row)
    columns = ("id", "url", "url_key", "site", "content_hash", "encoding", "node", "fetched_at")
    tx.insert("pages", columns, pages)
    tx.insert("page_products", ("page_id", "product_id", "linked_at"), links)
    columns = ("page_id", "key", "title", "body", "author", "date_text", "day", "url", "site", "text_hash")
    columns += ("collected_at", "node", "voice", "themes")
    tx.insert("reviews", columns, reviews)
    counted_reviews.add_pages(tx, range(1, len(drawn) + 1))
