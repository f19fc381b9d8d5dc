"""Bytes of a page to its text, whatever encoding is declared, wrongly declared or not declared at all.

In this order: byte order mark; UTF-8 where the bytes prove it; UTF-16 by its zero bytes; the declarations (HTTP, then
meta or XML; the catalog's hint where there are none), each believed where it reads as Chinese or nothing reads better;
GB18030 or Big5, whichever reads as Chinese; the guess of bs4. A plain UTF-8 page costs one strict decoding.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import NamedTuple

from bs4.dammit import UnicodeDammit

from tasks.domain.crawl import ErrorClass, FetchError
from tasks.reading.charsets import all_read, declarations, prefer

# UTF-32's little-endian mark begins with that of UTF-16, so it comes first.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
_MARKS = tuple(mark for mark, _ in _BOMS)
# Lead byte of a three-byte sequence: one in valid UTF-8 is a proof. Two-byte sequences alone are not: 联通 in
# GBK is valid UTF-8 by chance.
_THREE_BYTES = re.compile(rb"[\xe0-\xef]")
_NUL_WITHIN = 512
_GUESSED_FROM = 65_536
# Broken characters tolerated for one outside ASCII, before another idea is asked for.
_MAX_BROKEN = 0.1

_NOT_TEXT = (
    "image/",
    "audio/",
    "video/",
    "font/",
    "application/pdf",
    "application/zip",
    "application/msword",
)
_SIGNATURES = (
    b"%PDF-",
    b"PK\x03\x04",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"RIFF",
    b"\x1f\x8b\x08",
    b"\xd0\xcf\x11\xe0",
)


class Decoded(NamedTuple):
    """Text of a page, the encoding it was read with (Python's name), and why that one, for people."""

    text: str
    encoding: str
    why: str


def decode(body: bytes, headers: Mapping[str, str], hint: str = "") -> tuple[str, str]:
    """Text of a page and the name of the encoding it was read with.

    gb2312 and gbk are read as gb18030, big5 as big5hkscs, which hold them.

    Args:
        headers: of the answer, lower-case names.
        hint: the encoding that the catalog gives the site; looked at only where headers and page declare none.

    Raises:
        FetchError: BAD_CONTENT for what is no text (a picture, a PDF, an archive).
    """
    return explained(body, headers, hint)[:2]


def explained(body: bytes, headers: Mapping[str, str], hint: str = "") -> Decoded:
    """What `decode` gives, with the reason for the encoding. Raises as `decode` does."""
    content_type = headers.get("content-type", "")
    if body.startswith(_SIGNATURES) or content_type.lower().lstrip().startswith(_NOT_TEXT):
        raise FetchError(
            ErrorClass.BAD_CONTENT, f"no text: {content_type[:80] or 'no content type'}, {body[:8]!r}"
        )
    if body.startswith(_MARKS):
        mark, encoding = next(pair for pair in _BOMS if body.startswith(pair[0]))
        return Decoded(body[len(mark) :].decode(encoding, "replace"), encoding, "byte order mark")
    if b"\0" in body[:_NUL_WITHIN] and (wide := _utf16(body)):
        return Decoded(body.decode(wide, "replace"), wide, "every other byte is zero, as of markup in UTF-16")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        return _other(body, content_type, hint, error.start)
    if body.isascii():
        return Decoded(text, "utf-8", "ASCII only")
    if _THREE_BYTES.search(body):
        return Decoded(text, "utf-8", "valid UTF-8")
    return _two_bytes(body, text, declarations(body, content_type, hint))


def _utf16(body: bytes) -> str:
    head = body[:_NUL_WITHIN]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) < len(head) / 8 or min(even, odd) > max(even, odd) / 8:
        return ""
    return "utf-16-be" if even > odd else "utf-16-le"


def _two_bytes(body: bytes, text: str, declared: Mapping[str, str]) -> Decoded:
    """What is UTF-8, though perhaps by chance: the first declaration decides, if it can be obeyed."""
    name, where = next(iter(declared.items()), ("utf-8", ""))
    if name != "utf-8" and name in (read := all_read(body, (name,))):
        return Decoded(read[name], name, f"declared by {where}; valid UTF-8 only by chance")
    return Decoded(text, "utf-8", "valid UTF-8")


def _other(body: bytes, content_type: str, hint: str, valid_to: int) -> Decoded:
    """A page that is no strict UTF-8.

    Args:
        valid_to: bytes up to the first that is no UTF-8.
    """
    if _THREE_BYTES.search(body, 0, valid_to):  # Chinese in UTF-8 up to there
        text = body.decode("utf-8", "replace")
        if _broken(text) <= _MAX_BROKEN:
            return Decoded(text, "utf-8", f"UTF-8 but for {text.count(chr(0xFFFD))} broken characters")
    declared = declarations(body, content_type, hint)
    if chosen := prefer(all_read(body, (*declared, "gb18030", "big5hkscs")), tuple(declared)):
        return Decoded(*chosen, _reason(chosen[1], declared))
    broken = {
        name: text
        for name in dict.fromkeys((*declared, "utf-8", "gb18030", "big5hkscs"))
        if _broken(text := body.decode(name, "replace")) <= _MAX_BROKEN
    }
    if chosen := prefer(broken, tuple(declared)):
        return Decoded(*chosen, f"{_reason(chosen[1], declared)}; with broken characters")
    guess = UnicodeDammit(body[:_GUESSED_FROM], is_html=True).original_encoding or "utf-8"
    return Decoded(body.decode(guess, "replace"), guess, "guessed by bs4")


def _reason(name: str, declared: Mapping[str, str]) -> str:
    if name in declared:
        return f"declared by {declared[name]}"
    told = ", ".join(f"{other} by {where}" for other, where in declared.items())
    return f"declared as {told}, but reads as Chinese" if told else "nothing declared; reads as Chinese"


def _broken(text: str) -> float:
    """Broken characters as a share of those outside ASCII."""
    outside = len(text) - len(text.encode("ascii", "ignore"))
    return text.count("\ufffd") / max(1, outside)
