"""Bytes of a page to its text, whatever encoding is declared, wrongly declared or not declared at all.

In this order: byte order mark; UTF-8 where the bytes prove it; the declaration (HTTP, then meta or XML);
GB18030 or Big5, whichever reads as Chinese; the guess of bs4. A plain page costs one strict decoding.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from functools import lru_cache

from bs4.dammit import UnicodeDammit

from tasks.crawl.model import ErrorClass, FetchError

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DECLARED_WITHIN = 4096
_HTTP_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# Only <meta> and the XML declaration count: other tags (script, link) tell the charset of what they point to.
_META_CHARSET = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']\s*([\w.:-]+)", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
# Lead byte of a three-byte sequence: one in valid UTF-8 is a proof. Two-byte sequences alone are not: 联通 in
# GBK is valid UTF-8 by chance.
_THREE_BYTES = re.compile(rb"[\xe0-\xef]")
# Python has codecs that no page is written in (hex, idna, unicode_escape); and a declaration that could be read as
# ASCII is none of UTF-16.
_OF_PAGES = re.compile(r"utf-8|gb|hz|big5|cp\d|euc|shift_jis|iso|koi8|tis|mac")
# What browsers read a declared encoding with: the widest of its family (WHATWG Encoding, 4.2).
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
}
# The commonest characters of Chinese, both scripts: what a wrong table turns into rare ones.
_COMMON = frozenset(
    "的一是不了在有人我他这這个個们們中来來上大为為和国國地到以说說时時要就出会會可也你对對生能而子那得于着下自之年"
)
_SCORED_CHARS = 20_000
_GUESSED_FROM = 65_536
# Broken characters tolerated for one that is whole, before bs4 is asked for another idea.
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


def decode(body: bytes, headers: Mapping[str, str]) -> tuple[str, str]:
    """Text of a page and the name of the encoding it was read with.

    gb2312 and gbk are read as gb18030, which holds both.

    Args:
        headers: of the answer, lower-case names.

    Raises:
        FetchError: BAD_CONTENT for what is no text (a picture, a PDF, an archive).
    """
    content_type = headers.get("content-type", "")
    if body.startswith(_SIGNATURES) or content_type.lower().lstrip().startswith(_NOT_TEXT):
        raise FetchError(
            ErrorClass.BAD_CONTENT, f"no text: {content_type[:80] or 'no content type'}, {body[:8]!r}"
        )
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(encoding, "replace"), encoding
    declared = declared_encoding(body, content_type)
    # Strict UTF-8 comes before any other declaration: pages that were converted keep their old one.
    text = _strictly(body, "utf-8")
    if text is not None and (declared in ("utf-8", "") or body.isascii() or _THREE_BYTES.search(body)):
        return text, "utf-8"
    if declared != "utf-8" and declared:
        declared_text = _strictly(body, declared)
        if declared_text is not None:
            return declared_text, declared
    return _guessed(body, declared) if text is None else (text, "utf-8")


def declared_encoding(body: bytes, content_type: str) -> str:
    """Python's name of the encoding declared by HTTP, meta tag or XML declaration; empty if there is none."""
    if match := _HTTP_CHARSET.search(content_type):
        name = _python_name(match[1])
        if name:
            return name
    head = body[:_DECLARED_WITHIN]
    if b"<!--" in head:
        head = _COMMENT.sub(b"", head)
    found = _XML_ENCODING.match(head) or _META_CHARSET.search(head)
    return _python_name(found[1].decode("ascii", "replace")) if found else ""


@lru_cache(maxsize=256)
def _python_name(label: str) -> str:
    try:
        name = codecs.lookup(label.strip().lower()).name
    except (LookupError, ValueError):
        return ""
    if name in _WIDER:
        return _WIDER[name]
    return name if _OF_PAGES.match(name) else ""


def _strictly(body: bytes, encoding: str) -> str | None:
    try:
        return body.decode(encoding)
    except UnicodeError:
        return None


def _guessed(body: bytes, declared: str) -> tuple[str, str]:
    """The encoding of a page whose declaration is missing or fails: the one that reads most like Chinese."""
    readings = [
        (text, name) for name in ("gb18030", "big5hkscs") if (text := _strictly(body, name)) is not None
    ]
    for name in dict.fromkeys((declared or "utf-8", "utf-8", "gb18030")):
        text = body.decode(name, "replace")
        if text.count("\ufffd") <= _MAX_BROKEN * sum(not char.isascii() for char in text):
            readings.append((text, name))
    if readings:
        return max(readings, key=lambda reading: _chinese(reading[0]))
    name = UnicodeDammit(body[:_GUESSED_FROM], is_html=True).original_encoding or "utf-8"
    return body.decode(name, "replace"), name


def _chinese(text: str) -> float:
    """Share of the commonest Chinese characters among those outside ASCII."""
    letters = [char for char in text[:_SCORED_CHARS] if not char.isascii()]
    return sum(char in _COMMON for char in letters) / max(1, len(letters))
