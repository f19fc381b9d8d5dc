"""Reviews that are nearly the same text as an earlier one: linked to it by a sweep, off the hot path, never dropped.

A review is compared with those before it that are no reposts themselves, so that links never chain: whatever is
linked points straight at its original. Equal texts are linked when they are stored (`reviews.same_as`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from sqlalchemy import Connection, select

from tasks.crawl.similar import bands, near, plain, shingles
from tasks.store.bulk import insert_rows
from tasks.store.database import insert_or
from tasks.store.tables import review_bands, review_links, reviews, sweep_marks

SETTLED = timedelta(seconds=60)
"""PostgreSQL numbers rows before it commits them: after this time no lower number appears any more."""

_SWEEP = "reposts"
# Earlier reviews a text is compared with: those that share most bands. Bounds the work for stock phrases.
_MOST_CANDIDATES = 20
# Reviews in one band; more say that the band is a stock phrase, and the other bands decide.
_MOST_IN_BAND = 50
_ASKED_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class _Text:
    """A review as it is compared."""

    id: int
    shingles: frozenset[str]
    bands: Sequence[int]


@dataclass(frozen=True, slots=True)
class _Link:
    """A review, its original, and how near they are."""

    review_id: int
    original_id: int
    similarity: float


def link_reposts(conn: Connection, now: datetime, most: int) -> int:
    """Look at the next reviews in the order of their numbers, and link those whose text is nearly an earlier one's.

    Where several earlier texts are near enough it is the nearest, of equally near ones the earliest.

    Args:
        most: reviews to look at.

    Returns:
        How many were looked at; fewer than `most`: there are no more for now.
    """
    last_id = conn.execute(
        select(sweep_marks.c.last_id).where(sweep_marks.c.sweep == _SWEEP)
    ).scalar_one_or_none()
    rows = _next(conn, now, last_id or 0, most)
    if not rows:
        return 0
    texts = [_text(row.id, row.body) for row in rows if row.same_as is None]
    _save(conn, *_compare(conn, [text for text in texts if text.bands]))
    statement = insert_or(conn.dialect, sweep_marks).values(sweep=_SWEEP, last_id=rows[-1].id)
    conn.execute(
        statement.on_conflict_do_update(
            index_elements=[sweep_marks.c.sweep], set_={"last_id": statement.excluded.last_id}
        )
    )
    return len(rows)


def _next(conn: Connection, now: datetime, after: int, most: int) -> Sequence[Any]:
    rows = conn.execute(
        select(reviews.c.id, reviews.c.same_as, reviews.c.body, reviews.c.collected_at)
        .where(reviews.c.id > after)
        .order_by(reviews.c.id)
        .limit(most)
    ).all()
    if conn.dialect.name == "sqlite":  # one writer at a time: numbers appear in their order
        return rows
    young = next((at for at, row in enumerate(rows) if row.collected_at > now - SETTLED), len(rows))
    return rows[:young]


def _text(review_id: int, body: str) -> _Text:
    found = shingles(plain(body))
    return _Text(review_id, found, bands(found))


def _compare(conn: Connection, texts: Sequence[_Text]) -> tuple[list[_Link], list[_Text]]:
    """Links, and the texts that are originals and in no crowded band."""
    members = _members(conn, {band for text in texts for band in text.bands})
    known = _shingles_of(conn, {one for text in texts for one in _candidates(text, members)})
    links: list[_Link] = []
    originals: list[_Text] = []
    for text in texts:
        link = _nearest(text, _candidates(text, members), known)
        if link is not None:
            links.append(link)
            continue
        known[text.id] = text.shingles
        open_bands = [band for band in text.bands if len(members[band]) < _MOST_IN_BAND]
        for band in open_bands:
            members[band].append(text.id)
        originals.append(_Text(text.id, text.shingles, open_bands))
    return links, originals


def _members(conn: Connection, keys: Iterable[int]) -> dict[int, list[int]]:
    """Numbers of the reviews in each of these bands."""
    found: dict[int, list[int]] = defaultdict(list)
    for some in _chunks(sorted(keys)):
        rows = conn.execute(
            select(review_bands.c.band, review_bands.c.review_id)
            .where(review_bands.c.band.in_(some))
            .order_by(review_bands.c.review_id)
        )
        for band, review_id in rows:
            found[band].append(review_id)
    return found


def _candidates(text: _Text, members: Mapping[int, Sequence[int]]) -> list[int]:
    """Earlier reviews that share a band, those that share most first, at most `_MOST_CANDIDATES`."""
    shared = Counter(one for band in text.bands for one in members.get(band, ()) if one < text.id)
    return sorted(shared, key=lambda one: (-shared[one], one))[:_MOST_CANDIDATES]


def _shingles_of(conn: Connection, ids: Iterable[int]) -> dict[int, frozenset[str]]:
    found: dict[int, frozenset[str]] = {}
    for some in _chunks(sorted(ids)):
        rows = conn.execute(select(reviews.c.id, reviews.c.body).where(reviews.c.id.in_(some)))
        found.update((review_id, shingles(plain(body))) for review_id, body in rows)
    return found


def _nearest(text: _Text, candidates: Sequence[int], known: Mapping[int, frozenset[str]]) -> _Link | None:
    found = ((near(text.shingles, known[one]), one) for one in candidates)
    best = min(((-how, one) for how, one in found if how is not None), default=None)
    return None if best is None else _Link(text.id, best[1], round(-best[0], 3))


def _save(conn: Connection, links: Sequence[_Link], originals: Sequence[_Text]) -> None:
    rows = [(one.review_id, one.original_id, one.similarity) for one in links]
    insert_rows(conn, review_links, ("review_id", "original_id", "similarity"), rows, new_only=True)
    keys = [(band, text.id) for text in originals for band in text.bands]
    insert_rows(conn, review_bands, ("band", "review_id"), sorted(keys), new_only=True)


def _chunks(values: Iterable[int]) -> Iterator[list[int]]:
    rest = iter(values)
    while some := list(islice(rest, _ASKED_AT_ONCE)):
        yield some
