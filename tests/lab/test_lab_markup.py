"""Markup made from selectors is what the selectors match."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from app.lab.engines import paper2014
from app.lab.engines.formats import engine_format
from app.lab.engines.model import address, token
from app.lab.markup import NotSimple, compounds_of, records, sample_text
from app.lab.pages import SAMPLE, Content
from app.lab.sites import site_format
from splitter.catalog.load import builtin
from splitter.catalog.rules import PageRules
from tasks.reading.records import Records

NAMES = st.sampled_from(["post", "a", "b-c", "x_1"])
COMPOUNDS = st.builds(
    lambda tag, classes, attribute: tag + "".join(f".{name}" for name in classes) + attribute,
    st.sampled_from(["div", "section", "article"]),
    st.lists(NAMES, max_size=2, unique=True),
    st.sampled_from(["", "#one", "[data-x]", '[data-x="1"]', "[data-x^=ab]"]),
)
SELECTORS = st.builds(
    lambda parts, joins: "".join(part + join for part, join in zip(parts, [*joins, ""], strict=False)),
    st.lists(COMPOUNDS, min_size=1, max_size=3),
    st.lists(st.sampled_from([" ", " > "]), min_size=2, max_size=2),
).map(lambda text: text.strip(" >"))


@given(SELECTORS)
def test_an_element_made_from_a_selector_is_its_first_match(selector):
    tree = LexborHTMLParser(records(selector, [[(".", "牛奶")]]))
    assert tree.css_first(selector).text(strip=True) == "牛奶"


@given(SELECTORS, st.lists(st.text("牛奶<>&\"'ab ", min_size=1).filter(str.strip), min_size=1, max_size=4))
def test_every_record_has_its_fields(selector, texts):
    rows = [[("@data-id", str(n)), ("p.body", text), ("a.name", "某人")] for n, text in enumerate(texts)]
    found = Records(LexborHTMLParser(records(selector, rows)), selector)
    assert len(found.nodes) == len(texts)
    assert found.values("p.body") == [" ".join(text.split()) for text in texts]
    assert found.values("@data-id") == [str(n) for n in range(len(texts))]
    assert found.values("a.name") == ["某人"] * len(texts)


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ("tr.row", {"td:nth-child(2)": "正文", "td:nth-child(3)": "日期"}),
        ("#list > ul > li", {"#list > ul > li h3 a": "标题", "h3 a@href": "http://a.example/1"}),
        ('div.c[id^="C_"]', {"span.ctt": "正文", "a": "某人"}),
        ("div.item", {"a": "某人", "a.title": "标题", "span.t:last-of-type": "日期"}),
        ("div.item", {"dt + dd": "正文"}),
        ("div.one, div.two", {"p | span.x": "正文"}),
    ],
)
def test_selectors_as_catalogs_have_them(record, fields):
    found = Records(LexborHTMLParser(records(record, [list(fields.items())] * 2)), record)
    assert len(found.nodes) == 2
    for rule, value in fields.items():
        assert found.values(rule.split(" | ")[0]) == [value, value]


@pytest.mark.parametrize(
    "selector", ["div:has(p)", "p:is(.a)", "a::before", "div >> p", "a:nth-child(2n+1)", "§"]
)
def test_a_selector_too_involved_is_refused(selector):
    with pytest.raises(NotSimple):
        compounds_of(selector)


@pytest.mark.parametrize(
    ("pattern", "number", "text"),
    [
        (r"百度为您找到相关结果约?([\d,]+)个", 7, "百度为您找到相关结果约7个"),
        (r"共\s*(\d+)\s*条", 12, "共12条"),
        ("没有找到|未找到", None, "没有找到"),
        (r"wappass\.baidu\.com", None, "wappass.baidu.com"),
        (r"([a-z]+)", 3, ""),
    ],
)
def test_what_a_plain_regular_expression_says(pattern, number, text):
    assert sample_text(pattern, number) == text


@given(st.text())
def test_only_what_was_made_a_token_is_read_as_one(text):
    assert address(token(text)) == text
    assert address(text) == "" or token(address(text)) == text


def test_an_engine_of_another_name_is_served_what_its_rules_read_or_the_format_of_its_kind():
    catalog = builtin("paper-2014")
    baidu, yunyun = catalog.engines["baidu"], catalog.engines["weibo-yunyun"]
    assert engine_format("mine", baidu) is paper2014.BAIDU
    assert engine_format("weibo-yunyun", yunyun) is paper2014.YUNYUN
    own = yunyun.results.model_copy(update={"hit": "div.hit"})
    assert engine_format("mine", yunyun.model_copy(update={"results": own})) is not paper2014.YUNYUN
    odd = yunyun.results.model_copy(update={"hit": "div:has(p)"})
    assert engine_format("mine", yunyun.model_copy(update={"results": odd})) is paper2014.YUNYUN
    today = baidu.results.model_copy(update={"hit": "div:has(p)"})
    assert engine_format("mine", baidu.model_copy(update={"results": today})) is paper2014.BAIDU


def test_rules_too_involved_are_served_pages_of_a_plain_format():
    odd = PageRules(review="div:has(p)", body="p")
    content = Content("牛奶", "投诉牛奶", (replace(SAMPLE, body="不新鲜"),))
    assert "不新鲜" in site_format(odd)(content)
