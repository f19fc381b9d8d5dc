"""Decide which reviews with equal texts are copies.

People who buy the same thing say the same: 好评, 老牌子值得信赖, 物流很快，下次还会再来.
Two equal texts are copies if they are too long to be equal by chance, or if one author wrote both.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from tasks.reading.copies.authors import identity
from tasks.reading.copies.near_duplicates import plain, readable

LEAST = 26
"""Minimum length, as `length` counts, of a text that two authors do not write by chance. Measured: docs/results.md."""
# Most texts are long by their first characters alone. A forward may begin with words of its own.
_ENOUGH = 2 * LEAST
_GRAM = 3
_NO_HAN = re.compile("[^\u4e00-\u9fff]+")
# Of which `plain` takes only a part: with an address, a name or an emoticon in it.
_IN_PARTS = re.compile("[@[/＠［／﹇﹫℀℁℅℆]")


def length(text: str) -> int:
    """Return the number of letters, digits and punctuation marks; what repeats itself (好评好评好评, !!!!) counts once.

    Of a forward it is the length of the forwarded text.
    """
    return _count(readable(text))


def is_long(text: str) -> bool:
    """Return True if a text is too long for two authors to write it by chance."""
    if len(text) < LEAST:
        return False
    if "//" not in text:
        start = text[:_ENOUGH]
        if _IN_PARTS.search(start) is None and _count_han(start) >= LEAST:
            return True
        letters = plain(start)
        # All but two different letters begin a 3-gram each, and are counted in half the time.
        if len(set(letters)) >= LEAST or _count(letters) >= LEAST:
            return True
    return length(text) >= LEAST


def _count_han(text: str) -> int:
    """Return a number that is no larger than that of different Han characters: of their different low bytes."""
    return len(set(_NO_HAN.sub("", text).encode("utf-16-le")[::2]))


def _count(text: str) -> int:
    if len(text) < _GRAM:
        return len(text)
    return len({text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}) + _GRAM - 1


def copy_key(site: str, author: str, body: str) -> bytes | None:
    """Return 16 bytes that two reviews share if they are copies; `None`: a copy of no other review."""
    long = is_long(body)
    return key_of_text(body, None if long else identity(site, author), is_long=long)


def key_of_text(body: str, writer: str | None, *, is_long: bool) -> bytes | None:
    """Return the `copy_key` of a text.

    Args:
        writer: the `identity` of its author; only that of a short text matters.
    """
    if is_long:
        text = body
    elif writer is not None:
        text = f"{writer}\0{body}"
    else:
        return None
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
