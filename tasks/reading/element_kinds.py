"""Kinds of elements in a record, by their names: text, quote, signature, or something next to these."""

from __future__ import annotations

import re
from itertools import accumulate

from tasks.reading.outline import INLINE, Outline
from tasks.reading.roles import roles

_ATTRIBUTION = re.compile(
    r"\b(?:wrote|said|quote from|originally posted|replied)\b|写道|发表于|说[:：]|引用|回复|原帖由",
    re.IGNORECASE,
)
_BEGINNING, _LEAST_QUOTED = 40, 8
_MOST_QUOTES, _FIRST_TEXTS, _MOST_BESIDE, _FIRST_ELEMENTS = 200, 20, 10, 60


class Quotes:
    """Distinguishes blocks that quote another post from those that are only set apart."""

    def __init__(self, page: Outline) -> None:
        self._page = page
        self._asked = 0
        self._squeezed = ""
        self._offsets: list[int] = []

    def is_of_another(self, element: int) -> bool:
        """Return True if a block quotes another post: by a label, or as its beginning stands further up.

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
        beginning = "".join(page.join_texts(page.texts[first:last]).split())[:_BEGINNING]
        return _ATTRIBUTION.search(said) is not None or (
            len(beginning) >= _LEAST_QUOTED and self._squeezed.find(beginning, 0, self._offsets[first]) >= 0
        )


def is_content(page: Outline, element: int) -> bool:
    """Return True if an element is called after a text (content, body, message)."""
    return "content" in page.roles[element]


def kind_of(page: Outline, element: int, quotes: Quotes) -> str:
    """Return "quote", "signature", "beside" (an author, tools and counts) or, for a text, an empty kind."""
    tag, names, found = page.tags[element], page.names[element], page.roles[element]
    if "signature" in found and not page.count_dates(element) and not _holds_signature(page, element):
        return "signature"
    if "quote" in found and tag not in INLINE:
        return "quote"
    if "answer" in found and _follows_text(page, element):
        return "quote"
    if tag == "blockquote":
        if any("content" in roles(name) and "quote" not in name.lower() for name in names):
            return ""  # a post's own text
        return "quote" if quotes.is_of_another(element) else ""
    if tag in ("header", "footer", "nav", "form", "h1"):
        return "beside"
    beside = "beside" in found and "content" not in found and not _mentions(page, element)
    return "beside" if beside else ""


def _mentions(page: Outline, element: int) -> bool:
    """Return True for a mention in a line or a text: @name."""
    first = page.first_text[element]
    return (
        page.tags[element] in INLINE
        and first < page.last_text[element]
        and page.texts[first].text.lstrip().startswith("@")
        and (not page.texts[first].apart or is_content(page, max(0, page.parents[element])))
    )


def _holds_signature(page: Outline, element: int) -> bool:
    """Return True if a signature stands further inside: an element called after it is then the whole post."""
    inside = range(element + 1, min(page.ends[element], element + _FIRST_ELEMENTS))
    return any("signature" in page.roles[one] for one in inside)


def _follows_text(page: Outline, element: int) -> bool:
    """Return True if an answer of another person, the host, stands below a text in one record."""
    parent = page.parents[element]
    beside = parent + 1
    for _ in range(_MOST_BESIDE):
        if parent < 0 or beside >= element:
            break
        if "content" in (found := page.roles[beside]) and "answer" not in found:
            return True
        beside = page.ends[beside]
    return False
