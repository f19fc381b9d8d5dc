"""Pseudonyms of authors: who wrote two reviews of a site is still seen, but not what he calls himself.

A pseudonym is HMAC-SHA256(key, site, 0, name), 60 bits of it in base 32. Without the key nobody can try names out, and
the same name is another one on another site. Two of a million authors of a site share one with a chance of about
10^12 / 2^61, that is 4e-7.
"""

from __future__ import annotations

import hmac
from base64 import b32encode
from unicodedata import normalize

PREFIX = "author-"
SHORTEST_KEY = 16

_CHARS = 12


class Pseudonyms:
    """Gives authors pseudonyms.

    Args:
        key: at least `SHORTEST_KEY` characters; whoever has it can try names out.

    Raises:
        ValueError: the key is too short.
    """

    def __init__(self, key: str) -> None:
        if len(key) < SHORTEST_KEY:
            raise ValueError(
                f"a key of {len(key)} characters is too short: {SHORTEST_KEY} or more are needed"
            )
        self._key = key.encode()

    def of(self, site: str, author: str) -> str:
        """The pseudonym of an author on a site; of nobody, and of one that is a pseudonym already, the same."""
        name = " ".join(normalize("NFKC", author).split())
        if not name or _is_one(name):
            return name
        digest = hmac.digest(self._key, f"{site}\0{name}".encode("utf-8", "surrogatepass"), "sha256")
        return PREFIX + b32encode(digest).decode("ascii")[:_CHARS].lower()


def _is_one(name: str) -> bool:
    tail = name.removeprefix(PREFIX)
    return (
        len(tail) == _CHARS
        and tail != name
        and all(char in "abcdefghijklmnopqrstuvwxyz234567" for char in tail)
    )
