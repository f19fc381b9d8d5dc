"""Reviews that are nearly the same text as an earlier one: linked to it by a sweep, off the hot path, never dropped.

A review is compared with those before it that are no reposts themselves, so that links never chain: whatever is
linked points straight at its original. Equal texts are linked when they are stored (`reviews.same_as`).

A step is `find`, which only reads and computes and holds up nobody, then `save`, which writes little. How far the
sweep has come is compared and set: of two that took the same step, one is saved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Connection, select, update

from tasks.crawl.similar import bands, near, plain, shingles
from tasks.store.bulk import insert_rows, rows_with
from tasks.store.database import insert_new
from tasks.store.tables import review_bands, review_links, reviews, sweep_marks

SETTLED = timedelta(seconds=60)
"""PostgreSQL numbers rows before it commits them: after this time no lower number appears any more."""

_SWEEP = "reposts"
# Earlier reviews a text is compared with: those that share most bands. Bounds the work for stock phrases.
_MOST_CANDIDATES = 5
# Reviews in one band; more say that the band is a stock phrase, and the other bands decide.
_MOST_IN_BAND = 20


class _Text(NamedTuple):
    """A review as it is compared."""

    id: int
    shingles: tuple[int, ...]
    bands: Sequence[int]


class _Link(NamedTuple):
    """A row of `review_links`: a review, its original, and how near they are."""

    review_id: int
    original_id: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Step:
    """What was found out about the next reviews, to be saved.

    Attributes:
        after, last_id: numbers of the last review looked at before this step, and in it.
        looked: reviews looked at.
        bands: rows of `review_bands` (band, review) of the texts that are originals, without crowded bands.
    """

    after: int
    last_id: int
    looked: int
    links: Sequence[_Link]
    bands: Sequence[tuple[int, int]]


def find(conn: Connection, now: datetime, most: int) -> Step | None:
    """Compare the next reviews, in the order of their numbers, with earlier ones; changes nothing.

    Where several earlier texts are near enough it is the nearest, of equally near ones the earliest.

    Args:
        most: reviews to look at.

    Returns:
        None where there are no more for now.
    """
    mark = select(sweep_marks.c.last_id).where(sweep_marks.c.sweep == _SWEEP)
    after = conn.execute(mark).scalar_one_or_none() or 0
    rows = _next(conn, now, after, most)
    if not rows:
        return None
    texts = [_text(review_id, body) for review_id, same_as, body in rows if same_as is None]
    links, keys = _compare(conn, [text for text in texts if text.bands])
    return Step(after, rows[-1][0], len(rows), links, keys)


def save(conn: Connection, step: Step) -> bool:
    """Write what was found; False, and nothing is written, where the sweep has gone on since."""
    if not step.after:
        conn.execute(insert_new(conn.dialect, sweep_marks), {"sweep": _SWEEP, "last_id": 0})
    moved = conn.execute(
        update(sweep_marks)
        .where(sweep_marks.c.sweep == _SWEEP, sweep_marks.c.last_id == step.after)
        .values(last_id=step.last_id)
    )
    if moved.rowcount != 1:
        return False
    insert_rows(conn, review_links, ("review_id", "original_id", "similarity"), step.links, new_only=True)
    insert_rows(conn, review_bands, ("band", "review_id"), step.bands, new_only=True)
    return True


def _next(conn: Connection, now: datetime, after: int, most: int) -> Sequence[Sequence[Any]]:
    """Number, number of the equal text and text of the next reviews."""
    query = select(reviews.c.id, reviews.c.same_as, reviews.c.body).where(reviews.c.id > after)
    query = query.order_by(reviews.c.id).limit(most)
    if conn.dialect.name == "sqlite":  # one writer at a time: numbers appear in their order
        return conn.execute(query).all()
    rows = conn.execute(query.add_columns(reviews.c.collected_at)).all()
    young = next((at for at, row in enumerate(rows) if row.collected_at > now - SETTLED), len(rows))
    return [row[:3] for row in rows[:young]]


def _text(review_id: int, body: str) -> _Text:
    found = shingles(plain(body))
    return _Text(review_id, found, bands(found))


def _compare(conn: Connection, texts: Sequence[_Text]) -> tuple[list[_Link], list[tuple[int, int]]]:
    """Links, and the open bands of the texts that are originals."""
    members = _members(conn, {band for text in texts for band in text.bands})
    known = _shingles_of(conn, {one for text in texts for one in _candidates(text, members)})
    links: list[_Link] = []
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


def _members(conn: Connection, keys: Collection[int]) -> dict[int, list[int]]:
    """Numbers of the reviews in those of these bands that have any."""
    found: dict[int, list[int]] = {}
    for band, review_id in rows_with(conn, review_bands, "band, review_id", "band", keys):
        found.setdefault(band, []).append(review_id)
    return found


def _candidates(text: _Text, members: Mapping[int, Sequence[int]]) -> list[int]:
    """Earlier reviews that share a band, those that share most first, at most `_MOST_CANDIDATES`."""
    shared = [one for band in text.bands if band in members for one in members[band] if one < text.id]
    if not shared:
        return []
    times = Counter(shared)
    return sorted(times, key=lambda one: (-times[one], one))[:_MOST_CANDIDATES]


def _shingles_of(conn: Connection, ids: Collection[int]) -> dict[int, tuple[int, ...]]:
    rows = rows_with(conn, reviews, "id, body", "id", ids)
    return {review_id: shingles(plain(body)) for review_id, body in rows}


def _nearest(text: _Text, candidates: Sequence[int], known: Mapping[int, tuple[int, ...]]) -> _Link | None:
    if not candidates:
        return None
    own = frozenset(text.shingles)
    found = ((near(own, frozenset(known[one])), one) for one in candidates)
    best = min(((-how, one) for how, one in found if how is not None), default=None)
    return None if best is None else _Link(text.id, best[1], round(-best[0], 3))
