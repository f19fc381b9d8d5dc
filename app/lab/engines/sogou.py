"""Sogou: its web search (layouts of organic and of special results, 2022) and its search of WeChat articles."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from html import escape
from typing import Any

from app.lab import chance
from app.lab.answers import Answer, notice, redirect
from app.lab.engines.model import EngineFormat, Hit, Results, html_writer

_SPECIAL = 3
"""One hit in so many is laid out as a special result."""

_PAGE = """<div id="wrapper" class="wrapper"><div class="header"><form action="web">
<input name="query" value="{query}"></form></div>
<p class="num-tips">搜狗已为您找到约{found:,}条相关结果</p>
<div id="main" class="main"><div class="results">
{hits}</div></div>
<div id="pagebar_container" class="p">{next}</div></div>
"""
_RB = """<div class="rb" id="rb_{place}"><h3 class="pt"><!--awbg0-->
<a name="dttl" target="_blank" href="{link}" id="uigs_{place}">{title}</a></h3>
<div class="ft" id="cacheresult_summary_{place}"><!--summary_beg-->{abstract}...<!--summary_end--></div>
<div class="fb"><cite id="cacheresult_info_{place}">{site} - {date}</cite></div>
<div class="r-sech result_list" data-url="{url}"></div></div>
"""
_VR = """<div class="vrwrap"><div class="struct201102"><h3 class="vr-title  ">
<a target="_blank" href="{link}" id="sogou_vr_30000909_{place}">{title}</a></h3>
<div class="img-flex"><div class="text-layout"><div class="fz-mid space-txt">{abstract}...</div>
<div class="citeurl "><span>{site}</span><span class="cite-date">- {date}</span></div></div></div></div>
<div class="r-sech ext_query result_list" style="display:none" data-url="{url}"></div></div>
"""
_NONE = """<div class="no-result" id="main"><div class="text-info">
<p>抱歉，没有找到与“<em>{query}</em>”相关的网页。</p></div></div>
"""
_NEXT = '<a id="sogou_next" href="{url}" class="np">下一页</a>'

_WEIXIN = """<div class="wrapper" id="wrapper"><div class="mun">找到约{found:,}条结果</div>
<div class="news-box"><ul class="news-list">
{hits}</ul></div><div class="p-fy" id="pagebar_container">{next}</div></div>
"""
_ARTICLE = """<li id="sogou_vr_11002601_box_{place}" d="ab03"><div class="img-box"><a href="{link}">
<img src="//img01.sogoucdn.com/0"></a></div>
<div class="txt-box"><h3><a target="_blank" href="{link}" id="sogou_vr_11002601_title_{place}">{title}</a></h3>
<p class="txt-info" id="sogou_vr_11002601_summary_{place}">{abstract}...</p>
<div class="s-p"><span class="all-time-y2">{author}</span><span class="s2">
<script>document.write(timeConvert('{timestamp}'))</script></span></div></div></li>
"""
_NO_ARTICLE = """<div class="b404-box" id="noresult_part1_container"><div class="text-info">
<p class="p2">暂无与“<em>{query}</em>”相关的官方认证订阅号。</p>
<p class="p1">抱歉！没有找到相关的微信公众号文章。</p></div></div>
"""
_ANTISPIDER = notice(
    200, "搜狗搜索", "<p>此验证码用于确认这些请求是您的正常行为而不是自动程序发出的，需要您协助验证。</p>"
)


def _hit(*, entry: Hit, token: str, at: datetime, **fields: Any) -> str:
    special = chance.number(0, "special", entry.url) % _SPECIAL == 0
    return (_VR if special else _RB).format(
        link=f"/link?url={token}", date=f"{at.year}-{at.month}-{at.day}", **fields
    )


def _article(*, entry: Hit, token: str, at: datetime, **fields: Any) -> str:
    return _ARTICLE.format(
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


SOGOU = _format("www.sogou.com", html_writer(page=_PAGE, hit=_hit, none=_NONE, next_link=_NEXT))
WEIXIN = _format(
    "weixin.sogou.com", html_writer(page=_WEIXIN, hit=_article, none=_NO_ARTICLE, next_link=_NEXT)
)
