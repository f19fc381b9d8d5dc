"""Stored pages to be judged anew, with all that it takes; and what was found (`tasks.jobs.judging`), stored.

Nothing is deleted: a page that turns out to be about another product keeps its reviews, marked by its link, and the
records that were refused before become reviews where they are some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tasks.domain.pages import Review
from tasks.domain.voices import VoiceJudgement
from tasks.store.content import linked_products, near_links, page_links, refused
from tasks.store.content.linked_products import LinkedProduct
from tasks.store.content.page_links import Link
from tasks.store.content.refused import Refused
from tasks.store.content.reviews import insert_reviews, review_values
from tasks.store.sql.transaction import Transaction


class PageRow(NamedTuple):
    """A row of `pages`, with the columns that judging reads or that change when the page is stored again."""

    id: int
    url: str
    site: str
    title: str
    content_hash: str
    reviews: int
    fetched_at: datetime
    node: str
    attempt_id: int | None
    checked_at: datetime | None
    withheld: int
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A page as it is stored.

    Attributes:
        links: to products, each with its name and keyword sets.
        reviews: each with its number, and with its voice if that was judged.
        refused: its records that are no reviews of it, as far as they are still there.
    """

    row: PageRow
    links: Sequence[LinkedProduct]
    reviews: Sequence[tuple[int, Review]]
    refused: Sequence[Refused]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPage:
    """The new judgement of a page, to be stored.

    Attributes:
        voices: of reviews, by number.
        links: that changed.
        taken_in: refused records that are reviews now.
        refused: what stays refused.
        site_known: its site is in the catalog.
    """

    page: StoredPage
    voices: Sequence[tuple[int, VoiceJudgement]] = ()
    links: Sequence[Link] = ()
    taken_in: Sequence[Review] = ()
    refused: Sequence[Refused] = ()
    site_known: bool = True


def count_after(tx: Transaction, after: int, product_id: int | None) -> int:
    """Return the number of pages behind this one; of all products, or of one."""
    return int(tx.value(f"SELECT count(*) {_AFTER}", after=after, product=product_id))


def following(tx: Transaction, after: int, product_id: int | None, most: int) -> list[StoredPage]:
    """Return the next pages behind this number, at most `most`; of all products, or of one."""
    rows = tx.records(PageRow, _FOLLOWING, after=after, product=product_id, most=most)
    numbers = [row.id for row in rows]
    links, refusals = linked_products.of_pages(tx, numbers), refused.of_pages(tx, numbers)
    stored = _reviews(tx, numbers)
    return [
        StoredPage(
            row=row, links=links.get(row.id, ()), reviews=stored[row.id], refused=refusals.get(row.id, ())
        )
        for row in rows
    ]


_COLUMNS = ", ".join(PageRow._fields)
_AFTER = """
    FROM pages WHERE id > :after
        AND (:product IS NULL OR id IN (SELECT page_id FROM page_products WHERE product_id = :product))
"""
_FOLLOWING = f"SELECT {_COLUMNS} {_AFTER} ORDER BY id LIMIT :most"


class _ReviewRow(NamedTuple):
    page_id: int
    id: int
    key: str
    title: str
    body: str
    author: str
    date_text: str
    published_at: datetime | None
    rating: float | None
    variant: str
    voice: str | None
    voice_probability: float | None
    buyer: float | None
    sentiment: float | None
    voice_model: str | None


_TEXTS = slice(_ReviewRow._fields.index("key"), _ReviewRow._fields.index("voice"))
_VOICE = slice(_TEXTS.stop, None)
_VOICE_COLUMNS = _ReviewRow._fields[_VOICE]


def _reviews(tx: Transaction, page_ids: Sequence[int]) -> Mapping[int, list[tuple[int, Review]]]:
    found: dict[int, list[tuple[int, Review]]] = defaultdict(list)
    for row in tx.records(_ReviewRow, _REVIEWS, pages=page_ids):
        values: tuple[Any, ...] = row
        voice = VoiceJudgement(*values[_VOICE]) if row.voice is not None else None
        found[row.page_id].append((row.id, Review._make([*values[_TEXTS], voice])))
    return found


_REVIEWS = f"SELECT {', '.join(_ReviewRow._fields)} FROM reviews WHERE page_id IN :pages ORDER BY id"


def save(tx: Transaction, now: datetime, judged: Sequence[JudgedPage]) -> None:
    """Store judgements. A page that has changed since it was read is left as it is: it was judged then."""
    numbers = [one.page.row.id for one in judged]
    stored = {row.id: row for row in tx.records(PageRow, _LOCKED, pages=numbers)}
    same = [one for one in judged if stored[one.page.row.id] == one.page.row]
    for one in same:
        for number, voice in one.voices:
            tx.later(_SET_VOICE, id=number, **dict(zip(_VOICE_COLUMNS, voice, strict=True)))
    page_links.judge_again(tx, [link for one in same for link in one.links])
    for one in same:
        if one.taken_in or one.refused != one.page.refused:
            _take_in(tx, now, one)
    near_links.settle(tx, {link.page_id for one in same for link in one.links})


_LOCKED = f"SELECT {_COLUMNS} FROM pages WHERE id IN :pages ORDER BY id FOR NO KEY UPDATE"
_SET_VOICE = f"UPDATE reviews SET {', '.join(f'{name} = :{name}' for name in _VOICE_COLUMNS)} WHERE id = :id"


def _take_in(tx: Transaction, now: datetime, one: JudgedPage) -> None:
    """Store refused records that are reviews now, and the records that stay refused."""
    row = one.page.row
    now = max(now, row.checked_at or row.fetched_at)
    rows = review_values(now, row.id, row.url, row.site, (row.node, row.attempt_id), one.taken_in)
    insert_reviews(tx, rows)
    refused.save(tx, now, {row.id: one.refused}, again=True)
    fewer = Counter(reason for reason, _ in one.page.refused) - Counter(reason for reason, _ in one.refused)
    for reason, n in fewer.items():
        for statement in (_DELETE_REFUSALS, _LOWER_REFUSALS):
            tx.later(statement, page=row.id, reason=reason, n=n)
    tx.later(
        _CHANGE_PAGE,
        id=row.id,
        reviews=row.reviews + len(one.taken_in),
        withheld=0 if one.taken_in else row.withheld + fewer.total(),
        now=now,
    )


_DELETE_REFUSALS = "DELETE FROM page_refusals WHERE page_id = :page AND reason = :reason AND n <= :n"
_LOWER_REFUSALS = "UPDATE page_refusals SET n = n - :n WHERE page_id = :page AND reason = :reason"
_CHANGE_PAGE = "UPDATE pages SET reviews = :reviews, withheld = :withheld, checked_at = :now WHERE id = :id"
