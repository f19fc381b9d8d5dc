"""The sweep that links reposts to their originals in small steps. No review is dropped.

A review is compared with those before it that are no reposts themselves. Texts of two authors are reposts only if they
are long (`tasks.reading.copies.copy_key`). A step is `find`, which only reads and
computes, so that no writer waits for it, then `tasks.store.content.reposts.save`, which writes little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tasks.reading.copies.authors import identity
from tasks.reading.copies.copy_key import LEAST, is_long, key_of_text
from tasks.reading.copies.near_duplicates import THRESHOLD, bands, plain, shingles, similarity_if_near
from tasks.store.content import reposts
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

COMPARED_AT_ONCE = 200
"""Number of reviews in a step. Storing their bands takes 2 to 3 ms, for which SQLite's other writers wait."""
SHARE_S = 0.125
"""CPU seconds of comparing in one sweep, which runs every 5 s: with writing, about 3 % of a core."""
# Earlier reviews a text is compared with: those that share most bands. Bounds the work for stock phrases.
_MOST_CANDIDATES = 5
# Reviews in one band; more say that the band is a stock phrase, and the other bands decide.
_MOST_IN_BAND = 20
# Different shingles of two texts together, at most, if they are nearly the same and one is not long.
_MOST_SHARED = (LEAST - 2) / THRESHOLD


class _Text(NamedTuple):
    """A review as it is compared.

    Attributes:
        body: its text as it is stored.
        writer: key of the author; `None` if the name identifies no person, or the text is too long to be near a short
            one.
    """

    id: int
    body: str
    writer: str | None
    is_long: bool
    shingles: frozenset[int]

    @property
    def copy_key(self) -> bytes | None:
        """Equal for copies; `None`: a copy of no other review."""
        return key_of_text(self.body, self.writer, is_long=self.is_long)

    def list_bands(self) -> list[int]:
        """Return the bands for texts of every author if it is long, and those for texts of its author if one of two
        texts may be short."""
        found: list[int] = []
        if self.shingles and self.is_long:
            found += bands(self.shingles)
        if self.shingles and self.writer is not None:
            found += bands(self.shingles, self.writer)
        return found

    def may_repeat(self, other: _Text) -> bool:
        """Return True if the two texts are reposts if they are near."""
        if self.is_long and other.is_long:
            return True
        return self.writer is not None and self.writer == other.writer


def link_reposts(
    store: Store, write: Callable[[Operation[bool]], bool], cpu_s: Callable[[], float], share_s: float
) -> int:
    """Link the next reviews whose text is nearly an earlier one's, until `share_s` is used or there are no more.

    It also ends if another scheduler took the same step, and leaves the work to that one.

    Args:
        store: to read from.
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        cpu_s: CPU seconds of this thread.
        share_s: CPU seconds to use.

    Returns:
        Number of compared reviews.
    """
    end_s = cpu_s() + share_s
    looked = 0
    while cpu_s() < end_s:
        with store.read() as tx:
            step = find(tx, COMPARED_AT_ONCE)
        if step is None or not write(partial(reposts.save, step=step)):
            break
        looked += len(step.reviews)
    return looked


def find(tx: Transaction, most: int) -> reposts.Step | None:
    """Compare the next reviews, in the order of their numbers, with earlier ones; changes nothing.

    If several earlier texts are near enough it is the nearest, of equally near ones the earliest.

    Args:
        most: maximum number of reviews to compare.

    Returns:
        The step; `None` if there are no further reviews now.
    """
    after = reposts.mark(tx)
    rows = reposts.following(tx, after, most)
    if not rows:
        return None
    read = [_text(row) for row in rows]
    keys = [text.copy_key for text in read]
    originals = reposts.get_originals(tx, {key for key in keys if key is not None}, after)
    changes: list[reposts.CopyChange] = []
    texts: list[_Text] = []
    for row, text, key in zip(rows, read, keys, strict=True):
        same_as = originals.get(key) if key is not None else None
        if same_as is None:
            texts.append(text)
            if key is not None:
                originals[key] = row.id
        if (row.copy_key, row.same_as) != (key, same_as):
            was_original = row.same_as is None and same_as is not None
            changes.append(reposts.CopyChange(row.id, key, same_as, was_original))
    links, band_rows = _compare(tx, texts)
    return reposts.Step(after, {row.id: row.same_as for row in rows}, changes, links, band_rows)


def compare_again(tx: Transaction, numbers: Collection[int]) -> None:
    """Link reviews that are no longer reposts to other originals, or make them originals."""
    ordered = sorted(numbers)
    for at in range(0, len(ordered), COMPARED_AT_ONCE):
        some = ordered[at : at + COMPARED_AT_ONCE]
        found = reposts.get_texts(tx, some)
        reposts.add(tx, *_compare(tx, [_text(found[number]) for number in some]))


def _text(row: reposts.ReviewText) -> _Text:
    of_text, long = frozenset(shingles(plain(row.body))), is_long(row.body)
    may_equal_short = not long or len(of_text) <= _MOST_SHARED
    writer = identity(row.site, row.author) if may_equal_short else None
    return _Text(row.id, row.body, writer, long, of_text)


def _compare(
    tx: Transaction, texts: Sequence[_Text]
) -> tuple[list[reposts.RepostLink], list[tuple[int, int]]]:
    """Return the links, and the open bands of the texts that are originals."""
    # Of a candidate, only the text is compared.
    bands_of = {text.id: text.list_bands() for text in texts}
    members = reposts.members(tx, {band for found in bands_of.values() for band in found})
    candidates = {one for text in texts for one in _candidates(text.id, bands_of[text.id], members)}
    known = {number: _text(row) for number, row in reposts.get_texts(tx, candidates).items()}
    links: list[reposts.RepostLink] = []
    keys: list[tuple[int, int]] = []
    for text in texts:
        link = _nearest(text, _candidates(text.id, bands_of[text.id], members), known)
        if link is not None:
            links.append(link)
            continue
        known[text.id] = text
        for band in bands_of[text.id]:
            if band not in members:
                members[band] = [text.id]
            elif len(members[band]) < _MOST_IN_BAND:
                members[band].append(text.id)
            else:
                continue
            keys.append((band, text.id))
    return links, keys


def _candidates(number: int, found: Sequence[int], members: Mapping[int, Sequence[int]]) -> list[int]:
    """Return at most `_MOST_CANDIDATES` earlier reviews that share bands, those with most shared bands first."""
    shared = [one for band in found if band in members for one in members[band] if one < number]
    if not shared:
        return []
    times = Counter(shared)
    return sorted(times, key=lambda one: (-times[one], one))[:_MOST_CANDIDATES]


def _nearest(text: _Text, candidates: Sequence[int], known: Mapping[int, _Text]) -> reposts.RepostLink | None:
    """Return the link to the nearest text that this one repeats, of equally near ones to the first."""
    best: reposts.RepostLink | None = None
    for number in candidates:
        other = known.get(number)
        if other is None or not text.may_repeat(other):
            continue
        how_near = similarity_if_near(text.shingles, other.shingles)
        if how_near is None:
            continue
        if best is None or (-how_near, number) < (-best.similarity, best.original_id):
            best = reposts.RepostLink(text.id, number, how_near)
    if best is None:
        return None
    return best._replace(similarity=round(best.similarity, 3))
