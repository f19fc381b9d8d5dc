"""Find the encoding of bytes: of pages that are crawled, and of files that people bring.

In this order: byte order mark; UTF-16 by its zero bytes; ISO-2022-JP by its escapes; UTF-8 if the bytes prove it. Else
each encoding reads a sample of the bytes, and the likeliest reading wins: the one whose characters have the highest
probability in their language. Encodings of Chinese, Japanese and Korean share most of their byte pairs, so that one
often reads as another without an error, but its common characters are rare ones there. About 600 characters make up
four fifths of a Chinese text. Kana and hangul make up most of a Japanese or Korean one, and hardly occur in the others.
"""

from __future__ import annotations

import codecs
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice
from math import log

# UTF-32's little-endian mark begins with that of UTF-16, so it comes first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"\x84\x31\x95\x33", "gb18030"),
)
_LONG_SEQUENCE = re.compile(rb"[\xe0-\xf4]")
"""Leads a sequence of three or four bytes: one in valid UTF-8 is a proof, two-byte sequences alone are not."""
_ESCAPE = re.compile(rb"\x1b\$[@B]")
"""Begins two-byte characters in ISO-2022-JP (RFC 1468)."""
ESCAPED = "iso2022_jp_ext"

_CHINESE, _TRADITIONAL, _JAPANESE, _KOREAN = "Chinese", "traditional Chinese", "Japanese", "Korean"
_LETTERS = "a European language"
"""Stands for all languages whose letters are single bytes in their encodings."""
_LANGUAGES: Mapping[str, tuple[str, ...]] = {
    "utf-8": (_CHINESE, _TRADITIONAL, _JAPANESE, _KOREAN, _LETTERS),
    "gb18030": (_CHINESE, _TRADITIONAL),
    "hz": (_CHINESE,),
    "big5hkscs": (_TRADITIONAL,),
    "cp932": (_JAPANESE,),
    "euc_jp": (_JAPANESE,),
    "cp949": (_KOREAN,),
    "cp1252": (_LETTERS,),
}
"""Languages that are written in an encoding; in all others it is letters."""
_TRIED = ("gb18030", "utf-8", "big5hkscs", "cp932", "euc_jp", "cp949", "cp1252")
"""Encodings that are tried whatever is declared; of equal readings the first wins."""

_HEAD = 1000
_SAMPLE = 1024
"""Approximate number of bytes that a guess reads."""
_WORDS = 200
"""Maximum number of words in the sample."""
_GUESSED_FROM = 65_536
_HIGH = re.compile(rb"[\x80-\xff][^\x00-\x2f\x3a-\x3f]*+")
"""A run that begins with a byte outside ASCII and ends before a byte that is no trail byte in any encoding."""

_BROKEN = -16.0
"""Logarithm of the probability of a character that can't be decoded; below, of other characters."""
_UNKNOWN = -14.5
_RARE = -9.0
_ASCII = -3.0
_DECLARED = 10.0
"""Logarithm of the odds that a declared encoding is right, if nothing else is known."""
_GOOD = -4.2
"""Mean per byte outside ASCII above which a reading of `_ENOUGH` bytes is taken without a look at others. Of wrong
readings of reviews of 60 bytes and more the best has -4.8; 95 % of the right ones have more than -4.2."""
_ENOUGH = 100
_POOR = -5.5
"""Mean per byte outside ASCII below which a reading is compared with the guess of bs4."""
_WIDE = -9.0
"""Minimum mean per character of a text in UTF-16; random pairs of bytes have about -14."""

_MARKS_SHARE = 0.15
"""Share of a text that is punctuation marks."""
_KANA = {range(0x3041, 0x3094): 0.4, range(0x30A1, 0x30F7): 0.15}
"""Shares of a Japanese text that are hiragana and katakana."""
_KANJI_SHARE = 0.3
_CHARACTERS_SHARE = 0.85
"""Share of the characters of other languages."""
_MARKS_OF = {
    _CHINESE: "，。！？、；：“”‘’（）《》…—～·【】",
    _TRADITIONAL: "，。！？、；：「」『』（）《》…—～·【】",
    _JAPANESE: "、。「」・ー（）！？…～〜【】：々",
    _KOREAN: "‘’“”·…～ㅋㅎㅠㅜ",
}
_FILES = {_CHINESE: "zh-hans", _TRADITIONAL: "zh-hant", _JAPANESE: "ja", _KOREAN: "ko"}


@dataclass(frozen=True, slots=True)
class Reading:
    """The likeliest reading of some bytes.

    Attributes:
        encoding: Python's name.
        language: what they read as; empty if bs4 has guessed the encoding.
    """

    encoding: str
    language: str


def find_mark(head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark at the beginning of a text, and its encoding; both are empty if there is none."""
    return next(((mark, name) for mark, name in _MARKS if head.startswith(mark)), (b"", ""))


def find_utf16(head: bytes) -> str:
    """Return the UTF-16 encoding of a text without a mark; empty if it is none, or holds no zero byte to tell it by.

    Args:
        head: the beginning of the text.
    """
    head = head[:_HEAD]
    if b"\0" not in head:
        return ""
    best = ""
    likelihood = _WIDE
    for name in ("utf-16-le", "utf-16-be"):
        counts = Counter(head.decode(name, "replace"))
        mean = max(_score(counts, language) for language in _FILES) / max(1, counts.total())
        if mean > likelihood:
            best = name
            likelihood = mean
    return best


def has_escapes(body: bytes) -> bool:
    """Return True if bytes hold characters of ISO-2022-JP, which look like ASCII."""
    return b"\x1b" in body and _ESCAPE.search(body) is not None


def has_long_sequence(body: bytes) -> bool:
    """Return True if bytes that are valid UTF-8 can't be so by chance, as 联通 in GBK is."""
    return _LONG_SEQUENCE.search(body) is not None


def find_words(body: bytes, most: int) -> list[bytes]:
    """Return the first words from their first byte outside ASCII on, at most `most`."""
    return [match[0] for match in islice(_HIGH.finditer(body), most)]


def find_reading(body: bytes, declared: Iterable[str] = (), others: Sequence[str] = _TRIED) -> Reading:
    """Return the likeliest reading of bytes that have no mark and are no UTF-16.

    Args:
        body: the text, or a part of it that ends with a line.
        declared: encodings that it is said to be in, by Python's names; one of them wins if it is nearly as likely.
        others: encodings that are tried beside them.
    """
    declared = tuple(declared)
    sample = _sample(body)
    number = len(sample) - len(sample.decode("ascii", "ignore"))
    best = Reading("utf-8", _LETTERS)
    likelihood = float("-inf")
    for name in dict.fromkeys((*declared, *others)):
        text = sample.decode(name, "replace")
        counts = Counter(text)
        for language in _LANGUAGES.get(name, (_LETTERS,)):
            score = _score_letters(text) if language == _LETTERS else _score(counts, language)
            if number >= _ENOUGH and score > _GOOD * number:
                return Reading(name, language)
            if name in declared:
                score += _DECLARED
            if score > likelihood:
                best = Reading(name, language)
                likelihood = score
    if best.encoding not in declared and likelihood < _POOR * number:
        guess = _guess(body)
        text = sample.decode(guess, "replace")
        if len(text) == len(sample) and _score_letters(text) > likelihood:
            return Reading(guess, "")
    return best


def _sample(body: bytes) -> bytes:
    """Return the first words that hold bytes outside ASCII; of long ones, some at equal distances."""
    words = find_words(body, _WORDS)
    step = sum(map(len, words)) // _SAMPLE + 1
    return b" ".join(words[::step])[: _SAMPLE * 2]


def _guess(body: bytes) -> str:
    from bs4.dammit import UnicodeDammit  # takes a tenth of a second to import, and few texts need it

    return UnicodeDammit(body[:_GUESSED_FROM], is_html=True).original_encoding or "utf-8"


def _score(counts: Counter[str], language: str) -> float:
    """Return the logarithm of the probability of characters in a language."""
    weights = _weights(language)
    return sum(number * weights.get(char, _UNKNOWN) for char, number in counts.items())


def _score_letters(text: str) -> float:
    """Return the same for languages with letters of single bytes: an accented letter stands between ASCII ones."""
    score = _ASCII * len(text.encode("ascii", "ignore"))
    for run in re.findall(r"[^\x00-\x7f]+", text):
        for char in run:
            if char == "\ufffd":
                score += _BROKEN
            elif char > "\u2122" or not (char.isalpha() or char in "‘’“”–…€°·«»©®™\xa0"):
                score += _RARE
            elif char < "\u0250" or not char.isalpha():
                score += -5.5 if len(run) == 1 else _RARE
            else:
                score += -6.0 if char.isupper() else -3.8
    return score


@cache
def _weights(language: str) -> Mapping[str, float]:
    """Return the logarithms of the probabilities of a language's characters."""
    weights = dict.fromkeys(string.printable, _ASCII) | {"\ufffd": _BROKEN}
    marks = _MARKS_OF[language]
    weights |= dict.fromkeys(marks, log(_MARKS_SHARE / len(marks)))
    weights |= dict.fromkeys(map(chr, range(0xFF01, 0xFF5F)), _RARE) | weights
    share = _KANJI_SHARE if language == _JAPANESE else _CHARACTERS_SHARE
    text = files("tasks.reading").joinpath("common-characters.txt").read_text("utf-8")
    for line in text.splitlines():
        name, _, rest = line.partition(" ")
        if name == _FILES[language]:
            of_text, chars = rest.split(" ")
            weights |= dict.fromkeys(chars, log(share * float(of_text) / len(chars)))
    if language == _JAPANESE:
        for kana, share in _KANA.items():
            weights |= dict.fromkeys(map(chr, kana), log(share / len(kana)))
    return weights
