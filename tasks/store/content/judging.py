"""Stored pages to be judged anew, with all that it takes; and what was found (`tasks.jobs.judging`), stored.

Nothing is deleted: a page that turns out to be about another product keeps its reviews, marked by its link, and the
records that were refused before become reviews where they are some.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select, update

from tasks.domain.pages import Review
from tasks.domain.voices import VoiceJudgement
from tasks.store.content import linked_products, near_links, page_links, refused
from tasks.store.content.linked_products import LinkedProduct
from tasks.store.content.page_links import Link
from tasks.store.content.refused import Refused
from tasks.store.content.reviews import insert_reviews, review_values
from tasks.store.sql.prepared import update_each
from tasks.store.sql.tables import (
    page_products,
    page_refusals,
    pages,
    reviews,
)
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A page as it is stored.

    Attributes:
        row: of `pages`.
        links: to products, each with its name and keyword sets.
        reviews: each with its number and the voice it has; without a voice where none was judged.
        refused: its records that are no reviews of it, as far as they are still there.
    """

    row: Any
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


def count_after(conn: Transaction, after: int, product_id: int | None) -> int:
    """How many pages there are behind this number."""
    return int(conn.execute(_asked(select(func.count(pages.c.id)), after, product_id)).scalar_one())


def following(conn: Transaction, after: int, product_id: int | None, most: int) -> list[StoredPage]:
    """The next pages behind this number; of all products, or of one."""
    asked = _asked(select(pages), after, product_id).order_by(pages.c.id).limit(most)
    rows = {row.id: row for row in conn.execute(asked)}
    links = linked_products.of_pages(conn, list(rows))
    kept, others = _reviews(conn, list(rows)), refused.of_pages(conn, rows)
    return [
        StoredPage(row=row, links=links.get(of, ()), reviews=kept[of], refused=others.get(of, ()))
        for of, row in rows.items()
    ]


def _asked(statement: Any, after: int, product_id: int | None) -> Any:
    if product_id is not None:
        statement = statement.join(page_products, page_products.c.page_id == pages.c.id)
        statement = statement.where(page_products.c.product_id == product_id)
    return statement.where(pages.c.id > after)


def _reviews(conn: Transaction, page_ids: Sequence[int]) -> Mapping[int, list[tuple[int, Review]]]:
    r = reviews.c
    texts = (r.key, r.title, r.body, r.author, r.date_text, r.published_at, r.rating, r.variant)
    voice = (r.voice, r.voice_probability, r.buyer, r.sentiment, r.voice_model)
    asked = select(r.page_id, r.id, *texts, *voice).where(r.page_id.in_(page_ids)).order_by(r.id)
    found: dict[int, list[tuple[int, Review]]] = defaultdict(list)
    for page_id, number, *values in conn.execute(asked):
        told, judged = values[: len(texts)], values[len(texts) :]
        of = VoiceJudgement(*judged) if judged[0] is not None else None
        found[page_id].append((number, Review._make([*told, of])))
    return found


def save(conn: Transaction, now: datetime, judged: Sequence[JudgedPage]) -> None:
    """Store what was found of pages. One that has changed since it was read is left as it is: it was judged then."""
    p = pages.c
    asked = select(pages).where(p.id.in_([one.page.row.id for one in judged])).order_by(p.id)
    same = {row.id: row for row in conn.execute(asked.with_for_update(key_share=True))}
    found = [one for one in judged if same[one.page.row.id] == one.page.row]
    voices = [
        dict(zip(_VOICE, (number, *voice), strict=True)) for one in found for number, voice in one.voices
    ]
    update_each(conn, reviews, ("id",), voices)
    page_links.judge_again(conn, [link for one in found for link in one.links])
    for one in found:
        if one.taken_in or one.refused != one.page.refused:
            _take_in(conn, now, one)
    near_links.settle(conn, {link.page_id for one in found for link in one.links})


_VOICE = ("id", "voice", "voice_probability", "buyer", "sentiment", "voice_model")


def _take_in(conn: Transaction, now: datetime, one: JudgedPage) -> None:
    row = one.page.row
    now = max(now, row.checked_at or row.fetched_at)
    rows = review_values(conn, now, row.id, row.url, row.site, (row.node, row.attempt_id), one.taken_in)
    insert_reviews(conn, rows)
    refused.save(conn, now, {row.id: one.refused}, again=True)
    fewer = Counter(reason for reason, _ in one.page.refused) - Counter(reason for reason, _ in one.refused)
    of = page_refusals.c
    for reason, n in fewer.items():
        its = (of.page_id == row.id, of.reason == reason)
        conn.execute(delete(page_refusals).where(*its, of.n <= n))
        conn.execute(update(page_refusals).where(*its).values(n=of.n - n))
    withheld = 0 if one.taken_in else row.withheld + fewer.total()
    values = {"reviews": row.reviews + len(one.taken_in), "withheld": withheld, "checked_at": now}
    conn.execute(update(pages).where(pages.c.id == row.id).values(values))
