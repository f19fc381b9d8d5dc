"""Sources where buyers write: the App Store's feed and pages, 12365auto's lists. Every field of every sample."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from splitter.catalog.load import load_catalog
from splitter.catalog.names import Group
from splitter.spans import CHINA
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Review
from tasks.domain.voices import Voice
from tasks.reading.extract import read_page
from tasks.reading.judge.reviews import add_judgements
from tasks.reading.page_jobs import ResultJob
from tasks.reading.results import read_results

ROOT = Path(__file__).parents[2]
TODAY = load_catalog(ROOT / "sites.yaml")
NOW = datetime(2026, 11, 22, 8, tzinfo=CHINA)
PACIFIC = timezone(timedelta(hours=-7))
FEED = "https://itunes.apple.com/cn/rss/customerreviews/page=1/id=900000001/sortby=mostrecent/json"


def sample(name: str) -> str:
    return (ROOT / "tests" / "app" / "samples" / name).read_text("utf-8")


def read(rules: str, text: str, url: str = FEED):
    return read_page(text, url, TODAY.rules[rules], now=NOW)


def test_the_app_stores_feed_in_json():
    page = read("app-store-feed", sample("app-store-feed.json"))
    assert page.title == "iTunes Store：用户评论"
    assert page.reviews == (
        Review(
            "15000000001",
            "越更新越慢",
            "点一次餐要转三圈，催单没人理。",
            "小白兔",
            "2026-02-03T05:05:35-07:00",
            datetime(2026, 2, 3, 5, 5, 35, tzinfo=PACIFIC),
            1.0,
            "8.0.2",
        ),
        Review(
            "15000000002",
            "好用",
            "送得快，客服也耐心。",
            "老 李",
            "2026-02-01T22:10:00-07:00",
            datetime(2026, 2, 1, 22, 10, tzinfo=PACIFIC),
            5.0,
            "8.0.1",
        ),
    )
    assert page.next_url.startswith("https://itunes.apple.com/cn/rss/customerreviews/page=2/id=900000001/")


def test_where_the_json_leads_on_the_feed_is_atom():
    page = read("app-store-feed", sample("app-store-feed.xml"), FEED.replace("json", "xml"))
    assert [(r.key, r.title, r.author, r.rating, r.variant) for r in page.reviews] == [
        ("15000000003", "闪退 & 卡顿", "阿明", 2.0, "7.9.0"),
        ("15000000004", "可以", "小红", 4.0, "7.8.5"),
    ]
    assert page.reviews[0].body == "更新以后一打开就闪退 <3 次了。"
    assert page.reviews[0].date == datetime(2026, 1, 17, 5, 5, 35, tzinfo=PACIFIC)
    assert page.next_url.endswith("/page=3/id=900000001/sortby=mostrecent/xml")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"feed": {"title": {"label": "iTunes Store"}}}', ErrorClass.BAD_RULE),  # the feed of today, often
        ("<html><title>Too many requests</title></html>", ErrorClass.RATE_LIMITED),
        ("{", ErrorClass.BAD_CONTENT),
    ],
)
def test_a_feed_without_reviews_is_no_page(text, error):
    with pytest.raises(FetchError) as told:
        read("app-store-feed", text)
    assert told.value.error is error


def test_an_apps_page():
    page = read("app-store-page", sample("app-store-page.html"), "https://apps.apple.com/cn/app/id900000001")
    assert page.title == "某某外卖"
    assert [(r.key, r.title, r.body, r.author, r.rating) for r in page.reviews] == [
        ("15000000001", "越更新越慢", "点一次餐要转三圈，催单没人理。", "小白兔", 1.0),
        ("15000000002", "好用", "送得快，客服也耐心。", "老 李", 5.0),
    ]
    assert page.reviews[0].date == datetime(2026, 2, 3, 12, 5, 35, tzinfo=UTC)


def test_the_app_stores_search_leads_to_the_feed():
    rules = TODAY.engines["app-store"].results
    (hit,) = read_results(
        sample("app-store-search.json"), "https://itunes.apple.com/search", rules, now=NOW
    ).hits
    assert (hit.url, hit.title) == (FEED, "某某外卖")
    assert read_results(sample("app-store-search-empty.json"), "https://itunes.apple.com/search", rules).empty


def test_all_eight_columns_of_12365auto():
    engine = TODAY.engines["12365auto-list"]
    page = read_results(sample("12365auto-list.html"), engine.url, engine.results, now=NOW)
    assert page.more
    first = page.hits[0]
    assert first.url == "https://www.12365auto.com/zlts/20260601/1672822.shtml"
    china = timezone(timedelta(hours=8))
    assert first.post == Review(
        "1672822",
        "某某汽车 某某 2025款 四驱智享版 行驶中车机黑屏，系统多次升级无效",
        "行驶中车机黑屏，系统多次升级无效 车身附件及电器:影音系统故障 厂家回复",
        "",
        "2026-06-01",
        datetime(2026, 6, 1, tzinfo=china),
        None,
        "某某汽车 某某 2025款 四驱智享版",
    )
    assert [hit.post.key for hit in page.hits if hit.post] == ["1672822", "1672799", "1672701"]


def test_posts_of_a_result_page_are_judged_by_the_kind_of_their_site():
    engine = TODAY.engines["12365auto-list"]
    body = sample("12365auto-list.html")
    told = {}
    content = {"content-type": "text/html; charset=utf-8"}
    job = ResultJob(url=engine.url, body=body.encode(), headers=content, now=NOW, rules=engine.results)
    posts = [hit.post for hit in job.read().hits if hit.post]
    for group in (None, Group.COMPLAINTS):
        told[group] = [one.voice for one in add_judgements(posts, group)]
    assert all(voice.voice == Voice.COMPLAINT for voice in told[Group.COMPLAINTS])
    pairs = zip(told[Group.COMPLAINTS], told[None], strict=True)
    assert all(known.buyer > alone.buyer for known, alone in pairs)


@pytest.mark.parametrize("name", ["baidu", "so360", "bing", "sogou"])
@pytest.mark.parametrize("text", ["", " \n", "\ufeff"])
def test_an_empty_body_is_a_refusal(name, text):
    engine = TODAY.engines[name]
    with pytest.raises(FetchError) as told:
        read_results(text, engine.url, engine.results)
    assert told.value.error is ErrorClass.FORBIDDEN
    assert "empty body" in str(told.value)


@pytest.mark.parametrize("name", ["baidu", "bing"])
def test_no_result_of_today(name):
    engine = TODAY.engines[name]
    text = "<html><title>x</title><body><p>未找到相关结果</p><a href='/more'>更多</a></body></html>"
    assert read_results(text, engine.url, engine.results).empty
