"""360 search (so.com)."""

from __future__ import annotations

from html import escape

from app.lab.answers import Answer
from app.lab.document import HTML, Document, notice, redirect
from app.lab.engines.model import EngineFormat, Results, shown
from app.lab.engines.redirects import token
from splitter.catalog.model import Engine

_PAGE = """<div id="warper"><div id="header"><form action="/s"><input name="q" value="{query}"></form></div>
<div id="container"><div id="main" class="g-mian"><ul class="result">
{hits}</ul></div>
<div id="page"><strong>{number}</strong>{next}<span class="nums">找到相关结果约{found:,}个</span></div></div>
</div>
"""
_HIT = """<li class="res-list" data-lazyload="1"><h3 class="res-title ">
<a href="https://www.so.com/link?m={token}" data-mdurl="{url}" target="_blank">{title}</a></h3>
<div class="res-rich res-comm-con"><p class="res-desc"><span class="gray">{date} - </span>{abstract}...</p>
<p class="g-linkinfo res-linkinfo">
<cite>{site}</cite> <a class="m" href="https://c.360webcache.com/c?m={place}">快照</a></p></div></li>
"""
_NONE = """<div id="main"><div id="no-result"><p class="text">抱歉，未找到和<em>“{query}”</em>相关的网页。</p>
<p>建议您：检查输入是否正确</p></div></div>
"""
_NEXT = '<a id="snext" href="{url}">下一页</a>'
_CAPTCHA = notice(200, "360搜索", "<p>系统检测到您操作过于频繁，请输入验证码以继续访问。</p>")


def _results(results: Results) -> str:
    query = escape(" ".join(results.keywords))
    if not results.entries:
        return _NONE.format(query=query)
    hits = "".join(
        _HIT.format(
            place=place,
            token=token(entry.url),
            date=f"{entry.post.at:%Y年%m月%d日}",
            site=escape(entry.url.split("/")[2]),
            **shown(entry, results),
        )
        for place, entry in enumerate(results.entries)
    )
    following = _NEXT.format(url=escape(results.next_url)) if results.next_url else ""
    return _PAGE.format(query=query, found=results.found, hits=hits, number=results.page, next=following)


def _to_captcha(_engine: Engine) -> Document:
    return redirect("https://qcaptcha.so.com/?ret=https%3A%2F%2Fwww.so.com%2Fs")


SO360 = EngineFormat(
    _results,
    HTML,
    {Answer.CAPTCHA: _to_captcha, Answer.TOO_FREQUENT: _to_captcha},
    ("/link", "m"),
    {("qcaptcha.so.com", "/"): _CAPTCHA},
)
