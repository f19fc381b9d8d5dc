"""Baidu: its result page (layout of 2020) and the JSON of ``tn=json``.

Hits link to redirects of Baidu's own; a box of its own ("result-op") says the real address, too (`mu`).
"""

from __future__ import annotations

import json
from typing import Any

from app.lab import chance
from app.lab.answers import JSON, Answer, Document, notice, redirect
from app.lab.engines.model import EngineFormat, Hit, Results, html_writer, token
from app.lab.pages import TEMPLATES

_BOXES = 4
"""One hit in so many is a box."""

_LINK = "http://www.baidu.com/link?url={token}"
_TIME = '<span class="newTimeFactor_before_abs c-color-gray2 m">{at:%Y年%m月%d日}&nbsp;-&nbsp;</span>'

_CAPTCHA_HOST, _CAPTCHA_PATH = "wappass.baidu.com", "/static/captcha/tuxing.html"
_CAPTCHA_URL = f"https://{_CAPTCHA_HOST}{_CAPTCHA_PATH}?ak=c27bbc89afca0463650ac9bde68ebe06&backurl=https%3A%2F%2Fwww.baidu.com"
_CAPTCHA = notice(200, "百度安全验证", "<p>网络不给力，请稍后重试</p><p>问题反馈</p>")


def _hit(*, entry: Hit, **fields: Any) -> str:
    box = chance.number(0, "box", entry.url) % _BOXES == 0
    template = TEMPLATES["baidu"]["box" if box else "hit"]
    return template.format(link=_LINK.format(**fields), time=_TIME.format(**fields), **fields)


def _json(results: Results) -> str:
    start = (results.page - 1) * results.engine.hits_per_page
    entries: list[dict[str, Any]] = [
        {
            "title": entry.title,
            "url": entry.url,
            "urlEnc": token(entry.url),
            "imgUrl": "",
            "time": int(entry.post.at.timestamp()),
            "source": "",
            "category": {"value": "", "label": ""},
            "relate": "0",
            "same": "",
            "pn": start + place,
            "abs": entry.abstract,
        }
        for place, entry in enumerate(results.entries, start=1)
    ]
    feed = {
        "category": {"value": "", "label": ""},
        "title": "百度搜索",
        "link": "http://www.baidu.com",
        "all": results.found,
        "resNum": len(entries),
        "pn": start,
        "rn": results.engine.hits_per_page,
        "entry": [*entries, {}],  # Baidu's own list ends so
    }
    return json.dumps({"feed": feed}, ensure_ascii=False)


_TO_CAPTCHA = redirect(_CAPTCHA_URL)
_ANTI_FLAG = Document(200, JSON, b'{"antiFlag": 1}')
_OWN = {(_CAPTCHA_HOST, _CAPTCHA_PATH): _CAPTCHA}
BAIDU = EngineFormat(
    html_writer("baidu", _hit),
    refusals={Answer.CAPTCHA: _TO_CAPTCHA, Answer.TOO_FREQUENT: _TO_CAPTCHA},
    link=("/link", "url"),
    own=_OWN,
)
BAIDU_JSON = EngineFormat(
    _json,
    JSON,
    {Answer.CAPTCHA: _ANTI_FLAG, Answer.TOO_FREQUENT: _TO_CAPTCHA},
    link=("/link", "url"),
    own=_OWN,
)
