"""Links of pages to products, each with a verdict, and the stored pages that must be judged.

The verdict belongs to the link, since a page may be found for several products; a product's reviews are those of the
pages whose verdict for it is `REVIEW`. The node judges a new page for the product that it was found for. Any other new
link is `UNJUDGED`, until a sweep judges the page as it is stored for all its products (`tasks.jobs.judging`). Nothing
is deleted then: reviews of a page that is about another product stay, hidden by its link, and refused records that are
reviews by today's rules become some.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Annotated, Any, NamedTuple

from tasks.domain.pages import Review
from tasks.domain.themes import Theme
from tasks.domain.verdicts import Verdict
from tasks.domain.voices import VoiceJudgement
from tasks.store.content import counted_reviews, numbered_imports, reviews
from tasks.store.content.reviews import (
    VOICE,
    Dating,
    PageOrigin,
    date_columns,
    read_themes,
    record_of,
    theme_column,
)
from tasks.store.queue.leases import LEAST_WORDS, KeywordSets
from tasks.store.sql.rows import utc_text
from tasks.store.sql.transaction import Transaction

OTHER_PRODUCT = f"('{Verdict.WRONG_PRODUCT}', '{Verdict.NEAR_PRODUCT}')"
"""Verdicts that say: the reviews of the page are another product's."""


class Link(NamedTuple):
    """A page's link to a product.

    Attributes:
        missing: keywords that the page lacks, separated by blanks, if it is about another product.
    """

    page_id: int
    product_id: int
    verdict: Verdict = Verdict.REVIEW
    missing: str = ""


def add(tx: Transaction, links: Iterable[Link], times: Mapping[int, datetime] | None = None) -> None:
    """Insert links; those that exist stay as they are, and of two equal ones the first counts.

    Args:
        times: by page, when it is linked, if that is not `now`.
    """
    linked_at = times or {}
    first: dict[tuple[int, int], Link] = {}
    for link in links:
        first.setdefault((link.page_id, link.product_id), link)
    rows = [(*first[key], linked_at.get(key[0], tx.now)) for key in sorted(first)]
    tx.insert("page_products", (*Link._fields, "linked_at"), rows, skip_known=True)


def set_verdicts(tx: Transaction, links: Sequence[Link]) -> None:
    """Store the verdicts of links that exist."""
    if links:
        tx.later(_NUMBER_LINKS, serial=next_serial(tx), pages={link.page_id for link in links})
    tx.update("page_products", ("page_id", "product_id"), [link._asdict() for link in links])


_NUMBER_LINKS = f"""
    UPDATE page_products SET serial = :serial WHERE page_id IN :pages AND verdict <> '{Verdict.REVIEW}'
"""


def next_serial(tx: Transaction) -> int:
    """Return a number for links of stored pages whose verdict becomes `REVIEW` now: none has a higher one."""
    newest: int = tx.value("SELECT coalesce(max(serial), 0) FROM page_products WHERE serial > 0")
    return max(newest + 1, serial_at(tx.now))


def serial_at(time: datetime) -> int:
    """Return the lowest number that `next_serial` gives at a time: microseconds since 1970."""
    return int(time.timestamp() * 1_000_000)


def judge_again(tx: Transaction, link: Link) -> None:
    """Change the links of a page that was fetched again with another content.

    Reviews that were the product's stay so, unless the node found that the page is about another one. A sweep judges
    the links that hide reviews again: the page may be about these products now.
    """
    tx.later(_OPEN_LINKS, page=link.page_id, product=link.product_id)
    if link.verdict is Verdict.WRONG_PRODUCT:
        tx.later(_IS_WRONG, page=link.page_id, product=link.product_id, missing=link.missing)


_OPEN_LINKS = f"""
    UPDATE page_products SET verdict = '{Verdict.UNJUDGED}', missing = ''
    WHERE page_id = :page AND (verdict NOT IN ('{Verdict.REVIEW}', '{Verdict.REMOVED}')
        OR (product_id = :product AND verdict <> '{Verdict.REVIEW}'))
"""
_IS_WRONG = f"""
    UPDATE page_products SET verdict = '{Verdict.WRONG_PRODUCT}', missing = :missing
    WHERE page_id = :page AND product_id = :product AND verdict = '{Verdict.REVIEW}'
"""


# --- stored pages to be judged ------------------------------------------------------------------------------


class LinkedProduct(NamedTuple):
    """A page's link to a product, the product's name, the keyword sets it is matched by, and its category."""

    link: Link
    name: str
    sets: KeywordSets
    category: str | None = None


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
    source: str | None


class StoredRecord(NamedTuple):
    """A record of a stored page, with its text if that is still there."""

    page_id: int
    id: int
    refused: str | None
    day: date | None
    has_clock: bool
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
    themes: Annotated[tuple[Theme, ...] | None, read_themes]

    @property
    def review(self) -> Review:
        """Return the record as it was read."""
        values: tuple[Any, ...] = self
        voice = VoiceJudgement(*values[_VOICE_AT]) if self.voice_model is not None else None
        is_unread = self.themes == ()  # null stands for a text without themes
        themes = None if is_unread else self.themes or ()
        return Review._make([*values[_FIRST_READ : _VOICE_AT.start], voice, themes])

    @property
    def dating(self) -> Dating:
        """Return when the record was written, as it is stored."""
        published_at = None if self.published_at is None else utc_text(self.published_at)
        return Dating(published_at, None if self.day is None else self.day.isoformat(), self.has_clock)


_FIRST_READ = StoredRecord._fields.index("key")
_VOICE_AT = slice(StoredRecord._fields.index("voice"), StoredRecord._fields.index("voice_model") + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPage:
    """A page as it is stored, with its records in the order of their numbers."""

    row: PageRow
    links: Sequence[LinkedProduct]
    records: Sequence[StoredRecord]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPage:
    """The new judgement of a page, to be stored.

    Attributes:
        voices, themes: of reviews, by number; themes are `None` if it was not read for them.
        links: that changed.
        taken_in: refused records that are reviews now, with their numbers.
        of_others: numbers of records that are reviews, but of another product.
        days: of records whose day changes, by number; `None` for one that has no day any more.
        site_known: its site is in the catalog.
    """

    page: StoredPage
    voices: Sequence[tuple[int, VoiceJudgement]] = ()
    themes: Sequence[tuple[int, Sequence[Theme] | None]] = ()
    days: Sequence[tuple[int, datetime | None]] = ()
    links: Sequence[Link] = ()
    taken_in: Sequence[tuple[int, Review]] = ()
    of_others: Sequence[int] = ()
    site_known: bool = True

    @property
    def is_change(self) -> bool:
        """Return True if there is anything to store."""
        return bool(self.voices or self.themes or self.days or self.links or self.taken_in or self.of_others)


def count_after(tx: Transaction, after: int, product_id: int | None) -> int:
    """Return the number of pages behind this one; of all products, or of one."""
    return int(tx.value(f"SELECT count(*) {_AFTER}", after=after, product=product_id))


def list_after(tx: Transaction, after: int, product_id: int | None, most: int) -> list[StoredPage]:
    """Return the next pages behind this number, at most `most`; of all products, or of one."""
    return _read(tx, tx.records(PageRow, _LIST_AFTER, after=after, product=product_id, most=most))


def list_unjudged(tx: Transaction, after: int, most: int) -> list[StoredPage]:
    """Return the next pages behind this number that have a link without a verdict, at most `most`."""
    return _read(tx, tx.records(PageRow, _LIST_UNJUDGED, after=after, most=most))


_COLUMNS = ", ".join(PageRow._fields)
_AFTER = """
    FROM pages WHERE id > :after
        AND (:product IS NULL OR id IN (SELECT page_id FROM page_products WHERE product_id = :product))
"""
_LIST_AFTER = f"SELECT {_COLUMNS} {_AFTER} ORDER BY id LIMIT :most"
_LIST_UNJUDGED = f"""
    SELECT {_COLUMNS} FROM pages WHERE id IN (
        SELECT DISTINCT page_id FROM page_products WHERE verdict = '{Verdict.UNJUDGED}' AND page_id > :after
        ORDER BY page_id LIMIT :most
    ) ORDER BY id
"""


def _read(tx: Transaction, rows: Sequence[PageRow]) -> list[StoredPage]:
    numbers = [row.id for row in rows]
    links = _list_linked_products(tx, numbers)
    records: dict[int, list[StoredRecord]] = defaultdict(list)
    for one in tx.records(StoredRecord, _RECORDS, pages=numbers):
        records[one.page_id].append(one)
    return [StoredPage(row=row, links=links[row.id], records=records[row.id]) for row in rows]


_RECORDS = f"""
    SELECT {", ".join(StoredRecord._fields)} FROM reviews
    WHERE page_id IN :pages AND (refused IS NULL OR body <> '') ORDER BY id
"""


class _Linked(NamedTuple):
    """A link with the product's name and the words of its last round."""

    page_id: int
    product_id: int
    verdict: Verdict
    missing: str
    name: str
    keywords: list[str]
    aliases: list[list[str]]
    category: str | None


class _Query(NamedTuple):
    """The keywords of a query that found a page for a product, in a round with the same words as the last one."""

    page_id: int
    product_id: int
    keywords: list[str]


def _list_linked_products(tx: Transaction, page_ids: Collection[int]) -> Mapping[int, list[LinkedProduct]]:
    """Return the links of pages, by page, in the order of the products' numbers."""
    own: dict[tuple[int, int], list[list[str]]] = defaultdict(list)
    for query in tx.records(_Query, _QUERIES, pages=page_ids):
        if len(query.keywords) >= LEAST_WORDS:
            own[query.page_id, query.product_id].append(query.keywords)
    found: dict[int, list[LinkedProduct]] = defaultdict(list)
    for row in tx.records(_Linked, _LINKED, pages=page_ids):
        link = Link(row.page_id, row.product_id, row.verdict, row.missing)
        sets = [row.keywords, *row.aliases, *own[row.page_id, row.product_id]]
        found[row.page_id].append(LinkedProduct(link, row.name, sets, row.category))
    return found


_LAST_ROUND = """
    JOIN virtual_tasks v ON v.product_id = l.product_id AND v.round = (
        SELECT max(round) FROM virtual_tasks WHERE product_id = l.product_id
    )
"""
_LINKED = f"""
    SELECT l.page_id, l.product_id, l.verdict, l.missing, p.name, v.keywords, v.aliases, p.category
    FROM page_products l JOIN products p ON p.id = l.product_id {_LAST_ROUND}
    WHERE l.page_id IN :pages ORDER BY l.page_id, l.product_id
"""
_QUERIES = f"""
    SELECT l.page_id, l.product_id, q.keywords
    FROM page_products l JOIN pages p ON p.id = l.page_id {_LAST_ROUND}
    JOIN virtual_tasks same ON same.product_id = l.product_id AND same.keywords = v.keywords
    JOIN tasks t ON t.virtual_task_id = same.id AND t.site = p.site
    JOIN targets g ON g.task_id = t.id AND g.url_key = p.url_key
    JOIN subtasks s ON s.id = g.subtask_id
    JOIN task_parts q ON q.id = s.part_id
    WHERE l.page_id IN :pages
"""


def save(tx: Transaction, judged: Sequence[JudgedPage]) -> None:
    """Store judgements. A page that has changed since it was read is left as it is; its links are judged later."""
    stored = {row.id: row for row in tx.records(PageRow, _LOCKED, pages=[one.page.row.id for one in judged])}
    same = [one for one in judged if stored.get(one.page.row.id) == one.page.row]
    with counted_reviews.recount(tx, pages={one.page.row.id for one in same if one.is_change}):
        _save_changes(tx, same)


def _save_changes(tx: Transaction, same: Sequence[JudgedPage]) -> None:
    voices = [
        {"id": number, **dict(zip(VOICE, voice, strict=True))} for one in same for number, voice in one.voices
    ]
    tx.update("reviews", ("id",), voices)
    themes = [{"id": number, "themes": theme_column(found)} for one in same for number, found in one.themes]
    tx.update("reviews", ("id",), themes)
    days = [{"id": number, **date_columns(day)._asdict()} for one in same for number, day in one.days]
    tx.update("reviews", ("id",), days)
    set_verdicts(tx, [link for one in same for link in one.links])
    if of_others := [number for one in same for number in one.of_others]:
        tx.later(_REFUSE, ids=of_others)
    for one in same:
        if one.taken_in:
            _take_in(tx, one)


_REFUSE = f"UPDATE reviews SET refused = '{Verdict.WRONG_PRODUCT}' WHERE id IN :ids"
_LOCKED = f"SELECT {_COLUMNS} FROM pages WHERE id IN :pages ORDER BY id FOR NO KEY UPDATE"


def _take_in(tx: Transaction, one: JudgedPage) -> None:
    """Insert refused records again as reviews."""
    row = one.page.row
    at = max(tx.now, row.checked_at or row.fetched_at)
    numbers = [number for number, _ in one.taken_in]
    copy_keys = reviews.get_copy_keys(tx, numbers)
    held = numbered_imports.take_reviews(tx, numbers) if row.attempt_id is None else []
    tx.later("DELETE FROM reviews WHERE id IN :ids", ids=numbers)
    origin = PageOrigin(row.url, row.site, row.node, row.attempt_id)
    dating = {record.id: record.dating._asdict() for record in one.page.records}
    records = [
        record_of(origin, review, copy_key=copy_keys[number])._replace(**dating[number])
        for number, review in one.taken_in
    ]
    reviews.insert(tx, [(row.id, records)], at=at)
    numbered_imports.give_back(tx, row.id, held)
    tx.later(_COUNT, id=row.id, more=len(one.taken_in), at=at)


_COUNT = "UPDATE pages SET reviews = reviews + :more, checked_at = :at WHERE id = :id"


# --- how much is refused ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class RefusalCount:
    """The number of records of a site's pages that are no reviews of a product, for one reason.

    Attributes:
        reason: "wrong_product", "near_product", or one of `tasks.reading.relevance.RejectReason`.
        pages: number of pages that have such records.
        n: number of records.
    """

    site: str
    product: str
    reason: str
    pages: int
    n: int


def refusal_counts(
    tx: Transaction, *, site: str | None = None, product_id: int | None = None
) -> list[RefusalCount]:
    """Return refused records by site, product and reason; of all sites and products, or of one."""
    return sorted(tx.records(RefusalCount, _REFUSAL_COUNTS, site=site, product=product_id))


def refusals_by_reason(tx: Transaction) -> dict[str, int]:
    """Return the refused records of all pages by reason; those of another product count for each product of a page."""
    counted = {reason: int(n) for reason, n in tx.rows(_BY_REASON)}
    first = [one for one in (Verdict.WRONG_PRODUCT, Verdict.NEAR_PRODUCT) if one in counted]
    return {reason: counted[reason] for reason in (*first, *sorted(counted.keys() - set(first)))}


# A page has reviews, or records that are those of no product that it was found for.
_LINKS_OF_OTHERS = f"""
    FROM page_products l JOIN pages g ON g.id = l.page_id LEFT JOIN (
        SELECT page_id, count(*) AS n FROM reviews WHERE refused = '{Verdict.WRONG_PRODUCT}' GROUP BY page_id
    ) w ON w.page_id = l.page_id
"""
_N_OF_OTHERS = "sum(g.reviews + coalesce(w.n, 0))"
_NO_REVIEW = f"refused IS NOT NULL AND refused <> '{Verdict.WRONG_PRODUCT}'"
_BY_REASON = f"""
    SELECT l.verdict, {_N_OF_OTHERS} {_LINKS_OF_OTHERS} WHERE l.verdict IN {OTHER_PRODUCT} GROUP BY l.verdict
    UNION ALL SELECT refused, count(*) FROM reviews WHERE {_NO_REVIEW} GROUP BY refused
"""
_WANTED = "(CAST(:site AS text) IS NULL OR g.site = :site) AND (CAST(:product AS bigint) IS NULL OR p.id = :product)"
_REFUSAL_COUNTS = f"""
    SELECT g.site, p.name AS product, l.verdict AS reason, count(*) AS pages, CAST({_N_OF_OTHERS} AS bigint) AS n
    {_LINKS_OF_OTHERS} JOIN products p ON p.id = l.product_id
    WHERE l.verdict IN {OTHER_PRODUCT} AND {_WANTED} GROUP BY g.site, p.name, l.verdict
    UNION ALL
    SELECT g.site, p.name, r.refused, count(DISTINCT g.id), count(*)
    FROM reviews r JOIN pages g ON g.id = r.page_id JOIN page_products l ON l.page_id = g.id
    JOIN products p ON p.id = l.product_id
    WHERE {_NO_REVIEW} AND {_WANTED} GROUP BY g.site, p.name, r.refused
"""
