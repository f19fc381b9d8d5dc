"""Sitemaps, their indexes, feeds and pages of links, read as lists."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from splitter.catalog.rules import EVERY_LINK
from tasks.domain.failures import FetchError
from tasks.reading.lists import read_list

NOW = datetime(2026, 11, 22, tzinfo=UTC)
URL = "https://www.shop.cn/sitemap.xml"


def listed(text: str):
    return read_list(text, URL, EVERY_LINK, NOW)


def test_a_sitemap_with_titles_of_news():
    page = listed(
        '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        "<url><loc> https://www.shop.cn/a?x=1&amp;y=2 </loc><lastmod>2026-05-01</lastmod>"
        "<news:news><news:publication><news:name>某报</news:name></news:publication>"
        "<news:title>特仑苏 &amp; 别的</news:title></news:news></url>"
        "<url><loc>/b.html</loc></url><url><loc>/b.html</loc></url><url><loc>mailto:a@b.cn</loc></url>"
        "<url><lastmod>2026-05-01</lastmod></url></urlset>"
    )
    assert [(hit.url, hit.title) for hit in page.hits] == [
        ("https://www.shop.cn/a?x=1&y=2", "特仑苏 & 别的"),
        ("https://www.shop.cn/b.html", ""),
    ]
    assert page.hits[0].time is not None
    assert page.hits[0].time.strftime("%Y-%m-%d") == "2026-05-01"
    assert (page.further, page.more) == ((), False)


def test_an_index_gives_its_sitemaps_newest_first():
    page = listed(
        "<sitemapindex><sitemap><loc>https://www.shop.cn/1.xml</loc><lastmod>2024-01-01</lastmod></sitemap>"
        "<sitemap><loc>https://www.shop.cn/none.xml</loc></sitemap>"
        "<sitemap><loc>https://www.shop.cn/2.xml.gz</loc><lastmod>2026-01-01T08:00:00+08:00</lastmod></sitemap>"
        "</sitemapindex>"
    )
    assert page.further == (
        "https://www.shop.cn/2.xml.gz",
        "https://www.shop.cn/1.xml",
        "https://www.shop.cn/none.xml",
    )
    assert page.hits == ()


def test_an_empty_sitemap_is_no_error():
    assert listed("<urlset></urlset>").hits == ()


@pytest.mark.parametrize(
    "text",
    [
        "<rss><channel><link>https://www.shop.cn/</link><item><title>特仑苏</title><link>/1.html</link></item>"
        "</channel></rss>",
        '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>特仑苏</title><link href="/1.html"/></entry></feed>',
        '<html><body><a href="/1.html">特仑苏</a><a href="javascript:void(0)">x</a></body></html>',
    ],
)
def test_feeds_and_pages_of_links_are_lists(text):
    assert [(hit.url, hit.title) for hit in listed(text).hits] == [("https://www.shop.cn/1.html", "特仑苏")]


def test_a_page_without_links_is_no_list():
    with pytest.raises(FetchError):
        listed("<html><body>安全验证</body></html>")
