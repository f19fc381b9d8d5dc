"""Every engine of sites.yaml on an answer in its format: hits, counts, more, empty, refused."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import made_engines as made
import pytest

from splitter.catalog.load import load_catalog
from splitter.spans import CHINA
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import ResultPage
from tasks.reading.results import read_results

ENGINES = load_catalog(Path(__file__).parents[2] / "sites.yaml").engines
NOW = datetime(2024, 6, 1, 8, tzinfo=CHINA)
NOON = datetime(2024, 3, 1, 12, tzinfo=timezone(timedelta(hours=8)))
EPOCH = datetime(2024, 3, 1, 9, 20, tzinfo=timezone(timedelta(hours=8)))


def read(name: str, answer: Any, url: str = "") -> ResultPage:
    engine = ENGINES[name]
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return read_results(text, url or engine.url, engine.results, now=NOW)


def refused(name: str, answer: Any, url: str = "") -> ErrorClass:
    with pytest.raises(FetchError) as told:
        read(name, answer, url)
    return told.value.error


def test_baidu():
    page = read("baidu", made.BAIDU)
    assert (page.found, page.more) == (1230, True)
    assert [hit.url for hit in page.hits] == [
        "https://bbs.example.com/t/1",
        "http://www.baidu.com/link?url=CCC",
    ]
    first = page.hits[0]
    assert (first.title, first.abstract, first.time) == ("纯牛奶结块", "豆腐一样", NOON.replace(hour=0))
    assert page.hits[1].abstract == "旧的摘要"
    assert refused("baidu", made.BAIDU_CAPTCHA) is ErrorClass.CAPTCHA
    captcha = "https://wappass.baidu.com/static/captcha/tuxing.html?ak=1"
    assert refused("baidu", "<html><body>x</body></html>", captcha) is ErrorClass.CAPTCHA


def test_baidu_json():
    page = read("baidu-json", made.BAIDU_JSON)
    assert (page.found, page.more) == (2140, True)
    assert [(hit.url, hit.title) for hit in page.hits] == [
        ("http://bbs.example.com/t/1", "纯牛奶结块了怎么投诉"),
        ("https://www.example.com/a?b=1&c=%E4%B8%AD", "二"),
    ]
    assert page.hits[0].abstract == "打开以后结块，客服不理 & 不退"
    assert [hit.time for hit in page.hits] == [EPOCH, None]
    assert read("baidu-json", made.BAIDU_JSON_EMPTY).empty
    assert refused("baidu-json", made.BAIDU_JSON_REFUSED) is ErrorClass.FORBIDDEN
    empty_and_refused = {**made.BAIDU_JSON_EMPTY, "antiFlag": 1}
    assert refused("baidu-json", empty_and_refused) is ErrorClass.FORBIDDEN
    assert refused("baidu-json", made.BAIDU_CAPTCHA) is ErrorClass.CAPTCHA


def test_sogou():
    page = read("sogou", made.SOGOU)
    assert (page.found, page.more) == (37_020, True)
    assert [(hit.url, hit.title, hit.abstract) for hit in page.hits] == [
        ("http://a.example.com/1", "一二", "摘要"),
        ("https://www.sogou.com/link?url=xyz", "二", "旧"),
    ]
    assert page.hits[0].time == NOON.replace(hour=0)
    assert refused("sogou", made.SOGOU_REFUSED) is ErrorClass.CAPTCHA
    assert refused("sogou", "<p>x</p>", "http://www.sogou.com/antispider/?from=x") in (
        ErrorClass.FORBIDDEN,
        ErrorClass.CAPTCHA,
    )


def test_sogou_weixin():
    page = read("sogou-weixin", made.WEIXIN)
    (hit,) = page.hits
    assert (page.found, page.more, hit.title) == (1204, False, "纯牛奶测评")
    assert hit.url == "https://weixin.sogou.com/link?url=dn9a&type=2"
    assert hit.time == EPOCH


def test_so360():
    page = read("so360", made.SO360)
    assert (page.found, page.more) == (8890, True)
    assert [hit.url for hit in page.hits] == ["https://a.example.com/1", "https://www.so.com/link?m=b"]
    assert page.hits[0].time == NOON.replace(hour=0)
    wordings = "抱歉，未找到和“x”相关的网页。", "抱歉，没有找到相关的结果。", "抱歉，未找到“x”的网页"
    for words in wordings:
        assert read("so360", f"<div id='no-result'><p class='tips'>{words}</p></div>").empty
    assert refused("so360", "<p>请拖动滑块</p>", "http://qcaptcha.so.com/?ret=x") is ErrorClass.CAPTCHA


def test_bing():
    page = read("bing", made.BING)
    assert (page.found, page.more) == (1230, False), "its pages turn by script"
    assert [hit.title for hit in page.hits] == ["一", "二"]
    for count in ("第 11-20 个(共 1,230 个)结果", "11-20 of 1,230 results"):
        again = made.BING.replace("约 1,230 个结果", count)
        assert read("bing", again).found == 1230


def test_quark():
    page = read("quark", made.QUARK)
    assert page.more
    assert [(hit.url, hit.title, hit.abstract) for hit in page.hits] == [
        ("https://a.example.com/1", "纯牛奶结块", "打开就是豆腐"),
        ("https://b.example.com/2", "笔记", "s"),
        ("https://c.example.com/3", "新闻", "n"),
    ]
    assert [hit.time for hit in page.hits] == [EPOCH, None, NOON.replace(hour=8)]
    assert refused("quark", made.QUARK_CAPTCHA) is ErrorClass.CAPTCHA
    assert refused("quark", "<html><body>空</body></html>") is ErrorClass.BAD_RULE


def test_searxng():
    page = read("searxng", made.SEARXNG)
    assert (page.found, page.more) == (None, True), "0 found with hits is no count"
    assert [hit.url for hit in page.hits] == ["https://a.example.com/1", "https://a.example.com/2"]
    assert page.hits[0].time == NOON
    assert read("searxng", made.SEARXNG_EMPTY).empty
    assert refused("searxng", made.SEARXNG_BLIND) is ErrorClass.CAPTCHA
    with pytest.raises(FetchError, match="unresponsive_engines: baidu CAPTCHA, sogou timeout"):
        read("searxng", made.SEARXNG_BLIND)
    # One engine that is broken for good must not make a refusal of every answer without hits.
    one = made.SEARXNG_BLIND | {"unresponsive_engines": made.SEARXNG_BLIND["unresponsive_engines"][:1]}
    assert read("searxng", one).empty
    assert refused("searxng", {"error": "rate limit"}) is ErrorClass.BAD_RULE


def test_weibo():
    page = read("weibo", made.WEIBO)
    assert (page.found, page.more) == (131, True)
    assert [hit.url for hit in page.hits] == [
        "https://m.weibo.cn/detail/4900000000000001",
        "https://m.weibo.cn/detail/4900000000000002",
    ]
    posts = [hit.post for hit in page.hits]
    assert [post.body for post in posts] == ["喝了 肚子疼", "很长很长的一条"]
    assert (posts[0].key, posts[0].author) == ("4900000000000001", "用户1")
    assert posts[0].date == NOON + timedelta(minutes=1)
    assert read("weibo", made.WEIBO_END).empty
    assert refused("weibo", made.WEIBO_REFUSED) is ErrorClass.LOGIN_WALL
    assert refused("weibo", made.WEIBO_DESKTOP_WALL) is ErrorClass.LOGIN_WALL
    assert refused("weibo", "<html><body>403</body></html>") is ErrorClass.FORBIDDEN


def test_weibo_desktop():
    page = read("weibo-desktop", made.WEIBO_DESKTOP)
    assert (page.found, page.more) == (None, True)
    assert [hit.url for hit in page.hits] == [
        "https://weibo.com/1/Na1?refer_flag=1",
        "https://weibo.com/2/Nb2",
    ]
    posts = [hit.post for hit in page.hits]
    assert [post.body for post in posts] == ["说到一半又说完了", "转一条 #奶#"], (
        "unfolded; not what it reposts"
    )
    assert [post.author for post in posts] == ["甲", "乙"]
    assert [post.date for post in posts] == [NOON + timedelta(minutes=5), NOON.replace(hour=8)]
    assert page.hits[1].title == "#奶#"
    assert read("weibo-desktop", made.WEIBO_DESKTOP_EMPTY).empty
    assert refused("weibo-desktop", made.WEIBO_DESKTOP_WALL) is ErrorClass.LOGIN_WALL


def test_own_searches():
    page = read("tousu-sina", made.TOUSU)
    (hit,) = page.hits
    assert (page.found, page.more) == (85, True)
    assert (hit.url, hit.title) == ("https://tousu.sina.com.cn/complaint/view/17380000001/", "纯牛奶有异物")
    assert hit.time == EPOCH
    assert refused("tousu-sina", "<!doctype html><title>登录</title>") is ErrorClass.LOGIN_WALL
    assert refused("tousu-sina", {"result": {"status": {"code": 11}}}) is ErrorClass.FORBIDDEN

    (hit,) = read("tieba", made.TIEBA).hits
    assert (hit.url, hit.title) == ("https://tieba.baidu.com/p/9001?pid=1&cid=0", "奶粉结块")
    assert hit.time == NOON
    (hit,) = read("12365auto", made.CAR).hits
    assert (hit.url, hit.title) == ("https://www.12365auto.com/zlts/20240301/600001.shtml", "某车漏油")


def test_without_a_clock_no_times_are_read():
    engine = ENGINES["baidu-json"]
    page = read_results(json.dumps(made.BAIDU_JSON), engine.url, engine.results)
    assert [hit.time for hit in page.hits] == [None, None]
