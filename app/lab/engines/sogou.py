"""Sogou: its web search (layouts of organic and of special results, 2022) and its search of WeChat articles."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from html import escape
from typing import Any

from app.lab import chance
from app.lab.answers import Answer, notice, redirect
from app.lab.engines.model import EngineFormat, Hit, Results, html_writer
from app.lab.pages import TEMPLATES

_SPECIAL = 3
"""One hit in so many is laid out as a special result."""


_ANTISPIDER = notice(
    200, "搜狗搜索", "<p>此验证码用于确认这些请求是您的正常行为而不是自动程序发出的，需要您协助验证。</p>"
)


def _hit(*, entry: Hit, token: str, at: datetime, **fields: Any) -> str:
    special = chance.number(0, "special", entry.url) % _SPECIAL == 0
    template = TEMPLATES["sogou"]["special" if special else "hit"]
    return template.format(link=f"/link?url={token}", date=f"{at.year}-{at.month}-{at.day}", **fields)


def _article(*, entry: Hit, token: str, at: datetime, **fields: Any) -> str:
    return TEMPLATES["sogou-weixin"]["hit"].format(
        link=f"/link?url={token}&amp;type=2",
        author=escape(entry.post.author),
        timestamp=int(at.timestamp()),
        **fields,
    )


def _format(host: str, results: Callable[[Results], str]) -> EngineFormat:
    wall = redirect(f"https://{host}/antispider/?from=%2Fweb&antip=web")
    return EngineFormat(
        results,
        refusals={Answer.CAPTCHA: wall, Answer.TOO_FREQUENT: wall},
        link=("/link", "url"),
        own={(host, "/antispider/"): _ANTISPIDER},
    )


SOGOU = _format("www.sogou.com", html_writer("sogou", _hit))
WEIXIN = _format("weixin.sogou.com", html_writer("sogou-weixin", _article))
