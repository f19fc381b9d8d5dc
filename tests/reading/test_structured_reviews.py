"""Reviews that a page marks by schema.org."""

import json
from datetime import UTC, datetime

from splitter.catalog.rules import PageRules
from tasks.reading.extract import read_page

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ARTICLE = PageRules(main_text=True)

REVIEWS = [
    {
        "@type": "Review",
        "@id": "#r1",
        "author": {"@type": "Person", "name": "小明"},
        "datePublished": "2025-11-02",
        "reviewBody": "喝了三天，&lt;b&gt;味道&lt;/b&gt;淡。",
        "name": "一般",
        "reviewRating": {"@type": "Rating", "ratingValue": "2.5", "bestRating": "5"},
    },
    {
        "@type": ["Review", "Thing"],
        "author": "小红",
        "reviewBody": "包装漏了。",
        "datePublished": "2025-12-01",
    },
]
PRODUCT = {
    "@context": "https://schema.org",
    "@type": "Product",
    "name": "高钙牛奶",
    "description": "来自大草原的好牛奶，营养丰富，老少皆宜。",
    "review": REVIEWS,
    "offers": [{"@type": "Offer", "review": REVIEWS[1]}],
}


def page(*scripts, body=""):
    tags = "".join(
        f'<script type="application/ld+json">{json.dumps(one, ensure_ascii=False)}</script>'
        for one in scripts
    )
    return (
        f"<html><head><title>高钙牛奶 - 商店</title>{tags}</head><body><h1>高钙牛奶</h1>{body}</body></html>"
    )


def read(text):
    return read_page(text, "https://shop.example/1", ARTICLE, now=NOW)


def test_reviews_of_a_product():
    found = read(page(PRODUCT))
    assert found.title == "高钙牛奶"
    first, second = found.reviews
    assert (first.key, first.title, first.author, first.rating) == ("#r1", "一般", "小明", 2.5)
    assert first.body == "喝了三天，味道淡。"
    assert first.date is not None
    assert f"{first.date:%Y-%m-%d}" == "2025-11-02"
    assert (second.key, second.author, second.body, second.rating) == ("#1", "小红", "包装漏了。", None)


def test_microdata():
    body = """
    <div itemscope itemtype="https://schema.org/Product"><span itemprop="name">高钙牛奶</span>
      <div itemprop="review" itemscope itemtype="https://schema.org/Review">
        <span itemprop="author" itemscope itemtype="https://schema.org/Person"><b itemprop="name">小明</b></span>
        <meta itemprop="datePublished" content="2025-11-02">
        <span itemprop="reviewRating" itemscope><meta itemprop="ratingValue" content="1"></span>
        <p itemprop="reviewBody">三天就坏了。</p>
      </div>
      <div itemprop="review" itemscope itemtype="http://schema.org/Review">
        <span itemprop="author">小红</span><time itemprop="datePublished" datetime="2025-12-01">上月</time>
        <p itemprop="description">还可以。</p>
      </div>
      <div itemprop="review" itemscope itemtype="http://schema.org/Review"><span itemprop="author">空</span></div>
    </div>"""
    first, second = read(page(body=body)).reviews
    assert (first.author, first.body, first.rating, first.date_text) == (
        "小明",
        "三天就坏了。",
        1.0,
        "2025-11-02",
    )
    assert (second.author, second.body, second.date_text) == ("小红", "还可以。", "2025-12-01")


def test_a_thread_with_its_answers():
    thread = {
        "@context": "https://schema.org",
        "@type": "DiscussionForumPosting",
        "headline": "这奶能喝吗",
        "text": "刚买的就过期了。",
        "author": {"name": "楼主"},
        "comment": [{"@type": "Comment", "text": "我也是。", "author": {"name": "二楼"}}],
    }
    assert [(one.author, one.body) for one in read(page(thread)).reviews] == [
        ("楼主", "刚买的就过期了。"),
        ("二楼", "我也是。"),
    ]
