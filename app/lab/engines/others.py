"""Bing, 360, Quark and SearXNG."""

from __future__ import annotations

import json
from typing import Any

from app.lab import chance
from app.lab.answers import JSON, Answer, Document, notice, redirect
from app.lab.engines.model import EngineFormat, Hit, Results, host_of, html_writer
from app.lab.pages import TEMPLATES

# --- Bing (cn.bing.com) ---------------------------------------------------------------------------------------


_BING_CAPTCHA = notice(
    200,
    "最后一步 One last step",
    '<div class="captcha"><p>请解决以下难题以继续</p><p>为了确认你不是机器人，请完成验证</p></div>',
)
BING = EngineFormat(
    html_writer("bing"),
    refusals={Answer.CAPTCHA: _BING_CAPTCHA, Answer.TOO_FREQUENT: _BING_CAPTCHA},
)


# --- 360 search (so.com) --------------------------------------------------------------------------------------


_SO360_CAPTCHA = notice(200, "360搜索", "<p>系统检测到您操作过于频繁，请输入验证码以继续访问。</p>")


_SO360_TO_CAPTCHA = redirect("https://qcaptcha.so.com/?ret=https%3A%2F%2Fwww.so.com%2Fs")
SO360 = EngineFormat(
    html_writer("so360"),
    refusals={Answer.CAPTCHA: _SO360_TO_CAPTCHA, Answer.TOO_FREQUENT: _SO360_TO_CAPTCHA},
    link=("/link", "m"),
    own={("qcaptcha.so.com", "/"): _SO360_CAPTCHA},
    headers=(
        ("Set-Cookie", "QiHooGUID=5F0A7C1D2E3B4F60; path=/; domain=so.com"),
    ),  # what searches after it carry
)


# --- Quark (quark.sm.cn): a page that a script draws, from JSON in one script element a hit -------------------


def _quark_hit(*, place: int, entry: Hit, title: str, abstract: str, **_: Any) -> str:
    at = int(entry.post.at.timestamp())
    if chance.number(0, "natural", entry.url) % 2:
        category = "nature_result"
        data: dict[str, Any] = {
            "title": title,
            "normal_url": entry.url,
            "url": entry.url,
            "desc": abstract,
            "time": at,
        }
    else:
        category = "ss_text"
        data = {
            "titleProps": {"content": title},
            "sourceProps": {"dest_url": entry.url, "time": at, "name": host_of(entry)},
            "summaryProps": {"content": abstract},
        }
    whole = {"data": {"initialData": data}, "extraData": {"sc": category, "pos": place}}
    text = json.dumps(whole, ensure_ascii=False).replace("</", "<\\/")
    return TEMPLATES["quark"]["hit"].format(category=category, place=place, data=text)


_QUARK_CAPTCHA_JSON = {"action": "captcha", "url": "https://quark.sm.cn/api/rest?method=captcha", "rand": "1"}
_QUARK_CAPTCHA = Document(200, JSON, json.dumps(_QUARK_CAPTCHA_JSON).encode())
QUARK = EngineFormat(
    html_writer("quark", _quark_hit),
    refusals={Answer.CAPTCHA: _QUARK_CAPTCHA, Answer.TOO_FREQUENT: _QUARK_CAPTCHA},
)


# --- SearXNG, over its JSON API (``format=json``) -------------------------------------------------------------


def _searxng_results(results: Results) -> str:
    return json.dumps(
        {
            "query": " ".join(results.keywords),
            # Since 2023 it is 0 more often than not: engines report none.
            "number_of_results": results.found,
            "results": [
                {
                    "url": entry.url,
                    "title": entry.title,
                    "content": entry.abstract,
                    "publishedDate": f"{entry.post.at:%Y-%m-%dT%H:%M:%S}",
                    "thumbnail": "",
                    "engine": "baidu",
                    "engines": ["baidu", "sogou"],
                    "parsed_url": ["http", host_of(entry), "/", "", "", ""],
                    "template": "default.html",
                    "positions": [place],
                    "score": round(1 / place, 3),
                    "category": "general",
                }
                for place, entry in enumerate(results.entries, start=1)
            ],
            "answers": [],
            "corrections": [],
            "infoboxes": [],
            "suggestions": [f"{' '.join(results.keywords)} 投诉"],
            "unresponsive_engines": [],
        },
        ensure_ascii=False,
    )


_SEARXNG_LIMITED = notice(429, "Too Many Requests")
SEARXNG = EngineFormat(
    _searxng_results, JSON, {Answer.CAPTCHA: _SEARXNG_LIMITED, Answer.TOO_FREQUENT: _SEARXNG_LIMITED}
)
