"""Find phrases that are significantly more frequent in new complaints than in earlier ones.

Complaints are compared site by site, so that crawling a site more often makes no phrase frequent. Given the number of
people who used a phrase at a site, the number of those who used it in the period is hypergeometric. The test adds
these numbers over the sites. A person counts once per phrase.

Sources: Cochran, Biometrics 10 (1954), and Mantel and Haenszel, JNCI 22 (1959), for the test, which is exact here;
Gilbert, Applied Statistics 54 (2005), for leaving out phrases that are too rare to be significant; Benjamini and
Hochberg (`app.insight.rises`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.insight.rises import FALSE_DISCOVERIES, Counts

SHORTEST, LONGEST = 2, 6
"""Minimum and maximum number of characters of a phrase."""
LEAST_PEOPLE = 3
LEAST_PAGES = 2
LEAST_FACTOR = 2.0
"""Minimum ratio of a phrase's frequency to its frequency before."""
SAME_PEOPLE = 0.5
"""Two phrases count as one if this share of the people who used the rarer one also used the other."""
_NO_EDGE = (
    "的地得了着过是我你您他她它们就在也都还很这那和给说要去到个上下里"
    "吗呢吧啊呀哦嘛被把让又才再与及或但而所为些么一"
)
"""Characters that can't begin or end a phrase: function words."""
_MIX = np.uint64(0x9E3779B97F4A7C15)

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PhraseCorpus:
    """Texts of people as one array of characters.

    Attributes:
        codes: character codes in normal form; 0 for characters that can't be in a phrase.
        people: for each character, the index of the person who wrote it, ascending.
        is_new: for each person, True if the texts are of the period, False if they are from before it. Who wrote in
            both is two persons.
        sites: for each person, the index of the site.
    """

    codes: NDArray[np.uint32]
    people: Numbers
    is_new: NDArray[np.bool_]
    sites: Numbers


@dataclass(frozen=True, slots=True)
class FoundPhrase:
    """A phrase that is significantly more frequent in the period than before.

    Attributes:
        places: places in the codes at which the phrase begins, one for each person who used it in the period.
        length: number of characters.
        people, before: number of people who used the phrase in the period, and before it.
        expected: number of people who would use it in the period if it were as frequent at each site as before.
    """

    places: Numbers
    length: int
    people: int
    before: int
    expected: float
    p_value: float


@dataclass(frozen=True, slots=True)
class _Table:
    """Numbers of people who used each phrase.

    Attributes:
        starts: one place in the codes at which each phrase begins.
        lengths: number of characters of each phrase.
        new, before: number of people who used each phrase in the period, and before it; shape (phrases, sites).
        rows: number of the phrase of each use.
        places: place in the codes at which each use begins, ascending within a phrase; one use per person.
    """

    lengths: Numbers
    new: Counts
    before: Counts
    rows: Numbers
    places: Numbers


def find_frequent(corpus: PhraseCorpus) -> list[FoundPhrase]:
    """Return the phrases that are significantly more frequent in the period, the most significant first.

    A phrase is left out if it is part of a longer one that the same people used.
    """
    sizes = np.bincount(corpus.sites, minlength=1).size
    totals = np.bincount(corpus.sites[corpus.is_new], minlength=sizes).astype(float)
    earlier = np.bincount(corpus.sites[~corpus.is_new], minlength=sizes).astype(float)
    if not (totals.any() and earlier.any()):
        return []
    table = _count_phrases(corpus, sizes)
    people = table.new.sum(1)
    both = people + table.before.sum(1)
    least = _least_uses(both, totals.sum() / (totals.sum() + earlier.sum()))
    expected = (table.before / np.maximum(earlier, 1) * totals).sum(1)
    is_tested = both >= least
    may_pass = is_tested & (people >= LEAST_PEOPLE) & (people >= LEAST_FACTOR * expected)
    rows = np.flatnonzero(may_pass)
    p = np.array([_p_value(table.new[row], table.before[row], totals, earlier) for row in rows])
    allowed = FALSE_DISCOVERIES * np.arange(1, p.size + 1) / max(int(is_tested.sum()), 1)
    passed = np.flatnonzero(np.sort(p) <= allowed)
    if not passed.size:
        return []
    cutoff = np.sort(p)[passed[-1]]
    chosen = rows[p <= cutoff]
    p_of = dict(zip(rows.tolist(), p.tolist(), strict=True))
    found = []
    for row in chosen.tolist():
        places = table.places[table.rows == row]
        found.append(
            FoundPhrase(
                places=places[corpus.is_new[corpus.people[places]]],
                length=int(table.lengths[row]),
                people=int(people[row]),
                before=int(both[row] - people[row]),
                expected=float(expected[row]),
                p_value=p_of[row],
            )
        )
    found.sort(key=lambda one: (one.p_value, -one.length))
    return found


def _count_phrases(corpus: PhraseCorpus, sites: int) -> _Table:
    """Count the people who used each phrase. Phrases of fewer than `LEAST_PEOPLE` are left out."""
    codes = corpus.codes.astype(np.uint64)
    run = _run_lengths(corpus.codes > 0)
    is_edge = ~np.isin(corpus.codes, [ord(one) for one in _NO_EDGE])
    keys = codes
    found = []
    for length in range(2, LONGEST + 1):
        keys = (keys[:-1] ^ (keys[:-1] >> np.uint64(29))) * _MIX + codes[length - 1 :]
        is_phrase = (run[: keys.size] >= length) & is_edge[: keys.size] & is_edge[length - 1 :]
        starts = np.flatnonzero(is_phrase)
        found.append(_count_length(corpus, keys[starts], starts, length, sites))
    counts = [one.lengths.size for one in found]
    offsets = np.cumsum([0, *counts[:-1]])
    return _Table(
        np.concatenate([one.lengths for one in found]),
        np.concatenate([one.new for one in found]),
        np.concatenate([one.before for one in found]),
        np.concatenate([one.rows + offset for one, offset in zip(found, offsets, strict=True)]),
        np.concatenate([one.places for one in found]),
    )


def _count_length(
    corpus: PhraseCorpus, keys: NDArray[np.uint64], starts: NDArray[np.intp], length: int, sites: int
) -> _Table:
    order = np.argsort(keys, kind="stable")
    keys, places = keys[order], starts[order].astype(np.int64)
    people = corpus.people[places]
    is_first = np.ones(keys.size, np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]) | (people[1:] != people[:-1])
    keys, places, people = keys[is_first], places[is_first], people[is_first]
    _, rows, uses = np.unique(keys, return_inverse=True, return_counts=True)
    is_used = uses >= LEAST_PEOPLE
    number = np.cumsum(is_used) - 1
    is_kept = is_used[rows]
    rows, places, people = number[rows[is_kept]], places[is_kept], people[is_kept]
    n = int(is_used.sum())
    counts = np.zeros((2, n, sites))
    np.add.at(counts, (corpus.is_new[people].astype(int), rows, corpus.sites[people]), 1)
    return _Table(np.full(n, length), counts[1], counts[0], rows, places)


def _run_lengths(is_part: NDArray[np.bool_]) -> Numbers:
    """Return for each character the number of consecutive True values from that character on."""
    ends = np.flatnonzero(~np.append(is_part, False))
    places = np.arange(is_part.size)
    return ends[np.searchsorted(ends, places)] - places


def _least_uses(uses: Counts, share: float) -> int:
    """Return how often a phrase must be used to be significant if all of its uses are in the period."""
    for least in range(LEAST_PEOPLE, 60):
        if share**least * (uses >= least).sum() <= FALSE_DISCOVERIES:
            return least
    return 60


def _p_value(new: Counts, before: Counts, totals: Counts, earlier: Counts) -> float:
    """Return the probability of at least the observed number of new uses, given the uses at each site."""
    chances = np.ones(1)
    for one, other, size, rest in zip(new, before, totals, earlier, strict=True):
        uses = one + other
        if uses:
            chances = np.convolve(chances, _hypergeometric(int(uses), int(size), int(rest)))
    return min(float(chances[int(new.sum()) :].sum()), 1.0)


def _hypergeometric(uses: int, size: int, rest: int) -> Counts:
    """Return the probabilities that 0, 1, ... `uses` of the people who used a phrase wrote in the period.

    Args:
        uses: number of people who used the phrase.
        size, rest: number of all people in the period, and before it.
    """
    n = np.arange(uses + 1)
    with np.errstate(invalid="ignore"):
        logs = _log_choose(size, n) + _log_choose(rest, uses - n) - _log_choose(size + rest, np.array(uses))
    chances: Counts = np.where((n <= size) & (uses - n <= rest), np.exp(logs), 0.0)
    return chances


def _log_choose(total: int, n: NDArray[np.int_]) -> Counts:
    inside = np.clip(n, 0, total)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, total + 1)))])
    logs: Counts = factorials[total] - factorials[inside] - factorials[total - inside]
    return logs


def merge_phrases(corpus: PhraseCorpus, found: Sequence[FoundPhrase]) -> list[FoundPhrase]:
    """Merge phrases that mostly the same people used, and return one phrase for each group.

    It is the longest phrase that at least 70 % of the people of the group's most frequent phrase used.
    """
    groups: list[tuple[set[int], list[FoundPhrase]]] = []
    for one in found:
        people = set(corpus.people[one.places].tolist())
        for known, members in groups:
            if len(known & people) >= SAME_PEOPLE * min(len(known), len(people)):
                members.append(one)
                break
        else:
            groups.append((people, [one]))
    merged = []
    for _, members in groups:
        most = max(one.people for one in members)
        merged.append(max((one for one in members if one.people >= most * 0.7), key=lambda one: one.length))
    return merged
