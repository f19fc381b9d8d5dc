"""The lab's lists: a sitemap index with a packed sitemap, and 12365auto's table, read back by the crawl's readers."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

from app.lab.pages import Corpus, make_texts
from app.lab.sites import PRODUCTS
from app.lab.web import LocalWeb
from splitter.catalog.load import load_catalog, parse_catalog
from splitter.keywords import keywords_of
from tasks.reading.decode import decode
from tasks.reading.lists import read_list

NOW = datetime(2026, 11, 22, tzinfo=UTC)
CATALOG = """
version: 1
name: lists
rules: {article: {main_text: true}}
engines:
  map: {kind: meta, discover: list, url: http://www.a.cn/sitemap.xml}
  board:
    kind: meta
    discover: list
    url: http://b.cn/board
    params: {page: "{page}"}
    paging_params: [page]
    results: {hit: ul.threads li, link: a@href, title: a, next: a.next}
sites:
  a.cn: {engine: map, rules: article}
  b.cn: {engine: board, rules: article}
"""


def lab_of(catalog):
    corpus = Corpus(catalog, 1, make_texts())
    return LocalWeb(catalog, corpus), corpus


def listed(corpus, site):
    return {
        corpus.url(one.page)
        for name in PRODUCTS
        for one in corpus.list_entries(site, keywords_of(name), None)
    }


def read(web, host, path, rules):
    document = web.document(host, path)
    assert document.status == 200
    body = gzip.decompress(document.body) if path.endswith(".gz") else document.body
    text = decode(body, {"content-type": document.content_type}).text
    return read_list(text, f"http://{host}{path}", rules, NOW)


def test_a_sitemap_index_and_its_sitemaps_list_every_page():
    catalog = parse_catalog(CATALOG, "sites.yaml")
    web, corpus = lab_of(catalog)
    rules = catalog.engines["map"].results
    further = read(web, "www.a.cn", "/sitemap.xml", rules).further
    assert further == ("http://www.a.cn/sitemap-2.xml.gz", "http://www.a.cn/sitemap-1.xml")
    hits = [
        hit
        for url in further
        for hit in read(web, "www.a.cn", url.removeprefix("http://www.a.cn"), rules).hits
    ]
    assert {hit.url.partition("?")[0].partition("#")[0] for hit in hits} >= listed(corpus, "a.cn")
    assert all(hit.title and hit.time for hit in hits)
    assert web.document("www.a.cn", "/sitemap-3.xml").status == 404


def test_the_table_of_12365auto_is_read_back():
    catalog = load_catalog(Path(__file__).resolve().parents[2] / "sites.yaml")
    web, corpus = lab_of(catalog)
    engine = catalog.engines["12365auto-list"]
    host, path = "www.12365auto.com", engine.url.partition(".com")[2].format(page=1)
    page = read(web, host, path, engine.results)
    assert engine.hits_per_page - 5 <= len(page.hits) <= engine.hits_per_page  # some are listed twice
    posts = {
        corpus.url(one.page): one
        for name in PRODUCTS
        for one in corpus.list_entries("12365auto.com", keywords_of(name), None)
    }
    for hit in page.hits:
        truth = corpus.content(posts[hit.url.partition("?")[0].partition("#")[0]].page).posts[0]
        assert hit.post is not None
        assert (hit.post.key, hit.post.date_text) == (truth.key, f"{truth.at:%Y-%m-%d}")
        assert " 车系" in hit.post.variant
        assert hit.post.variant.endswith(" 自动型")
        assert hit.post.body.endswith(("信息审核", "厂家受理", "厂家回复", "用户评分"))
