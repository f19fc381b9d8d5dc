"""The engines of sites.yaml on result pages as they were really served, 2015 to 2022."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from research.tools.pagetruth import token_f1
from splitter.catalog.load import load_catalog
from tasks.domain.pages import Hit, ResultPage
from tasks.reading.decode import decode
from tasks.reading.results import read_results

ENGINES = load_catalog(Path(__file__).parents[3] / "sites.yaml").engines
NOW = datetime(2022, 12, 31, tzinfo=UTC)
# File, hits that have a title and an address, the count the page prints, whether it links a next page.
PAGES = [
    ("serp-baidu-2015-noresult", 10, 4710, True),
    ("serp-baidu-2015-number", 10, 100_000_000, True),
    ("serp-baidu-2020-baike-video", 10, 100_000_000, True),
    ("serp-baidu-2020-calc", 9, 20, True),
    ("serp-baidu-2020-news", 9, 100_000_000, True),
    ("serp-baidu-2020-no_related", 10, 65_800_000, True),
    ("serp-baidu-2020-normal", 10, 72_900_000, True),
    ("serp-baidu-2020-pages-single", 2, 2, False),
    ("serp-sogou-2022-boxiaozhang", 10, 19_815, True),
]


def read(data: Path, name: str) -> tuple[ResultPage, list[dict[str, Any]]]:
    engine = ENGINES["weibo-desktop" if "weibo" in name else "sogou" if "sogou" in name else "baidu"]
    text = decode((data / "pages" / f"{name}.html").read_bytes(), {}).text
    expected = json.loads((data / "pages" / "expected" / f"{name}.json").read_text("utf-8"))
    return read_results(text, engine.url, engine.results, now=NOW), expected["results"]


def same(hit: Hit, record: dict[str, Any]) -> bool:
    """By the engine's link, or by the page's own address where the page tells it."""
    return hit.url in (record["href"], record.get("mu")) or hit.title == record["title"] != ""


@pytest.mark.parametrize(("name", "count", "found", "more"), PAGES)
def test_hits_titles_counts(data, name, count, found, more):
    page, records = read(data, name)
    records = [record for record in records if record["title"] and record["href"]]
    assert len(records) == count
    missing = [record["title"] for record in records if not any(same(hit, record) for hit in page.hits)]
    assert missing == []
    assert len(page.hits) - count <= 1, "boxes of the engine's own"
    assert (page.found, page.more) == (found, more)
    assert token_f1("\n".join(hit.title for hit in page.hits), "\n".join(r["title"] for r in records)) > 0.99


def test_abstracts(data):
    scores = []
    for name, *_ in PAGES[:-1]:
        page, records = read(data, name)
        abstracts = "\n".join(record["abstract"] for record in records if record["title"])
        scores.append(token_f1("\n".join(hit.abstract for hit in page.hits), abstracts))
    assert fmean(scores) > 0.99, scores


def test_baidus_own_address_is_taken_where_the_page_tells_it(data):
    page, records = read(data, "serp-baidu-2020-normal")
    told = {record["mu"] for record in records if record["mu"]}
    assert told
    assert told <= {hit.url for hit in page.hits}


def test_nothing_found(data):
    page, records = read(data, "serp-baidu-2020-none-pager")
    assert records == []
    assert page.empty


def test_dates_of_sogou(data):
    page, _ = read(data, "serp-sogou-2022-boxiaozhang")
    assert [hit.time.date().isoformat() for hit in page.hits][:2] == ["2021-12-28", "2021-01-11"]
    assert all(hit.time for hit in page.hits)


def test_posts_of_weibo(data):
    page, records = read(data, "weibo-search-2020-07-08")
    assert page.more
    posts = {hit.post.key: hit for hit in page.hits}
    assert list(posts) == [record["mid"] for record in records]
    for record in records:
        hit = posts[record["mid"]]
        assert hit.url == f"https:{record['href']}"
        assert (hit.post.author, hit.post.date_text) == (record["author"], record["time_text"])
        assert hit.post.date is not None
    # The truth ends with the words that fold a long post again.
    truth = [record["text"].partition("收起全文")[0] for record in records]
    assert fmean(token_f1(hit.post.body, text) for hit, text in zip(page.hits, truth, strict=True)) > 0.99
