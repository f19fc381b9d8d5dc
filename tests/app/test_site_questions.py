"""Questions about a catalog that is right and still loses pages."""

from tiny_world import ROOT

from app.sites.rule_preview import _outline
from app.sites.site_questions import questions
from splitter.catalog.load import load_catalog, parse_catalog

CATALOG = """
version: 1
name: q
rules: {{article: {{main_text: true}}}}
engines:
  one:
    kind: meta
    url: https://search.shop.cn/s
    params: {params}
    paging_params: {paging}
    {more}
    results: {{hit: li, link: a@href, title: a{next}}}
sites:
  {sites}
"""


def asked(
    params='{q: "{query}", p: "{page}"}',
    paging="[p]",
    more='site: "{words}"',
    next=", next: a.n",
    sites="shop.cn: {engine: one, rules: article, pages: 3}",
):
    text = CATALOG.format(params=params, paging=paging, more=more, next=next, sites=sites)
    return [(one.key, str(one.text)) for one in questions(parse_catalog(text, "sites.yaml"))]


def test_a_catalog_that_loses_nothing():
    assert asked() == []
    assert asked(next="", sites="shop.cn: {engine: one, rules: article}") == []
    assert questions(load_catalog(ROOT / "sites.yaml")) == []


def test_pages_without_next():
    ((key, text),) = asked(next="")
    assert key == "engines.one.results.next"
    assert "first of 3 is read for shop.cn" in text


def test_pages_without_a_parameter():
    ((key, _),) = asked(params='{q: "{query}"}', paging="[]")
    assert key == "engines.one.paging_params"


def test_a_search_of_its_own_that_gets_site():
    ((key, text),) = asked(more="inline: false")
    assert key == "engines.one.site"
    assert 'write site: "{words}"' in text


def test_a_search_for_several_that_names_none():
    ((key, text),) = asked(
        sites="{shop.cn: {engine: one, rules: article}, b.cn: {engine: one, rules: article}}"
    )
    assert key == "engines.one.site"
    assert "each gets the hits of all" in text


def test_an_outline_names_links_that_lead_on():
    page = (
        '<title>t</title><p><a href="?p=2">2</a><a class="pg next" href="?p=2">›</a><a href="?p=2">下一页</a></p>'
        '<a href="/context">context</a>'
    )
    assert [line for line in _outline(page) if line.startswith("next page?")] == [
        "next page? a.pg.next: ›",
        'next page? a:lexbor-contains("下一页"): 下一页',
    ]
