"""Quark (quark.sm.cn): a page that a script draws, from JSON in one script element a hit."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from app.lab import chance
from app.lab.answers import Answer
from app.lab.document import HTML, JSON, Document
from app.lab.engines.model import EngineFormat, Entry, Results, marked
from splitter.catalog.model import Engine

_SCRIPT = (
    '<section class="sc sc_{category}" data-reco="{place}"><div id="s-root-{place}"></div></section>\n'
    '<script type="application/json" id="s-data-{category}_{place}" data-used-by="hydrate">{data}</script>\n'
)
_PAGE = '<div id="app"><div id="results">\n{hits}</div>{next}</div>\n'
_NEXT = '<div class="pager"><a class="next" href="{url}">下一页</a></div>'
_NONE = '<div id="app"><div class="no-result"><p>抱歉，没有找到相关结果</p></div></div>\n'


def _results(results: Results) -> str:
    if not results.entries:
        return _NONE
    hits = "".join(_hit(results, place, entry) for place, entry in enumerate(results.entries))
    return _PAGE.format(
        hits=hits, next=_NEXT.format(url=escape(results.next_url)) if results.next_url else ""
    )


def _hit(results: Results, place: int, entry: Entry) -> str:
    title, abstract = (marked(text, results.keywords) for text in (entry.title, entry.abstract))
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
            "sourceProps": {"dest_url": entry.url, "time": at, "name": entry.url.split("/")[2]},
            "summaryProps": {"content": abstract},
        }
    whole = {"data": {"initialData": data}, "extraData": {"sc": category, "pos": place}}
    text = json.dumps(whole, ensure_ascii=False).replace("</", "<\\/")
    return _SCRIPT.format(category=category, place=place, data=text)


def _captcha(_engine: Engine) -> Document:
    body = {"action": "captcha", "url": "https://quark.sm.cn/api/rest?method=captcha", "rand": "1"}
    return Document(200, JSON, json.dumps(body).encode())


QUARK = EngineFormat(_results, HTML, {Answer.CAPTCHA: _captcha, Answer.TOO_FREQUENT: _captcha})
