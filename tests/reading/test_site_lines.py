"""What a site puts around and between the lines of a main text is not in it; what somebody wrote stays as it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from splitter.catalog.rules import PageRules
from tasks.domain.pages import PageRead, Review
from tasks.reading.extract import read_page
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


def comment(number: int, text: str, more: str = "") -> str:
    return (
        f'<ul class="comment-item"><li class="info"><a class="author" href="/u/{number}">住户{number}</a>'
        f'<span class="time">2024-05-0{number} 10:00</span></li><li class="post-text">{text}</li>{more}</ul>'
    )
