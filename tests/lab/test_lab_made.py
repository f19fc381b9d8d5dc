"""Markup made from rules is read by these rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from app.lab.answers import HTML
from app.lab.engines import EnginePage, write_results
from app.lab.made import NotSimple, write_records
from app.lab.pages import PageName
from app.lab.sites import write_content
from splitter.catalog.rules import PageRules, ResultRules
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
    tree = LexborHTMLParser(write_records(selector, [[(".", "牛奶")]]))
    assert tree.css_first(selector).text(strip=True) == "牛奶"


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        ("tr.row", {"td:nth-child(2)": "正文", "td:nth-child(3)": "日期"}),
        ("#list > ul > li", {"#list > ul > li h3 a": "标题", "h3 a@href": "http://a.example/1"}),
        ('div.c[id^="C_"]', {"span.ctt": "正文", "a": "某人"}),
        ("div.item", {"a.title": "标题", "a": "某人", "span.t:last-of-type": "日期"}),
        ("div.item:has(h3)", {"h3 + p": "正文", '[class*="x"].y': "某人"}),
        ("div.one, div.two", {"p | span.x": "正文"}),
    ],
)
def test_records_have_their_fields(record, fields):
    found = Records(LexborHTMLParser(write_records(record, [list(fields.items())] * 2)), record)
    assert len(found.nodes) == 2
    for rule, value in fields.items():
        assert found.values(rule.split(" | ")[0]) == [value, value]


@pytest.mark.parametrize("selector", ["p:is(.a)", "a::before", "div >> p", "a:nth-child(2n+1)", "a["])
def test_rules_that_are_not_simple_get_a_plain_page(corpus, selector):
    with pytest.raises(NotSimple):
        write_records(selector, [[]])
    content = corpus.content(PageName("12315.com", ("牛奶",), 0))
    page = EnginePage(number=1, found=1, hits=[("http://a.cn/1", content)], next_url="")
    content_type, text = write_results("odd", ResultRules(hit=selector, link="a@href", title="a"), page)
    assert (content_type, "http://a.cn/1" in text) == (HTML, True)
    assert content.posts[0].body in write_content(PageRules(review=selector, body="p"), content)
