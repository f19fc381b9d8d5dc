"""Searches of a range of time: what a URL of the catalog's engines asks for is what the lab answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import urlsplit

import pytest

from app.lab.corpus import Corpus, made_texts
from app.lab.query import read_query
from app.lab.web import LocalWeb
from splitter.catalog.model import TimeFilter
from splitter.spans import CHINA, Span
from splitter.urls import search_url

WORDS = ("光明", "牛奶")
SITE = "cca.org.cn"
DAY = Span(datetime(2013, 3, 15, tzinfo=CHINA), datetime(2013, 3, 16, tzinfo=CHINA))
HOURS = Span(datetime(2013, 3, 15, 7, tzinfo=CHINA), datetime(2013, 3, 15, 9, tzinfo=CHINA))
FILTERS = {
    "seconds": TimeFilter(params={"gpc": "stf={from_s},{to_s}|stftype=1"}, least="hour"),
    "seconds, inclusive": TimeFilter(params={"t": "{from_s}-{to_s}"}, least="hour", inclusive=True),
    "days": TimeFilter(params={"from": "{from_day}", "to": "{to_day}"}, least="day"),
    "hours, inclusive": TimeFilter(
        params={"t": "custom:{from_hour}:{to_hour}"}, least="hour", inclusive=True
    ),
}


def _timed(catalog, times):
    engine = catalog.engines["baidu"].model_copy(update={"times": times})
    return catalog.model_copy(update={"engines": {**catalog.engines, "baidu": engine}})


@pytest.mark.parametrize("times", FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("span", [DAY, HOURS])
def test_a_range_is_read_back_as_it_was_written(catalog, times, span):
    if times.least == "day" and span is HOURS:
        span = DAY
    engine = _timed(catalog, times).engines["baidu"]
    url = search_url(engine, WORDS, site=SITE, page=2, span=span)
    query = read_query(engine, urlsplit(url).query)
    assert (query.keywords, query.site, query.page, query.span) == (WORDS, SITE, 2, span)
    assert read_query(engine, urlsplit(search_url(engine, WORDS, site=SITE, page=1)).query).span is None


@pytest.mark.parametrize(
    "value", ["", "stf=1|stftype=1", "stf=9,1|stftype=1", "stf=1,99999999999999999999|stftype=1"]
)
def test_a_range_that_makes_no_sense_is_no_restriction(catalog, value):
    engine = _timed(catalog, FILTERS["seconds"]).engines["baidu"]
    assert read_query(engine, f"wd=a&gpc={value}").span is None


def test_ranges_that_tile_find_every_page_of_a_known_number_once(catalog):
    timed = _timed(catalog, FILTERS["seconds"])
    corpus = Corpus(timed, 1, made_texts(), {SITE: 300})
    web = LocalWeb(timed, corpus)
    assert len(web.truth(SITE, WORDS, whole=True)) == len(corpus.pages(SITE, WORDS)) == 300
    begin, step = datetime(2011, 1, 1, tzinfo=CHINA), timedelta(days=137)
    spans = [Span(begin + n * step, begin + (n + 1) * step) for n in range(8)]
    listed = [entry for span in spans for entry in corpus.listed(SITE, WORDS, span)]
    assert len(listed) == len(corpus.listed(SITE, WORDS, None))
    assert {entry.page for entry in listed} == set(corpus.pages(SITE, WORDS))
    for span in spans:
        for entry in corpus.listed(SITE, WORDS, span):
            assert span.start <= corpus.content(entry.page).posts[0].at < span.end
    url = search_url(timed.engines["baidu"], WORDS, site=SITE, page=1, span=spans[2])
    body = web.document("www.baidu.com", url.removeprefix("http://www.baidu.com")).body.decode()
    assert f"相关结果约{len(corpus.listed(SITE, WORDS, spans[2]))}个" in body
