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
