"""Pages of sites: in the formats of `paper-2014`, as articles, or made from the selectors of their rules.

The rules choose: those of `paper-2014` by their record selector, `main_text` gives an article, and whatever else stands
in a catalog gets markup made from its selectors. Rules too involved for that, or that read nothing, are
served the format of their kind, so that they can be tried, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape

from app.lab import chance
from app.lab.markup import NotSimple, alone, filled, records
from app.lab.pages import SAMPLE, WORDING, Content, Post
from splitter.catalog.model import Kind
from splitter.catalog.rules import PageRules

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

_ARTICLE = """<div class="article-box"><h1 class="article-title">{title}</h1>
<div class="article-info"><span class="source">来源：{source}</span> <span class="author">作者：{author}</span>
<span class="time">{date}</span></div>
<div class="article-content">
{paragraphs}</div>
<div class="article-foot">
<span>责任编辑：{editor}</span> <a href="#">分享到微信</a> <a href="#">收藏</a> <a href="#">打印</a></div></div>
<div class="ad"><a href="http://ad.example.invalid/{key}"><img src="/ad/{key}.gif" alt="广告">
</a> <a href="#">广告</a></div>
"""
_SENTENCES = re.compile(r"[^。！？]+[。！？]*")
_LONG_PARAGRAPH = 160

Writer = Callable[[Content], str]


def site_format(rules: PageRules, kind: Kind) -> Writer:
    """How the pages of a site are written: HTML in the chrome."""
    if rules.main_text:
        return article
    if known := _PAPER.get((rules.review, rules.body)):
        return known
    try:
        made_page(rules, _SAMPLE)
    except NotSimple:
        return _microblog if kind is Kind.MICROBLOG else _complaint
    return lambda content: made_page(rules, content)


def made_page(rules: PageRules, content: Content) -> str:
    """A page made from the selectors of its rules. Raises NotSimple."""
    names = {name: getattr(rules, name) for name in ("id", "title", "body", "author", "date", "rating")}
    rows = [
        filled(
            names,
            {
                "id": post.key,
                "title": post.title,
                "body": post.body,
                "author": post.author,
                "date": post.date,
                "rating": str(post.rating or ""),
            },
        )
        for post in content.posts
    ]
    heading = alone(rules.page_title, content.title) if rules.page_title not in ("", "title") else ""
    return heading + records(rules.review, rows)


def article(content: Content) -> str:
    """An article: one main text, around it what news sites put there."""
    post = content.posts[0]
    draw = chance.number(0, "article", post.key)
    paragraphs = [
        f"本网讯 {content.title}。"
        + WORDING["reported"][draw % len(WORDING["reported"])].format(subject=content.subject),
        *_paragraphs(post.body),
        WORDING["followed"][draw // 3 % len(WORDING["followed"])],
    ]
    return _ARTICLE.format(
        **_fields(post),
        source=("本网", "消费日报", "质量周刊")[draw // 9 % 3],
        editor=("李明", "王芳", "张伟")[draw // 27 % 3],
        paragraphs="".join(f"<p>　　{escape(text)}</p>\n" for text in paragraphs),
    )


def _paragraphs(text: str) -> list[str]:
    """A text as paragraphs of whole sentences."""
    found = [""]
    for sentence in _SENTENCES.findall(text):
        if found[-1] and len(found[-1]) + len(sentence) > _LONG_PARAGRAPH:
            found.append("")
        found[-1] += sentence
    return found


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


_PAPER: dict[tuple[str, str], Writer] = {
    ("div.complaint", "div.complaint-body"): _complaint,
    ("div.post", "div.post-body"): _thread,
    ("div.weibo-post", "p.txt"): _microblog,
}
_SAMPLE = Content("", "", (SAMPLE,))
