"""Declared encodings of a page, and which of several readings of its bytes is Chinese.

GB18030 and Big5 share most of their byte pairs, so that a text in one often decodes in the other without error. What
tells them apart: both tables put the characters that are used into their first level (GB 2312-80, level 1: 3,755;
Big5, level 1: 5,401), about 99 % of any text, while a wrong reading scatters over both levels and beyond.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

_DECLARED_WITHIN = 4096
_HTTP_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
# Only <meta> and the XML declaration count: other tags (script, link) tell the charset of what they point to.
_META_CHARSET = re.compile(rb"<meta\s[^>]*?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"\s*<\?xml\s[^>]*?encoding\s*=\s*[\"']\s*([\w.:-]+)", re.IGNORECASE)
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)
# Python has codecs that no page is written in (hex, idna, unicode_escape); and a declaration that could be read as
# ASCII is none of UTF-16.
_OF_PAGES = re.compile(r"utf-8|gb|hz|big5|cp\d|euc|shift_jis|iso|koi8|tis|mac")
# What browsers read a declared encoding with: the widest of its family (WHATWG Encoding, 4.2).
_WIDER = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "cp950": "big5hkscs",
    "iso8859-1": "cp1252",
    "ascii": "cp1252",
}

_SAMPLED_CHARS = 4000
# So many characters of a page, with so many outside ASCII, nearly all of them in use, leave no doubt.
_DOUBTED_CHARS = 2000
_FEW = 20
_PLAIN = 0.9
_ASCII_BYTES = bytes(range(128))
_ASCII = re.compile(r"[\x00-\x7f]+")
_OUTSIDE = re.compile(r"[^\x00-\x7f]")
# Kana and hangul tell Japanese and Korean pages, whose own tables the levels below say nothing of.
_KANA_HANGUL = re.compile(r"[\u3041-\u30fa\uac00-\ud7a3]")
# Lead bytes of symbols and level 1 (GB 2312-80, 4; Big5, levels by lead byte).
_GB_USED = bytes([*range(0xA1, 0xAA), *range(0xB0, 0xD8)])
_BIG5_USED = bytes(range(0xA1, 0xC7))
# How much better another reading must be to be believed over a declaration.
_MARGIN = 0.1
# Characters of another script in a reading that make it one of Japanese or Korean.
_FOREIGN = 0.2


def declarations(body: bytes, content_type: str, hint: str = "") -> dict[str, str]:
    """Declared encodings (Python's names) and where each was: the HTTP header first, then XML or meta.

    Args:
        hint: the catalog's word on the site, which counts where header and page say nothing; empty: none.
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
    if name in _WIDER:
        return _WIDER[name]
    return name if _OF_PAGES.match(name) else ""


def all_read(body: bytes, names: Iterable[str]) -> dict[str, str]:
    """Texts by the name of the encoding, of those in which the bytes are without error, in their order.

    Reading stops at one that is beyond doubt.
    """
    texts: dict[str, str] = {}
    for name in dict.fromkeys(names):
        try:
            texts[name] = body.decode(name)
        except UnicodeError:
            continue
        if name == "gb18030" and _beyond_doubt(texts[name]):
            break
    return texts


def prefer(texts: Mapping[str, str], declared: tuple[str, ...]) -> tuple[str, str] | None:
    """The text that reads most like Chinese, and its encoding; a declared one unless another is clearly better.

    Args:
        texts: by encoding, in the order in which they are believed where they read alike.
        declared: encodings that the page declares, most binding first.
    """
    if len(texts) <= 1:
        return next(((text, name) for name, text in texts.items()), None)
    scores = {name: used(text, name) for name, text in texts.items()}
    best = max(scores, key=scores.__getitem__)
    for name in declared:
        if name in texts and scores[name] >= scores[best] - _MARGIN:
            best = name
            break
    return texts[best], best


def used(text: str, encoding: str) -> float:
    """Share of the characters outside ASCII that the writers of Chinese use: 0 to 1, of a sample."""
    sample = _sample(text)
    if not sample:
        return 1.0
    if encoding != "gb18030" and encoding != "big5hkscs":
        # A declared encoding of another language: its own characters speak for it, Chinese ones against.
        if encoding.startswith(("euc", "shift_jis", "iso2022", "cp932", "cp949")):
            return 1.0 if len(_KANA_HANGUL.findall(sample)) >= _FOREIGN * len(sample) else 0.0
        return _alone(text) if encoding != "utf-8" else _level(sample, "gb18030")
    return _level(sample, encoding)


def _level(sample: str, encoding: str) -> float:
    """Share of a sample without ASCII in symbols and level 1 of its own table."""
    if encoding == "big5hkscs":
        pairs, leads = sample.encode("big5", "ignore")[::2], _BIG5_USED
    else:
        pairs, leads = sample.encode("gb2312", "ignore")[::2], _GB_USED
    return (len(pairs) - len(pairs.translate(None, leads))) / len(sample)


def _alone(text: str) -> float:
    """Of a reading by single bytes: how many characters outside ASCII stand between ASCII ones, as accents do."""
    runs = re.findall(r"[^\x00-\x7f]+", text[: _SAMPLED_CHARS * 10])
    return sum(len(run) == 1 for run in runs) / max(1, len(runs))


def _beyond_doubt(text: str) -> bool:
    """Whether a reading as GB18030 can only be right: what plain pages pay, so without a loop over characters."""
    first = _OUTSIDE.search(text)
    head = text[first.start() : first.start() + _DOUBTED_CHARS] if first else ""
    outside = len(head) - len(head.encode("ascii", "ignore"))
    leads = head.encode("gb2312", "ignore").translate(None, _ASCII_BYTES)[::2]
    return outside >= _FEW and len(leads) - len(leads.translate(None, _GB_USED)) > _PLAIN * outside


def _sample(text: str) -> str:
    """Characters outside ASCII from the beginning of a text."""
    return (
        _ASCII.sub("", text[: _SAMPLED_CHARS * 5])[:_SAMPLED_CHARS] or _ASCII.sub("", text)[:_SAMPLED_CHARS]
    )
