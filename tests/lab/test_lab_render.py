"""Result pages of the 2014 catalog list the truth, page by page and range by range."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from urllib.parse import urldefrag, urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser

from app.lab.engines import read_query
from app.lab.pages import Corpus, make_texts
from app.lab.web import LocalWeb
from splitter.catalog.model import TimeFilter
from splitter.spans import CHINA, Span
from splitter.urls import search_url

MILK = ("光明", "高钙", "牛奶")
MOST = 100


def ask(local_web, url):
    parts = urlsplit(url)
    return local_web.document(parts.hostname, f"{parts.path}?{parts.query}" if parts.query else parts.path)


def read(node, field):
    css, _, attribute = field.partition("@")
    found = node.css_first(css) if css else node
    if found is None:
        return None
    return found.attributes[attribute] if attribute else found.text(strip=True)


def page_through(local_web, engine, site, keywords):
    """Every link listed, by going from result page to result page as a crawler does."""
    links, found = [], None
    for number in range(1, MOST):
        document = ask(local_web, search_url(engine, keywords, site=site, page=number))
        tree = LexborHTMLParser(document.body.decode("utf-8"))
        hits = tree.css(engine.results.hit)
        assert len(hits) <= engine.hits_per_page
        for hit in hits:
            assert read(hit, engine.results.title)
            assert read(hit, engine.results.abstract)
            links.append(read(hit, engine.results.link))
        reported = re.search(engine.results.found, tree.body.text())
        if reported:
            found = int(reported[1].replace(",", ""))
        if tree.css_first(engine.results.next) is None:
            return links, found
    raise AssertionError("the list has no end")


def canonical(url):
    return urldefrag(url).url.partition("?utm_")[0]


def test_paging_through_the_result_pages_gives_the_truth(catalog, local_web):
    several_pages = 0
    for site in catalog.sites:
        engine = catalog.engine_of(site)
        links, found = page_through(local_web, engine, site, MILK)
        truth = local_web.truth(site, MILK)
        assert list(dict.fromkeys(map(canonical, links))) == list(truth)
        assert found == (len(links) or None)
        several_pages += len(links) > 2 * engine.hits_per_page
    assert several_pages >= 3


@pytest.mark.parametrize("site", ["12315.com", "weibo.com"])
def test_an_empty_answer_is_proven_by_the_engines_words(catalog, corpus, local_web, site):
    engine = catalog.engine_of(site)
    nothing = next((f"无{i}",) for i in range(1000) if corpus.hits(site, (f"无{i}",)) == 0)
    beyond = search_url(engine, MILK, site=site, page=1 + len(corpus.listing(site, MILK)))
    nowhere = search_url(engine, MILK, site="no.such.site", page=1)
    for url in (search_url(engine, nothing, site=site, page=1), beyond, nowhere):
        tree = LexborHTMLParser(ask(local_web, url).body.decode())
        assert not tree.css(engine.results.hit)
        assert any(re.search(pattern, tree.body.text()) for pattern in engine.results.empty)
        assert tree.css_first(engine.results.next) is None


@pytest.mark.parametrize(
    ("params", "least", "inclusive"),
    [
        ({"gpc": "stf={from_s},{to_s}|stftype=1"}, "hour", False),
        ({"from": "{from_day}", "to": "{to_day}"}, "day", False),
        ({"t": "custom:{from_hour}:{to_hour}"}, "hour", True),
    ],
)
def test_ranges_of_time_list_every_page_once(catalog, params, least, inclusive):
    times = TimeFilter(params=params, least=least, inclusive=inclusive)
    engine = catalog.engines["baidu"].model_copy(update={"times": times, "hits_per_page": 1000})
    timed = catalog.model_copy(update={"engines": {**catalog.engines, "baidu": engine}})
    corpus = Corpus(timed, 1, make_texts(), {"cca.org.cn": 300})
    web = LocalWeb(timed, corpus)
    begin, step = datetime(2011, 1, 1, tzinfo=CHINA), timedelta(days=137)
    links = []
    for n in range(8):
        span = Span(begin + n * step, begin + (n + 1) * step)
        url = search_url(engine, MILK, site="cca.org.cn", page=1, span=span)
        assert read_query(engine, urlsplit(url).query).span == span
        links += [
            read(hit, engine.results.link)
            for hit in LexborHTMLParser(ask(web, url).body).css(engine.results.hit)
        ]
    assert sorted(links) == sorted(entry.url for entry in corpus.list_entries("cca.org.cn", MILK, None))
    assert set(map(canonical, links)) == set(web.truth("cca.org.cn", MILK, whole=True))
    assert len(web.truth("cca.org.cn", MILK, whole=True)) == 300
