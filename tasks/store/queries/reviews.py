"""Reviews for people: exported, searched, counted, and one with its origin. Reads only.

A search is bounded: it looks at `_WINDOWS` times `_WINDOW` numbers, returns where it stopped, and continues from there.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Annotated, Any, NamedTuple, get_type_hints

from tasks.domain.verdicts import Verdict
from tasks.domain.voices import Voice
from tasks.store.content.corrections import JOIN, VOICE, left_out
from tasks.store.content.counted_reviews import QUOTED, list_complained, write_day
from tasks.store.content.products import unknown_product
from tasks.store.sql.transaction import Transaction, as_pattern

_AT_ONCE = 2_000
_WINDOW = 10_000
_WINDOWS = 5
LOOKED_AT = _WINDOW * _WINDOWS
"""Reviews that a search looks at."""
_COPIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRow:
    """A review, as it serves one product.

    Attributes:
        product: name of the product it serves; a review of several has a row for each.
        site: the site that was crawled, or the one an imported file named.
        url: address of its page.
        page_title: title of that page.
        title: its own; empty if it has none.
        body: its text.
        author: as written, or the pseudonym; empty if there is no name.
        published_at: when it was written; None if its date could not be read.
        date_text: the date as written.
        rating: as the site gives it; scales differ by site.
        collected_at: when it was stored.
        node: the node that collected it; empty if it was imported.
        attempt: number of the attempt that collected it; None if it was imported.
        provenance: "crawled" or "imported".
        source: name of the import's source; None if it was crawled.
        review: its number, which `same_as` and `near_of` name.
        same_as: number of the first review that this one is a copy of: the same text, by the same author or too long
            for chance; None if it is no copy.
        near_of: number of an earlier review with nearly the same text, if this one (or the one it copies) is a repost.
        found_by: words of the search that its page was first found by for this product, fewer than all of its keywords
            if that search was relaxed; None if another product's search found it.
        day: the day it was written on, in the zone of its site or in the one that its page names; None if its date
            could not be read.
        confidence: how surely its page was read, 0 to 1; None if it was imported, or stored by version 0.9.0.
        has_clock: a time of the day was written as well; if not, `published_at` is the midnight of its day.
        similarity: how near that text is, 0 to 1 (`tasks.reading.copies.near_duplicates`).
        variant: the reviewed variant of the product, as written (an app's version); empty if it names none.
        voice: who speaks: complaint or praise (a buyer's), question, news, company, other; None: not judged.
        voice_probability: probability of this voice, 0 to 1; None: a person chose it.
        sentiment: -1 (bad) to 1 (good), whoever speaks.
        themes: what a buyer complains about, as ids of the themes file; None: no theme.
        theme_quotes: for each of `themes` the clause that shows it.
        left_out: why it does not count for this product: hidden, not_product or excluded_word; empty: it counts.
        corrected: what a person corrected: voice, themes, hidden, not_product, separated by blanks.
        corrected_by: the person who corrected it last; None if it was not corrected.
        corrected_at: when it was corrected last; None: never.
        counted_as: name of the product under which it is counted: `product`, or the one that `product` is counted as.
    """

    product: str
    site: str
    url: str
    page_title: str
    title: str
    body: str
    author: str
    published_at: datetime | None
    date_text: str
    rating: float | None
    collected_at: datetime
    node: str
    attempt: int | None
    same_as: int | None
    near_of: int | None
    similarity: float | None
    review: int
    provenance: str = "crawled"
    source: str | None = None
    variant: str = ""
    voice: str | None = None
    voice_probability: float | None = None
    sentiment: float | None = None
    found_by: Annotated[str | None, " ".join] = None
    day: date | None = None
    confidence: float | None = None
    has_clock: bool = False
    themes: tuple[str, ...] | None = None
    theme_quotes: tuple[str, ...] | None = None
    left_out: str = ""
    corrected: str = ""
    corrected_by: str | None = None
    corrected_at: datetime | None = None
    counted_as: str = ""

    @property
    def original(self) -> int | None:
        """Number of the review that this one repeats, word by word or nearly."""
        return self.near_of if self.same_as is None else self.same_as


_IS_PRODUCT = ":product IN ({0}.id, {0}.counted_as)"
_HAS_NAME = """
    (p.name IN :products OR p.counted_as IN (SELECT m.id FROM products m WHERE m.name IN :products))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFilter:
    """A filter of reviews: every field must match; empty and `None` match all.

    A field's annotation holds its condition in SQL.

    Attributes:
        words: each is somewhere in title or body, whatever its case.
        product: number of the product; it matches as well those that are counted as it.
        products: exact names; one of them, or counted as one of them.
        sites: one of them.
        since: collected at this time or later.
        day_from, day_to: the first and the last of the days; reviews without a readable date are outside.
        voices: one of them.
        theme: those that complain about it, as they are counted: of equal texts the first one for each product.
        undated: True: only those without a readable date.
        counted: True: only those that count for their product; False: only those that don't.
        corrected: True: only those that a person corrected, hidden ones too.
        after, upto: a range of numbers, without the first one.
        linked_after, linked_upto: a range of serials of links (`tasks.store.content.links`), without the first.
    """

    words: tuple[str, ...] = ()
    product: Annotated[int | None, _IS_PRODUCT.format("p")] = None
    products: Annotated[tuple[str, ...], _HAS_NAME] = ()
    sites: Annotated[tuple[str, ...], "r.site IN :sites"] = ()
    since: Annotated[datetime | None, "r.collected_at >= :since"] = None
    day_from: Annotated[date | None, "r.day >= :day_from"] = None
    day_to: Annotated[date | None, "r.day <= :day_to"] = None
    voices: Annotated[tuple[Voice, ...], f"{VOICE} IN :voices"] = ()
    theme: str = ""
    undated: Annotated[bool | None, "r.day IS NULL"] = None
    counted: Annotated[bool | None, f"({left_out()} IS NULL) = :counted"] = None
    corrected: Annotated[bool | None, "c.id IS NOT NULL"] = None
    after: Annotated[int | None, "r.id > :after"] = None
    upto: Annotated[int | None, "r.id <= :upto"] = None
    linked_after: Annotated[int | None, "l.serial > 0 AND l.serial > :linked_after"] = None
    linked_upto: Annotated[int | None, "l.serial <= :linked_upto"] = None


ALL = ReviewFilter()
_HINTS = get_type_hints(ReviewFilter, include_extras=True)
_CONDITIONS = {name: hint.__metadata__[0] for name, hint in _HINTS.items() if name not in ("words", "theme")}
# A word has no blank, so it is in one of the two.
HAS_WORD = "(r.title || ' ' || r.body) GLOB '*' || :word_{} || '*'"

_REVIEWS = f"""
    FROM reviews r JOIN pages g ON g.id = r.page_id AND r.refused IS NULL
    LEFT JOIN page_products l ON l.page_id = r.page_id AND l.verdict = '{Verdict.REVIEW}'
    LEFT JOIN products p ON p.id = l.product_id {JOIN}
"""
_CAME_BY = f"""{_REVIEWS}
    LEFT JOIN attempts a ON a.id = r.attempt_id LEFT JOIN subtasks s ON s.id = a.subtask_id
    LEFT JOIN task_parts t ON t.id = s.part_id
    LEFT JOIN review_links x ON x.review_id = coalesce(r.same_as, r.id)
"""
_CORRECTED = """
    CASE WHEN c.id IS NULL THEN '' ELSE trim(
        CASE WHEN c.voice IS NULL THEN '' ELSE 'voice ' END || CASE WHEN c.themes IS NULL THEN '' ELSE 'themes ' END
        || CASE WHEN c.hidden THEN 'hidden ' ELSE '' END || CASE WHEN EXISTS (
            SELECT 1 FROM correction_products n WHERE n.correction_id = c.id AND n.product_id = p.id
        ) THEN 'not_product' ELSE '' END
    ) END
"""
_COLUMNS = f"""coalesce(p.name, '') AS product,
    coalesce((SELECT m.name FROM products m WHERE m.id = p.counted_as), p.name, '') AS counted_as,
    r.site, r.url, g.title AS page_title, r.title, r.body, r.author, r.published_at, r.day, r.has_clock,
    r.date_text, r.rating, r.collected_at, r.node,
    r.attempt_id AS attempt, r.same_as, x.original_id AS near_of, x.similarity, r.id AS review, g.source,
    g.confidence, r.variant, {VOICE} AS voice,
    CASE WHEN c.voice IS NULL THEN r.voice_probability END AS voice_probability, r.sentiment,
    coalesce({left_out()}, '') AS left_out, {_CORRECTED} AS corrected, c.who AS corrected_by, c.at AS corrected_at,
    CASE WHEN g.source IS NULL THEN 'crawled' ELSE 'imported' END AS provenance,
    CASE WHEN s.product_id = p.id THEN t.keywords END AS found_by"""
READ_TEXT = "CASE WHEN trim(r.body) = '' THEN r.title ELSE r.body END"
"""What is read of a review, see `tasks.reading.judge.voice`."""
_QUOTE_FROM = f"CAST({QUOTED} ->> 2 AS integer)"
_QUOTE = f"substr({READ_TEXT}, {_QUOTE_FROM} + 1, CAST({QUOTED} ->> 3 AS integer) - {_QUOTE_FROM})"


def _columns(tx: Transaction) -> str:
    themes = list_complained("t.value ->> 0", sqlite=tx.is_sqlite)
    quotes = list_complained(_QUOTE, sqlite=tx.is_sqlite)
    return f"{_COLUMNS}, {themes} AS themes, {quotes} AS theme_quotes"


def _select(tx: Transaction) -> str:
    return f"SELECT {_columns(tx)} {_CAME_BY}"


def _is_first_product(*, counted: bool) -> str:
    """Return the condition for the first product of a review, or (`counted`) the first one that treats it alike."""
    alike = f"AND ({left_out(product_id='e.product_id')} IS NULL) = ({left_out()} IS NULL)" if counted else ""
    return f"""NOT EXISTS (
        SELECT 1 FROM page_products e
        WHERE e.page_id = r.page_id AND e.verdict = '{Verdict.REVIEW}' AND e.product_id < l.product_id {alike}
    )"""


def _has_theme(*, sqlite: bool) -> str:
    return f"""EXISTS (
        SELECT 1 FROM review_themes t
        WHERE t.product_id = coalesce(p.counted_as, p.id) AND t.theme = :theme AND t.day = {write_day(sqlite=sqlite)}
            AND t.site = r.site AND t.review_id = r.id AND t.sentiment = -1
    )"""


def _where(tx: Transaction, wanted: ReviewFilter, *more: str) -> tuple[str, dict[str, Any]]:
    """Return what a filter asks as a WHERE, and its values; only reviews that serve a product."""
    values = {name: given for name in _CONDITIONS if (given := getattr(wanted, name)) not in (None, ())}
    if wanted.theme:
        values["theme"] = wanted.theme
        more = (*more, _has_theme(sqlite=tx.is_sqlite))
    asked = ["p.id IS NOT NULL", *more, *(_CONDITIONS[name] for name in values if name in _CONDITIONS)]
    for n, word in enumerate(wanted.words):
        values[f"word_{n}"] = as_pattern(word)
        asked.append(HAS_WORD.format(n))
    return f"WHERE {' AND '.join(asked)}", values


def check_products(tx: Transaction, names: Collection[str]) -> None:
    """Check that there are products of these names. Raises InputError."""
    for name in names:
        if tx.value("SELECT id FROM products WHERE name = :name", name=name) is None:
            raise unknown_product(tx, name)


def list_numbers(tx: Transaction, names: Collection[str]) -> tuple[int, ...]:
    """Return the numbers of the products with these names, and of those that are counted as them."""
    statement = f"SELECT p.id FROM products p WHERE {_HAS_NAME} ORDER BY p.id"
    return tuple(number for (number,) in tx.rows(statement, products=names)) if names else ()


def list_reviews(tx: Transaction, wanted: ReviewFilter = ALL) -> Iterator[ReviewRow]:
    """Return reviews in the order they were stored: memory does not grow with them.

    Raises:
        InputError: there is no product of a name.
    """
    check_products(tx, wanted.products)
    if wanted.linked_after is not None:  # an index finds them, and the database sorts them
        where, values = _where(tx, wanted)
        return tx.stream(ReviewRow, f"{_select(tx)} {where} {_IN_ORDER}", **values)
    return _read_blocks(tx, wanted)


def _read_blocks(tx: Transaction, wanted: ReviewFilter) -> Iterator[ReviewRow]:
    """Yield rows block by block: sorting all would take memory, and no index has them by review and product."""
    where, values = _where(tx, wanted, "r.id > :begin", "r.id <= :end")
    begin, upto = wanted.after or 0, wanted.upto if wanted.upto is not None else sys.maxsize
    while (end := tx.value(_BLOCK_END, begin=begin, upto=upto, most=_AT_ONCE)) is not None:
        yield from tx.records(ReviewRow, f"{_select(tx)} {where} {_IN_ORDER}", begin=begin, end=end, **values)
        begin = end


_IN_ORDER = "ORDER BY r.id, p.id"
_BLOCK_END = """
    SELECT max(id) FROM (SELECT id FROM reviews WHERE id > :begin AND id <= :upto ORDER BY id LIMIT :most) block
"""


class Search(NamedTuple):
    """A search's result.

    Attributes:
        rows: each review once, under one of its products.
        before: continue with reviews before this number; `None` if none are left.
        looked_at: how many numbers the search has gone through.
    """

    rows: Sequence[ReviewRow]
    before: int | None
    looked_at: int


def search(tx: Transaction, wanted: ReviewFilter, *, before: int | None = None, most: int) -> Search:
    """Return the newest reviews that are wanted, at most `most`, among the next 50,000 before a number.

    Reviews of one product or theme are found by `review_counts.search_reviews`.

    Args:
        before: only reviews with lower numbers; `None`: from the newest on.
    """
    last = tx.value("SELECT max(id) FROM reviews") or 0
    top = last + 1 if before is None else min(before, last + 1)
    begin, found = top, list[ReviewRow]()
    once = _is_first_product(counted=wanted.counted is not None)
    where, values = _where(tx, wanted, "r.id < :top", "r.id >= :least", once)
    statement = f"{_select(tx)} {where} ORDER BY r.id DESC LIMIT :more"
    for _ in range(_WINDOWS):
        more = most + 1 - len(found)
        found += tx.records(ReviewRow, statement, top=top, least=top - _WINDOW, more=more, **values)
        if len(found) > most:
            end = found[most - 1].review
            return Search(found[:most], end, begin - end)
        top -= _WINDOW
        if top <= 1:
            return Search(found, None, begin - 1)
    return Search(found, top, begin - top)


_IS_FIRST_OF_PRODUCT = f"""
    {_IS_PRODUCT.format("p")} AND NOT EXISTS (
        SELECT 1 FROM page_products e JOIN products f ON f.id = e.product_id
        WHERE e.page_id = r.page_id AND e.verdict = '{Verdict.REVIEW}' AND e.product_id < l.product_id
            AND {_IS_PRODUCT.format("f")}
    )
"""


def get_rows(tx: Transaction, numbers: Collection[int], product_id: int | None) -> list[ReviewRow]:
    """Return reviews by number, the highest first, each once: under this product or one that is counted as it.

    Args:
        product_id: `None`: under the first product of each.
    """
    if not numbers:
        return []
    whose = _is_first_product(counted=False) if product_id is None else _IS_FIRST_OF_PRODUCT
    given = {"numbers": numbers, "product": product_id}
    return tx.records(
        ReviewRow, f"{_select(tx)} WHERE r.id IN :numbers AND {whose} ORDER BY r.id DESC", **given
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin(ReviewRow):
    """A review with its origin.

    Attributes:
        page_url: the page it was read from; `url` may be its own.
        products: products its page is about: (number, name).
        subtask, attempt_no: the attempt that collected it, and its number in its subtask; `None`: it was imported.
        searched: words of the search that found its page, whichever product's.
        copies: reviews that repeat it: (number, site, similarity; 1: equal).
    """

    page_url: str
    fetched_at: datetime
    subtask: int | None
    attempt_no: int | None
    searched: Annotated[str | None, " ".join]
    products: Sequence[tuple[int, str]] = ()
    copies: Sequence[tuple[int, str, float]] = ()


def get_origin(tx: Transaction, number: int) -> Origin | None:
    """Return a review with its origin; `None` if no review has that number."""
    found = tx.record(Origin, f"SELECT {_columns(tx)}, {_ORIGIN}", number=number)
    if found is None:
        return None
    copies = [*tx.rows(_EQUAL, number=number, most=_COPIES), *tx.rows(_NEAR, number=number, most=_COPIES)]
    return replace(found, products=tx.rows(_PRODUCTS, number=number), copies=copies)


_ORIGIN = f"""
    g.url AS page_url, g.fetched_at, a.subtask_id AS subtask, a.no AS attempt_no,
        t.keywords AS searched
    {_CAME_BY} WHERE r.id = :number ORDER BY p.id LIMIT 1
"""
_PRODUCTS = f"SELECT p.id, p.name {_REVIEWS} WHERE r.id = :number AND p.id IS NOT NULL ORDER BY p.id"
_EQUAL = """
    SELECT id, site, 1.0 FROM reviews WHERE same_as = :number ORDER BY id LIMIT :most
"""
_NEAR = """
    SELECT r.id, r.site, x.similarity FROM reviews r JOIN review_links x ON x.review_id = r.id
    WHERE x.original_id = :number ORDER BY r.id LIMIT :most
"""
