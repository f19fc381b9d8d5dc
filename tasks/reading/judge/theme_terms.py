"""Finds the terms of themes in texts.

Each term has an anchor, up to three characters of its longer part. The hashes of a text's runs say where an anchor can
stand. The other part of a term must have its first characters near it, which is asked of all places at once by sets of
characters that share 64 bits (Bloom, 1970). Then the keys of whole parts are compared (`_Keys`). If a clause denies a
term (`tasks.reading.judge.denials`), that speaks against the theme there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.reading.judge import denials
from tasks.reading.judge.runs import ORDERS, Codes, hash_runs, plain_codes, plain_text, text_of
from tasks.reading.judge.theme_file import GAP, REACH, ThemeEntry

BITS = 18
_WINDOW = REACH + 2
"""Characters that can hold the first two of a term's other part."""
_BEHIND = "  "
_ORDER_STARTS = (np.arange(ORDERS, dtype=np.uint32) << np.uint32(BITS))[:, None]
_GAPS = np.arange(REACH + 1)[:, None]
_ROOT = 0x9E3779B97F4A7C15
"""An odd number, whose powers weight the characters of a key."""

Places = NDArray[np.intp]
Flags = NDArray[np.bool_]
Bits = NDArray[np.uint64]
"""Sets of characters, in bits, or keys of texts."""


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


class _Hits(NamedTuple):
    """Terms that stand in texts.

    Attributes:
        numbers: of the terms.
        clauses: numbers of the clauses of their anchors.
        begins, ends: of the terms; of a term with two parts, of the second one.
    """

    numbers: Places
    clauses: Places
    begins: Places
    ends: Places


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
        lengths: characters of each term's anchor, and of its other part; shape (2, terms).
        keys: of these parts (`_Keys`); shape (2, terms).
        is_deniable: whether a clause can deny each term. It denies no exceptions, and no terms about cars and
            restaurants: a negation turns the sentiment round.
        is_deniable_before: whether a negation before each term can deny it: a term has no character of `denials.OWN`.
        themes: number of themes.
    """

    terms: Sequence[_Term]
    group: NDArray[np.uint16]
    first: Places
    sizes: Places
    sets: Bits
    needs: Bits
    shifts: Places
    columns: Places
    lengths: Places
    keys: Bits
    is_deniable: Flags
    is_deniable_before: Flags
    themes: int

    def find(self, codes: Codes, runs: Codes, begins: Places, ends: Places) -> NDArray[np.int8]:
        """Return 1 for clauses with a term of a theme, -1 for those that deny all its terms; shape (clauses, themes).

        Other clauses have 0, and those with an exception do not have 1.

        Args:
            codes: characters of texts that stand one after the other.
            runs: their hashes of `BITS` bits.
            begins, ends: of clauses, ascending.
        """
        hits = self._list_hits(codes, runs, begins, ends)
        is_denied = np.zeros(len(hits.numbers), np.bool_)
        is_denied[self._list_denied(codes, begins, ends, hits)] = True
        keys = hits.clauses * (2 * self.themes) + self.columns.take(hits.numbers)
        found = np.zeros(len(ends) * 2 * self.themes, np.int8)
        found[keys] = -1
        found[keys[~is_denied]] = 1
        themes, exceptions = found.reshape(len(ends), 2, self.themes).swapaxes(0, 1)
        said: NDArray[np.int8] = np.minimum(themes, exceptions == 0)
        return said

    def _list_hits(self, codes: Codes, runs: Codes, begins: Places, ends: Places) -> _Hits:
        """Return the terms in texts.

        Args:
            begins, ends: of clauses.
        """
        places, numbers = self._list_candidates(codes, runs)
        keys = _Keys(codes)
        same = keys.get(places, self.lengths[0].take(numbers)) == self.keys[0].take(numbers)
        places, numbers = places[same], numbers[same]
        hits = _Hits(numbers, ends.searchsorted(places), places, places + self.lengths[0].take(numbers))
        pairs = self.lengths[1].take(numbers).nonzero()[0]
        if not len(pairs):
            return hits
        is_whole = self._complete_pairs(hits, pairs, keys, begins, ends)
        return _Hits(*(column[is_whole] for column in hits))

    def _complete_pairs(self, hits: _Hits, pairs: Places, keys: _Keys, begins: Places, ends: Places) -> Flags:
        """Let hits of terms with two parts begin and end with the second part.

        Args:
            pairs: numbers of these hits.
            begins, ends: of clauses.

        Returns:
            False for hits without the other part.
        """
        numbers = hits.numbers.take(pairs)
        clauses = hits.clauses.take(pairs)
        lengths = self.lengths[1].take(numbers)
        is_behind = self.shifts.take(numbers) > 0
        first, last = hits.begins.take(pairs), hits.ends.take(pairs)
        at = np.where(is_behind, last + _GAPS, first - lengths - _GAPS)
        found = keys.get(at, lengths) == self.keys[1].take(numbers)
        found &= (at >= begins.take(clauses)) & (at + lengths <= ends.take(clauses))
        other = at[found.argmax(0), np.arange(len(pairs))]
        hits.begins[pairs] = np.where(is_behind, other, first)
        hits.ends[pairs] = np.where(is_behind, other + lengths, last)
        is_whole = np.ones(len(hits.numbers), np.bool_)
        is_whole[pairs] = found.any(0)
        return is_whole

    def _list_candidates(self, codes: Codes, runs: Codes) -> tuple[Places, Places]:
        """Return places where anchors can stand, and the numbers of their terms.

        The characters that the other part of a term begins with are near.
        """
        group = self.group.take(runs + _ORDER_STARTS).ravel()
        there = (group != 0).nonzero()[0]
        groups = group.take(there)
        sizes = self.sizes.take(groups)
        places = (there % len(codes)).repeat(sizes)
        numbers = (self.first.take(groups) - sizes.cumsum() + sizes).repeat(sizes) + np.arange(len(places))
        windows = self._join_sets(codes)
        needs = self.needs.take(numbers)
        near = windows.take(places + self.shifts.take(numbers), mode="clip")
        likely = (near & needs == needs).nonzero()[0]
        return places.take(likely), numbers.take(likely)

    def _join_sets(self, codes: Codes) -> Bits:
        """Return the sets of the `_WINDOW` characters that begin at each place."""
        alone = np.zeros(len(codes) + _WINDOW - 1, np.uint64)
        alone[: len(codes)] = self.sets.take(codes)
        two = alone[:-1] | alone[1:]
        four = two[:-2] | two[2:]
        eight = four[:-4] | four[4:]
        return eight[:-2] | two[8:]

    def _list_denied(self, codes: Codes, begins: Places, ends: Places, hits: _Hits) -> list[int]:
        """Return the numbers of the hits that their clauses deny.

        Args:
            begins, ends: of clauses.
        """
        signs = np.zeros(len(codes) + 1, np.int32)
        _mark(denials.SIGNS).take(codes).cumsum(out=signs[1:])
        start, end = begins.take(hits.clauses), ends.take(hits.clauses)
        follows = codes.take(start - 1, mode="clip") == ord(denials.ENUMERATES)
        first = np.maximum(hits.begins - denials.REACH, np.where(follows, 0, start))
        before = signs.take(hits.begins) > signs.take(first)
        before &= self.is_deniable_before.take(hits.numbers)
        behind = signs.take(end) > signs.take(hits.ends)
        behind &= _mark(denials.LAST).take(codes.take(end - 1)) & self.is_deniable.take(hits.numbers)
        plain = text_of(codes)
        doubtful = before.nonzero()[0]
        columns = (doubtful, *(column.take(doubtful) for column in (start, end, hits.begins, hits.ends)))
        denied = [
            row
            for row, *places in zip(*(column.tolist() for column in columns), strict=True)
            if denials.is_denied_before(plain, *places)
        ]
        denied += [
            row
            for row in behind.nonzero()[0].tolist()
            if denials.is_denied_behind(plain, int(hits.ends[row]), int(end[row]))
        ]
        return denied


class _Keys:
    """Keys of the parts of texts: equal parts have equal keys, and others practically never (Karp and Rabin, 1987).

    Args:
        codes: characters of the texts.
    """

    def __init__(self, codes: Codes) -> None:
        self._powers, inverses = _powers(1 << len(codes).bit_length())
        self._sums = np.zeros(len(codes) + 1, np.uint64)
        (codes * inverses[: len(codes)]).cumsum(out=self._sums[1:])

    def get(self, begins: Places, lengths: Places) -> Bits:
        """Return the keys of parts. A part that reaches behind the texts is shorter."""
        sums = self._sums
        keys: Bits = sums.take(begins + lengths, mode="clip") - sums.take(begins, mode="clip")
        keys *= self._powers.take(begins, mode="clip")
        return keys


@lru_cache(4)
def _powers(size: int) -> tuple[Bits, Bits]:
    """Return the first powers of `_ROOT`, and of its inverse, modulo 2 ** 64."""
    powers = []
    for root in (_ROOT, pow(_ROOT, -1, 1 << 64)):
        factors = np.full(size, root, np.uint64)
        factors[0] = 1
        powers.append(factors.cumprod())
    return powers[0], powers[1]


@cache
def _mark(chars: frozenset[str]) -> Flags:
    """Return for each character if it is one of some."""
    is_one = np.zeros(1 << 16, np.bool_)
    is_one[[*map(ord, chars)]] = True
    return is_one


def compile_terms(themes: Collection[ThemeEntry], *, denies: bool) -> Terms:
    """Return the terms of themes, which are numbered in their order.

    Args:
        denies: negations deny a term.
    """
    terms, group, sizes = _group_terms(_list_terms(themes))
    bits = _choose_bits(terms)
    sets = np.zeros(1 << 16, np.uint64)
    sets[[*map(ord, bits)]] = list(bits.values())
    columns = np.array([term.column for term in terms], np.intp)
    is_deniable = np.full(len(terms), denies) & (columns < len(themes))
    is_negative = [not denials.OWN.isdisjoint(term.anchor + term.other) for term in terms]
    return Terms(
        terms=terms,
        group=group,
        first=sizes.cumsum() - sizes,
        sizes=sizes,
        sets=sets,
        needs=np.array([sum({bits[char] for char in term.other[:2]}) for term in terms], np.uint64),
        shifts=np.array([term.shift for term in terms], np.intp),
        columns=columns,
        lengths=np.array(
            [[len(term.anchor) for term in terms], [len(term.other) for term in terms]], np.intp
        ),
        keys=np.array(
            [_key_parts([term.anchor for term in terms]), _key_parts([term.other for term in terms])]
        ),
        is_deniable=is_deniable,
        is_deniable_before=is_deniable & ~np.array(is_negative, np.bool_),
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
    return {char: 1 << number % 64 for number, char in enumerate(used)}


def _key_parts(parts: Sequence[str]) -> Bits:
    """Return the keys of parts of terms."""
    lengths = np.array([*map(len, parts)], np.intp)
    begins = lengths.cumsum() - lengths
    return _Keys(plain_codes("".join(parts))).get(begins, lengths)
