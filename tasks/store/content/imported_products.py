"""Products of numbered imports: which ones an import added, and what becomes of them if it is undone.

A product that something else needs stays. One that a later import names, that a person changed, or that has a schedule
of its own, stays as it is. One that was crawled, or has reviews of a later import, is crawled no more: its pages stay.
One that an import added again is as it was before. All others are deleted, with the work that was planned for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from tasks.domain.reasons import Reason, because
from tasks.store.content import products
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.content.products import NewProduct
from tasks.store.queue import schedules, transitions
from tasks.store.sql.transaction import Transaction


class _Before(NamedTuple):
    """A product that is crawled at no site, before an import adds it again."""

    name: str
    keywords: list[str]
    aliases: list[str]
    sites: list[str] | None
    priority: int
    pages: int | None
    category: str | None
    edited: bool


def add(tx: Transaction, number: int, wanted: Sequence[NewProduct]) -> list[bool]:
    """Add products of an import, and return for each whether it was added; the others are there already.

    A product that is crawled at no site is added again, unless the import does not crawl it either.
    """
    if not wanted:
        return []
    names = {one.name for one in wanted}
    before = {one.name: one for one in tx.records(_Before, _BEFORE, names=names)}
    added = [products.add(tx, one) for one in wanted]
    ids = products.ids(tx, names)
    rows: dict[int, tuple[Any, ...]] = {}
    for one, is_added in zip(wanted, added, strict=True):
        product_id = ids[one.name]
        if not is_added:
            rows.setdefault(product_id, (number, product_id, False, None, None))
            continue
        every = one.recrawl_every
        was = before.get(one.name)
        every_s = None if every is None else every.total_seconds()
        rows[product_id] = (number, product_id, True, every_s, None if was is None else was._asdict())
    columns = ("import_id", "product_id", "added", "every_s", "before")
    tx.insert("import_products", columns, list(rows.values()), skip_known=True)
    return added


_BEFORE = """
    SELECT name, keywords, aliases, sites, priority, pages, category, edited_at IS NOT NULL AS edited
    FROM products WHERE name IN :names
"""


class Need(StrEnum):
    """Why a product stays, although the import that added it is undone."""

    IMPORT = "later_import"
    CORRECTION = "correction"
    SCHEDULE = "schedule"
    CRAWL = "crawl"


class Fate(StrEnum):
    """The outcome of an undo for a product."""

    DELETED = "deleted"
    RESTORED = "restored"  # as it was before the import added it again
    STOPPED = "stopped"  # it stays with its pages, and is no longer crawled
    KEPT = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A product of an import that is undone, and its outcome.

    Attributes:
        need: why it stays; None if it does not.
        other: the import that needs it.
        pages: number of its crawled pages, if it was crawled.
    """

    name: str
    fate: Fate
    need: Need | None = None
    other: int | None = None
    pages: int = 0


class _Facts(NamedTuple):
    """A product that an import added, and what needs it.

    Attributes:
        every_s, before: as of `import_products`.
        is_crawled: False if it came with reviews, or was removed.
        edited: a person changed it since it was added.
        pages: number of its crawled pages.
        was_tried: a node was given work of it.
        has_reviews: imported reviews of it stay.
        cron, schedule_every_s: its own schedule.
    """

    id: int
    name: str
    every_s: float | None
    before: dict[str, Any] | None
    is_crawled: bool
    edited: bool
    pages: int
    was_tried: bool
    has_reviews: bool
    cron: str | None
    schedule_every_s: float | None

    @property
    def has_own_schedule(self) -> bool:
        """True if its schedule is another one than the import gave it."""
        return self.cron is not None or self.schedule_every_s not in (None, self.every_s)


class _Other(NamedTuple):
    """The first other import that names a product, and does not own it."""

    product_id: int
    import_id: int
    kind: ImportKind


def undo(tx: Transaction, number: int, most: int) -> list[Undone]:
    """Undo what an import did to its next products, after its reviews; empty if there are none left.

    Args:
        most: products of this transaction.
    """
    ids = [one for (one,) in tx.rows(_NEXT, number=number, after=0, most=most)]
    if not ids:
        tx.later("DELETE FROM import_products WHERE import_id = :number", number=number)
        return []
    # In the order in which others do: a schedule begins rounds, planning claims virtual tasks, a grant locks subtasks.
    tx.rows("SELECT id FROM schedules WHERE product_id IN :ids ORDER BY id FOR UPDATE", ids=ids)
    tx.rows("SELECT id FROM virtual_tasks WHERE product_id IN :ids ORDER BY id FOR UPDATE", ids=ids)
    transitions.lock(tx, [one for (one,) in tx.rows(_SUBTASKS, ids=ids)])
    tx.rows("SELECT id FROM products WHERE id IN :ids ORDER BY id FOR UPDATE", ids=ids)
    found = _judge(tx, number, ids)
    for facts, undone in found:
        if undone.fate in (Fate.STOPPED, Fate.RESTORED):
            _stop(tx, facts)
        if undone.other is not None:
            tx.later(_PASS_ON, number=number, other=undone.other, product=facts.id)
    _delete(tx, [facts.id for facts, undone in found if undone.fate is Fate.DELETED])
    tx.later(_FORGET, number=number, ids=ids)
    return [undone for _, undone in found]


def preview(tx: Transaction, number: int) -> Iterable[Undone]:
    """Yield what `undo` would do, without doing it."""
    after = 0
    while ids := [one for (one,) in tx.rows(_NEXT, number=number, after=after, most=_PREVIEWED)]:
        yield from (undone for _, undone in _judge(tx, number, ids))
        after = ids[-1]


_PREVIEWED = 200
_NEXT = """
    SELECT product_id FROM import_products WHERE import_id = :number AND added AND product_id > :after
    ORDER BY product_id LIMIT :most
"""
_SUBTASKS = """
    SELECT s.id FROM tasks t JOIN subtasks s ON s.task_id = t.id WHERE t.product_id IN :ids ORDER BY s.id
"""
_FORGET = "DELETE FROM import_products WHERE import_id = :number AND product_id IN :ids"
# The other import owns it now. What the product was before it was added again goes with it.
_PASS_ON = """
    UPDATE import_products SET added = true,
        before = (SELECT before FROM import_products WHERE import_id = :number AND product_id = :product),
        every_s = CASE WHEN added THEN every_s ELSE (
            SELECT every_s FROM import_products WHERE import_id = :number AND product_id = :product
        ) END
    WHERE import_id = :other AND product_id = :product
"""


def _judge(tx: Transaction, number: int, ids: Collection[int]) -> list[tuple[_Facts, Undone]]:
    others: dict[int, _Other] = {}
    for other in tx.records(_Other, _OTHERS, number=number, ids=ids):
        others.setdefault(other.product_id, other)
    reported = _list_reported(tx)
    found = []
    for facts in tx.records(_Facts, _FACTS, number=number, ids=ids):
        found.append((facts, _fate(facts, others.get(facts.id), is_reported=facts.name in reported)))
    return found


def _fate(facts: _Facts, other: _Other | None, *, is_reported: bool) -> Undone:
    number = None if other is None else other.import_id
    if other is not None and other.kind is ImportKind.PRODUCTS:
        return Undone(name=facts.name, fate=Fate.KEPT, need=Need.IMPORT, other=number)
    if facts.edited:
        return Undone(name=facts.name, fate=Fate.KEPT, need=Need.CORRECTION, other=number)
    if facts.has_own_schedule or is_reported:
        return Undone(name=facts.name, fate=Fate.KEPT, need=Need.SCHEDULE, other=number)
    if facts.before is not None:
        return Undone(name=facts.name, fate=Fate.RESTORED, other=number)
    stays = Fate.STOPPED if facts.is_crawled else Fate.KEPT
    if facts.pages or facts.was_tried:
        return Undone(name=facts.name, fate=stays, need=Need.CRAWL, other=number, pages=facts.pages)
    if other is not None or facts.has_reviews:
        return Undone(name=facts.name, fate=stays, need=Need.IMPORT, other=number)
    return Undone(name=facts.name, fate=Fate.DELETED)


class _Options(NamedTuple):
    options: dict[str, Any]


def _list_reported(tx: Transaction) -> set[str]:
    """Return the names of products that schedules of reports and exports name."""
    rows = tx.records(_Options, "SELECT options FROM schedules WHERE what <> 'recrawl'")
    return {name for row in rows for name in row.options.get("products", ())}


# Products that are added again have two owners; an earlier one does not need what a later one added.
_OTHERS = """
    SELECT i.product_id, i.import_id, m.kind FROM import_products i JOIN imports m ON m.id = i.import_id
    WHERE i.product_id IN :ids AND i.import_id <> :number AND m.undo_begun_at IS NULL
        AND (NOT i.added OR i.import_id > :number)
    ORDER BY i.product_id, m.kind <> 'products', i.import_id
"""
_FACTS = f"""
    SELECT p.id, p.name, i.every_s, i.before, {products.CRAWLED} AS is_crawled, p.edited_at IS NOT NULL
        OR EXISTS (SELECT 1 FROM correction_products n WHERE n.product_id = p.id)
        OR EXISTS (SELECT 1 FROM excluded_words w WHERE w.product_id = p.id)
        OR EXISTS (SELECT 1 FROM products v WHERE v.counted_as = p.id) AS edited, (
        SELECT count(*) FROM page_products l JOIN pages g ON g.id = l.page_id
        WHERE l.product_id = p.id AND g.source IS NULL
    ) AS pages, EXISTS (
        SELECT 1 FROM tasks t JOIN subtasks s ON s.task_id = t.id WHERE t.product_id = p.id AND s.attempts > 0
    ) AS was_tried, EXISTS (
        SELECT 1 FROM page_products l JOIN pages g ON g.id = l.page_id JOIN reviews r ON r.page_id = g.id
        WHERE l.product_id = p.id AND g.source IS NOT NULL AND (
            NOT EXISTS (SELECT 1 FROM import_reviews x WHERE x.review_id = r.id AND x.import_id = :number AND x.added)
            OR EXISTS (SELECT 1 FROM import_reviews x WHERE x.review_id = r.id AND x.import_id <> :number)
        )
    ) AS has_reviews, s.cron, s.every_s AS schedule_every_s
    FROM import_products i JOIN products p ON p.id = i.product_id LEFT JOIN schedules s ON s.product_id = p.id
    WHERE i.import_id = :number AND i.product_id IN :ids ORDER BY p.id
"""


def _stop(tx: Transaction, facts: _Facts) -> None:
    """Crawl a product no more; one that was there before gets its columns and its words back."""
    products.end_work(tx, facts.id, because(Reason.IMPORT_UNDONE))
    schedules.recrawl(tx, facts.id, None, tx.now)
    if facts.before is None:
        tx.later("UPDATE products SET sites = '[]' WHERE id = :id", id=facts.id)
        return
    columns = {name: value for name, value in facts.before.items() if name not in ("name", "edited")}
    edited_at = tx.now if facts.before["edited"] else None
    tx.update("products", ("id",), [{"id": facts.id, **columns, "edited_at": edited_at}])
    words = tx.records(_Words, _WORDS, id=facts.id)
    if len(words) > 1:
        products.begin_round(tx, facts.id, words[1].keywords, words[1].aliases)


class _Words(NamedTuple):
    """The keywords of a round, and those of the product's other names."""

    keywords: list[str]
    aliases: list[list[str]]


_WORDS = "SELECT keywords, aliases FROM virtual_tasks WHERE product_id = :id ORDER BY round DESC LIMIT 2"


def _delete(tx: Transaction, ids: Collection[int]) -> None:
    """Delete products with the work that was planned for them; no node was given any of it."""
    if not ids:
        return
    for state, n in tx.rows(_COUNT_STATES, ids=ids):
        if state in transitions.KEPT:
            tx.insert("queue_counts", ("state", "n"), [(state, -n)])
    for statement in _DELETE:
        tx.later(statement, ids=ids)


_TASKS = "SELECT id FROM tasks WHERE product_id IN :ids"
_COUNT_STATES = f"SELECT state, count(*) FROM subtasks WHERE task_id IN ({_TASKS}) GROUP BY state"
_DELETE = (
    f"DELETE FROM events WHERE subtask_id IN (SELECT id FROM subtasks WHERE task_id IN ({_TASKS}))",
    f"DELETE FROM targets WHERE task_id IN ({_TASKS})",
    f"DELETE FROM subtasks WHERE task_id IN ({_TASKS})",
    f"DELETE FROM task_parts WHERE task_id IN ({_TASKS})",
    "DELETE FROM tasks WHERE product_id IN :ids",
    "DELETE FROM unplanned_sites WHERE virtual_task_id IN (SELECT id FROM virtual_tasks WHERE product_id IN :ids)",
    "DELETE FROM virtual_tasks WHERE product_id IN :ids",
    "DELETE FROM schedules WHERE product_id IN :ids",
    "DELETE FROM import_products WHERE product_id IN :ids",
    "DELETE FROM archived_themes WHERE product_id IN :ids",
    "DELETE FROM products WHERE id IN :ids",
)
