"""Bing, 360, Quark and SearXNG."""

from __future__ import annotations

import json
from typing import Any

from app.lab import chance
from app.lab.answers import JSON, Answer, Document, notice, redirect
from app.lab.engines.model import EngineFormat, Hit, Results, host_of, html_writer

# --- Bing (cn.bing.com) ---------------------------------------------------------------------------------------


_BING_PAGE = """<div id="b_content"><main aria-label="搜索结果"><div id="b_tween">
<span class="sb_count">约 {found:,} 个结果</span></div>
<ol id="b_results">
{hits}<li class="b_pag"><nav role="navigation"><ul class="sb_pagF"><li><a class="sb_pagS" href="#">{number}</a>
</li>{next}</ul></nav></li></ol></main></div>
"""
_BING_HIT = """<li class="b_algo" data-id iid="SERP.{place}"><div class="b_tpcn">
<a class="tilk" href="{url}" h="ID=SERP,{place}"><div class="tptt">{site}</div><div class="tpmeta">
<div class="b_attribution"><cite>{url}</cite></div></div></a></div>
<h2><a target="_blank" href="{url}" h="ID=SERP,{place}.1">{title}</a></h2>
<div class="b_caption"><p class="b_lineclamp2">
<span class="news_dt">{at.year}年{at.month}月{at.day}日</span>&nbsp;&#0183;&#32;{abstract}...</p></div></li>
"""
_BING_NONE = """<div id="b_content"><ol id="b_results"><li class="b_no" data-bm="5">
<h1>没有与此相关的结果: <strong>{query}</strong></h1>
<ul><li>检查拼写或尝试其他关键词</li></ul></li></ol></div>
"""
_BING_NEXT = '<li><a class="sb_pagN sb_pagN_bp b_widePag sb_bp" title="下一页" href="{url}">下一页</a></li>'


_BING_CAPTCHA = notice(
    200,
    "最后一步 One last step",
    '<div class="captcha"><p>请解决以下难题以继续</p><p>为了确认你不是机器人，请完成验证</p></div>',
)
BING = EngineFormat(
    html_writer(page=_BING_PAGE, hit=_BING_HIT.format, none=_BING_NONE, next_link=_BING_NEXT),
    refusals={Answer.CAPTCHA: _BING_CAPTCHA, Answer.TOO_FREQUENT: _BING_CAPTCHA},
)


# --- 360 search (so.com) --------------------------------------------------------------------------------------


_SO360_PAGE = """<div id="warper"><div id="header"><form action="/s"><input name="q" value="{query}"></form></div>
<div id="container"><div id="main" class="g-mian"><ul class="result">
{hits}</ul></div>
<div id="page"><strong>{number}</strong>{next}<span class="nums">找到相关结果约{found:,}个</span></div></div>
</div>
"""
_SO360_HIT = """<li class="res-list" data-lazyload="1"><h3 class="res-title ">
<a href="https://www.so.com/link?m={token}" data-mdurl="{url}" target="_blank">{title}</a></h3>
<div class="res-rich res-comm-con"><p class="res-desc"><span class="gray">{at:%Y年%m月%d日} - </span>{abstract}...</p>
<p class="g-linkinfo res-linkinfo">
<cite>{site}</cite> <a class="m" href="https://c.360webcache.com/c?m={place}">快照</a></p></div></li>
"""
_SO360_NONE = """<div id="main"><div id="no-result"><p class="text">抱歉，未找到和<em>“{query}”</em>相关的网页。</p>
<p>建议您：检查输入是否正确</p></div></div>
"""
_SO360_NEXT = '<a id="snext" href="{url}">下一页</a>'
_SO360_CAPTCHA = notice(200, "360搜索", "<p>系统检测到您操作过于频繁，请输入验证码以继续访问。</p>")


_SO360_TO_CAPTCHA = redirect("https://qcaptcha.so.com/?ret=https%3A%2F%2Fwww.so.com%2Fs")
SO360 = EngineFormat(
    html_writer(page=_SO360_PAGE, hit=_SO360_HIT.format, none=_SO360_NONE, next_link=_SO360_NEXT),
    refusals={Answer.CAPTCHA: _SO360_TO_CAPTCHA, Answer.TOO_FREQUENT: _SO360_TO_CAPTCHA},
    link=("/link", "m"),
    own={("qcaptcha.so.com", "/"): _SO360_CAPTCHA},
)


# --- Quark (quark.sm.cn): a page that a script draws, from JSON in one script element a hit -------------------


_QUARK_SCRIPT = (
    '<section class="sc sc_{category}" data-reco="{place}"><div id="s-root-{place}"></div></section>\n'
    '<script type="application/json" id="s-data-{category}_{place}" data-used-by="hydrate">{data}</script>\n'
)
_QUARK_PAGE = '<div id="app"><div id="results">\n{hits}</div>{next}</div>\n'
_QUARK_NEXT = '<div class="pager"><a class="next" href="{url}">下一页</a></div>'
_QUARK_NONE = '<div id="app"><div class="no-result"><p>抱歉，没有找到相关结果</p></div></div>\n'


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
    return _QUARK_SCRIPT.format(category=category, place=place, data=text)


_QUARK_CAPTCHA_JSON = {"action": "captcha", "url": "https://quark.sm.cn/api/rest?method=captcha", "rand": "1"}
_QUARK_CAPTCHA = Document(200, JSON, json.dumps(_QUARK_CAPTCHA_JSON).encode())
QUARK = EngineFormat(
    html_writer(page=_QUARK_PAGE, hit=_quark_hit, none=_QUARK_NONE, next_link=_QUARK_NEXT),
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
