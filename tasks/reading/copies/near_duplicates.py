"""Recognise review texts that are nearly the same: a repost with other punctuation, an emoji, a changed word.

Texts are compared as sets of hashed 3-grams by their Jaccard similarity (Broder: On the Resemblance and Containment of
Documents, 1997; of characters, as Chinese is written without blanks). Candidates are found without comparing all pairs:
a signature is cut into bands, and two texts meet if a whole band is equal (Leskovec, Rajaraman, Ullman: Mining of
Massive Datasets, 3.3 and 3.4). With similarity s that happens with probability 1 - (1 - s^ROWS)^BANDS: 0.82 at 0.6,
0.95 at 0.7, 0.99 at 0.8, 0.001 at 0.05.

A signature takes one hash a 3-gram, not one for each of its values (Li, Owen, Zhang: One Permutation Hashing, NIPS
2012): the hash chooses a bin, and the value of a bin is its least hash. A bin that stays empty borrows the value of the
first other bin, in an order of its own, that has one (Shrivastava: Optimal Densification for Fast and Accurate Minwise
Hashing, ICML 2017): so values of two texts are equal with probability s even where texts are short.

Hashes are multilinear (Dietzfelbinger et al. 1997; Thorup: High Speed Hashing for Integers and Strings, 2015, 3.3):
the high bits of a sum of products. All 3-grams of a text are hashed at once, as lanes of one long integer: one
multiplication replaces a loop in Python. Hashes are the same in every process and on every machine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

SHINGLE = 3
BANDS = 7
ROWS = 3
BINS = BANDS * ROWS
THRESHOLD = 0.6
SHORT_THRESHOLD = 0.7
"""Jaccard similarity from which on two texts are nearly the same, if the smaller has less than SHORT shingles: in a
short text a changed word is the message (阿特兹车身异响, 阿特兹天窗异响). Measured: docs/results.md."""
SHORT = 20
SHORTEST = 8
"""Minimum length of a compared text, in characters after `plain`: 好评 and the like are equal without being copies."""
MOST = 2000
"""Characters that are compared: bounds the work for one text."""

_URL = re.compile(r"https?://[!-~]+|\bt\.cn/\w+", re.ASCII)
_REPOSTED = re.compile(r"//\s*@[^\s:@/]{1,40}\s*:")
_NAME = re.compile(r"(?:回复\s*)?@[^\s:@/,。!?;]{1,30}:?")
_EMOTICON = re.compile(r"\[\w{1,6}\]")

_MARKS = frozenset("@[/")
_IN_PLACE = "/"
# A factor for each place of a 3-gram: odd, and with a sum below 2^48, so that units of 16 bits overflow no lane of 64.
_LANE = 64
_FACTOR = 0x4F1BBCDCBFA5 | 0x2545F4914F6D << _LANE | 0x5851F42D4C95 << 2 * _LANE
# The first two lanes lack units. A hash is bits 16 to 47: lower ones don't depend on all bits of the units.
_SHIFT = 2 * _LANE + 16
_HASHES = int.from_bytes(b"\xff\xff\xff\xff\0\0\0\0" * (2 * MOST), "little")
_KEY_FACTORS = (0x9E3779B97F4B, 0xC2B2AE3D27D5, 0x165667B19E37)
_KEY = (1 << 48) - 1  # SQLite stores a number of 48 bits in 6 bytes
_NONE = 1 << 32  # more than any hash
_BORROWED = [sorted(range(BINS), key=lambda of: blake2b(bytes((own, of))).digest()) for own in range(BINS)]


class _Letters(dict[int, str]):
    """A table for `str.translate`, filled as characters are met.

    `_IN_PLACE` for those whose meaning depends on others: marks of addresses, names and emoticons, and what NFKC
    joins with the character before. Variation selectors are marks too, but join with nothing.
    """

    def __missing__(self, code: int) -> str:
        normal = unicodedata.normalize("NFKC", chr(code))
        joins = 0x1160 <= code <= 0x11FF or any(unicodedata.category(one)[0] == "M" for one in normal)
        in_place = joins and not 0xFE00 <= code <= 0xFE0F
        found = _IN_PLACE if in_place or not _MARKS.isdisjoint(normal) else _letters(normal.casefold())
        self[code] = found
        return found


def plain(text: str) -> str:
    """The letters and digits that are compared, at most MOST.

    NFKC and without case; without addresses, @names, emoticons, blanks, punctuation and emoji. Of a microblog repost
    (comment//@name:text) it is the reposted text, if that is long enough to be compared.
    """
    text = text[: 4 * MOST]
    found = text.translate(_LETTERS)
    if _IN_PLACE in found:
        found = _letters(_select_part(text))
    return found[:MOST]


def readable(text: str) -> str:
    """Return the letters, digits and punctuation marks of the part of a text that `plain` takes letters from."""
    return _select_part(text[: 4 * MOST]).translate(_READABLE)


def _select_part(text: str) -> str:
    """Return a text in NFKC and without case; of a forward, the forwarded text."""
    text = _URL.sub(" ", unicodedata.normalize("NFKC", text).casefold())
    if "//" in text:
        reposted = _drop_names(_REPOSTED.split(text)[-1])
        if len(_letters(reposted)) >= SHORTEST:
            return reposted
    return _drop_names(text)


def _drop_names(text: str) -> str:
    return _EMOTICON.sub(" ", _NAME.sub(" ", text))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


class _Readable(dict[int, str]):
    """A table for `str.translate` that drops blanks, emoji and other signs, filled as characters are met."""

    def __missing__(self, code: int) -> str:
        found = chr(code) if unicodedata.category(chr(code))[0] in "LNP" else ""
        self[code] = found
        return found


_READABLE = _Readable()
_LETTERS = _Letters()


def shingles(plain_text: str) -> tuple[int, ...]:
    """The hash of each 3-gram (of UTF-16) of a text as `plain` gives it; none of one that is too short.

    Hashes have 32 bits; one comes as often as its 3-gram does.
    """
    if len(plain_text) < SHORTEST:
        return ()
    units = plain_text.encode("utf-16-le", "surrogatepass")
    spread = bytearray(4 * len(units))
    spread[::8], spread[1::8] = units[::2], units[1::2]
    lanes = int.from_bytes(spread, "little")
    hashes = (lanes * _FACTOR >> _SHIFT & _HASHES).to_bytes(len(spread), "little")
    return _lanes(len(units) // 2 - SHINGLE + 1).unpack_from(hashes)


@lru_cache(maxsize=2 * MOST)
def _lanes(count: int) -> Struct:
    return Struct(f"<{count}Q")


def similarity(one: frozenset[int], other: frozenset[int]) -> float:
    """Jaccard: shared / all, from 0 to 1; 0 for two empty sets."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def similarity_if_near(one: frozenset[int], other: frozenset[int]) -> float | None:
    """Return the similarity of two texts that are nearly the same, else `None`."""
    found = similarity(one, other)
    least = SHORT_THRESHOLD if min(len(one), len(other)) < SHORT else THRESHOLD
    return found if found >= least else None


def signature(of: Collection[int]) -> list[int]:
    """The values of the bins: of two signatures each is equal with the probability of the texts' similarity.

    Args:
        of: at least one shingle.
    """
    least = [_NONE] * BINS
    for one in of:
        own = one % BINS
        if one < least[own]:
            least[own] = one
    if _NONE not in least:
        return least
    return [
        next(filter(_NONE.__ne__, map(least.__getitem__, order))) if one == _NONE else one
        for one, order in zip(least, _BORROWED, strict=True)
    ]


def bands(of: Collection[int], writer: str = "") -> list[int]:
    """Return one key of 48 bits per band, none without shingles. Texts that share a key are candidates.

    Args:
        writer: with it, only texts of the same writer share a key.
    """
    if not of:
        return []
    values = signature(of)
    own = 0
    if writer:
        own = int.from_bytes(blake2b(writer.encode("utf-8", "surrogatepass"), digest_size=6).digest())
    a, b, c = _KEY_FACTORS
    rows = zip(values[::ROWS], values[1::ROWS], values[2::ROWS], strict=True)
    return [((one * a + two * b + three * c) & _KEY) ^ own for one, two, three in rows]
