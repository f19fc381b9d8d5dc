"""Finds the terms of themes in texts.

Each term has an anchor, up to three characters of its longer part. The hashes of a text's runs say where an anchor can
stand, and only there the term is compared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.reading.judge.runs import ORDERS, Codes, hash_runs, plain_codes, plain_text
from tasks.reading.judge.theme_file import GAP, REACH, ThemeEntry

BITS = 18
_SCOPE = 4
"""Characters before a term in which a negation denies it."""
_NEGATIONS = frozenset("不没无零未别莫非")
_NEGATION = re.compile(f"[{''.join(sorted(_NEGATIONS))}]")
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
    """A term in a text: its theme, and the place where it begins."""

    theme: int
    start: int


class _Part(NamedTuple):
    """A part of terms, which has their anchor.

    Attributes:
        text: as it is compared.
        owners: themes that it shows alone; of an exception, the inverse (~) of the theme's number.
        tails: other parts that stand behind it, each with its owner.
        heads: other parts that stand before it, each with its owner.
        reach: characters of the longest of these, and `REACH`; 0 if there are none.
    """

    text: str
    owners: tuple[int, ...]
    tails: tuple[tuple[str, int], ...]
    heads: tuple[tuple[str, int], ...]
    reach: int

    def find_pairs(self, plain: str, place: int, ends: Sequence[int]) -> list[tuple[int, int]]:
        """Return owner and place of the terms of two parts, one of which is this part at a place."""
        clause = bisect_left(ends, place)
        found = []
        if self.tails:
            behind = place + len(self.text)
            window = plain[behind : min(behind + self.reach, ends[clause])]
            found = [(owner, place) for tail, owner in self.tails if 0 <= window.find(tail) <= REACH]
        if self.heads:
            begin = max(ends[clause - 1] + 1 if clause else 0, place - self.reach)
            window = plain[begin:place]
            for head, owner in self.heads:
                there = window.rfind(head)
                if there >= 0 and begin + there + len(head) + REACH >= place:
                    found.append((owner, begin + there))
        return found


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a category's themes.

    Attributes:
        groups: parts that have the same anchor, or anchors with the same hash; the first group is empty.
        group: number of the group by the hash of a run; shape (ORDERS, 2 ** BITS).
        denies: negations deny a term. Otherwise they only turn its sentiment round.
    """

    groups: Sequence[Sequence[_Part]]
    group: NDArray[np.uint16]
    denies: bool

    def find(self, plain: str, runs: Codes, ends: Sequence[int]) -> list[Hit]:
        """Return the terms in texts that stand one after the other.

        Args:
            plain: the texts as they are compared (`runs.text_of`).
            runs: their hashes of `BITS` bits.
            ends: places that end clauses, ascending; the last one is behind the text.
        """
        found: list[Hit] = []
        cancelled: set[tuple[int, int]] = set()
        is_near = _list_near_negations(plain) if self.denies else b""
        for order in range(ORDERS):
            numbers = self.group[order].take(runs[order])
            places = numbers.nonzero()[0]
            for place, number in zip(places.tolist(), numbers[places].tolist(), strict=True):
                for part in self.groups[number]:
                    if not plain.startswith(part.text, place):
                        continue
                    shown = [(owner, place) for owner in part.owners]
                    if part.reach:
                        shown += part.find_pairs(plain, place, ends)
                    for owner, start in shown:
                        if owner < 0:
                            cancelled.add((~owner, bisect_left(ends, start)))
                        elif not (self.denies and is_near[start] and _is_denied(plain, start, ends)):
                            found.append(Hit(owner, start))
        if cancelled:
            found = [hit for hit in found if (hit.theme, bisect_left(ends, hit.start)) not in cancelled]
        return found


def _list_near_negations(plain: str) -> bytearray:
    """Return 1 for each character that has a negation less than `_SCOPE` characters before it."""
    near = bytearray(len(plain) + _SCOPE)
    for found in _NEGATION.finditer(plain):
        near[found.end() : found.end() + _SCOPE] = b"\1" * _SCOPE
    return near


def _is_denied(plain: str, place: int, ends: Sequence[int]) -> bool:
    """Return True if a negation stands before a term that has none of its own at its beginning."""
    if plain[place] in _NEGATIONS:
        return False
    clause = bisect_left(ends, place)
    begin = ends[clause - 1] + 1 if clause else 0
    if _NEGATIONS.isdisjoint(plain[max(begin, place - _SCOPE) : place]):
        return False
    around = plain[max(begin, place - _SCOPE - 2) : place + 1]
    return not any(phrase in around for phrase in _NO_NEGATION)


def compile_terms(themes: Iterable[ThemeEntry], *, denies: bool) -> Terms:
    """Return the terms of themes, which are numbered in their order."""
    alone: dict[str, list[int]] = defaultdict(list)
    tails: dict[str, list[tuple[str, int]]] = defaultdict(list)
    heads: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for number, theme in enumerate(themes):
        written = [(number, text) for text in theme.terms] + [(~number, text) for text in theme.exceptions]
        for owner, text in written:
            head, _, tail = map(plain_text, text.partition(GAP))
            if not tail:
                alone[head].append(owner)
            elif min(len(tail), ORDERS) > len(head):
                heads[tail].append((head, owner))
            else:
                tails[head].append((tail, owner))
    groups: list[list[_Part]] = [[]]
    group = np.zeros((ORDERS, 1 << BITS), np.uint16)
    for text in sorted({*alone, *tails, *heads}):
        reach = max((REACH + len(other) for other, _ in (*tails[text], *heads[text])), default=0)
        part = _Part(text, tuple(alone[text]), tuple(tails[text]), tuple(heads[text]), reach)
        order = min(len(text), ORDERS) - 1
        key = hash_runs(plain_codes(text[:ORDERS] + "  "), BITS)[order, 0]
        if not group[order, key]:
            group[order, key] = len(groups)
            groups.append([])
        groups[group[order, key]].append(part)
    return Terms(groups, group, denies)
