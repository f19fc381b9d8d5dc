"""Reviews that a page marks by schema.org."""

import json
from datetime import UTC, datetime

import pytest

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


def test_a_graph_and_types_by_address():
    graph = {
        "@graph": [
            {"@type": "http://schema.org/UserReview", "description": "很好喝。", "author": [{"name": "甲"}]}
        ]
    }
    (review,) = read(page(graph, body="schema.org")).reviews
    assert (review.author, review.body) == ("甲", "很好喝。")


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


@pytest.mark.parametrize("kind", ["NewsArticle", "FAQPage"])
def test_what_is_one_text_stays_one(kind):
    comment = {"@type": "Answer", "text": "这是店家的回答。"}
    one = {"@context": "https://schema.org", "@type": kind, "headline": "高钙牛奶", "mainEntity": comment}
    text = "消费者反映，这款牛奶在保质期内结块，商家拒绝退款。记者联系了厂家，对方表示会尽快处理此事。" * 8
    (review,) = read(page(one, body=f"<p>{text}</p>")).reviews
    assert review.body.startswith("消费者反映")


@pytest.mark.parametrize("script", ["{", '[[[[[[[[[[["schema.org"]]]]]]]]]]]', '{"@type": 5, "text": []}'])
def test_broken_data_is_passed_over(script):
    text = "消费者反映，这款牛奶在保质期内结块，商家拒绝退款。" * 8
    broken = f'<script type="application/ld+json">{script} schema.org</script><p>{text}</p>'
    (review,) = read(page(body=broken)).reviews
    assert review.body.startswith("消费者反映")


@pytest.mark.parametrize(
    ("said", "read_as"),
    [
        ("Went bad.\n\n\tNo answer yet.", "Went bad.\nNo answer yet."),
        ("<p>Went\nbad.</p><p>No <b>answer</b> yet.</p>", "Went bad.\nNo answer yet."),
        ("Went bad.<br>No answer", "Went bad.\nNo answer"),
        ('<a\nclass="x"></a>Went bad.\nNo answer', "Went bad.\nNo answer"),
        ("Went &lt; bad.\nNo answer", "Went < bad.\nNo answer"),
    ],
)
def test_a_scripted_text_keeps_its_lines(said: str, read_as: str) -> None:
    posts = [
        {
            "@context": "https://schema.org",
            "@type": "Comment",
            "author": name,
            "datePublished": "2025-12-01",
            "text": said,
        }
        for name in ("Ann", "Bo")
    ]
    assert read(page(*posts)).reviews[0].body == read_as
