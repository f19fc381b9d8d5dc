"""Character references of any length, wherever a page may have them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from splitter.catalog.rules import PageRules
from tasks.domain.failures import FetchError
from tasks.domain.pages import Response
from tasks.reading.extract import read_page
from tasks.reading.interstitials import redirect_target
from tasks.reading.markup import resolve_references

NOW = datetime(2026, 5, 1, tzinfo=UTC)
NINES = "9" * 5000
REFERENCES = [
    f"&#{NINES};",
    f"&#{'0' * 5000}65;",
    f"&#x{'f' * 5000};",
    f"&amp;#{NINES};",
    f"&#{NINES}",
    f"&{NINES};",
]


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        (f"a&#{NINES};b", "a\ufffdb"),
        (f"a&#{'0' * 5000}65;b", "aAb"),
        (f"a&#{NINES}b", "a\ufffdb"),
        (f"a&#x{'f' * 5000};b", "a\ufffdb"),
        (f"a&#{'0' * 5000};b", "a\ufffdb"),
        ("&#0000000020809;&#x5149;光&amp;&lt;&copy;", "光光光&<©"),
        ("&#1114111;&#1114112;&#55296;", "\U0010ffff\ufffd\ufffd"),
        ("no reference: &#; &#x; & &#a;", "no reference: &#; &#x; & &#a;"),
    ],
)
def test_references_are_resolved_as_html_has_them(text, resolved):
    # html.unescape drops noncharacters such as U+10FFFF.
    assert resolve_references(text) == resolved.replace("\U0010ffff", "")


PLACES = {
    "title": "<title>{}</title><p>{}</p>",
    "metadata": '<meta property="og:title" content="{}"><meta name="author" content="{}">',
    "review": '<script type="application/ld+json">{{"@type":"Review","reviewBody":"{}","author":"{}"}}</script>',
    "rating": '<script type="application/ld+json">{{"@type":"Review","reviewBody":"{}",'
    '"reviewRating":{{"ratingValue":' + NINES + "}}}}</script>{}",
    "microdata": '<div itemscope itemtype="http://schema.org/Review"><p itemprop="reviewBody">{}</p>'
    '<b itemprop="author">{}</b></div>',
}


@pytest.mark.parametrize("reference", REFERENCES, ids=lambda reference: reference[:6])
@pytest.mark.parametrize("place", PLACES)
def test_a_page_with_a_long_reference_is_read(place, reference):
    text = f"{reference}打开后发现有三盒已经胀包，味道发酸。"
    page = PLACES[place].format(text, text) + "<p>" + "上周在超市买了一箱牛奶，回家打开后发现。" * 20
    try:
        read = read_page(page, "http://a.cn/1", PageRules(main_text=True), now=NOW)
    except FetchError:
        return
    assert read.reviews


@pytest.mark.parametrize("digits", [3900, 5000])
def test_an_address_of_a_redirect_with_a_long_reference_is_read(digits):
    body = f'<script>location="http://b.cn/&#{"9" * digits}"</script>'.encode()
    answer = Response(url="http://a.cn/", status=200, headers={}, body=body, elapsed_s=0.1)
    assert redirect_target(answer) == "http://b.cn/%EF%BF%BD"
