"""Result pages and site pages as HTML, in the formats that the rules of the catalog `paper-2014` read.

A format goes by the name of its engine or of its page rules. An engine or rules of another name are served
the format of their kind, so that a catalog with more engines, or a rule that reads nothing, can be tried too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from app.lab.posts import Content, Post
from splitter.catalog.model import Kind

_ABSTRACT_CHARS = 90


@dataclass(frozen=True, slots=True)
class Entry:
    """One hit as a result page shows it: address, title and abstract as text."""

    url: str
    title: str
    abstract: str


@dataclass(frozen=True, slots=True)
class Results:
    """What a result page shows.

    Attributes:
        keywords: words to mark in the hits.
        found: number of hits the engine reports.
        entries: hits of this page; none: the engine says that it has nothing.
        next_url: path of the next result page; empty: this is the last one.
    """

    keywords: tuple[str, ...]
    found: int
    entries: tuple[Entry, ...]
    next_url: str


@dataclass(frozen=True, slots=True)
class EngineFormat:
    """How one engine writes: its result page (HTML inside the body) and what its captcha page says."""

    results: Callable[[Results], str]
    captcha: str


def entry_of(url: str, content: Content) -> Entry:
    """A page as a result page shows it."""
    return Entry(url, content.title, content.posts[0].body[:_ABSTRACT_CHARS])


def engine_format(engine: str, kind: Kind) -> EngineFormat:
    """The format of an engine by its name; of another one by its kind."""
    return _ENGINES.get(engine) or _ENGINES["weibo-yunyun" if kind is Kind.MICROBLOG else "baidu"]


def site_format(rules: str, kind: Kind) -> Callable[[Content], str]:
    """How the pages of a site are written (HTML in the chrome), by the name of their rules; else by kind."""
    return _SITES.get(rules) or (_microblog if kind is Kind.MICROBLOG else _complaint)


def _marked(text: str, keywords: tuple[str, ...]) -> str:
    html = escape(text)
    for word in keywords:
        # One character or a letter would also match inside the markup put in before.
        if len(word) > 1 and not word.isascii():
            html = html.replace(escape(word), f"<em>{escape(word)}</em>")
    return html


_BAIDU_FORM = """<div id="head"><form action="/s">
<input name="wd" value="{query}" class="s_ipt"><input type="submit" value="百度一下"></form></div>
"""
_BAIDU_NONE = """<div id="content_left"><div class="content_none"><div class="nors">
<p>很抱歉，没有找到与<span>“<em>{query}</em>”</span>相关的网页。</p></div></div></div>
"""
_BAIDU_HIT = """<div class="result c-container" id="{place}" srcid="1599" tpl="se_com_default">
<h3 class="t"><a href="{url}" target="_blank">{title}</a></h3>
<div class="c-abstract">{abstract}...</div>
<div class="f13"><span class="g">{shown}</span> <a class="m" href="#">百度快照</a></div></div>
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

_COMPLAINT = """<div class="complaint" data-id="{key}">
<h1 class="complaint-title">{title}</h1>
<p class="meta">投诉人：<span class="complaint-author">{author}</span> 投诉对象：{subject}
时间：<span class="complaint-date">{date}</span> {rating}</p>
<div class="complaint-body">{body}</div>
<p class="state">处理状态：已受理</p>
</div>
"""
_RATING = '<span class="complaint-rating" data-value="{rating}">满意度：{stars}</span>'

_THREAD = """<div id="postlist" class="pl">
{posts}</div>
<div class="pgs"><a href="/forum.html">返回列表</a></div>
"""
_POST = """<div class="post" id="post_{key}">
<div class="pi"><a class="post-author" href="/space-{user}.html">{author}</a>
<em class="post-date">{date}</em> <strong>{floor}楼</strong></div>
<h2 class="post-title">{title}</h2>
<div class="post-body">{body}</div></div>
"""

_MICROBLOG = """<div class="weibo-post" mid="{key}"><a class="name" href="/u/{user}">{author}</a>
<p class="txt">#{title}# {body}</p>
<div class="from"><a class="date" href="#">{date}</a> 来自 <a href="#">微博</a>
转发({user:.2}) 评论({user:.1})</div></div>
"""


def _baidu(results: Results) -> str:
    query = escape(" ".join(results.keywords))
    form = _BAIDU_FORM.format(query=query)
    if not results.entries:
        return form + _BAIDU_NONE.format(query=query)
    hits = "".join(
        _BAIDU_HIT.format(place=place, shown=escape(entry.url[7:40]), **_shown(entry, results))
        for place, entry in enumerate(results.entries, start=1)
    )
    following = _BAIDU_NEXT.format(url=escape(results.next_url)) if results.next_url else ""
    return form + _BAIDU_PAGE.format(found=results.found, hits=hits, next=following)


def _yunyun(results: Results) -> str:
    if not results.entries:
        return _YUNYUN_NONE
    hits = "".join(_YUNYUN_HIT.format(**_shown(entry, results)) for entry in results.entries)
    following = _YUNYUN_NEXT.format(url=escape(results.next_url)) if results.next_url else ""
    return _YUNYUN_PAGE.format(found=results.found, hits=hits, next=following)


def _shown(entry: Entry, results: Results) -> dict[str, str]:
    return {
        "url": escape(entry.url),
        "title": _marked(entry.title, results.keywords),
        "abstract": _marked(entry.abstract, results.keywords),
    }


def _complaint(content: Content) -> str:
    post = content.posts[0]
    rating = _RATING.format(rating=post.rating, stars="★" * post.rating) if post.rating else ""
    return _COMPLAINT.format(**_fields(post) | {"subject": escape(content.subject), "rating": rating})


def _thread(content: Content) -> str:
    posts = (_POST.format(floor=floor, **_fields(post)) for floor, post in enumerate(content.posts, start=1))
    return _THREAD.format(posts="".join(posts))


def _microblog(content: Content) -> str:
    return _MICROBLOG.format(**_fields(content.posts[0]))


def _fields(post: Post) -> dict[str, str]:
    return {
        "key": post.key,
        "user": post.key[-5:],
        "title": escape(post.title),
        "body": escape(post.body),
        "author": escape(post.author),
        "date": post.date,
    }


_ENGINES = {
    "baidu": EngineFormat(_baidu, "百度安全验证：请完成下方验证后继续访问。"),
    "weibo-yunyun": EngineFormat(_yunyun, "请输入验证码后继续访问。"),
}
_SITES = {"complaint": _complaint, "thread": _thread, "microblog": _microblog}
