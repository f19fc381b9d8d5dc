"""What a page puts around a text is not in it: buttons, counters, captions; nor are they, or sections, its author."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from splitter.catalog.rules import PageRules
from tasks.domain.pages import Review
from tasks.reading.extract import read_page
from tasks.reading.people import is_name, may_be_name
from tasks.reading.site_text import strip_controls

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SENTENCE = "上周在超市买的鲜奶回家发现结块，打电话给客服，对方说要等三个工作日才有答复。"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("图集\n牛奶结块\n+1", "牛奶结块"),
        ("View original reply\nnot my experience", "not my experience"),
        ("牛奶结块\n浏览 1,204\n回复(3)\n赞：12", "牛奶结块"),
        ("12 views\nwent bad\nClick to expand...", "went bad"),
        ("发布时间：2024-05-01\n牛奶结块\nUploaded files:", "牛奶结块"),
        ("转播到腾讯微博\n牛奶结块\n分享至：\n微信扫码分享", "牛奶结块"),
        ("牛奶结块\n分享\n第二次了", "牛奶结块\n分享\n第二次了"),
        ("went bad\nSent from my SM-S908U using AC Forums mobile app", "went bad"),
        ("牛奶结块\n来自掌上汽车客户端", "牛奶结块"),
        ("Sent from my phone\nSent from my phone", "Sent from my phone\nSent from my phone"),
        ("It was\nsent from my local shop. It leaked", "It was\nsent from my local shop. It leaked"),
        ("赞", "赞"),
        ("+1\n2 views", "+1\n2 views"),
        ("回复很慢\n客服不理", "回复很慢\n客服不理"),
        ("喝了3次赞\n还会买", "喝了3次赞\n还会买"),
    ],
)
def test_controls_around_a_text_are_not_in_it(text: str, left: str) -> None:
    assert strip_controls(text) == left


@pytest.mark.parametrize("name", ["评论(3)", "評論(3)", "浏览 120", "12条评论", "3 likes", "+1"])
def test_a_counter_is_no_author(name: str) -> None:
    assert not may_be_name(name)
    assert not is_name(name)


def opening(*parts: str, head: str = "") -> Review:
    html = f"<html><head><title>鲜奶结块</title>{head}</head><body>{''.join(parts)}</body></html>"
    found = read_page(
        html,
        "http://n.example.cn/a/1.html",
        PageRules(main_text=True),
        now=NOW,
    )
    return found.reviews[0]


def test_a_section_is_no_author() -> None:
    crumbs = '<div class="crumbs"><a href="/">首页</a> &gt; <a href="/xfqy">消费前沿</a></div>'
    text = "".join(f"<p>{n}{SENTENCE}</p>" for n in "一二三四")
    said = f"<h1>鲜奶结块</h1><div>2024-05-01 10:00 消费前沿</div>{text}"
    assert opening(said).author == "消费前沿"
    assert opening(crumbs, said).author == ""


def test_who_replies_did_not_write_the_article() -> None:
    text = "".join(f"<p>{n}{SENTENCE}</p>" for n in "一二三四")
    replies = "".join(
        f'<div class="reply"><a class="author" href="/u/{name}">{name}</a><span class="time">2024-05-02 1{n}:00</span>'
        f'<div class="body">{said}，还有{n}个邻居。</div></div>'
        for n, (name, said) in enumerate(
            [("甲一", "我家的也结块"), ("乙二", "退了两瓶"), ("丙三", "天气太热")]
        )
    )
    found = opening(f"<h1>鲜奶结块</h1><div>2024-05-01 10:00</div><div>{text}</div>", f"<div>{replies}</div>")
    assert (found.key, found.author) == ("#0", "")
