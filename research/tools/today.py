"""Names with their words by hand: whether those that identify a name stand in its keywords, none of them cut.

A line of the table is words with / between them, * after those that identify the product; after a tab, more words that
are right. The name is its words, with a blank between two that are Latin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from splitter.keywords import keyword_sets_of
from splitter.normalize import normalize

_LATIN_BORDER = re.compile(r"(?<=[A-Za-z0-9])/(?=[A-Za-z0-9])")


@dataclass(frozen=True, slots=True)
class Name:
    """A name, its words in their order, those that identify it, and others that are right."""

    text: str
    words: tuple[str, ...]
    identifying: frozenset[str]
    others: frozenset[str]


def names(path: Path) -> list[Name]:
    """The names of a table."""
    found: list[Name] = []
    for line in path.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            marked, _, others = line.partition("\t")
            words = marked.split("/")
            plain = [word.rstrip("*") for word in words]
            found.append(
                Name(
                    _LATIN_BORDER.sub(" ", "/".join(plain)).replace("/", ""),
                    tuple(plain),
                    frozenset(word[:-1] for word in words if word.endswith("*")),
                    frozenset(others.split("\t")) - {""},
                )
            )
    return found


def of_today(path: Path) -> dict[str, float]:
    """How many names a table has, and how many are right."""
    tried = names(path)
    return {"names": len(tried), "right": sum(not faults(name) for name in tried)}


def faults(name: Name) -> list[str]:
    """What is wrong with a name's keywords: words that are missing, and keywords that are parts of words."""
    keywords = [word for words in keyword_sets_of(name.text) for word in words]
    missing = [
        word for word in sorted(name.identifying) if not any(_plain(word) in _plain(k) for k in keywords)
    ]
    whole = {_plain(word) for word in name.others} | _runs(name.words)
    return missing + [word for word in dict.fromkeys(keywords) if _plain(word) not in whole]


def _runs(words: Sequence[str]) -> set[str]:
    """All runs of words, written together."""
    return {_plain("".join(words[a:b])) for a in range(len(words)) for b in range(a + 1, len(words) + 1)}


def _plain(word: str) -> str:
    return normalize(word).casefold().replace(" ", "")
