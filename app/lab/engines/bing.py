"""Bing (cn.bing.com)."""

from __future__ import annotations

from html import escape

from app.lab.answers import Answer
from app.lab.document import HTML, Document, notice
from app.lab.engines.model import EngineFormat, Results, shown
from splitter.catalog.model import Engine

_PAGE = """<div id="b_content"><main aria-label="搜索结果"><div id="b_tween">
<span class="sb_count">约 {found:,} 个结果</span></div>
<ol id="b_results">
{hits}<li class="b_pag"><nav role="navigation"><ul class="sb_pagF"><li><a class="sb_pagS" href="#">{number}</a>
</li>{next}</ul></nav></li></ol></main></div>
"""
_HIT = """<li class="b_algo" data-id iid="SERP.{place}"><div class="b_tpcn">
<a class="tilk" href="{url}" h="ID=SERP,{place}"><div class="tptt">{site}</div><div class="tpmeta">
<div class="b_attribution"><cite>{url}</cite></div></div></a></div>
<h2><a target="_blank" href="{url}" h="ID=SERP,{place}.1">{title}</a></h2>
<div class="b_caption"><p class="b_lineclamp2">
<span class="news_dt">{date}</span>&nbsp;&#0183;&#32;{abstract}...</p></div></li>
"""
_NONE = """<div id="b_content"><ol id="b_results"><li class="b_no" data-bm="5">
<h1>没有与此相关的结果: <strong>{query}</strong></h1>
<ul><li>检查拼写或尝试其他关键词</li></ul></li></ol></div>
"""
_NEXT = '<li><a class="sb_pagN sb_pagN_bp b_widePag sb_bp" title="下一页" href="{url}">下一页</a></li>'


def _results(results: Results) -> str:
    query = escape(" ".join(results.keywords))
    if not results.entries:
        return _NONE.format(query=query)
    hits = "".join(
        _HIT.format(
            place=place,
            site=escape(entry.url.split("/")[2]),
            date=f"{entry.post.at.year}年{entry.post.at.month}月{entry.post.at.day}日",
            **shown(entry, results),
        )
        for place, entry in enumerate(results.entries)
    )
    following = _NEXT.format(url=escape(results.next_url)) if results.next_url else ""
    return _PAGE.format(found=results.found, hits=hits, number=results.page, next=following)


def _captcha(_engine: Engine) -> Document:
    return notice(
        200,
        "最后一步 One last step",
        '<div class="captcha"><p>请解决以下难题以继续</p><p>为了确认你不是机器人，请完成验证</p></div>',
    )


BING = EngineFormat(_results, HTML, {Answer.CAPTCHA: _captcha, Answer.TOO_FREQUENT: _captcha})
