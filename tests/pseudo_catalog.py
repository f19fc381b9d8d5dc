"""A catalog that puts each text into brackets ⟦...⟧, so that words which come from no catalog stand out."""

from __future__ import annotations

import gettext
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape

import pytest

from app.views import words

_BRACKETS = re.compile(r"⟦[^⟦⟧]*⟧")
_SHOWN = re.compile(r"""(?:title|aria-label|placeholder|alt)="([^"]*)\"""")
_NO_TEXT = re.compile(r"<(script|style|code|pre|title)\b.*?</\1>|<!--.*?-->", re.DOTALL)


class _Brackets(gettext.NullTranslations):
    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return f"⟦{msgid1 if n == 1 else msgid2}⟧"


@contextmanager
def all_in_brackets() -> Iterator[None]:
    """Put the texts of the program and of click into brackets."""
    brackets = _Brackets()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "_catalog", lambda code: brackets)
        patch.setattr(gettext, "dgettext", lambda domain, message: brackets.gettext(message))
        patch.setattr(gettext, "dngettext", lambda domain, one, many, n: brackets.ngettext(one, many, n))
        yield


def list_words_outside(text: str, data: str) -> set[str]:
    """Return the words of a text that no catalog has.

    Args:
        data: pattern of what is data: names, addresses, code.
    """
    before = ""
    while before != text:
        before, text = text, _BRACKETS.sub(" ", text)
    return set(re.findall(r"[A-Za-z]{2,}", re.sub(data, " ", text)))


def list_marks_outside(text: str) -> list[str]:
    """Return the places in which a mark of English punctuation that no catalog has stands behind a text of one."""
    before = ""
    while before != text:
        before, text = text, _BRACKETS.sub("▮", text)
    return re.findall(r".{0,30}(?:▮ ?(?:[:,;](?=\s)|\()|\(▮).{0,20}", text)


def read_page(page: str) -> str:
    """Return what a person reads of a page, with the texts of its attributes."""
    plain = _NO_TEXT.sub(" ", page)
    return unescape(" \n".join([*_SHOWN.findall(plain), re.sub(r"<[^>]*>", " ", plain)]))
