"""What a site puts around and between the lines of a main text is not in it; what somebody wrote stays as it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from splitter.catalog.rules import PageRules
from tasks.domain.pages import PageRead, Review
from tasks.reading.extract import read_page
from tasks.reading.people import is_name, person
from tasks.reading.site_text import strip_site_lines

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SENTENCE = "上周在超市买的鲜奶回家发现结块，打电话给客服，对方说要等三个工作日才有答复。"
TEXT = "\n".join(f"{n}{SENTENCE}" for n in "一二三")


@pytest.mark.parametrize(
    "line",
    [
        "2019-09-26 12:11来源：某某时报网作者：李在山",
        "2021-01-20 04:29:44某某健康网",
    ],
)
def test_a_byline_above_a_text_is_not_in_it(line: str) -> None:
    assert strip_site_lines(f"{line}\n{TEXT}") == TEXT


@pytest.mark.parametrize(
    "line", ["姚某场边支招。视频截图", "花生地里正录制视频 李某 摄", "图注：奶站的冷藏间"]
)
def test_a_caption_in_a_line_of_the_text_is_part_of_it(line: str) -> None:
    assert strip_site_lines(f"{line}\n{TEXT}") == f"{line}\n{TEXT}"


@pytest.mark.parametrize(
    "line",
    [
        "本文来源：某某报 责任编辑：杜某_N12",
        "编辑 周某某 ｜排版 魏某",
        "来源 | 综合某某板报、某某都市报",
        "相关资讯请关注:鲜奶专区",
        "以上内容（包括图片及视频）为创作者平台用户上传并发布，本平台仅提供信息存储服务",
        "声明：本报力求信息真实、准确，不构成实质性投资建议，据此操作风险自担。",
        "转载请注明:原文链接 - https://example.com/a/21337",
        "Follow example.com on Twitter and Facebook to join the conversation.",
        "Sign up for our email, delivered twice a week.",
        "为你推荐\n国庆假期前部署了一系列工作。\n2019-09-30",
        "相关阅读\n鲜奶结块怎么办",
        "Read more\nHow milk is made",
    ],
)
def test_credits_notices_and_what_to_read_next_are_not_in_it(line: str) -> None:
    assert strip_site_lines(f"{TEXT}\n{line}") == TEXT


@pytest.mark.parametrize(
    "line",
    [
        "这是我自己拍摄",
        "推荐理由",
        "来源不明的东西不要买！",
        "编辑过一次，补充：客服回电话了。",
        "2024年5月9日，我又去了一次。",
        "原标题：客服不理人",
    ],
)
def test_what_somebody_wrote_stays(line: str) -> None:
    assert strip_site_lines(f"{line}\n{TEXT}\n{line}") == f"{line}\n{TEXT}\n{line}"


def test_a_box_of_further_pages_within_a_text_does_not_end_it() -> None:
    text = f"{TEXT}\n相关阅读\n鲜奶结块怎么办\n{3 * SENTENCE}"
    assert strip_site_lines(text) == text


def test_a_button_beside_every_heading_is_not_in_it() -> None:
    text = "\n".join(f"第{n}节\n播报\n编辑\n{n}{SENTENCE}" for n in "一二三")
    assert strip_site_lines(text) == "\n".join(f"第{n}节\n{n}{SENTENCE}" for n in "一二三")


def test_the_way_back_glued_to_the_last_line_and_references_are_not_in_it() -> None:
    long = f"{TEXT}\n" * 4
    assert strip_site_lines(f"{TEXT}返回某某网首页>>") == TEXT
    assert strip_site_lines(f"{long}参考资料\n1.鲜奶．某网[引用日期2014-05-19]") == long.rstrip("\n")


@pytest.mark.parametrize("text", ["责任编辑：杜某", "2024-05-09 10:00", "图注：奶站", ""])
def test_a_text_that_is_nothing_else_stays(text: str) -> None:
    assert strip_site_lines(text) == text


def read(*parts: str, head: str = "<title>鲜奶结块</title>") -> PageRead:
    html = f"<html><head>{head}</head><body>{''.join(parts)}</body></html>"
    return read_page(
        html,
        "http://n.example.cn/a/1.html",
        PageRules(main_text=True),
        now=NOW,
    )


def opening(*parts: str, head: str = "<title>鲜奶结块</title>") -> Review:
    return read(*parts, head=head).reviews[0]


PARAGRAPHS = "".join(f"<p>{n}{SENTENCE}</p>" for n in "一二三四")


def test_a_caption_by_its_name_is_not_in_the_text() -> None:
    caption = "奶站的冷藏间，记者看到门没有关，温度计显示十二度。"
    shown = f'<div class="pic"><img src="1.jpg"><p class="caption">{caption}</p></div>'
    figure = "<figure><img src='2.jpg'><figcaption>消费者展示结块的鲜奶，盒上的日期清楚可见。</figcaption></figure>"
    body = opening(f"<div id='comments-open'>{shown}{PARAGRAPHS}{figure}</div>").body
    assert "冷藏间" not in body
    assert "消费者展示" not in body
    assert body.count(SENTENCE) == 4


def test_the_paragraph_that_the_description_quotes_leads_the_text() -> None:
    lead = "本站接到投诉：三位住户同一天买到结块的鲜奶，厂家至今没有答复。"
    head = f'<title>鲜奶结块</title><meta name="description" content="{lead}">'
    body = opening(
        f"<section><p>{lead}</p></section><table><tr><td>投诉</td></tr></table><div>{PARAGRAPHS}</div>",
        head=head,
    ).body
    assert body.startswith(lead)
    assert body.endswith(f"四{SENTENCE}")


def test_a_paragraph_that_the_description_quotes_does_not_take_the_place_of_a_text_in_parts() -> None:
    deck = "月度调查显示，企业对鲜奶市场的信心保持稳定，但成本上升。"
    head = f'<title>鲜奶结块</title><meta name="description" content="{deck}">'
    deep, out = "<div>" * 6, "</div>" * 6
    parts = "".join(f"{deep}<p>{n}{SENTENCE}{SENTENCE}</p>{out}" for n in range(5))
    body = opening(f"<div class='deck'><p>{deck}</p></div>{parts}", head=head).body
    assert SENTENCE in body


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("体育教科书 发布时间", "体育教科书"),
        ("扬眼 企鹅号", "扬眼"),
        ("本报记者 王乐文 方 敏", "王乐文 方敏"),
        ("作者魏星", "魏星"),
        ("等风 \u200b 2023 年度新知答主 \u200b 关注", "等风"),
        ("日,", ""),
        ("下载客户端", ""),
        ("成就一亿技术人!", ""),
    ],
)
def test_labels_beside_a_name_are_not_in_it(text: str, name: str) -> None:
    assert person(text) == name


def test_what_ends_as_a_question_is_no_name() -> None:
    assert not is_name("What is a pyramid scheme?")


def test_a_named_person_comes_before_who_published_it() -> None:
    byline = '<div class="info">2019-09-26 12:11<span>来源：某某时报网</span><span>作者：李在山</span></div>'
    assert opening(f"<h1>鲜奶结块</h1>{byline}<div>{PARAGRAPHS}</div>").author == "李在山"
    source = '<a class="source" href="http://x.example.cn/">某某科学人</a>'
    signed = "<p>出品︱某某栏目组</p><p>作者︱春春</p>"
    assert opening(f"<h1>鲜奶结块</h1>{source}<div>{PARAGRAPHS}{signed}</div>").author == "春春"


def test_the_name_of_an_encyclopedia_is_not_in_the_title() -> None:
    title = "鲜奶 - 维基百科，自由的百科全书"
    head = f'<title>{title}</title><meta property="og:title" content="{title}">'
    assert opening(f"<h1>鲜奶的结块[编辑]</h1><div>{PARAGRAPHS}</div>", head=head).title == "鲜奶"


def test_who_published_it_is_not_behind_the_title() -> None:
    said = f"<div>2019-03-06 来源：东区办事处</div><div>{PARAGRAPHS}</div>"
    assert opening(said, head="<title>鲜奶结块的调研 东区办事处_某某网</title>").title == "鲜奶结块的调研"


@pytest.mark.parametrize(
    "teaser",
    ["厂家推出新的鲜奶，保质期比从前长了三天... 详情>>", "...说是鲜奶结块，客服一直没有答复，等了三天..."],
)
def test_the_beginning_of_another_page_is_no_review(teaser: str) -> None:
    found = read(f"<div><p>{teaser}</p></div>", head="<title>鲜奶</title>")
    assert (found.reviews, found.no_review) == ((), "list")


def test_an_article_is_no_record_of_a_thread() -> None:
    paragraphs = "".join(f"<p>{n}{SENTENCE}</p>" for n in range(12))
    body = "".join(f"{n}{SENTENCE}" for n in range(12))
    ld = f'<script type="application/ld+json">{{"@type": "NewsArticle", "articleBody": "{body}"}}</script>'
    article = f'<div class="post-part"><a href="/user/1">某某</a><span class="time">2024-05-01</span>{paragraphs}</div>'
    foot = (
        '<div class="post-part"><a href="/user/2">订阅本栏</a><span class="time">2024-05-02</span>'
        "生物学伦理学鲜奶</div>"
    )
    found = read(f"<h1>鲜奶结块</h1>{article}{foot}", head=f"<title>鲜奶结块</title>{ld}")
    assert [review.key for review in found.reviews] == ["#0"]


def comment(number: int, text: str, more: str = "") -> str:
    return (
        f'<ul class="comment-item"><li class="info"><a class="author" href="/u/{number}">住户{number}</a>'
        f'<span class="time">2024-05-0{number} 10:00</span></li><li class="post-text">{text}</li>{more}</ul>'
    )


def test_the_host_s_answer_is_not_what_a_guest_wrote() -> None:
    answers = [
        f'<li class="reply-text">谢谢{name}的来访，{name}说的事已经告诉厂家了，有消息会告诉您。<p>店家 回覆</p></li>'
        for name in ("小凤", "茜妈咪", "阿丽玛")
    ]
    said = ["鲜奶结块，不想再买", "退了两瓶", "天气太热了吧"]
    both = zip(said, answers, strict=True)
    found = read(f"<h1>鲜奶结块</h1>{''.join(comment(n, *one) for n, one in enumerate(both, 1))}")
    assert [review.body for review in found.reviews] == said


def test_comments_that_link_to_one_page_are_read_and_not_the_place_beside_the_name() -> None:
    said = ["鲜奶结块，不想再买了，大家小心", "退了两瓶，第三瓶还在冰箱里面", "天气太热了吧，路上没有冷藏"]
    texts = (
        f'<div class="tie"><a class="name" href="/user/{n}">住户{n}</a><span class="name-desp">[某省第{n}市网友]</span>'
        f'<span class="time">2024-05-0{n} 10:00</span><p class="tie-cnt"><a href="/all.html">{text}</a></p></div>'
        for n, text in enumerate(said, 1)
    )
    found = read(f"<h1>鲜奶结块</h1>{''.join(texts)}")
    assert [review.body for review in found.reviews] == said
