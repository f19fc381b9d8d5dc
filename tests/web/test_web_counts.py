"""Each count on the page of a product links to exactly the reviews that it counts."""

from __future__ import annotations

import html
import re
from contextlib import closing
from datetime import timedelta

import pytest
from insight_world import TODAY, fill

from app.run.version import MIGRATIONS
from tasks.domain.voices import Voice
from tasks.store.content import counted_reviews
from tasks.store.content.corrections import store_excluded_words
from tasks.store.queries.review_counts import count_reviews, search_reviews
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.sql import schema
from tasks.store.sql.database import Store

RECENT = f"from={TODAY - timedelta(days=89)}&to={TODAY}"
PAGES = (
    f"products/2?{RECENT}",
    "products/2?days=all",
    f"products/2?{RECENT}&site=12315.com",
    f"products/2?{RECENT}&theme=foreign_matter",
    f"products/1?from={TODAY - timedelta(days=200)}&to={TODAY - timedelta(days=100)}",
)
_LINK = re.compile(
    r'<a href="/(reviews\?[^"]*)">(?:<g><title>[^<]*</title><rect[^>]*/><text[^>]*>)?([\d,]+)<'
)


def prepare(store):
    """Fill a store with two products, with copies and with reviews that have an excluded word."""
    fill(store)
    with store.begin() as tx:
        counted_reviews.refresh_statistics(tx)
    with store.begin() as tx:
        store_excluded_words(tx, 2, ["试用装"])
        with counted_reviews.recount(tx, reviews=range(1, 5_000)):
            tx.run("UPDATE reviews SET same_as = id - 1 WHERE id % 17 = 0 AND voice IS NOT NULL")
            tx.run("UPDATE reviews SET title = '试用装' WHERE id % 29 = 0")


@pytest.fixture(scope="module")
def insight(tmp_path_factory, serve_file):
    """The products in a dashboard, with reviews that a person hid."""
    file = tmp_path_factory.mktemp("counts") / "r.db"
    with closing(Store.open(f"sqlite:///{file}")) as store:
        schema.upgrade(store, MIGRATIONS)
        prepare(store)
    served = serve_file(file)
    for number in range(5, 4000, 150):
        served.session.put(f"{served.address}api/reviews/{number}/correction", json={"hidden": True})
    return served


@pytest.mark.parametrize("page", PAGES)
def test_each_count_links_to_as_many_reviews(insight, page):
    text = insight.get(page).text
    links = [(html.unescape(path), int(n.replace(",", ""))) for path, n in _LINK.findall(text)]
    assert len(links) > text.count("</g></a>") > 0, "cells of heat maps and other counts"
    assert ("left_out=1" in text) is ("Do not count" in text)
    for path, n in links:
        found = insight.get(f"api/{path}&limit=500").json()
        rows = list(found["reviews"])
        while found["before"]:
            found = insight.get(f"api/{path}&limit=500&before={found['before']}").json()
            rows += found["reviews"]
        assert len(rows) == len({row["id"] for row in rows}) == n, path
        if n <= 30:
            shown = insight.get(path).text
            assert shown.count("<li><h3>") == n, path
            assert f"{n} reviews match" in shown


@pytest.mark.parametrize("page", ["", f"?{RECENT}", "?days=7", "?days=all", "?lang=zh"])
def test_the_overview_has_the_products_with_most_complaints_of_the_period(insight, page):
    text = insight.get(page).text
    found = [(html.unescape(path), int(n.replace(",", ""))) for path, n in _LINK.findall(text)]
    assert len(found) == 2
    assert found[0][1] >= found[1][1]
    for path, n in found:
        assert len(insight.get(f"api/{path}&limit=500").json()["reviews"]) == min(n, 500)
    if page == f"?{RECENT}":
        assert f'href="/products/2?{html.escape(RECENT)}"' in text
        assert f'href="/reviews?{html.escape(RECENT)}"' in text


def test_the_api_has_themes_rises_and_phrases(insight):
    view = insight.get(f"api/products/2/themes?{RECENT}").json()
    (rising,) = [row for row in view["themes"] if row["rise"]]
    assert rising["theme"] == "foreign_matter"
    assert rising["rise"]["count"] >= 3
    phrases = insight.get(f"api/products/2/phrases?{RECENT}").json()
    assert phrases["read"] > 0
    assert insight.get("api/products/2/phrases?days=all").status_code == 400
    assert "until" in insight.get("api/rises").json()
    for sent in ({}, {"theme": "service", "new_theme": {"id": "a", "zh": "b", "en": "c"}}):
        refused = insight.post("api/products/2/phrases", json={"phrase": "黑渣", **sent})
        assert refused.status_code == 400
        assert "give theme, or new_theme" in refused.text
    assert (
        "did you mean"
        in insight.post("api/products/2/phrases", json={"phrase": "黑渣", "theme": "servce"}).text
    )


FILTERS = (
    ReviewFilter(product=2, theme="foreign_matter", counted=True),
    ReviewFilter(theme="foreign_matter", sites=("jd.com",), counted=True),
    ReviewFilter(product=2, counted=False),
    ReviewFilter(product=2, undated=True, counted=True),
    ReviewFilter(product=1, voices=(Voice.COMPLAINT,), day_from=TODAY - timedelta(days=30), counted=True),
    ReviewFilter(product=2, words=("黑色颗粒", "试用装")),
)


@pytest.mark.parametrize("wanted", FILTERS)
def test_both_databases_find_the_reviews_that_they_count(insight, postgres_store, wanted):
    prepare(postgres_store)
    found = []
    for store in (insight.store, postgres_store):
        with store.read() as tx:
            rows = search_reviews(tx, wanted, most=1_000).rows
            assert len(rows) == count_reviews(tx, wanted).total > 0
            parts, before = [], None
            while before is not None or not parts:
                part = search_reviews(tx, wanted, before=before, most=7)
                parts += part.rows
                before = part.before
            assert parts == list(rows)
            exported = {row.review for row in list_reviews(tx, wanted)}
            assert {row.review for row in rows} <= exported
            assert len(exported) == len(rows) or not wanted.theme
            found.append({row.review for row in rows})
    hidden = set(range(5, 4000, 150))
    assert (found[0] ^ found[1]) <= hidden
