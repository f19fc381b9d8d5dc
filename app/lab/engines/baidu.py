"""Baidu: its result page (layout of 2020) and the JSON of ``tn=json``.

Hits link to redirects of Baidu's own; a box of its own ("result-op") says the real address, too (`mu`).
"""

from __future__ import annotations

import json
from typing import Any

from app.lab import chance
from app.lab.answers import JSON, Answer, Document, notice, redirect
from app.lab.engines.model import EngineFormat, Hit, Results, html_writer, token

_BOXES = 4
"""One hit in so many is a box."""

_FORM = """<div id="head"><form id="form" action="/s"><span class="s_ipt_wr">
<input id="kw" name="wd" value="{query}" class="s_ipt"></span><input type="submit" id="su" value="百度一下">
</form></div>
<div id="wrapper_wrapper"><div id="container" class="container_s">
"""
_NONE = """<div id="content_left"><div class="content_none"><div class="nors">
<p>很抱歉，没有找到与<span style="font-family:宋体">“</span><em>{query}</em><span>”</span>相关的网页。</p>
<p class="content_none_tip">温馨提示：</p><ul><li>请检查您的输入是否正确</li></ul></div></div></div></div></div>
"""
_LINK = "http://www.baidu.com/link?url={token}"
_TIME = '<span class="newTimeFactor_before_abs c-color-gray2 m">{at:%Y年%m月%d日}&nbsp;-&nbsp;</span>'
_HIT = """<div class="result c-container " id="{rank}" srcid="1599" tpl="se_com_default">
<h3 class="t"><a data-click="{{'F':'778317EA'}}" href = "{link}" target="_blank">{title}</a></h3>
<div class="c-abstract">{time}{abstract}...</div>
<div class="f13 c-gap-top-xsmall"><a target="_blank" href="{link}" class="c-showurl c-line-clamp1">{site}</a>
<div class="c-tools c-gap-left"><a class="c-tip-icon"><i class="c-icon"></i></a></div>
<a data-click="{{'rsv_snapshot':'1'}}" href="http://cache.baiducontent.com/c?m={rank}" class="m">百度快照</a>
</div></div>
"""
_BOX = """<div class="result-op c-container xpath-log" srcid="1547" id="{rank}" tpl="bk_polysemy" mu="{url}">
<h3 class="t c-gap-bottom-small"><a href="{link}" target="_blank">{title}</a></h3>
<div class="c-row"><div class="c-span18 c-span-last c-abstract">{time}{abstract}...</div></div>
<p><span class="c-showurl">{site}</span></p></div>
"""
_PAGE = """<div class="head_nums_cont_outer OP_LOG"><div class="head_nums_cont_inner">
<div class="nums"><div class="search_tool"><i class="c-icon"></i>搜索工具</div>
<span class="nums_text">百度为您找到相关结果约{found:,}个</span></div></div></div>
<div id="content_left">
{hits}</div>
<div id="rs"><div class="tt">相关搜索</div><table><tr><th><a href="/s?wd={query}&amp;rsf=1">{query} 投诉电话</a>
</th></tr></table></div>
<div id="page"><div class="page-inner"><strong><span class="pc">{number}</span></strong>{next}</div></div></div>
</div>
"""
_NEXT = '<a href="{url}" class="n">下一页 &gt;</a>'

_CAPTCHA_HOST, _CAPTCHA_PATH = "wappass.baidu.com", "/static/captcha/tuxing.html"
_CAPTCHA_URL = f"https://{_CAPTCHA_HOST}{_CAPTCHA_PATH}?ak=c27bbc89afca0463650ac9bde68ebe06&backurl=https%3A%2F%2Fwww.baidu.com"
_CAPTCHA = notice(200, "百度安全验证", "<p>网络不给力，请稍后重试</p><p>问题反馈</p>")


def _hit(*, entry: Hit, **fields: Any) -> str:
    box = chance.number(0, "box", entry.url) % _BOXES == 0
    return (_BOX if box else _HIT).format(link=_LINK.format(**fields), time=_TIME.format(**fields), **fields)


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
    html_writer(page=_FORM + _PAGE, hit=_hit, none=_FORM + _NONE, next_link=_NEXT),
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
