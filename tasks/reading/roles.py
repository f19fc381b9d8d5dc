"""Roles of elements by their class names and ids: a person's name, a text, a quote, an aside, no part of a main text.

Class names repeat on every page of a site, so their roles are cached.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

import re2

Role = Literal[
    "person", "perhaps person", "author", "source", "of person", "name", "day", "content", "quote", "answer",
    "signature", "beside", "post", "reply", "topic", "aside", "foot", "list", "notice", "link back", "look",
    "caption", "noise", "perhaps noise", "textual",
]  # fmt: skip
"""The role of an element; most names have none, some several.

"of person" is a title or rank in a pane about a person; "beside" is an author, a tool or a count next to a text.
A "post" is one of many texts that people write, a "reply" one that answers another, or a review.
"topic" is a forum's, "list" one of other pages, "notice" the site's. "look" is a style, and no role. "noise" stands
outside a main text, "perhaps noise" only if the name is not "textual", too.
"""

_CAPTIONS = (
    r"(?:^|[-_\s])(?:(?:fig(?:ure)?|photo|image|img|pic)?-?caption(?:-?text)?(?:$|[-_\s])"
    r"|(?:photo|image|img|pic)-?(?:credit|desc|note|info|source))"
)
# Patterns of names in lower case.
_PATTERNS: dict[Role, str] = {
    "person": r"(?:^|[-_])(?:authors?|user|users|user-?name|nick|nick-?name|member|poster|uname|creator|commenter"
    r"|writer|posted-?by|by-?line|fn|author-?name|display-?name|lz|reviewer|customer)(?:$|[-_])",
    "perhaps person": r"(?:^|[-_])(?:name|by|owner|people|persona)(?:$|[-_])",
    "of person": r"(?<!no-)(?<!has-)(?:user|member|author|poster|profile|customer)s?[-_]?(?:title|rank|role|badge"
    r"|banner|level|group|stats?|counts?|posts|location|joined|karma|points|score|blurb|reputation|signature|fields?"
    r"|extras?)",
    "author": r"(?:^|[-_\s])(?:(?:post|entry|article|news|content|item|meta|the|blog)[-_]*)?"
    r"(?:authors?|by-?line|autor(?:en|in)?|auteurs?|verfasser|writers?|redakteur|vcard)"
    r"(?:[-_]*(?:names?|links?|title|label|text|info|meta|url|vcard|fn))?(?:$|[-_\s])",
    "source": r"(?:^|[-_\s])(?:ne_article|art|article|news|post|info)?[-_]?source(?:$|[-_\s])",
    "name": r"name|nick|author|poster",
    "day": r"date|time|posted|created|publish|ago|when|stamp|permalink",
    "content": r"content|(?:^|[-_])(?:body|text|txt|cnt|message|msg|markdown|prose|entry|desc|description|summary"
    r"|t_f|md|short|full|detail|words)(?:$|[-_])|(?:post|comment|review|reply|answer)[-_]?(?:body|text|message|msg"
    r"|con|main)",
    # Not what readers may quote: the text itself.
    "quote": r"^(?!js-|.*(?:select|can|to)-?quot|.*quot(?:e|able)-?(?:select"
    r"|source))(?:.*[-_])?(?:block-?)?quot(?:e|ed|es|ing)(?:$|[-_]?(?:block|body|content|text|title|post|box"
    r"|container|message))|引用|(?:^|[-_])cite|parent-?(?:post|comment)|reply-?(?:to|source)|in-?reply",
    "answer": r"(?:^|[-_])(?:reply|response|answer)-?(?:text|content|body|msg|message|con)(?:$|[-_])",
    "signature": r"(?:^|[-_])(?:sig|sign|signature)s?(?:$|[-_])|signature|签名|qianming",
    "beside": r"author|user|profile|avatar|member|(?:^|[-_])(?:name|area|location|region|ip|device|mark|meta"
    r"|infos?|head|header|foot|footer|tools?|toolbar|actions?|controls?|buttons?|btn|menu|share|likes?|votes?|rating"
    r"|score|counts?|stats?|date|time|ago|badges?|rank|level|edited|attribution|permalink|tags?|nav|attachments?"
    r"|editor|form|flag|report|date-?line|sr-only|tail|visually-hidden|reactions?|role|title-?bar)(?:$|[-_])",
    "post": r"comment|repl(?:y|ies)|answer|post(?!er|ed|-?time|-?date|-?body|-?preview)|message|(?<!p)review"
    r"|floor|feedback|discuss|评",
    "reply": r"comment|repl(?:y|ies)|answer|(?<!p)review|评|回复",
    "topic": r"topic|thread|question|repl(?:y|ies)|forum|bbs|discuss|tweet|answer|bbp",
    "aside": r"side-?bar|(?<![a-z])widget|(?:^|[-_])(?:aside|nav|menu)(?:$|[-_])|relat(?:ed|ion)|recommend|guess"
    r"|hot-?(?:list|news|post|topic)|rank",
    "foot": r"(?:^|[-_])(?:foot|footer)(?:$|[-_])",
    "list": r"news|article[-_]*list|thread-?list|topic-?list|recommend|relat(?!ive)|rank|hot-|sidebar"
    r"|(?<![a-z])widget|menu|nav|search-?result",
    "notice": r"(?:^|[-_])(?:notices?|announcements?|announce|alert|disclaimer|gonggao)(?:$|[-_])",
    "link back": r"(?:^|[-_])(?:pingback|trackback)(?:$|[-_])",
    "look": r"^(?:col|row|clear-?fix|[mp][btlrxy]?|w|h|d|flex|grid|float|text|bg|border|rounded|shadow|container"
    r"|wrapper|active|card|panel|box|even|odd|alt|first|last|left|right|inner|outer|hidden|block|inline|items?|align"
    r"|justify|font|overflow|relative|absolute|position|css|dark|hover|sm|md|lg|xl|center|top|bottom|space|gap|min"
    r"|max|leading|tracking|fs|fw|u)(?:$|[-:_])",
    "caption": _CAPTIONS,
    "noise": r"comment|footer|copyright|(?<!has-)(?<!with-)(?<!no-)side-?bar(?!-(?:enabled|layout|wrap))|recommend"
    r"|relat(?:ed|ion)|breadcrumb|advert|sponsor|popup|\bmodal\b|pop-?over|tool-?tip|cookie|consent|onetrust|gdpr"
    r"|qr-?code|pagination|disclaimer|guess-?you"
    rf"|hot-?(?:news|list|rank|word)|share-?(?:bar|box|to|btn|tool)|{_CAPTIONS}",
    "perhaps noise": r"reply|\bfoot|\bside|share|crumb|\bnav|navi|menu|tool-?bar|rank|\bads?\b|promo|dialog|login"
    r"|tag-?s?list|\btags?\b|pager|statement|(?<!label-)hidden|subscribe|download|rel-?news",
    "textual": r"article|content|main|body|text|post|detail|entry|story|txt",
}
_LOOKAROUND = re.compile(r"\(\?<?[!=](?:[^()]|\([^()]*\))*\)")
_COMPILED = [
    (role, re.compile(pattern) if _LOOKAROUND.search(pattern) else None)
    for role, pattern in _PATTERNS.items()
]
"""The roles in the order of their patterns, with those patterns that RE2 can't match exactly."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _any_of_all() -> re2.Set:
    """Return all patterns without what RE2 can't do: one search finds those that may match, in a tenth of the time."""
    found = re2.Set.SearchSet()
    for pattern in _PATTERNS.values():
        found.Add(_LOOKAROUND.sub("", pattern))
    found.Compile()
    return found


_MAY_MATCH = _any_of_all()


@lru_cache(maxsize=8192)
def _roles_in(called: str) -> frozenset[Role]:
    found = []
    for n in _MAY_MATCH.Match(called) or ():
        role, pattern = _COMPILED[n]
        if pattern is None or pattern.search(called):
            found.append(role)
    return frozenset(found)


@lru_cache(maxsize=8192)
def roles(*names: str) -> frozenset[Role]:
    """Return the roles of an element with these class names."""
    if len(names) != 1:
        return frozenset().union(*map(roles, names))
    return _roles_in(_CAMEL.sub("-", names[0]).lower())


def is_called(role: Role, names: str) -> bool:
    """Return True if a tag, and class names joined to it, say that elements have a role."""
    return role in _roles_in(names.lower())


def is_caption(tag: str, called: str) -> bool:
    """Return True if an element is called a picture's caption or credit.

    Args:
        called: its class names and its id, in lower case.
    """
    return tag == "figcaption" or "caption" in _roles_in(called)


def is_noise(tag: str, called: str) -> bool:
    """Return True if an element is called something other than a main text; arguments as of `is_caption`."""
    if tag in ("body", "html", "article", "main"):
        return False
    found = _roles_in(called)
    named = "noise" in found or ("perhaps noise" in found and "textual" not in found)
    return named or tag in ("nav", "footer", "aside", "figcaption")


def is_layout(called: str) -> bool:
    """Return True if class names and an id that may mean noise may as well be a layout's (side-by-side, nav-layout)."""
    return "foot" not in called and _roles_in(called).isdisjoint(("noise", "reply"))
