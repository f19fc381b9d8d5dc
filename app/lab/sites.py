"""Pages of sites: articles for rules with `main_text`, otherwise markup made from the selectors of the rules.

A site whose selectors are too involved for that gets pages of a plain format, so that its rules can be tried, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from html import escape

from app.lab import chance
from app.lab.engines.made import json_text
from app.lab.markup import NotSimple, records
from app.lab.pages import SAMPLE, TEMPLATES, WORDING, Content
from splitter.catalog.rules import PageRules

_SENTENCES = re.compile(r"[^。！？]+[。！？]*")
_LONG_PARAGRAPH = 160

_PLAIN = PageRules(
    review="div.record",
    id="@data-id",
    title="h1.title",
    body="div.body",
    author="span.author",
    date="span.date",
)
Writer = Callable[[Content], str]


def site_format(rules: PageRules) -> Writer:
    """How the pages of a site are written: HTML in the chrome."""
    if rules.main_text:
        return article
    if rules.format == "json":
        return partial(json_page, rules)
    try:
        made_page(rules, Content("", "", (SAMPLE,)))
    except NotSimple:
        rules = _PLAIN
    return partial(made_page, rules)


def json_page(rules: PageRules, content: Content) -> str:
    """A document made from the paths of its rules; of one that is embedded, the script element that holds it."""
    text = json_text(rules, content.title, _rows(rules, content))
    name = rules.embedded.partition("#")[2]
    return f'<script type="application/json" id="{name}">{text}</script>' if name else text


def made_page(rules: PageRules, content: Content) -> str:
    """A page made from the selectors of its rules. Raises NotSimple."""
    in_head = rules.page_title in ("", "title")
    heading = "" if in_head else records(rules.page_title, [[(".", content.title)]])
    return heading + records(rules.review, _rows(rules, content))


def _rows(rules: PageRules, content: Content) -> list[list[tuple[str, str]]]:
    """The posts of a page: of each the fields of the rules, with their values."""
    return [
        [
            (rules.id, post.key),
            (rules.title, post.title),
            (rules.body, post.body),
            (rules.author, post.author),
            (rules.date, post.date),
            (rules.rating, str(post.rating or "")),
        ]
        for post in content.posts
    ]


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
    return TEMPLATES["article"]["page"].format(
        key=post.key,
        title=escape(post.title),
        author=escape(post.author),
        date=post.date,
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
