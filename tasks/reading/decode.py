"""Bytes of a page to its text, whatever encoding is declared, wrongly declared or not declared at all.

In this order: byte order mark; UTF-8 if the bytes prove it; UTF-16 by its zero bytes; the declarations (HTTP, then
meta or XML; the catalog's hint if there are none), each if it reads as Chinese or nothing reads better; GB18030 or
Big5, whichever reads as Chinese; the guess of bs4. A plain UTF-8 page costs one strict decoding.

GB18030 and Big5 share most of their byte pairs, so a text in one often decodes in the other without error. Both tables
put the common characters into their first level (GB 2312-80, level 1: 3,755; Big5, level 1: 5,401). About 99 % of any
text are of that level; a wrong reading scatters over both levels and beyond.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from tasks.domain.failures import ErrorClass, FetchError

# UTF-32's little-endian mark begins with that of UTF-16, so it comes first.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
# Lead byte of a three-byte sequence: one in valid UTF-8 is a proof. Two-byte sequences alone are not: 联通 in
# GBK is valid UTF-8 by chance.
_THREE_BYTES = re.compile(rb"[\xe0-\xef]")
_NUL_WITHIN = 512
_GUESSED_FROM = 65_536
_MAX_BROKEN = 0.1
"""Maximum share of broken characters among those outside ASCII in an accepted reading."""

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
# The codec that browsers read a declared encoding with: the widest of its family (WHATWG Encoding, 4.2).
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "cp950": "big5hkscs",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
}

_SAMPLE_CHARS = 4000
_ASCII = re.compile(r"[\x00-\x7f]+")
# Kana and hangul mark Japanese and Korean pages, whose own tables have no levels here.
_KANA_HANGUL = re.compile(r"[\u3041-\u30fa\uac00-\ud7a3]")
# Lead bytes of symbols and level 1 (GB 2312-80, 4; Big5, levels by lead byte).
_GB_COMMON = bytes([*range(0xA1, 0xAA), *range(0xB0, 0xD8)])
_BIG5_COMMON = bytes(range(0xA1, 0xC7))
_MARGIN = 0.1
"""Lead in score that another reading needs over a declared one."""
_FOREIGN = 0.2
"""Minimum share of kana and hangul in a Japanese or Korean text."""


class Decoded(NamedTuple):
    """Text of a page, its encoding (Python's name), and the reason for that encoding, for people."""

    text: str
    encoding: str
    why: str


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
            ErrorClass.BAD_CONTENT, f"no text: {content_type[:80] or 'no content type'}, {body[:8]!r}"
        )
    for mark, encoding in _BOMS:
        if body.startswith(mark):
            return Decoded(body[len(mark) :].decode(encoding, "replace"), encoding, "byte order mark")
    if b"\0" in body[:_NUL_WITHIN] and (wide := _utf16(body)):
        return Decoded(body.decode(wide, "replace"), wide, "every other byte is zero, as of markup in UTF-16")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        return _decode_other(body, content_type, hint, error.start)
    if body.isascii():
        return Decoded(text, "utf-8", "ASCII only")
    if not _THREE_BYTES.search(body):  # UTF-8 perhaps by chance: the first declaration decides, if it fits
        declared = declarations(body, content_type, hint)
        name, where = next(iter(declared.items()), ("utf-8", ""))
        if name != "utf-8" and name in (texts := _decodings(body, (name,))):
            return Decoded(texts[name], name, f"declared by {where}; valid UTF-8 only by chance")
    return Decoded(text, "utf-8", "valid UTF-8")


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
    for where, inside in (("XML", _XML_ENCODING.match(head)), ("meta", _META_CHARSET.search(head))):
        if inside and (name := _python_name(inside[1].decode("ascii", "replace"))):
            found.setdefault(name, where)
    if not found and hint and (name := _python_name(hint)):
        found[name] = "the catalog"
    return found


@lru_cache(maxsize=256)
def _python_name(label: str) -> str:
    try:
        name = codecs.lookup(label.strip().lower()).name
    except (LookupError, ValueError):
        return ""
    return _WIDER.get(name) or (name if _OF_PAGES.match(name) else "")


def _utf16(body: bytes) -> str:
    head = body[:_NUL_WITHIN]
    even, odd = head[::2].count(0), head[1::2].count(0)
    if max(even, odd) < len(head) / 8 or min(even, odd) > max(even, odd) / 8:
        return ""
    return "utf-16-be" if even > odd else "utf-16-le"


def _decode_other(body: bytes, content_type: str, hint: str, valid_to: int) -> Decoded:
    """Decode a page that is no strict UTF-8.

    Args:
        valid_to: number of bytes before the first invalid one.
    """
    if _THREE_BYTES.search(body, 0, valid_to):  # Chinese in UTF-8 up to there
        text = body.decode("utf-8", "replace")
        if _broken(text) <= _MAX_BROKEN:
            return Decoded(text, "utf-8", f"UTF-8 but for {text.count(chr(0xFFFD))} broken characters")
    declared = declarations(body, content_type, hint)
    if chosen := _best(_decodings(body, (*declared, "gb18030", "big5hkscs")), tuple(declared)):
        return Decoded(*chosen, _reason(chosen[1], declared))
    broken = {
        name: text
        for name in dict.fromkeys((*declared, "utf-8", "gb18030", "big5hkscs"))
        if _broken(text := body.decode(name, "replace")) <= _MAX_BROKEN
    }
    if chosen := _best(broken, tuple(declared)):
        return Decoded(*chosen, f"{_reason(chosen[1], declared)}; with broken characters")
    from bs4.dammit import UnicodeDammit  # takes a tenth of a second to import, and few pages need it

    guessed = UnicodeDammit(body[:_GUESSED_FROM], is_html=True).original_encoding or "utf-8"
    return Decoded(body.decode(guessed, "replace"), guessed, "guessed by bs4")


def _reason(name: str, declared: Mapping[str, str]) -> str:
    if name in declared:
        return f"declared by {declared[name]}"
    others = ", ".join(f"{other} by {where}" for other, where in declared.items())
    return f"declared as {others}, but reads as Chinese" if others else "nothing declared; reads as Chinese"


def _broken(text: str) -> float:
    """Return the share of broken characters among those outside ASCII."""
    outside = len(text) - len(text.encode("ascii", "ignore"))
    return text.count("\ufffd") / max(1, outside)


def _decodings(body: bytes, names: Iterable[str]) -> dict[str, str]:
    """Return the texts by encoding, for the encodings that decode the bytes without an error."""
    texts: dict[str, str] = {}
    for name in dict.fromkeys(names):
        try:
            texts[name] = body.decode(name)
        except UnicodeError:
            continue
    return texts


def _best(texts: Mapping[str, str], declared: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the text that reads most like Chinese, with its encoding; a declared one unless another is clearly better.

    Args:
        texts: texts by encoding; the first wins if they read alike.
        declared: encodings that the page declares, most binding first.
    """
    if not texts:
        return None
    scores = {name: _common_share(text, name) for name, text in texts.items()}
    best = max(scores, key=scores.__getitem__)
    near = (name for name in declared if scores.get(name, -1.0) >= scores[best] - _MARGIN)
    best = next(near, best)
    return texts[best], best


def _common_share(text: str, encoding: str) -> float:
    """Return the share (0 to 1) of a sample's characters outside ASCII that are common in the encoding's language."""
    sample = _ASCII.sub("", text[: _SAMPLE_CHARS * 5])[:_SAMPLE_CHARS] or _ASCII.sub("", text)[:_SAMPLE_CHARS]
    if not sample:
        return 1.0
    if encoding in ("gb18030", "utf-8", "big5hkscs"):
        table, common = ("big5", _BIG5_COMMON) if encoding == "big5hkscs" else ("gb2312", _GB_COMMON)
        leads = sample.encode(table, "ignore")[::2]
        return (len(leads) - len(leads.translate(None, common))) / len(sample)
    # A declared encoding of another language: characters of that language confirm it, Chinese ones refute it.
    if encoding.startswith(("euc", "shift_jis", "iso2022", "cp932", "cp949")):
        return 1.0 if len(_KANA_HANGUL.findall(sample)) >= _FOREIGN * len(sample) else 0.0
    # Single bytes: accented letters stand alone between ASCII ones.
    runs = re.findall(r"[^\x00-\x7f]+", text[: _SAMPLE_CHARS * 10])
    return sum(len(run) == 1 for run in runs) / max(1, len(runs))
