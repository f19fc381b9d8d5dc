"""What a page of one text says of itself: author, title without the site's name, home page, an article below."""

from __future__ import annotations

from datetime import datetime

import pytest
from selectolax.lexbor import LexborHTMLParser

from splitter.catalog.rules import PageRules
from splitter.spans import CHINA
from tasks.domain.pages import PageRead
from tasks.reading.extract import read_page
from tasks.reading.maintext import main_text
from tasks.reading.metadata import read_metadata
from tasks.reading.page import Page

FIRST = "上周在超市买了一箱光明高钙牛奶，回家打开后发现有三盒已经胀包，味道发酸，根本不能喝。"
SECOND = "打电话给厂家的客服，他们说要等经销商处理，等了五天，还是没有任何人联系我。"
THIRD = "希望消费者协会能够介入调查，给我一个说法，也提醒其他消费者注意查看生产日期。"
TEXT = f"<p>{FIRST}</p><p>{SECOND}</p><p>{THIRD}</p>"
HEADING = "<h1>牛奶胀包无人处理</h1>"


def read(html: str) -> PageRead:
    return read_page(html, "http://a.cn/1", PageRules(main_text=True), now=datetime(2024, 5, 6, tzinfo=CHINA))


def test_of_two_articles_one_below_the_other_the_first_is_the_text():
    later = "这是向下滚动以后才出现的另一篇文章，讲的是完全不同的事情，而且它比第一篇还要长得多。" * 6
    articles = (
        f"<article>{HEADING}{TEXT}</article><article><h1>另一篇更长的文章标题</h1><p>{later}</p></article>"
    )
    (review,) = read(f"<title>牛奶胀包无人处理</title><body>{articles}</body>").reviews
    assert "".join(review.body.split()) == FIRST + SECOND + THIRD
    sections = f"<div>{HEADING}{TEXT}</div><div><p>{later}</p></div>"
    assert later in "".join(
        read(f"<title>牛奶胀包无人处理</title><body>{sections}</body>").reviews[0].body.split()
    )


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        ("牛奶胀包无人处理 - 某某投诉网", "", "牛奶胀包无人处理"),
        ("某某投诉网-牛奶胀包无人处理", "", "牛奶胀包无人处理"),
        ("牛奶胀包|牛奶|胀包_某某新闻_某某网", "", "牛奶胀包"),
        (
            "厂家回应 - 牛奶胀包无人处理的第十天 - 某某论坛",
            "厂家回应 - 牛奶胀包无人处理的第十天",
            "厂家回应 - 牛奶胀包无人处理的第十天",
        ),
        ("牛奶胀包——谁来负责 - 牛奶之家", "牛奶胀包——谁来负责", "牛奶胀包——谁来负责"),
        ("棱镜|牛奶胀包谁来负责_财经_某某网", "棱镜|牛奶胀包谁来负责", "棱镜|牛奶胀包谁来负责"),
    ],
)
def test_the_site_s_name_is_no_part_of_a_title_and_a_title_keeps_its_dash(title, heading, expected):
    html = f"<head><title>{title}</title></head><body><h1>{heading}</h1>{TEXT}</body>"
    assert read_metadata(LexborHTMLParser(html)).title == expected


@pytest.mark.parametrize(
    ("around", "author"),
    [
        ("<p>2024-05-01 来源：城市日报 责任编辑：张三</p>", "城市日报"),
        ("<p>2024-05-01 来源：城市日报</p><p>作者：<a>林一舟</a></p>", "林一舟"),
        ('<p>2024-05-01</p><p class="editor">编辑：张三</p>', ""),
        ('<div class="post-author">By <a rel="author" href="/author/7">Lin Yizhou</a></div>', "Lin Yizhou"),
        ('<div class="comment"><span class="author">路人甲</span></div>', ""),
        ('<meta name="author" content="某某投诉网"><p>本报记者 林一舟 报道</p>', "林一舟"),
        ('<meta name="author" content="104363">', ""),
    ],
)
def test_authors_are_persons_or_who_published_the_text_no_editors_ids_or_commenters(around, author):
    title = "<title>牛奶胀包无人处理 - 某某投诉网</title>"
    html = f"<head>{title}</head><body>{HEADING}{around}<div>{TEXT}</div></body>"
    assert main_text(Page(html, "")).author == author


def test_a_page_whose_own_address_is_its_site_s_root_is_a_list():
    root = f'<link rel="canonical" href="https://a.cn/"><body>{HEADING}{TEXT}</body>'
    assert read(root).no_review == "list"
    assert read(root.replace("a.cn/", "a.cn/1.html")).reviews[0].body.startswith(FIRST)
