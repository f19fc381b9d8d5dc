"""Threads, comments, answers and lists of reviews of pages without rules."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from splitter.catalog.rules import PageRules
from tasks.domain.pages import PageRead
from tasks.reading.extract import read_page
from tasks.reading.outline import MOST_ELEMENTS, outline_of
from tasks.reading.people import may_be_name
from tasks.reading.relevance import screen_reviews
from tasks.reading.threads import read_thread

NOW = datetime(2024, 6, 1, tzinfo=UTC)
URL = "http://bbs.example.cn/thread-7-1-1.html"
SAMPLES = Path(__file__).parents[2] / "research" / "samples"


def read(html: str, url: str = URL) -> PageRead:
    return read_page(html, url, PageRules(main_text=True), now=NOW)


def sample(name: str) -> str:
    return (SAMPLES / "threads" / name).read_text("utf-8")


def post(number: int, author: str, day: str, text: str) -> str:
    return (
        f'<div class="post" id="post-{number}"><a class="author" href="/user/{number}">{author}</a>'
        f'<span class="date">{day}</span><div class="content">{text}</div></div>'
    )


def page(*parts: str, title: str = "滤水壶漏水") -> str:
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1>{''.join(parts)}</body></html>"


POSTS = [
    post(1001, "甲一", "2024-05-01 10:00", "滤水壶用了一周就开始漏水，壶底一圈都是湿的，换了滤芯也没有用。"),
    post(1002, "乙二", "2024-05-01 11:30", "我的也是，客服不理。"),
    post(1003, "丙三", "2024-05-02 09:12", "壶嘴的密封圈可以单独买，五块钱一个，换上就好了。"),
]


def test_quotes_and_signatures_are_kept_apart():
    thread = read_thread(outline_of(LexborHTMLParser(sample("discuz.html"))), NOW)
    assert thread is not None
    answer = thread.records[3]
    assert answer.text == "试过了，还是漏，已经申请退货。"
    assert "密封圈没装好" in answer.quotes
    assert answer.signature == "每天一杯热水"


def test_a_block_that_quotes_nobody_is_text():
    said = post(
        1004,
        "丁四",
        "2024-05-03 08:00",
        "说明书原文：<blockquote>请勿倒入热水，水温不超过四十度。</blockquote>",
    )
    quoted = post(
        1005, "戊五", "2024-05-04 08:00", "<blockquote>我的也是，客服不理。</blockquote>打电话才有用。"
    )
    bodies = [review.body for review in read(page(*POSTS, said, quoted)).reviews]
    assert "请勿倒入热水" in bodies[3]
    assert bodies[4] == "打电话才有用。"


def test_the_opening_post_keeps_its_key_and_text_when_replies_come():
    question = "<div class='topic'><p>滤水壶用了一周就开始漏水，壶底一圈都是湿的，有人遇到过吗？</p></div>"
    replies = "".join(POSTS[1:]).replace('class="post"', 'class="reply"')
    alone, answered = read(page(question)), read(page(question, replies))
    assert [review.key for review in alone.reviews] == ["#0"]
    assert [review.key for review in answered.reviews] == ["#0", "post-1002", "post-1003"]
    assert answered.reviews[0].body == alone.reviews[0].body


def test_a_reply_keeps_its_key_when_others_come_before_it():
    newest_first = [POSTS[0], *reversed(POSTS[1:])]
    keys = {review.body: review.key for review in read(page(*POSTS)).reviews}
    assert {review.body: review.key for review in read(page(*newest_first)).reviews} == keys


@pytest.mark.parametrize(
    ("link", "following"),
    [
        ('<a href="thread-7-2-1.html">下一页</a>', "http://bbs.example.cn/thread-7-2-1.html"),
        ('<a href="thread-7-1-1.html?page=2">›</a>', "http://bbs.example.cn/thread-7-1-1.html?page=2"),
        ('<a href="thread-9-1-1.html">下一主题</a>', ""),
        ('<a href="/news/12.html">下一页</a>', ""),
        ('<a href="http://elsewhere.example/thread-7-2-1.html">下一页</a>', ""),
        ('<a href="javascript:next()">下一页</a>', ""),
        ('<a href="thread-7-1-1.html">下一页</a>', ""),
    ],
)
def test_where_a_thread_goes_on(link, following):
    assert read(page(*POSTS, link)).next_url == following


def test_links_to_other_pages_are_no_records():
    entries = "".join(
        f'<div class="item"><a class="title" href="/a/{n}.html">{title}</a><span class="author">记者{n}</span>'
        f'<span class="date">2024-05-0{n}</span><p>{title}，具体情况记者正在进一步了解当中。</p></div>'
        for n, title in enumerate(
            ["多地抽检电热水壶不合格", "家电以旧换新本周开始了", "儿童餐具新标准正式实施"], 1
        )
    )
    assert read_thread(outline_of(LexborHTMLParser(page(entries))), NOW) is None


def test_an_article_with_dated_links_beside_it_stays_one():
    read_article = read(sample("article.html"))
    assert [review.key for review in read_article.reviews] == ["#0"]


def test_a_page_that_marks_fewer_answers_than_it_shows_is_read_by_its_tree():
    marked = {"@type": "Answer", "text": "我的也是，客服不理。", "author": {"name": "乙二"}}
    script = f'<script type="application/ld+json">{json.dumps({"@context": "https://schema.org", **marked})}</script>'
    assert len(read(page(*POSTS, script)).reviews) == 3


def script_of(value: object) -> str:
    return page(f"<div>加载中</div><script>window.STATE = {json.dumps(value)};</script>")


COMMENTS = [
    {"id": 11, "content": "噪音太大。", "user": {"name": "甲"}, "time": "2024-05-01", "replies": []},
    {"id": 12, "content": "还可以。", "user": {"name": "乙"}, "time": "2024-05-02",
     "replies": [{"id": 13, "content": "同意。", "user": {"name": "丙"}, "time": "2024-05-03"}]},
]  # fmt: skip


def test_comments_in_scripts():
    reviews = read(script_of({"data": {"comments": {"list": COMMENTS}}})).reviews
    assert [(one.key, one.author, one.body) for one in reviews] == [
        ("11", "甲", "噪音太大。"),
        ("12", "乙", "还可以。"),
        ("13", "丙", "同意。"),
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"articles": [{"content": "新闻一则，内容很长。", "author": "记者", "time": "2024-05-01"}] * 3},
        {"comments": [{"content": "没有名字也没有时间"}] * 3},
        {"comments": [{"title": "没有正文", "author": "甲"}] * 3},
    ],
)
def test_other_lists_in_scripts_are_none(value):
    html = script_of(value) + f"<p>{'这是一篇文章的正文，讲的是厨房电器的保养。' * 8}</p>"
    assert [review.key for review in read(html).reviews] == ["#0"]


def test_short_replies_are_no_fragments():
    thread = read(page(*POSTS, post(1009, "己六", "2024-05-05 10:00", "同问")))
    kept, refused, _ = screen_reviews(thread, thread.reviews, main_text=True)
    assert len(kept) == 4
    assert refused == {}


def test_a_post_without_a_word_is_counted_as_no_review():
    thread = read(page(*POSTS, post(1009, "己六", "2024-05-05 10:00", "👍👍👍")))
    kept, refused, _ = screen_reviews(thread, thread.reviews, main_text=True)
    assert len(kept) == 3
    assert refused == {"empty": 1}


def test_an_outline_leaves_out_what_is_not_shown_and_ends():
    hidden = '<p>甲</p><p hidden>乙</p><p style="display: none">丙</p><script>丁</script><b>戊</b>己'
    outline = outline_of(LexborHTMLParser(hidden))
    assert outline.join_texts(outline.texts) == "甲\n戊己"
    many = outline_of(LexborHTMLParser("<i>x</i>" * (MOST_ELEMENTS + 10)))
    assert len(many.nodes) == MOST_ELEMENTS


def test_who_posted_is_looked_for_in_posts_alone():
    text = "滤水壶用了一周就开始漏水，壶底一圈都是湿的，换了滤芯也没有用，客服让我自己寄回去。" * 3
    html = page(f'<div class="entry"><a href="/user/7">甲一</a><p>{text}</p></div>')
    assert read(html, "http://www.example.cn/topic/7").reviews[0].author == "甲一"
    assert read(html, "http://www.example.cn/a/7.html").reviews[0].author == ""


def test_a_date_in_a_sentence_is_not_the_day_of_a_post():
    posts = [
        post(
            2001,
            "甲一",
            "2024-05-01 10:00",
            "壶底漏水，店家不认保修。<p>2020年3月1日，我在门店买了这台滤水壶，当时店员说保修三年。</p>",
        ),
        post(2002, "乙二", "2024-05-02 11:30", "保修单还在吗？"),
    ]
    found = read(page(*posts)).reviews
    assert [one.date_text for one in found] == ["2024-05-01 10:00", "2024-05-02 11:30"]


def test_a_portrait_and_the_link_of_one_name_persons():
    tree = LexborHTMLParser(
        '<div><a href="/x1"><img class="avatar" src="a.png"></a><p><a href="/x1"><b>甲一</b></a></p>'
        '<p><img src="/avatar/2.png" alt="乙二的头像"><span>乙二</span><a href="/x9">滤水壶</a></p></div>'
    )
    outline = outline_of(tree)
    named = {
        outline.join_texts(outline.texts[outline.first_text[n] : outline.last_text[n]])
        for n in outline.pictured
    }
    assert named == {"甲一", "乙二"}


def test_a_link_from_another_site_is_no_comment():
    back = post(1009, "别处的博客", "2024-05-05 10:00", "[…] 有人说滤水壶漏水，见原文 […]")
    html = page(*POSTS, back.replace('class="post"', 'class="post pingback"'))
    assert [one.author for one in read(html).reviews] == ["甲一", "乙二", "丙三"]


def test_who_likes_an_empty_post_is_not_what_it_says():
    html = page(*POSTS, post(1009, "己六", "2024-05-05 10:00", "and 3 other people like this."))
    assert len(read(html).reviews) == 3
    assert len(read(page(*POSTS, post(1009, "己六", "2024-05-05 10:00", "I like this one"))).reviews) == 4


def test_the_line_that_says_who_began_a_thread_opens_nothing():
    began = "<p>Discussion in 'Off Topic' started by 甲一, May 1, 2024.</p>"
    assert [one.author for one in read(page(began, *POSTS)).reviews] == ["甲一", "乙二", "丙三"]
    said = "<p>Who started by now with 甲一's jug should write here, it leaks since then as mine does.</p>"
    assert len(read(page(said, *POSTS)).reviews) == 4


def test_reviews_in_what_is_called_like_a_widget_but_is_none():
    inner = f'<div class="reviews celwidget">{"".join(POSTS)}</div>'
    assert len(read(page(inner, "<p>" + "配送说明，请在下单前阅读。" * 12 + "</p>")).reviews) >= 3


def test_read_more_is_no_name():
    assert not may_be_name("Read more")
    assert may_be_name("Read Moreau")


SOLD = "<p>青禾电饭煲采用加厚内胆，三维立体加热，米饭粒粒分明，二十四小时预约，一家人的好帮手。</p>" * 3


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ('<meta property="og:type" content="product">', SOLD),
        (
            '<script type="application/ld+json">{"@type": "Product", "offers": {"price": 399}}</script>',
            SOLD,
        ),
        ("", f'<span class="price">￥399.00</span><a href="#">加入购物车</a><a href="#">立即购买</a>{SOLD}'),
        ("", f'<b>$39.99</b><form><input type="submit" value="Add to Cart"></form>{SOLD}'),
        (
            "",
            f'<div itemscope itemtype="http://schema.org/Product"><meta itemprop="price" content="399">{SOLD}</div>',
        ),
    ],
    ids=["og:type", "json-ld", "buttons", "form", "microdata"],
)
def test_what_a_shop_says_of_its_goods_is_no_review(head: str, body: str):
    html = f"<html><head><title>青禾电饭煲</title>{head}</head><body><h1>青禾电饭煲</h1>{body}</body></html>"
    read_as = read(html)
    assert read_as.reviews == ()
    assert read_as.no_review == "goods"
    one = post(1001, "甲一", "2024-05-01 10:00", "用了一周就糊底，换了一个还是糊底。").replace(
        '"post"', '"review"'
    )
    reviews = read(html.replace("</body>", f'<div class="reviews">{one}</div></body>')).reviews
    assert [(review.author, review.body) for review in reviews] == [
        ("甲一", "用了一周就糊底，换了一个还是糊底。")
    ]


def test_an_article_with_a_price_and_a_day_is_no_goods():
    said = "<p>2024-05-02 10:00 作者：林一舟</p><span>￥399</span><a href='#'>立即购买</a>"
    assert len(read(page(said, SOLD)).reviews) == 1


def test_a_review_marked_as_before_schema_org():
    marked = (
        '<div itemscope itemtype="http://data-vocabulary.org/Review"><meta itemprop="rating" content="2">'
        '<meta itemprop="dtreviewed" content="2024-4-28"><meta itemprop="description" content="壶盖一周就裂了。">'
        '<meta itemprop="reviewer" content="甲一"><p>壶盖一周就裂了。</p></div>'
    )
    (one,) = read(page(marked)).reviews
    assert (one.author, one.date_text, one.body, one.rating) == ("甲一", "2024-4-28", "壶盖一周就裂了。", 2)


def test_a_notice_of_the_site_does_not_open_the_thread():
    notice = "<div class='notice'>本站公告：请勿在论坛发布广告信息，违规者将被永久封禁，感谢大家的配合与支持。</div>"
    assert [one.author for one in read(page(notice, *POSTS)).reviews] == ["甲一", "乙二", "丙三"]


def test_a_post_that_is_one_sentence_with_a_date_is_a_post():
    dated = [
        post(1004, "丁四", "2024-05-02 10:00", "2023年5月1日买的，到现在没坏。"),
        post(1005, "戊五", "2024-05-02 11:00", "我是2022-03-04买的"),
    ]
    reviews = read(page(POSTS[0], *dated)).reviews
    assert [one.author for one in reviews] == ["甲一", "丁四", "戊五"]
    assert [one.date.day for one in reviews if one.date] == [1, 2, 2]


def test_who_asks_is_not_who_answers():
    asked = (
        '<div class="asker"><a class="user-name" href="/user/1">甲一</a> 2024-05-01 提问</div>'
        '<div class="desc">刚买三个月，壶底漏水，家里有老人孩子，不敢再用，怎么办。</div>'
    )
    answer = POSTS[2].replace('class="post"', 'class="answer-item"')
    assert [one.author for one in read(page(asked, answer)).reviews] == ["甲一", "丙三"]


def test_what_is_said_behind_a_name_has_no_colon():
    said = [one.replace('<div class="content">', '<div class="content">：') for one in POSTS]
    assert all(not one.body.startswith("：") for one in read(page(*said)).reviews)
