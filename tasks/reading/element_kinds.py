"""Kinds of elements in a record, by their names: its text, a quote, a signature, or what stands beside these."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import accumulate

from tasks.reading.bylines import CAMEL
from tasks.reading.outline import INLINE, Outline

_QUOTE = re.compile(
    r"^(?!js-)(?:.*[-_])?(?:block-?)?quot(?:e|ed|es|ing)(?:$|[-_]?(?:block|body|content|text|title|post|box|container|message))|引用|(?:^|[-_])cite|parent-?(?:post|comment)|reply-?(?:to|source)|in-?reply",
    re.IGNORECASE,
)
# What readers may quote: the text itself.
_QUOTABLE = re.compile(r"(?:select|can|to)-?quot|quot(?:e|able)-?(?:select|source)", re.IGNORECASE)
_SIGNATURE = re.compile(
    r"(?:^|[-_])(?:sig|sign|signature)s?(?:$|[-_])|signature|签名|qianming", re.IGNORECASE
)
_CONTENT = re.compile(
    r"content|(?:^|[-_])(?:body|text|txt|cnt|message|msg|markdown|prose|entry|desc|description"
    r"|summary|t_f|md|short|full"
    r"|detail|words)(?:$|[-_])"
    r"|(?:post|comment|review|reply|answer)[-_]?(?:body|text|message|msg|con|main)",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    r"author|user|profile|avatar|member|(?:^|[-_])(?:name|area|location|region|ip|device|mark|meta|infos?|head|header"
    r"|foot|footer|tools?|toolbar|actions?|controls?|buttons?|btn|menu"
    r"|share|likes?|votes?|rating|score|counts?|stats?|date|time|ago|badges?|rank|level|edited|attribution|permalink"
    r"|tags?|nav"
    r"|attachments?|editor|form|flag|report|date-?line|sr-only|tail|visually-hidden|reactions?|role|title-?bar)(?:$|[-_])",
    re.IGNORECASE,
)

_ANSWER = re.compile(
    r"(?:^|[-_])(?:reply|response|answer)-?(?:text|content|body|msg|message|con)(?:$|[-_])", re.IGNORECASE
)

_ATTRIBUTION = re.compile(
    r"\b(?:wrote|said|quote from|originally posted|replied)\b|写道|发表于|说[:：]|引用|回复|原帖由",
    re.IGNORECASE,
)
_BEGINNING, _LEAST_QUOTED = 40, 8
_MOST_QUOTES, _FIRST_TEXTS, _MOST_BESIDE, _FIRST_ELEMENTS = 200, 20, 10, 60


class Quotes:
    """Tells blocks that quote another post from those that only stand out."""

    def __init__(self, page: Outline) -> None:
        self._page = page
        self._asked = 0
        self._squeezed = ""
        self._offsets: list[int] = []

    def of_another(self, element: int) -> bool:
        """Whether a block quotes another post: it says so, or its beginning stands further up on the page.

        False from the 200th on: a page with more of them is made to cost much.
        """
        page = self._page
        first = page.first_text[element]
        last = min(page.last_text[element], first + _FIRST_TEXTS)
        self._asked += 1
        if self._asked > _MOST_QUOTES:
            return False
        if not self._offsets:
            parts = ["".join(one.text.split()) for one in page.texts]
            self._squeezed, self._offsets = "".join(parts), [0, *accumulate(map(len, parts))]
        said = "".join(page.texts[n].text for n in range(max(0, first - 2), min(last, first + 3)))
        beginning = "".join(page.joined(page.texts[first:last]).split())[:_BEGINNING]
        return _ATTRIBUTION.search(said) is not None or (
            len(beginning) >= _LEAST_QUOTED and self._squeezed.find(beginning, 0, self._offsets[first]) >= 0
        )


def called_content(page: Outline, element: int) -> bool:
    """Whether an element is called what holds a text (content, body, message)."""
    return _named_content(page.names[element])


@lru_cache(maxsize=4096)
def _named_content(class_names: tuple[str, ...]) -> bool:
    return any(_CONTENT.search(CAMEL.sub("-", name)) for name in class_names)


def kind_of(page: Outline, element: int, quotes: Quotes) -> str:
    """The kind of an element of a record, by its name: "quote", "signature" or "beside".

    Empty for what may be text. Beside the text stand its author, tools and counts.
    """
    names = page.names[element]
    tag = page.tags[element]
    called = [CAMEL.sub("-", name) for name in names]
    for name in called:
        if _SIGNATURE.search(name) and not page.dated(element) and not _holds_signature(page, element):
            return "signature"
        if _QUOTE.search(name) and tag not in INLINE and not _QUOTABLE.search(name):
            return "quote"
    if any(map(_ANSWER.search, names)) and _follows_text(page, element):
        return "quote"
    if tag == "blockquote":
        if any(_CONTENT.search(name) and "quote" not in name.lower() for name in called):
            return ""  # a post's own text
        return "quote" if quotes.of_another(element) else ""
    if tag in ("header", "footer", "nav", "form", "h1"):
        return "beside"
    beside = any(map(_BESIDE.search, called)) and not _mentions(page, element)
    return "beside" if beside and not called_content(page, element) else ""


def _mentions(page: Outline, element: int) -> bool:
    """Whether an element in a line, or in what holds a text, is a mention of somebody: @name."""
    first = page.first_text[element]
    return (
        page.tags[element] in INLINE
        and first < page.last_text[element]
        and page.texts[first].text.lstrip().startswith("@")
        and (not page.texts[first].apart or called_content(page, max(0, page.parents[element])))
    )


def _holds_signature(page: Outline, element: int) -> bool:
    """Whether a signature stands further inside: then an element called after it is the post around both."""
    inside = range(element + 1, min(page.ends[element], element + _FIRST_ELEMENTS))
    return any(_SIGNATURE.search(name) for one in inside for name in page.names[one])


def _follows_text(page: Outline, element: int) -> bool:
    """Whether an answer stands below the text that it answers, in one record: another person's, the host's."""
    parent = page.parents[element]
    beside = parent + 1
    for _ in range(_MOST_BESIDE):
        if parent < 0 or beside >= element:
            break
        if called_content(page, beside) and not any(map(_ANSWER.search, page.names[beside])):
            return True
        beside = page.ends[beside]
    return False
