"""Records of pages, each stored once as a row of `reviews`: reviews, and records that are refused.

`refused` is null for a review. Otherwise it is the reason: one of `tasks.reading.relevance.RejectReason`, or
`wrong_product` if the page is about no product that it was found for. Only reviews are compared with each other: a
copy of an earlier one (an equal text, by `tasks.reading.copies.copy_key`) is linked to it (`same_as`), never dropped.
A refused record that becomes a review is inserted again, because exports and the sweep for reposts find new reviews by
their numbers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, time
from hashlib import blake2b
from itertools import chain, count, repeat
from math import isfinite
from typing import NamedTuple

from tasks.domain.pages import Review
from tasks.domain.themes import Theme
from tasks.domain.verdicts import Verdict
from tasks.domain.voices import VoiceJudgement
from tasks.store.content import corrections
from tasks.store.sql.rows import storable, utc_text
from tasks.store.sql.transaction import Transaction


class PageOrigin(NamedTuple):
    """The page that records were read from, and the attempt that read it."""

    url: str
    site: str
    node: str
    attempt_id: int | None


class Dating(NamedTuple):
    """The columns that say when a record was written.

    Attributes:
        published_at: a `utc_text`; `None` if the date could not be read.
        day: the day in the zone that the date was read in, as ISO 8601.
        has_clock: a time of the day was written; midnight is how a day without one is read.
    """

    published_at: str | None
    day: str | None
    has_clock: bool


_UNDATED = Dating(None, None, False)


def date_columns(date: datetime | None) -> Dating:
    """Return the columns of a date that was read in the zone of its site, or in the one that its page names."""
    if date is None:
        return _UNDATED
    return Dating(utc_text(date), date.date().isoformat(), date.time() != time.min)


class ReviewValues(NamedTuple):
    """A row of `reviews`, without the number of its page; made where the page is read, as one writer writes for all.

    Attributes:
        published_at, day, has_clock: a `Dating`.
        voice, voice_probability, buyer, sentiment, voice_model: a `tasks.domain.voices.VoiceJudgement`; null: not
            judged.
        themes: of each `tasks.domain.themes.Theme` the values, in their order; null: none; empty: not read for themes.
        copy_key: equal for copies (`tasks.reading.copies.copy_key`); null: a copy of no other review.
    """

    key: str
    title: str
    body: str
    author: str
    date_text: str
    published_at: str | None
    day: str | None
    has_clock: bool
    rating: float | None
    variant: str
    voice: str | None
    voice_probability: float | None
    buyer: float | None
    sentiment: float | None
    voice_model: str | None
    themes: Sequence[Sequence[str | int]] | None
    url: str
    site: str
    node: str
    attempt_id: int | None
    text_hash: bytes
    copy_key: bytes | None
    refused: str | None


_COLUMNS = (*ReviewValues._fields, "page_id", "collected_at")
_FIRST_VOICE = ReviewValues._fields.index("voice")
VOICE = ReviewValues._fields[_FIRST_VOICE : _FIRST_VOICE + len(VoiceJudgement._fields)]
_OTHER_PRODUCT = Verdict.WRONG_PRODUCT.value
_NOT_JUDGED = (None,) * len(VOICE)


def text_hash(body: str) -> bytes:
    """Return 16 bytes; equal texts have equal ones."""
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


KeyOf = Callable[[str, str, str], bytes | None]
"""Gives the copy key of a review, by its site, author and body (`tasks.reading.copies.copy_key`)."""


def record_of(
    origin: PageOrigin, review: Review, refused: str | None = None, copy_key: bytes | None = None
) -> ReviewValues:
    """Return the row of a record as it was read, with the reason if it is refused."""
    return _row(origin, _storable_review(review), refused, copy_key)


def _storable_review(review: Review) -> Review:
    """Return a review whose texts both databases store."""
    joined = "".join((review.key, review.title, review.body, review.author, review.date_text, review.variant))
    if joined == storable(joined):
        return review
    return review._replace(
        key=storable(review.key),
        title=storable(review.title),
        body=storable(review.body),
        author=storable(review.author),
        date_text=storable(review.date_text),
        variant=storable(review.variant),
    )


def _row(origin: PageOrigin, review: Review, refused: str | None, copy_key: bytes | None) -> ReviewValues:
    key, title, body, author, date_text, date, rating, variant, voice, themes = review
    read = (key, title, body, author, date_text, *date_columns(date))
    shown = rating if rating is None or isfinite(rating) else None
    judged = (*(voice or _NOT_JUDGED), theme_column(themes))
    return ReviewValues._make((*read, shown, variant, *judged, *origin, text_hash(body), copy_key, refused))


def theme_column(themes: Iterable[Theme] | None) -> list[tuple[str, int, int, int]] | None:
    """Return the value of the column `themes`: `None` if there are none, an empty list if it was not read."""
    if themes is None:
        return []
    return [(one.id, one.sentiment, one.quote_from, one.quote_to) for one in themes] or None


def read_themes(values: Iterable[tuple[str, int, int, int]]) -> tuple[Theme, ...]:
    """Return the themes in a value of the column `themes`."""
    return tuple(Theme(*one) for one in values)


def records_of(
    origin: PageOrigin,
    kept: Iterable[Review],
    refused: Iterable[tuple[str, Review]],
    verdict: Verdict,
    key_of: KeyOf,
) -> list[ReviewValues]:
    """Return the rows of a page: of reviews, and of records that are refused, each with its reason.

    Args:
        verdict: of the page; if it is about another product, its reviews are refused.
    """
    reason = _OTHER_PRODUCT if verdict is Verdict.WRONG_PRODUCT else None
    rows = []
    for why, review in chain(zip(repeat(reason), kept), refused):
        one = _storable_review(review)
        rows.append(_row(origin, one, why, key_of(origin.site, one.author, one.body)))
    return rows


def judge_again(records: Iterable[ReviewValues], *, of_product: bool) -> list[ReviewValues]:
    """Return a page's records with its reviews refused, or not, because of the product that the page is about."""
    reason = None if of_product else _OTHER_PRODUCT
    return [one._replace(refused=reason) if one.refused in (None, _OTHER_PRODUCT) else one for one in records]


def insert(
    tx: Transaction, pages: Iterable[tuple[int, Iterable[ReviewValues]]], *, at: datetime | None = None
) -> None:
    """Insert records of pages, each review linked to the first one that it is a copy of if there is one.

    Args:
        pages: numbers of pages, each with its records.
        at: when they were collected, if not now.
    """
    rows: list[tuple[object, ...]] = []
    copies: list[tuple[object, ...]] = []
    here: set[bytes] = set()
    collected_at = utc_text(at or tx.now)
    for page_id, records in pages:
        added = (page_id, collected_at)
        for record in records:
            row = record + added
            if record.refused is not None or record.copy_key is None:
                rows.append(row)
            elif record.copy_key in here:
                copies.append(row)  # a statement does not find the rows that it inserts itself
            else:
                here.add(record.copy_key)
                rows.append(row)
    for some in (rows, copies):
        tx.insert("reviews", _COLUMNS, some, computed={"same_as": _FIRST, "correction_id": corrections.FIND})


_FIRST = """
    CASE WHEN {refused} IS NULL THEN (
        SELECT min(id) FROM reviews WHERE copy_key = {copy_key} AND same_as IS NULL AND refused IS NULL
    ) END
"""


def get_copy_keys(tx: Transaction, ids: Collection[int]) -> dict[int, bytes | None]:
    """Return the copy keys of records, by their numbers."""
    rows = tx.rows("SELECT id, copy_key FROM reviews WHERE id IN :ids", ids=ids)
    return {number: None if key is None else bytes(key) for number, key in rows}


class StoredText(NamedTuple):
    """The hash of the text of a stored review, and its copy key."""

    text_hash: bytes
    copy_key: bytes | None


def list_texts(tx: Transaction, page_ids: Collection[int]) -> dict[int, dict[str, StoredText]]:
    """Return the text of each review of pages, by page and key."""
    found: dict[int, dict[str, StoredText]] = {page_id: {} for page_id in page_ids}
    for page_id, key, digest, copy_key in tx.rows(_TEXTS, pages=page_ids):
        found[page_id][key] = StoredText(bytes(digest), None if copy_key is None else bytes(copy_key))
    return found


_TEXTS = "SELECT page_id, key, text_hash, copy_key FROM reviews WHERE page_id IN :pages AND refused IS NULL"


def save_again(
    tx: Transaction, at: datetime, page_id: int, records: Sequence[ReviewValues], known: dict[str, StoredText]
) -> int:
    """Store the records of one page that was read again: new reviews, and refused records in place of earlier ones.

    The place of a record without an id on its page changes when others come before it. So such records are identified
    by their texts: if the page has a text more often than before, the others are new, those of other authors first.

    Args:
        known: texts of the page's reviews, by key; new ones are added.

    Returns:
        The number of new reviews.
    """
    tx.later("DELETE FROM reviews WHERE page_id = :page AND refused IS NOT NULL", page=page_id)
    added: dict[str, ReviewValues] = {}
    for record in _list_new(records, known):
        key = record.key
        if key.startswith("#") or key in known or key in added:
            key = _next_key(record.text_hash, known.keys() | added.keys())
        added[key] = record._replace(key=key)
    refused: dict[str, ReviewValues] = {}
    for record in records:
        key = record.key
        if key.startswith("#") or key in known or key in added:
            key = f"#{record.text_hash.hex()[:16]}"
        if record.refused is not None and key not in known and key not in added:
            refused.setdefault(key, record._replace(key=key))
    insert(tx, [(page_id, [*added.values(), *refused.values()])], at=at)
    known.update({key: StoredText(one.text_hash, one.copy_key) for key, one in added.items()})
    return len(added)


def _list_new(records: Iterable[ReviewValues], known: Mapping[str, StoredText]) -> list[ReviewValues]:
    """Return the reviews of a page that are not stored yet."""
    times = Counter(one.text_hash for one in known.values())
    copy_keys = {one.copy_key for one in known.values() if one.copy_key is not None}
    with_id: dict[str, ReviewValues] = {}
    same_text: dict[bytes, list[ReviewValues]] = defaultdict(list)
    for record in records:
        if record.refused is not None:
            continue
        if record.key.startswith("#"):
            same_text[record.text_hash].append(record)
        elif record.key not in known:
            with_id.setdefault(record.key, record)
    new = list(with_id.values())
    for text, found in same_text.items():
        found.sort(key=lambda one: one.copy_key in copy_keys)
        new += found[: max(0, len(found) - times[text])]
    return new


def _next_key(text: bytes, taken: Collection[str]) -> str:
    """Return a key for a further review with this text on its page."""
    first = f"#{text.hex()[:16]}"
    if first not in taken:
        return first
    further = (f"{first} {n}" for n in count(2))
    return next(key for key in further if key not in taken)
