"""Answers of engines in the formats sites.yaml reads, with texts of our own; of each what a reader needs, and noise."""

# ruff: noqa: E501  (markup, as it comes)
from __future__ import annotations

import json
from typing import Any

BAIDU_JSON: dict[str, Any] = {
    "feed": {
        "title": "百度搜索_纯牛奶",
        "all": 2140,
        "resultnum": "2",
        "entry": [
            {
                "title": "纯牛奶结块了怎么投诉",
                "abs": "打开以后<em>结块</em>，客服不理 &amp; 不退",
                "url": "http://bbs.example.com/t/1",
                "time": 1709256000,
                "pn": 1,
            },
            {"title": "没有地址的一条", "abs": "", "url": "", "time": 0},
            {"title": "二", "abs": "x", "url": "https://www.example.com/a?b=1&c=中", "time": None},
            {},
        ],
    }
}
BAIDU_JSON_REFUSED = {"antiFlag": 1, "message": "Forbid spider access"}
BAIDU_JSON_EMPTY: dict[str, Any] = {"feed": {"all": 0, "entry": [{}]}}
BAIDU_CAPTCHA = "<html><title>百度安全验证</title><body><div>请完成下方验证</div></body></html>"

SEARXNG = {
    "query": "纯牛奶",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://a.example.com/1",
            "title": "一",
            "content": "结块",
            "publishedDate": "2024-03-01T12:00:00",
            "engine": "bing",
        },
        {"url": "https://a.example.com/2", "title": "二", "content": "", "publishedDate": None},
    ],
    "unresponsive_engines": [["google", "timeout"]],
}
SEARXNG_EMPTY: dict[str, Any] = {"query": "x", "results": [], "unresponsive_engines": []}
SEARXNG_BLIND = {
    "query": "x",
    "results": [],
    "unresponsive_engines": [
        ["baidu", "CAPTCHA"],
        ["sogou", "timeout"],
    ],
}


def mblog(number: int, text: str, **more: Any) -> dict[str, Any]:
    return {
        "id": str(4_900_000_000_000_000 + number),
        "created_at": f"Fri Mar 01 12:0{number}:00 +0800 2024",
        "text": text,
        "user": {"id": 1, "screen_name": f"用户{number}"},
        **more,
    }


WEIBO = {
    "ok": 1,
    "data": {
        "cardlistInfo": {"total": 131, "page": 2, "v_p": "42"},
        "cards": [
            {"card_type": 9, "mblog": mblog(1, '喝了<br />肚子疼<span class="url-icon"><img alt="[怒]"></span>')},
            {
                "card_type": 11,
                "card_group": [
                    {"card_type": 9, "mblog": mblog(2, '短…<a href="/status/2">全文</a>', longText={"longTextContent": "很长很长的<b>一条</b>"})},
                    {"card_type": 4, "desc": "相关搜索"},
                ],
            },
            {"card_type": 9, "mblog": mblog(3, "")},
        ],
    },
}  # fmt: skip
WEIBO_END: dict[str, Any] = {"ok": 0, "msg": "这里还没有内容", "data": {"cards": []}}
WEIBO_REFUSED = {"ok": -100, "url": "https://passport.weibo.com/sso/signin?entry=wapsso"}

TOUSU = {
    "result": {
        "status": {"code": 0, "msg": "succ"},
        "data": {
            "lists": [
                {
                    "main": {
                        "sn": "17380000001",
                        "title": "<em>纯牛奶</em>有异物",
                        "summary": "喝出异物",
                        "url": "//tousu.sina.com.cn/complaint/view/17380000001/",
                        "timestamp": "1709256000",
                    }
                }
            ],
            "pager": {"current": 1, "page_amount": 9, "item_count": 85},
        },
    }
}


def script(data: Any, number: int = 1) -> str:
    return f'<script type="application/json" id="s-data-{number}" data-used-by="hydrate">{json.dumps(data)}</script>'


def quark(*initial: dict[str, Any]) -> str:
    scripts = "".join(
        script({"data": {"initialData": data}, "extraData": {"sc": "x"}}, n) for n, data in enumerate(initial)
    )
    return f"<html><body><div>壳</div><script>var no = 1</script>{scripts}</body></html>"  # fmt: skip


QUARK = quark(
    {
        "titleProps": {"content": "<em>纯牛奶</em>结块"},
        "sourceProps": {"dest_url": "https://a.example.com/1", "time": "1709256000"},
        "summaryProps": {"content": "打开就是豆腐"},
    },
    {
        "title": {"content": "笔记"},
        "source": {"dest_url": "https://b.example.com/2"},
        "summary": {"content": "s"},
    },
    {
        "feed": [
            {"title": "新闻", "url": "https://c.example.com/3", "summary": "n", "time": "2024-03-01 08:00"}
        ]
    },
    {"image": [{"imgUrl": "https://d.example.com/x.jpg"}]},
)
QUARK_CAPTCHA = '<html><script>window._config_ = {"action":"captcha","url":"https://quark.sm.cn/punish?x5secdata=x"}</script></html>'

BAIDU = """<html><head><title>纯牛奶_百度搜索</title></head><body>
<div class="nums"><span>百度为您找到相关结果约1,230个</span></div>
<div id="content_left">
<div class="result c-container new-pmd" id="1" mu="https://bbs.example.com/t/1"><div class="c-container">
  <h3 class="c-title t"><a href="http://www.baidu.com/link?url=AAA">纯牛奶<em>结块</em></a></h3>
  <span class="cos-color-text-minor">2024年3月1日</span><span class="summary-text_560AW">豆腐一样</span></div></div>
<div class="result-op c-container" id="2" mu="http://nourl.ubs.baidu.com/1"><h3><a href="http://www.baidu.com/link?url=BBB">大家还在搜</a></h3></div>
<div class="result c-container" id="3"><h3 class="t"><a href="http://www.baidu.com/link?url=CCC">三</a></h3><div class="c-abstract">旧的摘要</div></div>
<div class="c-container" id="4" mu="http://28.recommend_list.baidu.com"><div>没有标题的框</div></div>
</div>
<div id="page"><a href="/s?wd=x&amp;pn=0">1</a><a href="/s?wd=x&amp;pn=10" class="n">下一页 &gt;</a></div></body></html>"""

SOGOU = """<html><body><div class="search-info"><p class="num-tips">搜狗已为您找到约37,020条相关结果</p></div>
<div class="results"><div class="vrwrap"><h3 class="vr-title"><a href="/link?url=hed">一<em>二</em></a></h3>
<div class="fz-mid space-txt">摘要</div><div class="r-sech" data-url="http://a.example.com/1"></div><span class="cite-date">2024-3-1</span></div>
<div class="rb"><h3 class="pt"><a href="/link?url=xyz">二</a></h3><div class="ft">旧</div><cite>某站 - 2021-1-11</cite></div>
<div class="vrwrap"><div class="special-wrap"><h3><a href="/web?query=x">相关搜索</a></h3></div></div></div>
<div id="pagebar_container"><a id="sogou_next" href="?query=x&amp;page=2">下一页</a></div></body></html>"""
SOGOU_REFUSED = "<html><title>搜狗搜索</title><body>用户您好，我们的系统检测到您网络中存在异常访问请求。此验证码用于确认这些请求是您的正常行为</body></html>"

WEIXIN = """<html><body><div class="mun">找到约1,204条结果</div><ul class="news-list">
<li id="sogou_vr_11002601_box_0"><div class="txt-box"><h3><a href="/link?url=dn9a&amp;type=2">纯<em>牛奶</em>测评</a></h3>
<p class="txt-info">十款</p><div class="s-p" t="1709256000"><span class="s2"><script>x('1709256000')</script></span></div></div></li>
</ul></body></html>"""

SO360 = """<html><body><span class="nums">找到相关结果约8,890个</span><ul class="result">
<li class="res-list"><h3 class="res-title"><a href="https://www.so.com/link?m=a" data-mdurl="https://a.example.com/1">一</a></h3>
<p class="res-desc"><span class="gray">2024年3月1日</span>说明</p></li>
<li class="res-list"><h3 class="res-title"><a href="https://www.so.com/link?m=b">二</a></h3><span class="res-list-summary">s</span></li>
</ul><div id="page"><a id="snext" href="?pn=2">下一页</a></div></body></html>"""

BING = """<html><body><span class="sb_count">约 1,230 个结果</span><ol id="b_results">
<li class="b_algo"><h2><a href="https://a.example.com/1">一</a></h2><div class="b_caption"><p><span class="news_dt">2024年3月1日</span>说明</p></div></li>
<li class="b_algo"><h2><a href="https://cn.bing.com/ck/a?!&amp;&amp;p=1&amp;u=a1aHR0">二</a></h2></li>
<li class="b_ans">x</li></ol><a class="sb_pagN" href="/search?q=x&amp;first=11">下一页</a></body></html>"""

WEIBO_DESKTOP = """<html><body><div id="pl_feedlist_index">
<div class="card-wrap" action-type="feed_list_item" mid="4900000000000001"><div class="card-feed"><div class="content">
<a class="name" href="//weibo.com/1">甲</a><div class="from"><a href="//weibo.com/1/Na1?refer_flag=1">2024年03月01日 12:05</a></div>
<p class="txt" node-type="feed_list_content">说到一半...<a>展开c</a></p>
<p class="txt" node-type="feed_list_content_full" style="display: none">说到一半又说完了<a>收起d</a></p></div></div></div>
<div class="card-wrap" action-type="feed_list_item" mid="4900000000000002"><div class="card-feed"><div class="content">
<a class="name" href="//weibo.com/2">乙</a><p class="from"><a href="//weibo.com/2/Nb2">03月01日 08:00</a></p>
<p class="txt" node-type="feed_list_content">转一条 <a href="https://s.weibo.com/weibo?q=%23%E5%A5%B6%23">#奶#</a></p>
<div class="card-comment"><div class="con"><p class="txt" node-type="feed_list_content_full" style="display: none">别人的</p></div></div></div></div></div>
</div><div class="m-page"><a class="next" href="/weibo?q=x&amp;page=2">下一页</a></div></body></html>"""
WEIBO_DESKTOP_EMPTY = '<html><body><div class="card card-no-result s-pt20b40"><p>抱歉，未找到“xyz”相关结果。</p></div></body></html>'
WEIBO_DESKTOP_WALL = (
    "<html><head><title>Sina Visitor System</title></head><body><script>x</script></body></html>"
)

TIEBA = """<html><body><div class="s_post_list"><div class="s_post"><span class="p_title"><a href="/p/9001?pid=1&amp;cid=0">奶粉<em>结块</em></a></span>
<div class="p_content">开罐就这样</div><font class="p_green p_date">2024-03-01 12:00</font></div></div>
<div class="pager pager-search"><a class="next" href="?pn=2">下一页&gt;</a></div></body></html>"""

CAR = """<html><body><div class="tslist"><ul><li><a href="/zlts/20240301/600001.shtml" title="x">某车漏油</a><span>2024年3月1日</span></li>
<li><a href="/series/1/index.shtml">车系</a></li></ul></div></body></html>"""
