"""Sina Weibo: the JSON of its mobile search and its desktop search page. Hits are whole posts in both."""

from __future__ import annotations

import json
from datetime import datetime
from html import escape
from typing import Any

from app.lab.answers import HTML, JSON, Answer, Document, notice
from app.lab.engines.model import EngineFormat, Hit, Results, html_writer, marked
from app.lab.pages import TEMPLATES

_VISITOR = notice(200, "Sina Visitor System", "<p>微博 - 随时随地发现新鲜事</p>")


def _user(entry: Hit) -> int:
    return 10**9 + int(entry.post.key) % (9 * 10**9)


def _card(*, entry: Hit, results: Results, at: datetime, **_: Any) -> str:
    return TEMPLATES["weibo-desktop"]["hit"].format(
        key=entry.post.key,
        user=_user(entry),
        author=escape(entry.post.author),
        body=marked(f"#{entry.post.title}# {entry.post.body}", results.keywords),
        at=at,
        url=escape(entry.url.partition(":")[2]),
    )


def _mobile(results: Results) -> str:
    cards = [
        {
            "card_type": 9,
            "itemid": f"seqid:1594186964|type:1|t:0|pos:1-0|mid:{entry.post.key}",
            "scheme": f"https://m.weibo.cn/status/{entry.post.key}?mblogid={entry.post.key}",
            "mblog": _mblog(entry, results),
        }
        for entry in results.entries
    ]
    if not cards:
        nothing = {"ok": 0, "msg": "这里还没有内容", "data": {"cards": [], "cardlistInfo": {"total": 0}}}
        return json.dumps(nothing, ensure_ascii=False)
    info: dict[str, Any] = {"v_p": "42", "total": results.found, "show_style": 1}
    if results.next_url:
        info["page"] = results.page + 1
    data = {"cardlistInfo": info, "cards": cards, "showAppTips": 0, "scheme": "sinaweibo://searchall"}
    return json.dumps({"ok": 1, "data": data}, ensure_ascii=False)


def _mblog(entry: Hit, results: Results) -> dict[str, Any]:
    post = entry.post
    topic = f"<a href='https://m.weibo.cn/search'><span class='surl-text'>#{escape(post.title)}#</span> </a>"
    return {
        "created_at": f"{post.at:%a %b %d %H:%M:%S %z %Y}",
        "id": post.key,
        "mid": post.key,
        "bid": f"J{int(post.key):x}",
        "text": f"{topic} {marked(post.body, results.keywords, 'b')}",
        "textLength": len(post.body),
        "source": "微博网页版",
        "user": {"id": _user(entry), "screen_name": post.author, "verified": False},
        "reposts_count": 3,
        "comments_count": 5,
        "attitudes_count": 8,
        "isLongText": False,
    }


_TEAPOT = Document(432, HTML, b"")
_WALLS = {Answer.CAPTCHA: _VISITOR, Answer.LOGIN_PAGE: _VISITOR}
WEIBO = EngineFormat(_mobile, JSON, {**_WALLS, Answer.TOO_FREQUENT: _TEAPOT, Answer.FORBIDDEN: _TEAPOT})
WEIBO_DESKTOP = EngineFormat(
    html_writer("weibo-desktop", _card),
    refusals={**_WALLS, Answer.TOO_FREQUENT: _VISITOR},
)
