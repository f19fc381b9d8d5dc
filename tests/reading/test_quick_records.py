"""Pages read with turbohtml against the same pages read with selectolax, and which pages are left to selectolax."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pages import PAGES

from app.lab.pages import PageName, write_page
from app.lab.sites import write_content
from splitter.catalog.load import load_catalog
from splitter.catalog.rules import PageRules
from tasks.domain.failures import FetchError
from tasks.domain.pages import PageRead
from tasks.reading import extract
from tasks.reading.decode import decode

pytest.importorskip("turbohtml")
from tasks.reading.quick_records import read_quickly

NOW = datetime(2024, 5, 6, tzinfo=UTC)
URL = "http://a.cn/1"
PAGE_FILES = sorted((Path(__file__).parents[2].parent / "shared" / "data" / "pages").glob("*.html"))
CATALOG = load_catalog(Path(__file__).parents[2] / "sites.yaml")
# One end tag is missing, one is too many, or one stands in another's place.
BROKEN = st.lists(
    st.sampled_from(
        [
            *("<div class='r t'>", "</div>", "<p>", "</p>", "<b>", "</b>", "<a href=x>", "</a>", "<li>", "</li>"),
            *("<table>", "<tr>", "<td class=r>", "</td>", "</table>", "<em>", "</em>", "<h2>", "</h3>", "<!--", "-->"),
            *("<svg><title>", "<br>", "</br>", "<select><option>", "<textarea>", "<?xml >"),
            *("<p hidden>", "甲", "乙 &amp"),
        ]
    ),
    max_size=30,
).map("".join)  # fmt: skip
FIELDS = ["b", "b | .", ".", "em | p@class", "a@href | .", ".t & b", "div.r b", "@class"]


def read_slowly(html: str, rules: PageRules) -> PageRead | None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "_read_quickly", None)
        try:
            return extract.read_page(html, URL, rules, now=NOW)
        except FetchError:
            return None


@given(
    PAGES | BROKEN,
    st.sampled_from([".r", "td, li", "div", "p", "body", "div.r > *"]),
    st.sampled_from(FIELDS),
    st.sampled_from(["", *FIELDS]),
)
def test_both_parsers_read_the_same_reviews(html, review, body, author):
    rules = PageRules(review=review, body=body, author=author, next="a[href]")
    quick = read_quickly(html, URL, rules, NOW)
    assert quick is None or quick == read_slowly(html, rules)


@pytest.mark.skipif(not PAGE_FILES, reason="the shared data is not beside the repository")
@pytest.mark.parametrize("path", PAGE_FILES, ids=lambda path: path.stem)
def test_both_parsers_read_saved_pages_alike(path):
    html = decode(path.read_bytes(), {}).text
    for review in ("li", "tr", "div.result, article", "p", "body", "title"):
        rules = PageRules(
            review=review, body=".", title="h1, h2, h3", author="a", id="a@href | @id", date="span, em"
        )
        quick = read_quickly(html, URL, rules, NOW)
        assert quick is None or quick == read_slowly(html, rules)


@pytest.mark.parametrize(
    "body",
    [
        'p:lexbor-contains("好")',
        "p:empty | b",
        "b & :enabled",
        "p:not(:read-only)",
        "a:any-link",
        "p:first-line",
        "p:nth-col(1)",
    ],
)
def test_what_both_may_understand_differently_is_left_to_selectolax(body):
    assert read_quickly("<p>好<b>奶</b></p>", URL, PageRules(review="body", body=body), NOW) is None


@pytest.mark.parametrize(
    "body", ["p:first-child", "p:nth-last-child(2n+1)", "p:has(> b)", "p:not(.x):last-of-type", "p:is(p, b)"]
)
def test_pseudo_classes_that_both_read_alike(body):
    rules = PageRules(review="body", body=body)
    page = read_quickly("<p>好<b>奶</b></p>", URL, rules, NOW)
    assert page == read_slowly("<p>好<b>奶</b></p>", rules)
    assert [review.body for review in page.reviews] == ["好奶"]


@pytest.mark.parametrize(
    ("depth", "is_read"), [(5, True), (97, True), (100, False), (300, False), (520, False)]
)
def test_a_deep_page_is_left_to_selectolax(depth, is_read):
    html = "<div>" * depth + "<p>好</p>" + "</div>" * depth + "<p>差"
    rules = PageRules(review="p", body=".")
    assert (read_quickly(html, URL, rules, NOW) is not None) is is_read
    assert [review.body for review in extract.read_page(html, URL, rules, now=NOW).reviews] == ["好", "差"]


@pytest.mark.parametrize(
    ("records", "is_read"),
    [
        ("<i class=r>1</i><i class=r>2</i>", True),
        ("<p><i class=r>1</i></p><div><i class=r>2</i></div>", True),
        ("<i class=r>1</i><i class='r s'>2<i>3</i></i>", True),
        ("<i class=r>1<i class=r>2</i></i>", False),
        ("<i class=r>1</i><i class=r><b><i class=r>2</i></b></i>", False),
    ],
)
def test_records_within_records_are_left_to_selectolax(records, is_read):
    assert (read_quickly(records, URL, PageRules(review=".r", body="."), NOW) is not None) is is_read


@pytest.mark.parametrize(
    "html", ["", "<i>好</i>", "<p></p>", "<script><p>好</p></script>", "<p hidden>好</p>"]
)
def test_a_page_without_reviews_is_left_to_selectolax(html):
    assert read_quickly(html, URL, PageRules(review="p", body="."), NOW) is None


BY_SELECTORS = [
    name for name, rules in CATALOG.rules.items() if rules.format == "html" and not rules.main_text
]


@pytest.mark.parametrize("name", BY_SELECTORS)
def test_the_rules_of_the_catalog_are_read_with_turbohtml(name):
    for number in range(5):
        content = write_page(
            1, PageName("a.cn", ("牛奶",), number), name, ["牛奶很好", "包装破了", "还会再来"]
        )
        html = write_content(CATALOG.rules[name], content)
        quick = read_quickly(html, URL, CATALOG.rules[name], NOW)
        assert quick == read_slowly(html, CATALOG.rules[name])
        assert [review.body for review in quick.reviews] == [post.body for post in content.posts]
