"""Reviews for people: searched, counted, and one with where it came from. Reads only.

Every query is bounded: a search looks at so many reviews, says where it stopped, and goes on from there when asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from splitter.spans import CHINA
from sqlalchemy import ColumnElement, Select, Table, exists, func, or_, select

from tasks.domain.product_match import Verdict
from tasks.domain.voices import Voice
from tasks.store.content.reviews import column
from tasks.store.sql.database import count_by, newest
from tasks.store.sql.tables import (
    attempts,
    page_products,
    pages,
    products,
    review_links,
    reviews,
    subtasks,
    task_parts,
)
from tasks.store.sql.transaction import Transaction

WINDOW = 10_000
"""Reviews looked at in one query."""
_WINDOWS = 5
NEWEST = 20_000
"""Reviews that are counted."""
_COPIES = 50

_WHEN = func.coalesce(reviews.c.published_at, reviews.c.collected_at)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A search for reviews.

    Attributes:
        words: each is somewhere in title or body, whatever its case.
        product: its number.
        first, last: days (of China) they were published, else collected, on.
        voice: None: of any, also not judged.
    """

    words: tuple[str, ...] = ()
    site: str | None = None
    product: int | None = None
    first: date | None = None
    last: date | None = None
    voice: Voice | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundReview:
    """A review in a list.

    Attributes:
        variant: which one of the product it is of, as written (an app's version); empty where it does not say.
        node: that collected it; empty where it was imported.
        provenance: "crawled" or "imported".
        source: of the import, by name; None: it was crawled.
        original: number of the review that this one repeats, word by word or nearly; None: of none.
        voice: whose it is, with its probability; None: not judged.
        sentiment: -1 to 1.
        confidence: how surely its page was read, 0 to 1; None: it was imported, or stored by version 0.9.0.
    """

    id: int
    site: str
    url: str
    title: str
    page_title: str
    body: str
    author: str
    published_at: datetime | None
    date_text: str
    rating: float | None
    variant: str
    collected_at: datetime
    node: str
    provenance: str
    source: str | None
    original: int | None
    voice: str | None
    voice_probability: float | None
    sentiment: float | None
    confidence: float | None


@dataclass(frozen=True, slots=True)
class Search:
    """A search's result.

    Attributes:
        before: go on with reviews before this number; None: all were looked at.
        looked_at: how many numbers were looked at.
    """

    rows: Sequence[FoundReview]
    before: int | None
    looked_at: int


def search(conn: Transaction, wanted: Wanted, *, before: int | None = None, most: int) -> Search:
    """The newest reviews that are wanted, at most `most`, among the next 50,000 before a number.

    Args:
        before: only reviews with lower numbers; None: from the newest on.
    """
    last = conn.execute(select(func.max(reviews.c.id))).scalar_one() or 0
    top = last + 1 if before is None else min(before, last + 1)
    begin, found = top, list[FoundReview]()
    for _ in range(_WINDOWS):
        statement = _of(wanted).where(reviews.c.id < top, reviews.c.id >= top - WINDOW)
        rows = conn.execute(statement.order_by(reviews.c.id.desc()).limit(most + 1 - len(found)))
        found += [FoundReview(**row._mapping) for row in rows]
        if len(found) > most:
            return Search(found[:most], found[most - 1].id, begin - found[most - 1].id)
        top -= WINDOW
        if top <= 1:
            return Search(found, None, begin - 1)
    return Search(found, top, begin - top)


def _of(wanted: Wanted) -> Select[Any]:
    r = reviews.c
    original = func.coalesce(r.same_as, review_links.c.original_id)
    names = (name for name in FoundReview.__dataclass_fields__ if name != "original")
    statement = (
        select(*(column(name).label(name) for name in names), original.label("original"))
        .join(pages, pages.c.id == r.page_id)
        .outerjoin(review_links, review_links.c.review_id == r.id)
    )
    return statement.where(*_conditions(wanted))


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    r = reviews.c
    found = [
        or_(r.body.icontains(word, autoescape=True), r.title.icontains(word, autoescape=True))
        for word in wanted.words
    ]
    if wanted.site is not None:
        found.append(r.site == wanted.site)
    if wanted.voice is not None:
        found.append(r.voice == wanted.voice)
    if wanted.product is not None:
        found.append(
            exists().where(
                page_products.c.page_id == r.page_id,
                page_products.c.product_id == wanted.product,
                page_products.c.verdict == Verdict.REVIEW,
            )
        )
    if wanted.first is not None:
        found.append(datetime.combine(wanted.first, time.min, CHINA) <= _WHEN)
    if wanted.last is not None:
        found.append(datetime.combine(wanted.last, time.min, CHINA) + timedelta(days=1) > _WHEN)
    return found


@dataclass(frozen=True, slots=True)
class Origin:
    """A review with where it came from.

    Attributes:
        page_url: the page it was read from; `review.url` may be its own.
        products: that its page is about: (number, name).
        subtask, attempt: the attempt that collected it, and its number in its subtask; None: it was imported.
        found_by: words of the search that found its page; empty: not known.
        original_similarity: how near the original is, 0 to 1; None: equal, or no repost.
        copies: reviews that repeat it: (number, site, similarity; 1: equal).
    """

    review: FoundReview
    page_url: str
    fetched_at: datetime
    products: Sequence[tuple[int, str]]
    subtask: int | None
    attempt: int | None
    found_by: str
    original_similarity: float | None
    copies: Sequence[tuple[int, str, float]]


def origin(conn: Transaction, number: int) -> Origin | None:
    """A review with where it came from; None: there is none of that number."""
    row = conn.execute(_of(Wanted()).where(reviews.c.id == number)).one_or_none()
    if row is None:
        return None
    came = conn.execute(
        select(
            pages.c.id,
            pages.c.url,
            pages.c.fetched_at,
            attempts.c.subtask_id,
            attempts.c.no,
            task_parts.c.keywords,
        )
        .join(reviews, reviews.c.page_id == pages.c.id)
        .outerjoin(attempts, attempts.c.id == reviews.c.attempt_id)
        .outerjoin(subtasks, subtasks.c.id == attempts.c.subtask_id)
        .outerjoin(task_parts, task_parts.c.id == subtasks.c.part_id)
        .where(reviews.c.id == number)
    ).one()
    about = conn.execute(
        select(products.c.id, products.c.name)
        .join(page_products, page_products.c.product_id == products.c.id)
        .where(page_products.c.page_id == came.id, page_products.c.verdict == Verdict.REVIEW)
        .order_by(products.c.id)
    ).all()
    similarity = conn.execute(
        select(review_links.c.similarity).where(review_links.c.review_id == number)
    ).scalar_one_or_none()
    return Origin(
        review=FoundReview(**row._mapping),
        page_url=came.url,
        fetched_at=came.fetched_at,
        products=[(one.id, one.name) for one in about],
        subtask=came.subtask_id,
        attempt=came.no,
        found_by=" ".join(came.keywords or ()),
        original_similarity=similarity,
        copies=_copies(conn, number),
    )


def _copies(conn: Transaction, number: int) -> list[tuple[int, str, float]]:
    digest = select(reviews.c.text_hash).where(reviews.c.id == number).scalar_subquery()
    equal = conn.execute(
        select(reviews.c.id, reviews.c.site)
        .where(reviews.c.text_hash == digest, reviews.c.same_as == number)
        .order_by(reviews.c.id)
        .limit(_COPIES)
    ).all()
    near = conn.execute(
        select(reviews.c.id, reviews.c.site, review_links.c.similarity)
        .join(review_links, review_links.c.review_id == reviews.c.id)
        .where(review_links.c.original_id == number)
        .order_by(reviews.c.id)
        .limit(_COPIES)
    ).all()
    return [(one.id, one.site, 1.0) for one in equal] + [(one.id, one.site, one.similarity) for one in near]


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of the newest `NEWEST` reviews there are of each product, site, day (of UTC, the newest 60) and voice.

    Those that no model has judged are of no voice.
    """

    products: Mapping[str, int]
    sites: Mapping[str, int]
    days: Mapping[date, int]
    voices: Mapping[Voice, int]


def counts(conn: Transaction) -> Counts:
    """Counts for charts, the most first; days in order."""
    r = reviews.c
    own = newest(NEWEST, r.id, r.page_id, r.site, r.voice, _WHEN.label("at"))
    n = func.count().label("n")
    p = page_products.c
    # Outer joins: else SQLite may begin with the pages of all products.
    of_products = conn.execute(
        select(products.c.name, n)
        .select_from(
            own.outerjoin(page_products, (p.page_id == own.c.page_id) & (p.verdict == Verdict.REVIEW))
        )
        .outerjoin(products, products.c.id == p.product_id)
        .group_by(products.c.name)
        .order_by(n.desc(), products.c.name)
    ).all()
    of_sites = conn.execute(select(own.c.site, n).group_by(own.c.site).order_by(n.desc(), own.c.site)).all()
    at = own.c.at if conn.dialect.name == "sqlite" else func.timezone("UTC", own.c.at)
    day = func.date(at)
    rows = conn.execute(select(day.label("day"), n).group_by(day)).all()
    of_days = {date.fromisoformat(str(one.day)): one.n for one in rows if one.day is not None}
    n_of: dict[str | None, int] = count_by(conn, own.c.voice)
    return Counts(
        {row.name: row.n for row in of_products if row.name is not None},
        {row.site: row.n for row in of_sites},
        dict(sorted(of_days.items())[-60:]),
        {voice: n_of[voice] for voice in Voice if voice in n_of},
    )


def names_of_products(conn: Transaction, most: int) -> list[tuple[int, str]]:
    """Products to choose from, by name: at most so many."""
    table: Table = products
    rows = conn.execute(select(table.c.id, table.c.name).order_by(table.c.name).limit(most))
    return [(row.id, row.name) for row in rows]
