"""Remove from texts the invisible characters and the blanks at both ends."""

from __future__ import annotations

import unicodedata

_BLANK_LETTERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Characters that Unicode classes as letters or symbols and that fonts show as a blank."""
_TAGS = range(0xE0000, 0xE0080)
_UNSEEN = "".join(char for char in map(chr, [*range(0x10000), *_TAGS]) if unicodedata.category(char) == "Cf")
_AROUND = _UNSEEN + _BLANK_LETTERS + "".join(char for char in map(chr, range(0x3001)) if char.isspace())
_GONE = dict.fromkeys(map(ord, _UNSEEN)) | dict.fromkeys(map(ord, _BLANK_LETTERS), " ")


def strip_unseen(text: str) -> str:
    """Return a text without blanks and invisible characters at its ends. Those inside stay, because emoji need them."""
    if text.isascii():
        return text.strip()
    return text.strip(_AROUND)


def visible(text: str) -> str:
    """Return a text without invisible characters and without blanks at its ends. Several blanks become one."""
    if not text.isascii():
        text = text.translate(_GONE)
    return " ".join(text.split())
