"""Reviews for people: searched, counted, and one with where it came from. Reads only.

Every query is bounded: a search looks at so many reviews, says where it stopped, and goes on from there when asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from splitter.spans import CHINA

from tasks.domain.product_match import Verdict
from tasks.domain.voices import Voice
from tasks.store.sql.transaction import Transaction, contained

WINDOW = 10_000
"""Reviews looked at in one query."""
_WINDOWS = 5
NEWEST = 20_000
"""Reviews that are counted."""
_COPIES = 50
_DAYS_SHOWN = 60


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


def search(tx: Transaction, wanted: Wanted, *, before: int | None = None, most: int) -> Search:
    """Return the newest reviews that are wanted, at most `most`, among the next 50,000 before a number.

    Args:
        before: only reviews with lower numbers; `None`: from the newest on.
    """
    last = tx.value("SELECT max(id) FROM reviews") or 0
    top = last + 1 if before is None else min(before, last + 1)
    begin, found = top, list[FoundReview]()
    conditions, values = _conditions(wanted)
    statement = f"{_FOUND} WHERE {conditions} r.id < :top AND r.id >= :least ORDER BY r.id DESC LIMIT :more"
    for _ in range(_WINDOWS):
        more = most + 1 - len(found)
        found += tx.records(FoundReview, statement, top=top, least=top - WINDOW, more=more, **values)
        if len(found) > most:
            return Search(found[:most], found[most - 1].id, begin - found[most - 1].id)
        top -= WINDOW
        if top <= 1:
            return Search(found, None, begin - 1)
    return Search(found, top, begin - top)


def _conditions(wanted: Wanted) -> tuple[str, dict[str, Any]]:
    """Return what a search asks of a review `r`, each condition with an AND behind it, and its values."""
    values: dict[str, Any] = {f"word_{n}": contained(word) for n, word in enumerate(wanted.words)}
    asked = [
        f"(lower(r.body) LIKE lower(:{name}) ESCAPE '/' OR lower(r.title) LIKE lower(:{name}) ESCAPE '/')"
        for name in values
    ]
    given = {
        "site": wanted.site,
        "voice": wanted.voice,
        "product": wanted.product,
        "first": _start(wanted.first),
        "behind": _start(wanted.last + timedelta(days=1) if wanted.last is not None else None),
    }
    for name, value in given.items():
        if value is not None:
            values[name] = value
            asked.append(_ASKED[name])
    return "".join(f"{condition} AND " for condition in asked), values


def _start(day: date | None) -> datetime | None:
    return None if day is None else datetime.combine(day, time.min, CHINA)


_ASKED = {
    "site": "r.site = :site",
    "voice": "r.voice = :voice",
    "product": f"""EXISTS (
        SELECT 1 FROM page_products l
        WHERE l.page_id = r.page_id AND l.product_id = :product AND l.verdict = '{Verdict.REVIEW}'
    )""",
    "first": "coalesce(r.published_at, r.collected_at) >= :first",
    "behind": "coalesce(r.published_at, r.collected_at) < :behind",
}
_FOUND = """
    SELECT r.id, r.site, r.url, r.title, pages.title AS page_title, r.body, r.author, r.published_at, r.date_text,
        r.rating, r.variant, r.collected_at, r.node,
        CASE WHEN pages.source IS NULL THEN 'crawled' ELSE 'imported' END AS provenance, pages.source,
        coalesce(r.same_as, x.original_id) AS original, r.voice, r.voice_probability, r.sentiment, pages.confidence
    FROM reviews r JOIN pages ON pages.id = r.page_id LEFT JOIN review_links x ON x.review_id = r.id
"""


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


class _Came(NamedTuple):
    id: int
    url: str
    fetched_at: datetime
    subtask_id: int | None
    no: int | None
    keywords: tuple[str, ...] | None
    similarity: float | None


def origin(tx: Transaction, number: int) -> Origin | None:
    """Return a review with where it came from; `None`: there is none of that number."""
    review = tx.record(FoundReview, f"{_FOUND} WHERE r.id = :number", number=number)
    came = tx.record(_Came, _CAME, number=number)
    if review is None or came is None:
        return None
    return Origin(
        review=review,
        page_url=came.url,
        fetched_at=came.fetched_at,
        products=tx.rows(_ABOUT, page=came.id),
        subtask=came.subtask_id,
        attempt=came.no,
        found_by=" ".join(came.keywords or ()),
        original_similarity=came.similarity,
        copies=[*tx.rows(_EQUAL, number=number, most=_COPIES), *tx.rows(_NEAR, number=number, most=_COPIES)],
    )


_CAME = """
    SELECT pages.id, pages.url, pages.fetched_at, a.subtask_id, a.no, p.keywords, x.similarity
    FROM reviews r JOIN pages ON pages.id = r.page_id
    LEFT JOIN attempts a ON a.id = r.attempt_id LEFT JOIN subtasks s ON s.id = a.subtask_id
    LEFT JOIN task_parts p ON p.id = s.part_id LEFT JOIN review_links x ON x.review_id = r.id
    WHERE r.id = :number
"""
_ABOUT = f"""
    SELECT p.id, p.name FROM products p JOIN page_products l ON l.product_id = p.id
    WHERE l.page_id = :page AND l.verdict = '{Verdict.REVIEW}' ORDER BY p.id
"""
_EQUAL = """
    SELECT id, site, 1.0 FROM reviews
    WHERE text_hash = (SELECT text_hash FROM reviews WHERE id = :number) AND same_as = :number
    ORDER BY id LIMIT :most
"""
_NEAR = """
    SELECT r.id, r.site, x.similarity FROM reviews r JOIN review_links x ON x.review_id = r.id
    WHERE x.original_id = :number ORDER BY r.id LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of the newest `NEWEST` reviews there are of each product, site, day (of UTC, the newest 60) and voice.

    Those that no model has judged are of no voice.
    """

    products: Mapping[str, int]
    sites: Mapping[str, int]
    days: Mapping[date, int]
    voices: Mapping[Voice, int]


class _Day(NamedTuple):
    day: date | None
    n: int


def counts(tx: Transaction) -> Counts:
    """Return counts for charts, the most first; days in order."""
    days = tx.records(_Day, _DAYS, newest=NEWEST)
    of_days = sorted((one.day, one.n) for one in days if one.day is not None)
    n_of = dict(tx.rows(f"SELECT voice, count(*) {_NEWEST} GROUP BY voice", newest=NEWEST))
    return Counts(
        dict(tx.rows(_PRODUCTS, newest=NEWEST)),
        dict(tx.rows(f"SELECT site, count(*) {_NEWEST} GROUP BY site ORDER BY 2 DESC, 1", newest=NEWEST)),
        dict(of_days[-_DAYS_SHOWN:]),
        {voice: n_of[voice] for voice in Voice if voice in n_of},
    )


# A subquery, since SQLite might else choose another index and go through the whole table by it.
_NEWEST = """FROM (
    SELECT id, page_id, site, voice, coalesce(published_at, collected_at) AS at
    FROM reviews ORDER BY id DESC LIMIT :newest
) newest"""
_DAYS = f"SELECT date(at) AS day, count(*) AS n {_NEWEST} GROUP BY date(at)"
# Outer joins: else SQLite may begin with the pages of all products.
_PRODUCTS = f"""
    SELECT name, n FROM (
        SELECT products.name, count(*) AS n {_NEWEST}
        LEFT JOIN page_products l ON l.page_id = newest.page_id AND l.verdict = '{Verdict.REVIEW}'
        LEFT JOIN products ON products.id = l.product_id
        GROUP BY products.name
    ) named WHERE name IS NOT NULL ORDER BY n DESC, name
"""


def names_of_products(tx: Transaction, most: int) -> list[tuple[int, str]]:
    """Return products to choose from, by name: at most so many."""
    return tx.rows("SELECT id, name FROM products ORDER BY name LIMIT :most", most=most)
