"""Characters of a text as they are compared, and the hashes of its runs of one, two and three characters."""

from __future__ import annotations

import unicodedata
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
from numpy.typing import NDArray

ORDERS: Final = 3
"""Length of the longest run."""
_MIX = (np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35))

Codes = NDArray[np.uint32]


def plain_codes(text: str) -> Codes:
    """Return the code of each character of a text as it is compared; there are as many as characters."""
    written = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return _plain_codes().take(written, mode="clip")


def plain_text(text: str) -> str:
    """Return a text as it is compared, character by character."""
    return text_of(plain_codes(text))


def text_of(codes: Codes) -> str:
    """Return the characters of codes."""
    return codes.tobytes().decode("utf-32-le")


def hash_runs(codes: Codes, bits: int) -> Codes:
    """Return the hashes, below 2 ** bits, of the runs that begin at each character but the last two.

    The result has the shape (ORDERS, characters - 2).
    """
    shift = np.uint32(32 - bits)
    one, two, three = _MIX
    runs = np.empty((ORDERS, len(codes) - 2), np.uint32)
    alone = codes * one
    pairs = (alone[:-1] ^ (alone[:-1] >> np.uint32(15))) * two + codes[1:] * three
    runs[0] = alone[:-2]
    runs[1] = pairs[:-1] * one
    runs[2] = ((pairs[:-1] ^ (pairs[:-1] >> np.uint32(13))) * three + codes[2:] * two) * one
    runs >>= shift
    return runs


@cache
def _plain_codes() -> Codes:
    """Each character as it is read: in NFKC, in lower case, digits as 0, rare characters as F, and simplified if
    simplified Chinese does not have it."""
    text = files("tasks.reading").joinpath("simplified.txt").read_text("utf-8")
    old, new = (line for line in text.splitlines() if not line.startswith("#"))
    simplified = dict(zip(old, new, strict=True))
    codes = np.full(1 << 16, ord("F"), np.uint32)
    for code in range(len(codes) - 1):
        first = unicodedata.normalize("NFKC", chr(code)).lower()[:1]
        first = simplified.get(first, first)
        codes[code] = ord(" " if first.isspace() or first < " " else "0" if first.isdigit() else first)
    codes[0xD800:0xE000] = ord("F")
    return codes
