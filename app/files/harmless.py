"""Make texts from others harmless for a terminal or a log: no escape sequences, direction marks or line breaks."""

from __future__ import annotations

import logging
import unicodedata
from urllib.parse import urlsplit

# Marks that reverse the direction of the text behind them (Unicode UAX 9), so that a line reads differently.
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_HARMFUL = ("Cc", "Cs", "Zl", "Zp")
"""Categories: controls (C0 and C1), lone surrogates, separators of lines and paragraphs."""


def shown(text: str) -> str:
    """Return a text without control and direction characters. Line feeds and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        char if char in "\n\t" or not _harmful(char) else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def one_line(text: str) -> str:
    r"""Return a text as `shown` does, but on one line: line feeds and tabs are written as \n and \t."""
    return shown(text.replace("\n", "\\n").replace("\t", "\\t"))


def web_link(url: str) -> str:
    """Return an address if it can be used as a link (http or https), else an empty text."""
    try:
        return url if urlsplit(url).scheme in ("http", "https") else ""
    except ValueError:
        return ""


def _harmful(char: str) -> bool:
    return char in _DIRECTION or unicodedata.category(char) in _HARMFUL


class HarmlessFormatter(logging.Formatter):
    """Writes each log record on one line. A traceback keeps its line breaks, but its error message is made harmless."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        """Format a message as the base class does, on one line."""
        return one_line(super().formatMessage(record))

    def formatException(self, ei: object) -> str:  # noqa: N802
        """Format a traceback as the base class does, without characters that could control a terminal."""
        return shown(super().formatException(ei))  # type: ignore[arg-type]
