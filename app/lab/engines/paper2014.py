"""The two engines of the catalog `paper-2014`, in the formats its rules read."""

from __future__ import annotations

from app.lab.answers import Answer, notice
from app.lab.engines.model import EngineFormat, html_writer

_BAIDU_FORM = """<div id="head"><form action="/s">
<input name="wd" value="{query}" class="s_ipt"><input type="submit" value="百度一下"></form></div>
"""
_BAIDU_NONE = """<div id="content_left"><div class="content_none"><div class="nors">
<p>很抱歉，没有找到与<span>“<em>{query}</em>”</span>相关的网页。</p></div></div></div>
"""
_BAIDU_HIT = """<div class="result c-container" id="{rank}" srcid="1599" tpl="se_com_default">
<h3 class="t"><a href="{url}" target="_blank">{title}</a></h3>
<div class="c-abstract">{abstract}...</div>
<div class="f13"><span class="g">{site}/</span> <a class="m" href="#">百度快照</a></div></div>
"""
_BAIDU_PAGE = """<div class="nums">百度为您找到相关结果约{found:,}个</div>
<div id="content_left">
{hits}</div>
<div id="page"><a class="n" href="#">&lt;上一页</a>{next}</div>
"""
_BAIDU_NEXT = '<a class="n" rel="next" href="{url}">下一页&gt;</a>'

_YUNYUN_NONE = """<div class="weibo-none"><p>没有找到相关微博，换个关键词试试吧。</p></div>
"""
_YUNYUN_HIT = """<li class="weibo-item"><a class="weibo-link" href="{url}">{title}</a>
<p class="weibo-text">{abstract}</p><span class="from">来自 网页版</span></li>
"""
_YUNYUN_PAGE = """<p class="weibo-count">找到{found:,}条相关微博</p>
<ul class="weibo-list">
{hits}</ul>
<div class="pages">{next}</div>
"""
_YUNYUN_NEXT = '<a class="next-page" href="{url}">下一页</a>'


_BAIDU_CAPTCHA = notice(200, "百度安全验证：请完成下方验证后继续访问。")
BAIDU = EngineFormat(
    html_writer(
        page=_BAIDU_FORM + _BAIDU_PAGE,
        hit=_BAIDU_HIT.format,
        none=_BAIDU_FORM + _BAIDU_NONE,
        next_link=_BAIDU_NEXT,
    ),
    refusals={Answer.CAPTCHA: _BAIDU_CAPTCHA},
)
YUNYUN = EngineFormat(
    html_writer(page=_YUNYUN_PAGE, hit=_YUNYUN_HIT.format, none=_YUNYUN_NONE, next_link=_YUNYUN_NEXT)
)
