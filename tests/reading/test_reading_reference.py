"""The fast reader against a slow one on beautifulsoup4 that says what each rule means."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from bs4 import BeautifulSoup, Comment, NavigableString, Tag
from hypothesis import given
from hypothesis import strategies as st
from made_pages import BLOCKS, PAGES, SELECTORS

from research.tools.pages import RESULT_RULES, RULES, result_page, review_page
from splitter.catalog.rules import PageRules
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


def test_a_review_list_of_the_benches_is_read_as_the_reference_reads_it():
    for number, encoding in enumerate(("utf-8", "gb18030"), 1):
        html = review_page(number, encoding=encoding, size=12_000 + 2_000 * number).decode(encoding)
        read = read_page(html, "http://a.cn/", RULES, now=NOW)
        assert read == Reference(html).read(RULES)
        assert [bool(r.title and r.author and r.date and r.rating) for r in read.reviews] == [True] * 28


def test_a_result_page_of_the_benches_is_read_as_the_reference_reads_it():
    addresses = [f"http://a.cn/p/{number}.html?id={number}" for number in range(40)]
    html = result_page(3, addresses).decode()
    page = read_results(html, "http://s.cn/s?page=3", RESULT_RULES)
    reference = Reference(html)
    records = reference.soup.select(RESULT_RULES.hit)
    assert page.hits == tuple(
        Hit(
            *(
                reference.field(r, rule)
                for rule in (RESULT_RULES.link, RESULT_RULES.title, RESULT_RULES.abstract)
            )
        )
        for r in records
    )
    assert [hit.url for hit in page.hits] == addresses
    found = re.search(RESULT_RULES.found, " ".join(text(reference.soup).split()))
    assert (page.found, page.more) == (int(found[1].replace(",", "")), True)
