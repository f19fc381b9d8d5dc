"""The words the segmenter knows: jieba's dictionary and, on top of it, our own.

Our own (``data/userdict.txt``) has jieba's format, a line ``word frequency role``; what a word is for is told
by its role. Frequencies are such that the word is cut whole, and hardly greater, so that its neighbours stay
whole too.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.resources import files
from math import log

from splitter.errors import InputError


class Role(StrEnum):
    """What a word of our dictionary is for."""

    BRAND = "brand"
    SERIES = "series"  # a product line of a brand
    PRODUCT = "product"  # the kind of thing it is
    TRAIT = "trait"  # an attribute that tells products apart
    PLACE = "place"  # where it comes from
    NOISE = "noise"  # promotion, packaging, size words: never a keyword


_ROLES = frozenset(role.value for role in Role)


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Words with their weights.

    Attributes:
        weights: of every word its log probability (below 0); 0.0 for what only begins a word.
        floor: log probability of a character that is no word.
    """

    weights: Mapping[str, float]
    floor: float


@cache
def user_words() -> dict[str, tuple[int, Role]]:
    """Frequency and role of each word of our own dictionary."""
    return parse_user_words(_resource("splitter", "data/userdict.txt"), "userdict.txt")


def parse_user_words(text: str, origin: str) -> dict[str, tuple[int, Role]]:
    """Reads a dictionary of ours.

    Raises:
        InputError: a line is not ``word frequency role``, or a word is there twice; names every such line.
    """
    words: dict[str, tuple[int, Role]] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.partition(" ")
        frequency, _, role = rest.partition(" ")
        if not (word and frequency.isdigit() and int(frequency) and role in _ROLES):
            problems.append(
                f"{origin}:{number}: {line!r} is not 'word frequency role'; roles: {', '.join(Role)}"
            )
        elif word in words:
            problems.append(f"{origin}:{number}: {word} is there twice; keep one of them")
        else:
            words[word] = (int(frequency), Role(role))
    if problems:
        raise InputError("\n".join(problems))
    return words


def load_dictionary() -> Dictionary:
    """jieba's dictionary with ours on top; takes about half a second and writes no cache file."""
    import_jieba()
    frequencies: dict[str, int] = {}
    for line in _resource("jieba", "dict.txt").splitlines():
        word, frequency, _ = line.split(" ")
        frequencies[word] = int(frequency)
    total = sum(frequencies.values())
    for word, (frequency_of_ours, _) in user_words().items():
        frequencies[word] = frequency_of_ours
        total += frequency_of_ours  # as jieba counts a word that is added to it
    return _weigh(frequencies, total)


def _weigh(frequencies: Mapping[str, int], total: int) -> Dictionary:
    log_total = log(total)
    logs = {
        frequency: log(frequency) - log_total if frequency else 0.0 for frequency in set(frequencies.values())
    }
    weights = {word: logs[frequency] for word, frequency in frequencies.items()}
    _add_beginnings(weights, frequencies)
    return Dictionary(weights, -log_total)


def _add_beginnings(weights: dict[str, float], words: Iterable[str]) -> None:
    for word in words:
        for end in range(1, len(word)):
            weights.setdefault(word[:end], 0.0)


def import_jieba() -> None:
    """Imports jieba quietly: it logs to standard error by itself and warns on newer Pythons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("jieba.finalseg")
    for name in ("jieba", "jieba._compat"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.setLevel(logging.WARNING)


def _resource(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")
