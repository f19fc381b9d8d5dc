"""What an engine of today may say in a catalog, and what is told where it is wrong."""

from pathlib import Path

import pytest

from splitter.catalog.load import load_catalog, parse_catalog
from splitter.catalog.paths import condition_of, path_of, paths_of, values_of
from splitter.errors import CatalogError
from splitter.keywords import product_query
from splitter.split import SearchScope, urls_of
from splitter.urls import listed_keywords

ROOT = Path(__file__).parents[2]
HEAD = """\
version: 1
name: small
rules:
  article: {main_text: true}
sites:
  a.cn: {engine: search, rules: article}
engines:
"""
ENGINE = """\
  search:
    kind: meta
    url: https://www.example.com/s
    params: {q: "{query}"}
"""
HTML = "    results: {hit: li, link: a@href, title: a}\n"
JSON = "    results: {format: json, hit: 'feed.entry[]', link: url, title: title}\n"


def problem(more: str) -> str:
    with pytest.raises(CatalogError) as told:
        parse_catalog(HEAD + ENGINE + more, "sites.yaml")
    return str(told.value)


def engine(more: str):
    return parse_catalog(HEAD + ENGINE + more, "sites.yaml").engines["search"]


def test_an_engine_with_everything():
    found = engine(
        HTML
        + """\
    headers: {Referer: https://www.example.com/, X-Requested-With: XMLHttpRequest}
    redirects: ['^https?://www\\.example\\.com/link\\?']
    times: {params: {from: "{from_day}", to: "{to_day}"}, least: day, inclusive: true}
    count_cap: 1000
"""
    )
    assert found.headers["X-Requested-With"] == "XMLHttpRequest"
    assert (found.count_cap, found.times.inclusive, found.inline) == (1000, True, False)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (HTML + "    headers: {User-Agent: x}\n", "sites.yaml:13: engines.search.headers.User-Agent: reviewloop sets"),
        (HTML + "    headers: {Cookie: a=b}\n", "from sign_in; leave it out"),
        (HTML + "    headers: {'a b': x}\n", "no header name"),
        (HTML + "    headers: {Referer: 中文}\n", "cannot be sent"),
        (HTML + "    redirects: ['(']\n", "engines.search.redirects[0]: bad regular expression"),
        (HTML + "    redirects: ['']\n", "matches everything"),
        (HTML + "    count_cap: 0\n", "engines.search.count_cap"),
        (HTML + "    times: {params: {}, least: day}\n", "engines.search.times.params"),
        (HTML + "    times: {params: {a: '{from_s}'}, least: week}\n", "engines.search.times.least"),
        (HTML + "    times: {params: {a: '{from_s}'}, least: day}\n", "no parameter carries the range's to"),
        (HTML + "    times: {params: {a: '{since}{from_s}{to_s}'}, least: day}\n", "unknown placeholder {since}"),
        (HTML + "    times: {params: {q: '{from_s}{to_s}'}, least: day}\n", "one of the engine's params already"),
        (
            HTML + "    times: {params: {a: '{from_day}{to_day}'}, least: hour}\n",
            "engines.search.times.least: days cannot tell hours apart; write least: day",
        ),
        (HTML + "    inline: true\n", "write post: {body: ...}"),
        (
            "    results: {hit: li, link: a@href, title: a, post: {body: p}}\n",
            "engines.search.results.post: only engines with inline: true have one",
        ),
        ("    results: {hit: '', link: a@href, title: a}\n", "engines.search.results.hit: '' selects nothing"),
        ("    results: {hit: li, link: 'a@href | ((', title: a}\n", "'((' is no CSS selector"),
        ("    results: {hit: li, link: a@href, title: a, embedded: script}\n", "write format: json beside it"),
        ("    results: {format: yaml, hit: li, link: a, title: a}\n", "engines.search.results.format"),
        ("    results: {format: json, hit: 'a..b', link: a, title: a}\n", "'a..b' is no path"),
        ("    results: {format: json, hit: 'a[]', link: 'x/{a', title: a}\n", "no text with {path} in it"),
        ("    results: {format: json, hit: 'a[]', link: a, title: a, found: '(\\d+)'}\n", "results.found"),
        ("    results: {format: json, hit: 'a[]', link: a, title: a, next: 'a b'}\n", "results.next"),
        ("    results: {format: json, hit: 'a[]', link: a, title: a, blocked: ['(']}\n", "results.blocked[0]"),
        (
            "    results: {format: json, embedded: script, hit: 'a[]', link: a, title: a}\n",
            "engines.search.results.hit: with embedded, the document is a list; begin with []",
        ),
        (
            "    inline: true\n    results: {format: json, hit: 'a[]', link: a, title: a, post: {body: ' '}}\n",
            "engines.search.results.post.body: '' selects nothing",
        ),
        (HTML + "    header: {}\n", "did you mean 'headers'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_place(more, told):
    assert told in problem(more)


LIST = """\
  search:
    kind: meta
    discover: list
    url: https://www.a.cn/zlts/{page}.shtml
"""


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("    params: {q: '{query}'}\n", "sites.yaml:12: engines.search.params.q: a list takes no search words"),
        ("    params: {p: '{page}'}\n", "sites.yaml:12: engines.search.params.p: depends on the page; add 'p'"),
        ("    site: '{words}'\n", "sites.yaml:12: engines.search.site: a list takes no search words: leave this out"),
        ("    results: {format: json, hit: 'a[]', link: a, title: a}\n", "results.format: a list is a sitemap"),
        ("    inline: true\n", "engines.search.inline: results.post does not say"),
        ("    discovers: list\n", "did you mean 'discover'?"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_list_is_told_with_its_place(more, told):
    with pytest.raises(CatalogError) as raised:
        parse_catalog(HEAD + LIST + more, "sites.yaml")
    assert told in str(raised.value)


def test_a_list_needs_no_rules_and_is_read_once_for_all_names_of_a_product():
    catalog = parse_catalog(HEAD + LIST, "sites.yaml")
    query = product_query("光明高钙牛奶", aliases=["特仑苏"])
    urls = [one.url for one in urls_of(SearchScope(catalog, pages=2), query)]
    assert [url.partition("#")[0] for url in urls] == [
        "https://www.a.cn/zlts/1.shtml",
        "https://www.a.cn/zlts/2.shtml",
    ]
    assert listed_keywords(urls[0]) == (("光明", "高钙", "牛奶"), ("蒙牛", "特仑苏"))
    (once,) = urls_of(SearchScope(catalog, pages=2, no_paging=True), query)
    assert once.url == urls[0]


def test_an_engine_that_is_asked_needs_rules():
    assert "sites.yaml:8: engines.search.results: missing; only engines with discover: list" in problem("")


def test_json_rules():
    assert engine(JSON).results.format == "json"
    assert path_of("feed.entry[].url") == ("feed", "entry", "[]", "url")
    assert path_of("[].data") == ("[]", "data")
    assert path_of("a[2].b[]") == ("a", "[2]", "b", "[]")
    assert paths_of("a[].b, a[].c[].b") == (("a", "[]", "b"), ("a", "[]", "c", "[]", "b"))
    link, other = values_of("https://a.cn/{id}?x={user.id} | url")
    assert link.parts == (("https://a.cn/", ("id",)), ("?x=", ("user", "id")))
    assert other.parts == (("", ("url",)),)
    assert values_of("") == ()


@pytest.mark.parametrize("text", ["", "a.", ".a", "a[-1]", "a[x]", "a b", "a,b", "{a}", "a|b", "a[]b"])
def test_what_is_no_path(text):
    with pytest.raises(ValueError, match="no path"):
        path_of(text)


def test_conditions_and_regular_expressions():
    (test,) = condition_of("ok=-100")
    assert (test.path, test.text, test.differs) == (("ok",), "-100", False)
    both = condition_of("results= & unresponsive_engines!=")
    assert [(t.path, t.text, t.differs) for t in both] == [
        (("results",), "", False),
        (("unresponsive_engines",), "", True),
    ]
    for pattern in (
        "请先登录",
        "wappass\\.baidu\\.com/static/captcha",
        '"action"\\s*:\\s*"captcha"',
        "/s\\?a=b",
    ):
        assert condition_of(pattern) is None


def test_the_catalog_that_comes_with_the_project():
    catalog = load_catalog(ROOT / "sites.yaml")
    named = {
        *("baidu", "baidu-json", "sogou", "sogou-weixin", "so360", "bing", "quark", "searxng"),
        *("weibo", "weibo-desktop", "tousu-sina", "12365auto", "tieba"),
    }
    assert named <= set(catalog.engines)
    assert [name for name, engine in catalog.engines.items() if engine.private] == ["searxng"]
    assert [name for name, engine in catalog.engines.items() if engine.inline] == [
        "weibo",
        "weibo-desktop",
        "12365auto-list",
    ]
