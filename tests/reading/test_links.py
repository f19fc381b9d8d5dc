"""Links of pages in other encodings than UTF-8 are asked as browsers ask them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from splitter.catalog.rules import PageRules, ResultRules
from tasks.domain.pages import Response
from tasks.reading.interstitials import redirect_target
from tasks.reading.learned_rules import LearnedRules
from tasks.reading.page_jobs import ListJob, PageJob, ResultJob

NOW = datetime(2026, 11, 20, 4, tzinfo=UTC)
URL = "http://a.cn/f?kw=x&pn=1"
HITS = ResultRules(hit="li", link="a@href", title="a", next="a.next")
THREAD = PageRules(review="div.post", body="p", next="a.next")
SAID = (
    "滤水壶用了一周就开始漏水，换了滤芯也没有用。",
    "我的也是，客服不理，打了三个电话都没有人接。",
    "密封圈可以单买，换上就好了。",
)
KOREAN = (
    "정수기 물통에서 물이 새요. 환불해 주세요.",
    "저도 그래요. 고객센터는 전화를 안 받아요.",
    "고무 패킹만 따로 살 수 있어요.",
)
# Encoding, a word, and how browsers write it in a query.
WRITTEN = [
    ("gbk", "光明", "%B9%E2%C3%F7"),
    ("gb2312", "光明", "%B9%E2%C3%F7"),
    ("big5", "光明", "%A5%FA%A9%FA"),
    ("shift_jis", "ソニー", "%83\\%83j%81["),
    ("euc-kr", "우유", "%BF%EC%C0%AF"),
    ("gbk", "光🥛", "%B9%E2%26%23129371%3B"),
    ("shift_jis", "奶光", "%26%2322902%3B%8C%F5"),
    ("windows-1251", "ряженка", "%F0%FF%E6%E5%ED%EA%E0"),
    ("utf-16", "光明", "%E5%85%89%E6%98%8E"),
    ("utf-8", "光明", "%E5%85%89%E6%98%8E"),
]


def job(kind, html, encoding, rules, url=URL, **how):
    kinds = {"content-type": f"text/html; charset={encoding}"}
    return kind(
        body=html.encode(encoding, "xmlcharrefreplace"), headers=kinds, url=url, now=NOW, rules=rules, **how
    )


def thread(word, base="", said=SAID):
    posts = "".join(
        f"<div class='post'><a class='author' href='/u/{n}'>甲{n}</a> <i>2026-11-1{n}</i><p>{text}</p></div>"
        for n, text in enumerate(said)
    )
    return (
        f"<html><head><title>滤水壶漏水</title>{base}</head><body><h1>滤水壶漏水</h1>{posts}"
        f"<a class='next' href='/f?kw={word}&amp;pn=2#p'>下一页</a></body></html>"
    )


@pytest.mark.parametrize(("encoding", "word", "written"), WRITTEN)
def test_links_are_asked_in_the_encoding_of_their_page(encoding, word, written):
    page = f"<ul><li><a href='/光/s?kw={word}#光'>一</a></li></ul>光明牛奶"
    path = f"http://a.cn/%E5%85%89/s?kw={written}"
    assert job(ResultJob, page, encoding, HITS).read().hits[0].url == path
    assert job(ListJob, page, encoding, HITS).read().hits[0].url == path
    sitemap = f"<urlset><url><loc>http://a.cn/光/s?kw={word}</loc></url><!-- 光明牛奶 --></urlset>"
    assert job(ListJob, sitemap, encoding, HITS).read().hits[0].url == path
    feed = f"<rss><channel><item><title>光明牛奶</title><link>/光/s?kw={word}</link></item></channel></rss>"
    assert job(ListJob, feed, encoding, HITS).read().hits[0].url == path
    refresh = f'<meta http-equiv="refresh" content="0; url=http://a.cn/光/s?kw={word}">光明牛奶'.encode(
        encoding, "xmlcharrefreplace"
    )
    kinds = {"content-type": f"text/html; charset={encoding}"}
    response = Response(url=URL, status=200, headers=kinds, body=refresh, elapsed_s=0.1)
    assert redirect_target(response) == path


@pytest.mark.parametrize(("encoding", "word", "written"), WRITTEN)
@pytest.mark.parametrize("rules", [THREAD, PageRules(main_text=True)], ids=["rules", "none"])
def test_the_next_page_of_a_thread_is_asked_in_its_encoding(encoding, word, written, rules):
    url = f"http://a.cn/f?kw={written}&pn=1"
    said = KOREAN if encoding == "euc-kr" else SAID
    read, _ = job(PageJob, thread(word, said=said), encoding, rules, url, hint="").read()
    assert read.next_url == f"http://a.cn/f?kw={written}&pn=2"


def test_learned_rules_ask_the_next_page_in_the_encoding_of_theirs():
    learned = LearnedRules()
    for _ in range(8):
        page = job(
            PageJob,
            thread("光明"),
            "gbk",
            PageRules(main_text=True),
            "http://a.cn/f?kw=%B9%E2%C3%F7&pn=1",
            read_thread=learned.read_thread_page,
            hint="",
        )
        assert page.read()[0].next_url == "http://a.cn/f?kw=%B9%E2%C3%F7&pn=2"


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("<base href='http://a.cn/deep/x.html'>", "http://a.cn/deep/s?q=1"),
        ("<base target='_blank'><base href='/deep/'><base href='/other/'>", "http://a.cn/deep/s?q=1"),
        ("<base href='//b.cn'>", "http://b.cn/s?q=1"),
        ("<base href='javascript:x'>", "http://a.cn/s?q=1"),
        ("<base href=''>", "http://a.cn/s?q=1"),
    ],
)
def test_links_are_resolved_against_the_base_of_their_page(base, expected):
    page = f"<html><head>{base}</head><ul><li><a href='s?q=1'>一</a></li></ul></html>"
    assert job(ResultJob, page, "utf-8", HITS).read().hits[0].url == expected


@pytest.mark.parametrize("rules", [THREAD, PageRules(main_text=True)], ids=["rules", "none"])
def test_the_next_page_is_resolved_against_the_base(rules):
    page = thread("x", "<base href='http://a.cn/deep/'>").replace("'/f?", "'../f?")
    read, _ = job(PageJob, page, "utf-8", rules, hint="").read()
    assert read.next_url == "http://a.cn/f?kw=x&pn=2"
