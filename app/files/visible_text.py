"""Text as a person sees it: without characters that take no place, and without blanks around it."""

from __future__ import annotations

import unicodedata

_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and symbols by their category that every font shows as a blank."""
_TAGS = range(0xE0000, 0xE0080)
_UNSEEN = "".join(char for char in map(chr, [*range(0x10000), *_TAGS]) if unicodedata.category(char) == "Cf")
_AROUND = _UNSEEN + _BLANK_LETTERS + "".join(char for char in map(chr, range(0x3001)) if char.isspace())
_GONE = dict.fromkeys(map(ord, _UNSEEN)) | dict.fromkeys(map(ord, _BLANK_LETTERS), " ")


def strip_unseen(text: str) -> str:
    """Return a text without the blanks and unseen characters around it; those within stay (emoji need them)."""
    if text.isascii():
        return text.strip()
    return text.strip(_AROUND)


def visible(text: str) -> str:
    """Return a text without unseen characters, with one blank for each run of blanks and none around it."""
    if not text.isascii():
        text = text.translate(_GONE)
    return " ".join(text.split())
