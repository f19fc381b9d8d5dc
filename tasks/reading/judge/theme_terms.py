"""Finds the terms of themes in texts.

Each term has an anchor, up to three characters of its longer part. The hashes of a text's runs say where an anchor can
stand. The other part of a term must have its first characters near it, which is asked of all places at once by sets of
characters that share 64 bits (Bloom, 1970). Only what is left is compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.reading.judge.runs import ORDERS, Codes, hash_runs, plain_codes, plain_text, text_of
from tasks.reading.judge.theme_file import GAP, REACH, ThemeEntry

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

_WINDOW = REACH + 2
"""Characters that can hold the first two of a term's other part."""
_SHARED_BITS = 63
"""Bits of a set that characters share."""
_NEGATION = 1 << _SHARED_BITS
"""The bit of negations in a set."""
_BEHIND = "  "
_ORDER_STARTS = (np.arange(ORDERS, dtype=np.uint32) << np.uint32(BITS))[:, None]

Places = NDArray[np.intp]
Sets = NDArray[np.uint64]
"""Sets of characters, in bits."""


class _Term(NamedTuple):
    """A term of a theme.

    Attributes:
        anchor: the part that has its anchor, as it is compared.
        other: the other part; empty if there is only one.
        is_other_first: the other part stands before the anchor.
        column: number of its theme; of an exception, that number behind all themes.
    """

    anchor: str
    other: str
    is_other_first: bool
    column: int

    @property
    def shift(self) -> int:
        """Return where the characters begin that can start the other part, from the place of the anchor."""
        return -REACH - len(self.other) if self.is_other_first else len(self.anchor)

    def find(self, plain: str, place: int, begin: int, end: int) -> int:
        """Return where the term begins, if its anchor is at a place; -1 if the other part is not near.

        Args:
            begin, end: of the clause.
        """
        if not self.other:
            return place
        reach = REACH + len(self.other)
        if self.is_other_first:
            return plain.rfind(self.other, max(begin, place - reach), place)
        behind = place + len(self.anchor)
        return place if plain.find(self.other, behind, min(behind + reach, end)) >= 0 else -1


class _Candidates(NamedTuple):
    """Places where terms may stand.

    Attributes:
        places: of their anchors.
        numbers: of the terms.
        is_sure: the anchor alone decides: there is no other part, and no negation before it.
    """

    places: Places
    numbers: Places
    is_sure: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a category's themes.

    Attributes:
        terms: terms whose anchors have the same hash stand together, as a group.
        group: number of the group by the hash of a run, 0 if there is none; of each order behind the one before.
        first, sizes: number of each group's first term, and how many it has.
        sets: set of each character.
        needs: set of the first two characters of each term's other part.
        shifts: `_Term.shift` of each term.
        columns: `_Term.column` of each term.
        is_alone: whether each term has only one part.
        denied_by: set of the characters before each term that deny it. Exceptions and terms about cars and restaurants
            have none: a negation turns the sentiment round.
        themes: number of themes.
    """

    terms: Sequence[_Term]
    group: NDArray[np.uint16]
    first: Places
    sizes: Places
    sets: Sets
    needs: Sets
    shifts: Places
    columns: Places
    is_alone: NDArray[np.bool_]
    denied_by: Sets
    themes: int

    def find(self, codes: Codes, runs: Codes, ends: Places) -> NDArray[np.bool_]:
        """Return whether clauses have a term of a theme, and no exception; shape (clauses, themes).

        Args:
            codes: characters of texts that stand one after the other.
            runs: their hashes of `BITS` bits.
            ends: places that end clauses, ascending; the last one is behind the texts.
        """
        found = np.zeros((len(ends), 2 * self.themes), np.bool_)
        plain = text_of(codes)
        places, numbers, is_sure = self._list_candidates(codes, runs)
        anchors = [self.terms[number].anchor for number in numbers.tolist()]
        there = np.fromiter(map(plain.startswith, anchors, places.tolist()), np.bool_, len(places))
        clauses = ends.searchsorted(places)
        sure = (there & is_sure).nonzero()[0]
        found[clauses.take(sure), self.columns.take(numbers.take(sure))] = True
        rest = (there & ~is_sure).nonzero()[0]
        columns = (places, numbers, clauses, np.append(-1, ends).take(clauses) + 1, ends.take(clauses))
        for place, number, clause, begin, end in zip(
            *(one.take(rest).tolist() for one in columns), strict=True
        ):
            term = self.terms[number]
            start = term.find(plain, place, begin, end)
            if start >= 0 and not (self.denied_by[number] and _is_denied(plain, start, begin)):
                found[clause, term.column] = True
        return found[:, : self.themes] > found[:, self.themes :]

    def _list_candidates(self, codes: Codes, runs: Codes) -> _Candidates:
        """Return the places where anchors can stand, and have what their terms need near them."""
        group = self.group.take(runs + _ORDER_STARTS).ravel()
        there = (group != 0).nonzero()[0]
        groups = group.take(there)
        sizes = self.sizes.take(groups)
        places = (there % len(codes)).repeat(sizes)
        numbers = (self.first.take(groups) - sizes.cumsum() + sizes).repeat(sizes) + np.arange(len(places))
        of_scope, of_window = self._join_sets(codes)
        needs = self.needs.take(numbers)
        near = of_window.take(places + self.shifts.take(numbers), mode="clip")
        likely = (near & needs == needs).nonzero()[0]
        places, numbers = places.take(likely), numbers.take(likely)
        before = of_scope.take(places - _SCOPE, mode="clip")
        is_denied = before & self.denied_by.take(numbers) != 0
        return _Candidates(places, numbers, self.is_alone.take(numbers) & ~is_denied)

    def _join_sets(self, codes: Codes) -> tuple[Sets, Sets]:
        """Return the sets of the `_SCOPE` characters that begin at each place, and of the `_WINDOW` characters."""
        alone = np.zeros(len(codes) + _WINDOW - 1, np.uint64)
        alone[: len(codes)] = self.sets.take(codes)
        two = alone[:-1] | alone[1:]
        four = two[:-2] | two[2:]
        eight = four[:-4] | four[4:]
        return four, eight[:-2] | two[8:]


def _is_denied(plain: str, start: int, begin: int) -> bool:
    """Return True if a negation stands before a term that has none of its own at its beginning.

    Args:
        start: of the term.
        begin: of its clause.
    """
    if plain[start] in _NEGATIONS or _NEGATIONS.isdisjoint(plain[max(begin, start - _SCOPE) : start]):
        return False
    around = plain[max(begin, start - _SCOPE - 2) : start + 1]
    return not any(phrase in around for phrase in _NO_NEGATION)


def compile_terms(themes: Collection[ThemeEntry], *, denies: bool) -> Terms:
    """Return the terms of themes, which are numbered in their order.

    Args:
        denies: negations deny a term.
    """
    terms, group, sizes = _group_terms(_list_terms(themes))
    bits = _choose_bits(terms)
    sets = np.zeros(1 << 16, np.uint64)
    sets[[*map(ord, bits)]] = list(bits.values())
    sets[[*map(ord, _NEGATIONS)]] |= np.uint64(_NEGATION)
    columns = np.array([term.column for term in terms], np.intp)
    return Terms(
        terms=terms,
        group=group,
        first=sizes.cumsum() - sizes,
        sizes=sizes,
        sets=sets,
        needs=np.array([sum({bits[char] for char in term.other[:2]}) for term in terms], np.uint64),
        shifts=np.array([term.shift for term in terms], np.intp),
        columns=columns,
        is_alone=np.array([not term.other for term in terms], np.bool_),
        denied_by=np.where(denies & (columns < len(themes)), np.uint64(_NEGATION), np.uint64(0)),
        themes=len(themes),
    )


def _list_terms(themes: Collection[ThemeEntry]) -> list[_Term]:
    """Return the terms of themes as they are compared."""
    written = [(number, term) for number, theme in enumerate(themes) for term in theme.terms]
    written += [
        (len(themes) + number, term) for number, theme in enumerate(themes) for term in theme.exceptions
    ]
    plain = plain_text("".join(term for _, term in written))
    terms = []
    place = 0
    for column, term in written:
        head, gap, tail = term.partition(GAP)
        middle, end = place + len(head), place + len(term)
        head, tail = plain[place:middle], plain[middle + len(gap) : end]
        place = end
        is_other_first = min(len(tail), ORDERS) > len(head)
        anchor, other = (tail, head) if is_other_first else (head, tail)
        terms.append(_Term(anchor, other, is_other_first, column))
    return terms


def _group_terms(terms: Sequence[_Term]) -> tuple[list[_Term], NDArray[np.uint16], Places]:
    """Return terms in the order of their groups, the groups by hash, and the size of each group."""
    anchors = [term.anchor[:ORDERS] for term in terms]
    lengths = np.array([*map(len, anchors)], np.intp)
    places = (lengths + len(_BEHIND)).cumsum() - lengths - len(_BEHIND)
    hashes = hash_runs(plain_codes(_BEHIND.join([*anchors, "", ""])), BITS)
    keys = hashes[lengths - 1, places] + ((lengths - 1) << BITS)
    used, sizes = np.unique(keys, return_counts=True)
    group = np.zeros(ORDERS << BITS, np.uint16)
    group[used] = np.arange(1, len(used) + 1)
    return [terms[row] for row in keys.argsort().tolist()], group, np.append(0, sizes)


def _choose_bits(terms: Iterable[_Term]) -> dict[str, int]:
    """Return the bits of the characters that begin the other parts of terms."""
    used = sorted({char for term in terms for char in term.other[:2]})
    return {char: 1 << number % _SHARED_BITS for number, char in enumerate(used)}
