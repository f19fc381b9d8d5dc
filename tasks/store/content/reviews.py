"""Records of pages, each stored once as a row of `reviews`: reviews, and records that are refused.

`refused` is null for a review. Otherwise it is the reason: one of `tasks.reading.relevance.RejectReason`, or
`wrong_product` if the page is about no product that it was found for. Only reviews are compared with each other: one
whose text equals an earlier one is linked to it (`same_as`), never dropped. A refused record that becomes a review is
inserted again, because exports and the sweep for reposts find new reviews by their numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from tasks.domain.pages import Review
from tasks.store.sql.transaction import Transaction

Refused = tuple[str, Review]
"""The reason why a record is refused, and the record."""


class PageOrigin(NamedTuple):
    """The page that records were read from, and the attempt that read it."""

    page_id: int
    url: str
    site: str
    node: str
    attempt_id: int | None


VOICE = ("voice", "voice_probability", "buyer", "sentiment", "voice_model")
"""The columns of a `tasks.domain.voices.VoiceJudgement`; null: not judged."""
_TEXTS = ("key", "title", "body", "author", "date_text", "published_at", "rating", "variant")
_COLUMNS = ("page_id", *_TEXTS, *VOICE, *PageOrigin._fields[1:], "text_hash", "refused")
_KEY, _HASH, _REFUSED = map(_COLUMNS.index, ("key", "text_hash", "refused"))
_N_TEXTS = len(_TEXTS)
_NOT_JUDGED = (None,) * len(VOICE)
_AT_ONCE = 10_000
"""SQLite takes a limited number of values in one statement."""

Row = tuple[Any, ...]
"""Values of `_COLUMNS`."""


def text_hash(body: str) -> bytes:
    """Return 16 bytes; equal texts have equal ones."""
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def rows_of(origin: PageOrigin, records: Sequence[Review], refused: str | None = None) -> list[Row]:
    """Return the rows of a page's records for `insert`."""
    page_id, *came_from = origin
    return [
        (page_id, *one[:_N_TEXTS], *(one.voice or _NOT_JUDGED), *came_from, text_hash(one.body), refused)
        for one in records
    ]


def rows_of_refused(origin: PageOrigin, records: Sequence[Refused]) -> list[Row]:
    """Return the rows of a page's refused records for `insert`."""
    return [row for reason, one in records for row in rows_of(origin, [one], reason)]


def insert(tx: Transaction, rows: Sequence[Row], *, at: datetime | None = None) -> None:
    """Insert records, collected at a time (now, if none is given); a review is linked to the first with its text."""
    shared = {"collected_at": at or tx.now}
    hashes = [row[_HASH] for row in rows if row[_REFUSED] is None]
    earlier = _find_first(tx, set(hashes))
    if not earlier and len(set(hashes)) == len(hashes):
        tx.insert("reviews", _COLUMNS, rows, shared=shared)
        return
    originals: list[Row] = []
    copies: list[Row] = []
    here: set[bytes] = set()
    for row in rows:
        digest = row[_HASH]
        if row[_REFUSED] is not None:
            originals.append((*row, None))
        elif digest in here and digest not in earlier:
            copies.append(row)
        else:
            here.add(digest)
            originals.append((*row, earlier.get(digest)))
    columns = (*_COLUMNS, "same_as")
    tx.insert("reviews", columns, originals, shared=shared)
    if copies:
        earlier = _find_first(tx, {row[_HASH] for row in copies})
        tx.insert("reviews", columns, [(*row, earlier[row[_HASH]]) for row in copies], shared=shared)


def _find_first(tx: Transaction, hashes: Collection[bytes]) -> dict[bytes, int]:
    """Return the number of the first review with each of these texts that is stored."""
    wanted = list(hashes)
    return {
        bytes(digest): number
        for start in range(0, len(wanted), _AT_ONCE)
        for digest, number in tx.rows(_FIND_FIRST, hashes=wanted[start : start + _AT_ONCE])
    }


_FIND_FIRST = """
    SELECT text_hash, min(id) FROM reviews WHERE text_hash IN :hashes AND same_as IS NULL AND refused IS NULL
    GROUP BY text_hash
"""


def save_again(tx: Transaction, at: datetime, page_id: int, rows: Sequence[Row]) -> int:
    """Store the records of one page that was read again: new reviews, and refused records in place of earlier ones.

    A record without an id on its page is identified by its text: its place changes when others come before it.

    Returns:
        The number of new reviews.
    """
    tx.later("DELETE FROM reviews WHERE page_id = :page AND refused IS NOT NULL", page=page_id)
    stored = tx.rows("SELECT key, text_hash FROM reviews WHERE page_id = :page", page=page_id)
    keys, texts = {key for key, _ in stored}, {bytes(digest) for _, digest in stored}
    added: list[Row] = []
    for row in sorted(rows, key=lambda row: row[_REFUSED] is not None):
        key, digest, is_refused = row[_KEY], row[_HASH], row[_REFUSED] is not None
        has_place = key.startswith("#")
        if not is_refused and (digest in texts if has_place else key in keys):
            continue
        if has_place or key in keys:
            key = f"#{digest.hex()[:16]}"
        if key not in keys:
            keys.add(key)
            added.append((*row[:_KEY], key, *row[_KEY + 1 :]))
    insert(tx, added, at=at)
    return sum(row[_REFUSED] is None for row in added)
