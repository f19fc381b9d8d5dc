"""Decide which reviews with equal texts are copies.

People who buy the same thing say the same: 好评, 老牌子值得信赖, 物流很快，下次还会再来.
Two equal texts are copies if they are too long to be equal by chance, or if one author wrote both.
"""

from __future__ import annotations

from hashlib import blake2b

from tasks.reading.copies.authors import identity
from tasks.reading.copies.near_duplicates import plain, readable

LEAST = 26
"""Minimum length, as `length` counts, of a text that two authors do not write by chance. Measured: docs/results.md."""
# Most texts are long by their first characters alone. A forward may begin with words of its own.
_ENOUGH = 2 * LEAST
_GRAM = 3


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
        letters = plain(text[:_ENOUGH])
        # All but two different letters begin a 3-gram each, and are counted in half the time.
        if len(set(letters)) >= LEAST or _count(letters) >= LEAST:
            return True
    return length(text) >= LEAST


def _count(text: str) -> int:
    if len(text) < _GRAM:
        return len(text)
    return len({text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}) + _GRAM - 1


def copy_key(site: str, author: str, body: str) -> bytes | None:
    """Return 16 bytes that two reviews share if they are copies; `None`: a copy of no other review."""
    if is_long(body):
        return _digest(body)
    writer = identity(site, author)
    if writer is None:
        return None
    return _digest(f"{writer}\0{body}")


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
