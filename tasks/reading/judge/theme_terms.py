"""Finds the terms of themes in texts.

Each term has an anchor, its first one to three characters. The hashes of a text's runs say where an anchor can stand,
and only there the term is compared.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.reading.judge.theme_file import GAP, REACH, ThemeEntry
from tasks.reading.runs import ORDERS, Codes, hash_runs, plain_codes, plain_text

BITS = 18
_SCOPE = 4
"""Characters before a term in which a negation denies it."""
_NEGATIONS = frozenset("不没无零未别莫非")
_NO_NEGATION = (
    *(
        "不但",
        "不仅",
        "不过",
        "不止",
        "不光",
        "不只",
        "不料",
        "不小心",
        "不得",
        "不知",
        "想到",
        "没几",
        "没多久",
        "没用",
    ),
    *(
        "不到",
        "不久",
        "不断",
        "不时",
        "不停",
        "不一会",
        "不管",
        "不论",
        "无论",
        "无比",
        "无语",
        "非常",
        "不能忍",
        "不说",
    ),
    *(
        "不如",
        "不愧",
        "别的",
        "别人",
        "特别",
        "分别",
        "区别",
        "级别",
        "个别",
        "识别",
        "是不是",
        "会不会",
        "有没有",
    ),
    *(
        "不好",
        "不行",
        "没法",
        "无法",
        "不错",
        "莫名",
        "不满",
        "不敢",
        "不喜欢",
        "不开心",
        "不方便",
        "不买",
        "别买",
    ),
    *("不值", "不推荐"),
)
"""Phrases whose negation denies nothing behind them."""


class Hit(NamedTuple):
    """A term in a text: its theme, the place where it begins, and the place behind it."""

    theme: int
    start: int
    end: int


class _Term(NamedTuple):
    """A term as it is compared; a theme below 0 is an exception of the theme ~theme."""

    theme: int
    head: str
    tail: str
    is_negative: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a category's themes.

    Attributes:
        anchors: terms by the characters of their anchor.
        possible: whether a run's hash is an anchor's; shape (ORDERS, 2 ** BITS).
        denies: negations deny a term. Otherwise they only turn its sentiment round.
    """

    anchors: Mapping[str, Sequence[_Term]]
    possible: NDArray[np.bool_]
    denies: bool

    def find(self, plain: str, runs: Codes, ends: Sequence[int]) -> Iterator[Hit]:
        """Yield the terms in texts that stand one after the other, by their place.

        Args:
            plain: the texts as they are compared (`runs.text_of`).
            runs: their hashes of `BITS` bits.
            ends: places that end clauses, ascending; the last one is behind the text.
        """
        found: list[Hit] = []
        cancelled: set[tuple[int, int]] = set()
        there = self.possible[0].take(runs[0])
        there |= self.possible[1].take(runs[1])
        there |= self.possible[2].take(runs[2])
        for place in there.nonzero()[0].tolist():
            for length in range(1, ORDERS + 1):
                for term in self.anchors.get(plain[place : place + length], ()):
                    if not plain.startswith(term.head, place):
                        continue
                    clause = bisect_left(ends, place)
                    end = _end(plain, place, term, ends[clause])
                    if end is None:
                        continue
                    if term.theme < 0:
                        cancelled.add((~term.theme, clause))
                    elif not (
                        self.denies and not term.is_negative and _is_denied(plain, place, ends, clause)
                    ):
                        found.append(Hit(term.theme, place, end))
        for hit in found:
            if not cancelled or (hit.theme, bisect_left(ends, hit.start)) not in cancelled:
                yield hit


def _end(plain: str, place: int, term: _Term, clause_end: int) -> int | None:
    end = place + len(term.head)
    if not term.tail:
        return end
    tail = plain.find(term.tail, end, min(end + REACH + len(term.tail), clause_end))
    return None if tail < 0 else tail + len(term.tail)


def _is_denied(plain: str, place: int, ends: Sequence[int], clause: int) -> bool:
    begin = ends[clause - 1] + 1 if clause else 0
    before = plain[max(begin, place - _SCOPE) : place]
    if _NEGATIONS.isdisjoint(before):
        return False
    around = plain[max(begin, place - _SCOPE - 2) : place + 1]
    return not any(phrase in around for phrase in _NO_NEGATION)


def compile_terms(themes: Iterable[ThemeEntry], *, denies: bool) -> Terms:
    """Return the terms of themes, which are numbered in their order."""
    anchors: dict[str, list[_Term]] = {}
    possible = np.zeros((ORDERS, 1 << BITS), np.bool_)
    for number, theme in enumerate(themes):
        written = [(number, text) for text in theme.terms] + [(~number, text) for text in theme.exceptions]
        for owner, text in written:
            head, _, tail = map(plain_text, text.partition(GAP))
            anchor = head[:ORDERS]
            anchors.setdefault(anchor, []).append(_Term(owner, head, tail, not _NEGATIONS.isdisjoint(head)))
            length = len(anchor)
            runs = hash_runs(plain_codes(anchor + "  "), BITS)
            possible[length - 1, runs[length - 1, 0]] = True
    return Terms({anchor: tuple(terms) for anchor, terms in anchors.items()}, possible, denies)
