"""Bytes of a page to its text, whatever encoding is declared, wrongly declared or not declared at all.

`charsets` finds the encoding. Declarations are those of HTTP, then meta or XML, and the catalog's hint if there are
none. A plain UTF-8 page costs one strict decoding.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from splitter.errors import Message, join_messages

from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.charsets import (
    ESCAPED,
    Reading,
    find_mark,
    find_reading,
    find_utf16,
    has_escapes,
    has_long_sequence,
)

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

_DECLARED_WITHIN = 4096
_HTTP_CHARSET = re.compile(r"charset\s*+=\s*+[\"']?\s*+([\w.:-]+)", re.IGNORECASE)
# Only <meta> and the XML declaration count: other tags (script, link) name the charset of their targets.
_META_CHARSET = re.compile(rb"<meta\s[^<>]*?charset\s*+=\s*+[\"']?\s*+([\w.:-]+)", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*+=\s*+[\"']\s*+([\w.:-]+)", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
# Python has codecs that no page is written in (hex, idna, unicode_escape); and a declaration that could be read as
# ASCII is none of UTF-16.
_OF_PAGES = re.compile(r"utf-8|gb|hz|big5|cp\d|euc|shift_jis|iso|koi8|tis|mac")
# Labels that browsers know and Python does not (WHATWG Encoding, 4.2).
_LABELS = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-euc-jp": "euc_jp",
    "windows-949": "cp949",
    "x-gbk": "gbk",
    "gb_2312": "gbk",
    "gb_2312-80": "gbk",
    "cn-big5": "big5",
    "x-x-big5": "big5",
    "windows-874": "cp874",
}
# The codec that browsers read a declared encoding with: the widest of its family (WHATWG Encoding, 4.2).
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "cp950": "big5hkscs",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "johab": "cp949",
    "iso8859-9": "cp1254",
    "tis-620": "cp874",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
}


class Decoded(NamedTuple):
    """Text of a page, its encoding (Python's name), and the reason for that encoding, for people."""

    text: str
    encoding: str
    why: Message


def decode(body: bytes, headers: Mapping[str, str], hint: str = "") -> Decoded:
    """Return the text of a page, its encoding, and the reason for that encoding.

    gb2312 and gbk are read as gb18030, big5 as big5hkscs, which hold them.

    Args:
        headers: of the answer, with lower-case names.
        hint: the catalog's encoding of the site; it counts if headers and page declare none.

    Raises:
        FetchError: BAD_CONTENT for a picture, a PDF, an archive and the like.
    """
    content_type = headers.get("content-type", "")
    if body.startswith(_SIGNATURES) or content_type.lower().lstrip().startswith(_NOT_TEXT):
        raise FetchError(
            ErrorClass.BAD_CONTENT,
            Message(
                "no text: {kind}, {begins!r}",
                kind=content_type[:80] or Message("no content type"),
                begins=body[:8],
            ),
        )
    mark, encoding = find_mark(body)
    if mark:
        return Decoded(body[len(mark) :].decode(encoding, "replace"), encoding, Message("byte order mark"))
    if wide := find_utf16(body):
        return Decoded(body.decode(wide, "replace"), wide, Message("zero bytes, as in UTF-16"))
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return _decode_other(body, content_type, hint)
    if body.isascii():
        if has_escapes(body):
            return Decoded(body.decode(ESCAPED, "replace"), ESCAPED, Message("escapes of ISO-2022-JP"))
        return Decoded(text, "utf-8", Message("ASCII only"))
    if not has_long_sequence(body):  # UTF-8 perhaps by chance
        declared = declarations(body, content_type, hint)
        name = find_reading(body, declared, ("utf-8",)).encoding
        if name != "utf-8":
            why = Message("declared by {place}; valid UTF-8 only by chance", place=Message(declared[name]))
            return Decoded(body.decode(name, "replace"), name, why)
    return Decoded(text, "utf-8", Message("valid UTF-8"))


def declarations(body: bytes, content_type: str, hint: str = "") -> dict[str, str]:
    """Return declared encodings (Python's names) with their places: the HTTP header first, then XML or meta.

    Args:
        hint: the catalog's encoding of the site, which counts if header and page declare none; empty for none.
    """
    found: dict[str, str] = {}
    if (match := _HTTP_CHARSET.search(content_type)) and (name := _python_name(match[1])):
        found[name] = "HTTP"
    head = body[:_DECLARED_WITHIN]
    if b"<!--" in head:
        head = _COMMENT.sub(b"", head)
    for where, inside in (("XML", _XML_ENCODING.match(head)), ("<meta>", _META_CHARSET.search(head))):
        if inside and (name := _python_name(inside[1].decode("ascii", "replace"))):
            found.setdefault(name, where)
    if not found and hint and (name := _python_name(hint)):
        found[name] = "the catalog"
    return found


@lru_cache(maxsize=256)
def _python_name(label: str) -> str:
    label = label.strip().lower()
    try:
        name = codecs.lookup(_LABELS.get(label, label)).name
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(name) or (name if _OF_PAGES.match(name) else "")


def _decode_other(body: bytes, content_type: str, hint: str) -> Decoded:
    """Decode a page that is not proved to be UTF-8."""
    declared = declarations(body, content_type, hint)
    reading = find_reading(body, declared)
    text = body.decode(reading.encoding, "replace")
    why = _reason(reading, declared)
    broken = text.count("\ufffd")
    if broken:
        why = Message("{why}, but for {n} broken characters", why=why, n=broken)
    return Decoded(text, reading.encoding, why)


def _reason(reading: Reading, declared: Mapping[str, str]) -> Message:
    if reading.encoding == "utf-8":
        return Message("UTF-8")
    if reading.encoding in declared:
        return Message("declared by {place}", place=Message(declared[reading.encoding]))
    others = [
        Message("{name} ({place})", name=name, place=Message(where)) for name, where in declared.items()
    ]
    if reading.language:
        read = Message("reads as {language}", language=Message(reading.language))
    else:
        read = Message("guessed by bs4")
    if others:
        return Message("declared as {others}, but {read}", others=join_messages(others, ", "), read=read)
    return Message("nothing declared; {read}", read=read)
