from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.catalog.load import builtin
from splitter.errors import InputError
from splitter.keywords import ProductQuery
from splitter.split import SearchScope, chunks, urls_of
from splitter.urls import search_url

CATALOG = builtin("paper-2014")
BAIDU = CATALOG.engines["baidu"]
WEIBO = CATALOG.engines["weibo-yunyun"]
WORD = st.text(st.characters(exclude_categories=["Cs", "Z", "C"]), min_size=1, max_size=8)


def engine(**changes):
    return BAIDU.model_copy(update=changes)


@given(st.lists(WORD, min_size=1, max_size=6), st.integers(1, 1000))
def test_a_url_carries_the_words_and_the_page(words, page):
    query = parse_qs(urlsplit(search_url(BAIDU, words, site="cca.org.cn", page=page)).query)
    assert query["wd"] == [" ".join([*words, "site:cca.org.cn"])]
    assert query["pn"] == [str((page - 1) * 10)]
    query = parse_qs(urlsplit(search_url(WEIBO, words, site=None, page=page)).query)
    assert query["q"] == ["&".join([*words, "投诉"])]
    assert query["p"] == [str(page)]


def test_an_engine_is_asked_in_its_own_encoding():
    url = search_url(engine(encoding="gbk"), ["光明", "牛奶"], site="cca.org.cn", page=None)
    assert "wd=%B9%E2%C3%F7+%C5%A3%C4%CC+site%3Acca.org.cn" in url


def test_a_character_the_encoding_lacks_is_written_as_browsers_do():
    url = search_url(engine(encoding="gb2312"), ["喆牛奶"], site=None, page=None)
    assert "wd=%26%2321894%3B%C5%A3%C4%CC&" in url


def test_templates_are_the_engines_own():
    own = engine(
        url="https://search.example.com/find",
        params={"k": "all:{query}", "p": "{page}", "o": "{offset}", "x": "a {{b}}"},
        paging_params=("p", "o"),
        site="{words}",
        join=" AND ",
        extra_words=("投诉",),
        first=5,
        step=20,
    )
    url = search_url(own, ["a&b", "c"], site="example.com", page=3)
    assert url == (
        "https://search.example.com/find?k=all%3Aa%26b+AND+c+AND+%E6%8A%95%E8%AF%89&p=3&o=45&x=a+%7Bb%7D"
    )


@pytest.mark.parametrize("page", [0, -1])
def test_pages_are_counted_from_1(page):
    with pytest.raises(ValueError, match="from 1"):
        search_url(BAIDU, ["a"], site=None, page=page)


def test_the_name_comes_first_then_its_aliases_without_repeats():
    query = ProductQuery("特仑苏", ("蒙牛", "特仑苏"), (("特仑苏", "蒙牛"), ("deluxe",)))
    found = list(urls_of(SearchScope(CATALOG, ("cca.org.cn",), pages=2), query))
    assert [(page.keywords, page.page) for page in found] == [
        (("蒙牛", "特仑苏"), 1),
        (("蒙牛", "特仑苏"), 2),
        (("deluxe",), 1),
        (("deluxe",), 2),
    ]


@given(st.lists(st.integers()), st.integers(1, 9))
def test_chunks_hold_the_list(items, size):
    parts = chunks(items, size)
    assert [item for part in parts for item in part] == items
    assert all(len(part) == size for part in parts[:-1])
    assert all(parts)
    assert all(len(part) <= size for part in parts)


def test_every_site_gets_its_pages_in_chunks():
    site = CATALOG.sites["cca.org.cn"].model_copy(update={"pages": 5, "chunk_pages": 2})
    catalog = CATALOG.model_copy(update={"sites": {**CATALOG.sites, "cca.org.cn": site}})
    found = list(urls_of(SearchScope(catalog), ProductQuery("特仑苏", ("蒙牛", "特仑苏"))))
    assert len(found) == 34 + 5
    assert [url.chunk for url in found if url.site == "cca.org.cn"] == [1, 1, 2, 2, 3]
    assert len({url.url for url in found}) == len(found)


def test_without_site_nothing_repeats():
    query = ProductQuery("特仑苏", ("特仑苏",))
    found = list(urls_of(SearchScope(CATALOG, sites=("cca.org.cn", "ccn.com.cn"), no_site=True), query))
    assert [(url.site, url.engine) for url in found] == [(None, "baidu")]


def test_a_plan_knows_its_sites():
    assert SearchScope(CATALOG, sites=("weibo.com", "weibo.com")).tasks(None) == ("weibo.com",)
    with pytest.raises(InputError, match=r"no site 'nowhere\.cn'"):
        SearchScope(CATALOG, sites=("nowhere.cn",))
    with pytest.raises(InputError, match="at least 1"):
        SearchScope(CATALOG, pages=0)
