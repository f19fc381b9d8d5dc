"""The sweep that links reposts to their originals, in small steps, off the hot path. No review is dropped.

A review is compared with those before it that are no reposts themselves. A step is `find`, which only reads and
computes, so that no writer waits for it, then `tasks.store.content.reposts.save`, which writes little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tasks.reading.near_duplicates import bands, plain, shingles, similarity_if_near
from tasks.store.content import reposts
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

COMPARED_AT_ONCE = 200
"""Reviews of a step. Their bands are 2 to 3 ms of work in a transaction that SQLite's other writers wait for."""
SHARE_S = 0.05
"""CPU seconds of comparing in one sweep, every 2 s: with the writing about 3 % of a core, as a crawl needs the rest."""
# Earlier reviews a text is compared with: those that share most bands. Bounds the work for stock phrases.
_MOST_CANDIDATES = 5
# Reviews in one band; more say that the band is a stock phrase, and the other bands decide.
_MOST_IN_BAND = 20


class _Text(NamedTuple):
    """A review as it is compared."""

    id: int
    shingles: tuple[int, ...]
    bands: Sequence[int]


def link_reposts(store: Store, write: Callable[[Operation[bool]], bool], cpu_s: Callable[[], float]) -> int:
    """Link the next reviews whose text is nearly an earlier one's, until `SHARE_S` is used or there are no more.

    It ends too where another scheduler took the same step: that one goes on.

    Args:
        store: to read from.
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        cpu_s: CPU seconds of this thread.

    Returns:
        How many reviews were looked at.
    """
    end_s = cpu_s() + SHARE_S
    looked = 0
    while cpu_s() < end_s:
        with store.read() as tx:
            step = find(tx, COMPARED_AT_ONCE)
        if step is None or not write(partial(reposts.save, step=step)):
            break
        looked += step.looked
    return looked


def find(tx: Transaction, most: int) -> reposts.Step | None:
    """Compare the next reviews, in the order of their numbers, with earlier ones; changes nothing.

    If several earlier texts are near enough it is the nearest, of equally near ones the earliest.

    Args:
        most: reviews to look at.

    Returns:
        None where there are no more for now.
    """
    after = reposts.mark(tx)
    rows = reposts.following(tx, after, most)
    if not rows:
        return None
    texts = [_text(row.id, row.body) for row in rows if row.same_as is None]
    links, keys = _compare(tx, [text for text in texts if text.bands])
    return reposts.Step(after, rows[-1].id, len(rows), links, keys)


def compare_again(tx: Transaction, numbers: Collection[int]) -> None:
    """Link reviews that are no reposts any more to other originals, or make them originals."""
    ordered = sorted(numbers)
    for at in range(0, len(ordered), COMPARED_AT_ONCE):
        some = ordered[at : at + COMPARED_AT_ONCE]
        found = reposts.bodies(tx, some)
        reposts.add(tx, *_compare(tx, [_text(number, found[number]) for number in some]))


def _text(review_id: int, body: str) -> _Text:
    found = shingles(plain(body))
    return _Text(review_id, found, bands(found))


def _compare(tx: Transaction, texts: Sequence[_Text]) -> tuple[list[reposts.Link], list[tuple[int, int]]]:
    """Links, and the open bands of the texts that are originals."""
    members = reposts.members(tx, {band for text in texts for band in text.bands})
    known = _shingles_of(tx, {one for text in texts for one in _candidates(text, members)})
    links: list[reposts.Link] = []
    keys: list[tuple[int, int]] = []
    for text in texts:
        link = _nearest(text, _candidates(text, members), known)
        if link is not None:
            links.append(link)
            continue
        known[text.id] = text.shingles
        for band in text.bands:
            if band not in members:
                members[band] = [text.id]
            elif len(members[band]) < _MOST_IN_BAND:
                members[band].append(text.id)
            else:
                continue
            keys.append((band, text.id))
    return links, keys


def _candidates(text: _Text, members: Mapping[int, Sequence[int]]) -> list[int]:
    """Earlier reviews that share a band, those that share most first, at most `_MOST_CANDIDATES`."""
    shared = [one for band in text.bands if band in members for one in members[band] if one < text.id]
    if not shared:
        return []
    times = Counter(shared)
    return sorted(times, key=lambda one: (-times[one], one))[:_MOST_CANDIDATES]


def _shingles_of(tx: Transaction, ids: Collection[int]) -> dict[int, tuple[int, ...]]:
    return {review_id: shingles(plain(body)) for review_id, body in reposts.bodies(tx, ids).items()}


def _nearest(
    text: _Text, candidates: Sequence[int], known: Mapping[int, tuple[int, ...]]
) -> reposts.Link | None:
    if not candidates:
        return None
    own = frozenset(text.shingles)
    found = ((similarity_if_near(own, frozenset(known[one])), one) for one in candidates if one in known)
    best = min(((-how, one) for how, one in found if how is not None), default=None)
    return None if best is None else reposts.Link(text.id, best[1], round(-best[0], 3))
