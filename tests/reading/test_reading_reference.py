"""The fast reader against a slow one on beautifulsoup4 that says what each rule means."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from bs4 import BeautifulSoup, Comment, NavigableString, Tag
from hypothesis import given
from hypothesis import strategies as st
from made_pages import BLOCKS, PAGES, SELECTORS

from splitter.catalog.rules import PageRules, ResultRules
from splitter.spans import CHINA
from tasks.domain.failures import FetchError
from tasks.domain.pages import Hit, PageRead, Review
from tasks.reading.dates import read_date
from tasks.reading.extract import read_page
from tasks.reading.results import read_results

NOW = datetime(2013, 5, 6, 20, 30, tzinfo=CHINA)
NOT_SHOWN = '[hidden], [style*="display:none" i], [style*="display: none" i]'
FIELDS = st.one_of(
    st.just(""),
    st.sampled_from(SELECTORS),
    st.sampled_from(["@data-id", "@class", "em@data-id", ".t@data-id", "[data-id]@data-id"]),
)


class Reference:
    """A page as beautifulsoup4 has it."""

    def __init__(self, html: str) -> None:
        self.soup = BeautifulSoup(html, "html.parser")
        for tag in self.soup(["script", "style", "template", "noscript"]):
            tag.decompose()
        for tag in self.soup.select(NOT_SHOWN):
            if not tag.decomposed:
                tag.decompose()

    def field(self, record: Tag, rule: str) -> str:
        css, _, attribute = rule.partition("@")
        matching = {id(tag) for tag in self.soup.select(css)} if css else {id(record)}
        found = next((tag for tag in (record, *record.find_all(True)) if id(tag) in matching), None)
        if not rule or found is None:
            return ""
        value = found.get(attribute, "") if attribute else text(found)
        return " ".join((" ".join(value) if isinstance(value, list) else value).split())

    def reviews(self, rules: PageRules) -> tuple[Review, ...]:
        reviews: dict[str, Review] = {}
        for place, record in enumerate(self.soup.select(rules.review)):
            title, body, author, date, rating = (
                self.field(record, rule)
                for rule in (rules.title, rules.body, rules.author, rules.date, rules.rating)
            )
            key = self.field(record, rules.id)
            key = f"#{place}" if not key or key in reviews else key
            number = re.search(r"\d{1,6}(?:\.\d{1,6})?", rating)
            score = float(number.group()) if number else None
            if body:
                reviews[key] = Review(key, title, body, author, date, read_date(date, NOW), score)
        return tuple(reviews.values())

    def read(self, rules: PageRules) -> PageRead:
        return PageRead(" ".join(text(self.soup.title).split()), self.reviews(rules))


def text(tag: Tag) -> str:
    parts = ""
    for child in tag.children:
        if isinstance(child, Tag):
            parts += f" {text(child)} " if child.name in BLOCKS else text(child)
        elif isinstance(child, NavigableString) and not isinstance(child, Comment):
            parts += child
    return parts


@given(PAGES, st.sampled_from([".r", "div.r", "section, .r", ".t", "em"]), st.tuples(*[FIELDS] * 5))
def test_a_page_is_read_as_the_reference_reads_it(html, review, fields):
    names = ("id", "title", "body", "author", "rating")
    rules = PageRules(review=review, **{**dict(zip(names, fields, strict=True)), "body": fields[2] or "em"})
    expected = Reference(html).read(rules)
    if expected.reviews:
        assert read_page(html, "http://a.cn/", rules, now=NOW) == expected
    else:
        with pytest.raises(FetchError, match="bad_rule"):
            read_page(html, "http://a.cn/", rules, now=NOW)


LIST = PageRules(
    review="li.review", id="@data-id", title="h3.t", body="div.b", author="a.author", date="span.date",
    rating="span.star@data-score",
)  # fmt: skip
HITS = ResultRules(hit="div.result", link="h3.t a@href", title="h3.t a", abstract="div.abstract")


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030"])
def test_a_review_list_is_read_as_the_reference_reads_it(encoding):
    records = "".join(
        f'<li class="review" data-id="r{n}"><h3 class="t">口感 {n}，总体<b>满意</b></h3><a class="author">王先生</a>'
        f'<span class="star" data-score="{n % 5 + 1}.0"></span><span class="date">2013-5-{n + 1} 10:{n + 10}</span>'
        f'<div class="b">上周在超市买的<i>纯牛奶</i>，包装有点破损。<!-- 广告 --> {"味道香浓不腻。" * n}</div></li>'
        for n in range(28)
    )
    page = f'<meta charset="{encoding}"><title>牛奶 怎么样</title><ul>{records}</ul>'
    html = page.encode(encoding).decode(encoding)
    read = read_page(html, "http://a.cn/", LIST, now=NOW)
    assert read == Reference(html).read(LIST)
    assert [bool(r.title and r.author and r.date and r.rating) for r in read.reviews] == [True] * 28


def test_a_result_page_is_read_as_the_reference_reads_it():
    html = "".join(
        f'<div class="result"><h3 class="t"><a href="http://a.cn/p/{n}.html?id={n}"><em>牛奶</em>投诉 {n}</a></h3>'
        f'<div class="abstract">希望商家<em>给个说法</em>，{n} 天了</div><span>a.cn 2013-5-6</span></div>'
        for n in range(40)
    )
    reference = Reference(html)
    rules = (HITS.link, HITS.title, HITS.abstract)
    found = read_results(html, "http://s.cn/s?page=3", HITS).hits
    assert found == tuple(
        Hit(*(reference.field(record, rule) for rule in rules)) for record in reference.soup.select(HITS.hit)
    )
    assert len(found) == 40
