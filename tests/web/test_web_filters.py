"""Filters in addresses: unknown ones and wrong values are refused in words; a product is named or numbered."""

from __future__ import annotations

import html

import pytest
from dashboard import Served
from sample_store import OTHER, PRODUCT, SHOP, SITE

WRONG = [
    (
        "/reviews?prodct=1",
        "There is no filter 'prodct' here; there are q, site, product",
        "没有筛选条件“prodct”",
    ),
    (
        "/reviews?voice=loud",
        "Voice: must be one of 'complaint', 'praise'",
        "评论类型：须为其中之一：'complaint'",
    ),
    ("/reviews?from=yesterday", "From day: must be a date", "须为日期"),
    ("/products/1?days=week", "'week' is no number of days", "不是天数"),
    ("/products/1?days=0", "'0' is no number of days", "不是天数"),
    ("/products/1?days=7&to=2026-03-01", "not both", "不能同时"),
    ("/reviews?from=2026-03-02&to=2026-03-01", "is before the first", "早于开始日期"),
    ("/reviews?product=光明高钙牛乃", f"did you mean {PRODUCT!r}", PRODUCT),
    ("/reviews?product=999", "there is no product '999'", "999"),
    ("/reviews?site=12315.cn", f"did you mean '{SITE}'", SITE),
    ("/reviews?before=-1", "before: must be 0 or more", "0 或更大|不小于 0"),
    ("/reviews?split=maybe", "must be true or false; found 'maybe'", "maybe"),
    ("/products?category=fish", "Category: must be one of 'food'", "'fish'"),
    ("/products?doubt=x", "found 'x'", "'x'"),
    ("/products?sort=beauty", "must be one of 'complaints'", "'beauty'"),
    ("/products?by=colour", "must be one of 'brand'", "'colour'"),
    ("/products?skip=-1", "must be 0 or more", "不小于 0"),
    ("/products?colour=red", "no filter 'colour'", "没有筛选条件"),
    ("/failed?reason=tired", "Reason: must be one of", "'tired'"),
    ("/failed?site=nowhere.example", "there is no site 'nowhere.example'", "nowhere.example"),
    ("/matrix?measure=beauty", "must be one of 'completion'", "beauty"),
    ("/imports?after=3", "no filter 'after' here; there are before", "没有筛选条件“after”"),
    ("/audit?before=x", "before: must be a whole number", "须为整数"),
    ("/nodes?name=node1", "this page has none", "本页没有筛选条件"),
    ("/api/reviews?prodct=1", "There is no filter 'prodct' here", ""),
    ("/api/products?offset=1", "no filter 'offset' here; there are q, brand, category", ""),
    ("/api/nodes?lng=zh", "this page has none", ""),
]


@pytest.mark.parametrize(("path", "english", "chinese"), WRONG)
def test_a_wrong_filter_is_refused_in_words(sample: Served, path: str, english: str, chinese: str) -> None:
    refused = sample.get(path)
    assert refused.status_code in (400, 422)
    assert english in html.unescape(refused.text)
    in_chinese = html.unescape(sample.get(path, headers={"Accept-Language": "zh"}).text)
    assert any(one in in_chinese for one in chinese.split("|"))


@pytest.mark.parametrize(
    "path",
    [
        "/reviews?q=&site=&product=&from=&to=&days=&voice=",
        f"/reviews?product={PRODUCT}&voice=complaint&from=2026-03-01&split=1",
        f"/reviews?site={SHOP}",
        "/products?sort=share&reverse=1&by=brand&days=7&skip=50&brand=x",
        "/products?by=category&sort=priority&from=2026-01-01",
        "/products?q=&category=unknown&group=&doubt=one_keyword&lang=en",
        f"/failed?reason=blocked&site={SITE}&said=gone",
        "/matrix?measure=requests&q=x",
        f"/api/reviews?product={PRODUCT}&limit=2",
    ],
)
def test_a_right_filter_is_taken(sample: Served, path: str) -> None:
    assert sample.get(path).status_code == 200


def test_a_product_is_named_wherever_it_is_numbered(served: Served) -> None:
    by_number = served.get("/api/reviews?product=1").json()
    assert served.get(f"/api/reviews?product={PRODUCT}").json() == by_number
    assert served.get(f"/api/products/{PRODUCT}").json() == served.get("/api/products/1").json()
    assert "Progress by site" in served.get(f"/products/{OTHER}/crawl").text
    said = served.post(f"/products/{OTHER}/edit", data={"priority": "9"})
    assert (said.status_code, "is changed" in said.text) == (200, True)
    assert served.get("/api/reviews?product=特仑").status_code == 404
    assert served.get("/api/reviews?site=nowhere.example").status_code == 404
    unknown = served.get("/products/特仑", headers={"Accept-Language": "zh"})
    assert (unknown.status_code, OTHER in unknown.text) == (404, True)
    assert served.get("/api/products/9").status_code == 404


def test_a_product_beyond_the_list_is_still_chosen(sample: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.web.pages.reviews._NAMES", 0)
    page = sample.get(f"/reviews?product={OTHER}").text
    assert f'<option value="2" selected>{OTHER}</option>' in page
