"""Whether two review texts are nearly the same: a repost with other punctuation, an emoji, a changed word.

Texts are compared as sets of character 3-grams by their Jaccard similarity (Broder: On the Resemblance and
Containment of Documents, 1997; characters, as Chinese is written without blanks). Candidates are found without
comparing all pairs: MinHash signatures cut into bands, and two texts meet where a whole band is equal (Leskovec,
Rajaraman, Ullman: Mining of Massive Datasets, 3.3 and 3.4). With similarity s that happens with probability
1 - (1 - s^ROWS)^BANDS: 0.97 at 0.6, 0.9999 at 0.8, 0.002 at 0.05.
"""

from __future__ import annotations

import re
import struct
import unicodedata
from hashlib import blake2b, shake_128

SHINGLE = 3
BANDS = 14
ROWS = 3
"""Words of 32 bits of BANDS x ROWS hash functions: 168 bytes, what SHAKE128 gives in one step."""
THRESHOLD = 0.6
SHORT_THRESHOLD = 0.7
"""Jaccard similarity from which on two texts are nearly the same, where the smaller has less than SHORT shingles: in a
short text a changed word is the message (阿特兹车身异响, 阿特兹天窗异响). Measured by `bench/reposts.py`."""
SHORT = 20
SHORTEST = 8
"""Characters, after `plain`, from which on texts are compared: 好评 and the like say the same without being copied."""
MOST = 2000
"""Characters that are compared: bounds the work for one text."""

_URL = re.compile(r"https?://[!-~]+|\bt\.cn/\w+", re.ASCII)
_REPOSTED = re.compile(r"//\s*@[^\s:@/]{1,40}\s*:")
_NAME = re.compile(r"(?:回复\s*)?@[^\s:@/,。!?;]{1,30}:?")
_EMOTICON = re.compile(r"\[\w{1,6}\]")
_ROW = struct.Struct(f"<{BANDS * ROWS}I")
_BAND = struct.Struct(f"<B{ROWS}I")
_BAND_KEY = struct.Struct("<q")


def plain(text: str) -> str:
    """The letters and digits that are compared, at most MOST.

    NFKC and lower case; without addresses, @names, emoticons, blanks, punctuation and emoji. Of a microblog repost
    (comment//@name:text) it is the text that was reposted, where that is long enough to be compared.
    """
    text = unicodedata.normalize("NFKC", text[: 4 * MOST]).lower()
    text = _URL.sub(" ", text)
    if "//" in text:
        reposted = _letters(_REPOSTED.split(text)[-1])
        if len(reposted) >= SHORTEST:
            return reposted
    return _letters(text)


def _letters(text: str) -> str:
    if "@" in text:
        text = _NAME.sub(" ", text)
    if "[" in text:
        text = _EMOTICON.sub(" ", text)
    return "".join(filter(str.isalnum, text))[:MOST]


def shingles(plain_text: str) -> frozenset[str]:
    """The 3-grams of a text as `plain` gives it; none of one that is too short to be compared."""
    if len(plain_text) < SHORTEST:
        return frozenset()
    return frozenset(plain_text[at : at + SHINGLE] for at in range(len(plain_text) - SHINGLE + 1))


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard: shared / all, from 0 to 1; 0 for two empty sets."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0


def near(one: frozenset[str], other: frozenset[str]) -> float | None:
    """The similarity of two texts that are nearly the same; None where they are not."""
    found = similarity(one, other)
    least = SHORT_THRESHOLD if min(len(one), len(other)) < SHORT else THRESHOLD
    return found if found >= least else None


def signature(of: frozenset[str]) -> tuple[int, ...]:
    """MinHash: the least value of each of BANDS x ROWS hash functions over the shingles.

    The hash functions are the words of one long digest per shingle: the same in every process and for ever.

    Args:
        of: at least one shingle.
    """
    rows = [_ROW.unpack(shake_128(one.encode("utf-8", "surrogatepass")).digest(_ROW.size)) for one in of]
    return tuple(map(min, zip(*rows, strict=True)))


def bands(of: frozenset[str]) -> list[int]:
    """One signed 64-bit key per band: texts that share one are candidates; none for an empty set."""
    if not of:
        return []
    values = signature(of)
    return [
        _BAND_KEY.unpack(
            blake2b(_BAND.pack(band, *values[band * ROWS : (band + 1) * ROWS]), digest_size=8).digest()
        )[0]
        for band in range(BANDS)
    ]
