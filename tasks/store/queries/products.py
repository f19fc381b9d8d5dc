"""Products as they are listed: the progress of each at its sites, and how many of its hits are stored.

Reads only. Coverage is the share of a search's hits that is stored: stored / min(found, cap of the engine).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from tasks.domain.hit_count import PartitionState, Provenance
from tasks.domain.states import State
from tasks.domain.verdicts import Verdict
from tasks.store.content.products import SETTLED
from tasks.store.sql.transaction import Transaction

_MOST_URLS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRow:
    """A product as listed, with the number of pages and reviews it has.

    Attributes:
        keywords: its AND keywords, of its last round.
        category: of `splitter.catalog.names.Category`; None: unknown.
        recrawl_every_s, recrawl_cron: when it is crawled again: by an interval or by a cron expression.
        looked_for: False: at no site; it was removed, or came by an import.
        counted_as: name of the product under which its reviews are counted; None: its own.
        counted_as_id: number of that product.
    """

    id: int
    name: str
    counted_as: str | None
    counted_as_id: int | None
    category: str | None
    keywords: tuple[str, ...]
    aliases: tuple[str, ...]
    priority: int
    recrawl_every_s: float | None
    recrawl_cron: str | None
    next_crawl_at: datetime | None
    created_at: datetime
    pages: int
    reviews: int
    looked_for: bool


def list_names(tx: Transaction, most: int) -> list[tuple[int, str]]:
    """Return numbers and names of products by name, at most `most`."""
    return tx.rows("SELECT id, name FROM products ORDER BY name LIMIT :most", most=most)


def get_name(tx: Transaction, number: int) -> str:
    """Return the name of a product that is there."""
    return str(tx.value("SELECT name FROM products WHERE id = :id", id=number))


def get_category(tx: Transaction, number: int) -> str | None:
    """Return the category of a product that is there."""
    category: str | None = tx.value("SELECT category FROM products WHERE id = :id", id=number)
    return category


class NumberedName(NamedTuple):
    """A product by its number and its name."""

    id: int
    name: str


def get_counted_as(tx: Transaction, number: int) -> NumberedName | None:
    """Return the product under which the reviews of a product are counted; `None` if they are counted as its own."""
    return tx.record(NumberedName, _COUNTED_AS, id=number)


def list_counted_with(tx: Transaction, number: int) -> list[NumberedName]:
    """Return the products that are counted as this one."""
    return tx.records(
        NumberedName, "SELECT id, name FROM products WHERE counted_as = :id ORDER BY id", id=number
    )


_COUNTED_AS = "SELECT m.id, m.name FROM products p JOIN products m ON m.id = p.counted_as WHERE p.id = :id"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSettings:
    """A product as a person chooses it among many.

    Attributes:
        sites: only these; `None`: all of its category; empty: it is not crawled.
        own_keywords: keywords that a person set; empty if the splitter decided.
        keywords: its AND keywords, of its last round.
        counted_as: name of the product under which its reviews are counted; `None`: its own.
    """

    id: int
    name: str
    category: str | None
    priority: int
    sites: tuple[str, ...] | None
    own_keywords: tuple[str, ...]
    keywords: tuple[str, ...]
    counted_as: str | None = None


class ProductKey(NamedTuple):
    """The sort key of products."""

    id: int
    name: str
    priority: int


def list_keys(tx: Transaction) -> list[ProductKey]:
    """Return the keys of all products by number."""
    return tx.records(ProductKey, "SELECT id, name, priority FROM products ORDER BY id")


def list_settings(tx: Transaction, number: int | None = None) -> list[ProductSettings]:
    """Return the settings of products by number.

    Args:
        number: only products that this import named; `None`: all.
    """
    return tx.records(ProductSettings, _SETTINGS, number=number)


_LAST_KEYWORDS = (
    "(SELECT keywords FROM virtual_tasks v WHERE v.product_id = p.id ORDER BY v.round DESC LIMIT 1)"
)
_SETTINGS = f"""
    SELECT p.id, p.name, p.category, p.priority, p.sites, p.keywords AS own_keywords, {_LAST_KEYWORDS} AS keywords,
        m.name AS counted_as
    FROM products p LEFT JOIN products m ON m.id = p.counted_as
    WHERE :number IS NULL OR p.id IN (SELECT product_id FROM import_products WHERE import_id = :number)
    ORDER BY p.id
"""


def list_products(tx: Transaction) -> list[ProductRow]:
    """Return products by number."""
    return tx.records(ProductRow, _ALL)


def list_numbered(tx: Transaction, numbers: Collection[int]) -> list[ProductRow]:
    """Return the products with these numbers, by number."""
    return tx.records(ProductRow, _BY_NUMBER, numbers=numbers)


def _select_products(condition: str) -> str:
    """Return the statement that reads products for which a condition holds."""
    return f"""
    WITH chosen AS (
        SELECT * FROM products WHERE {condition}
    ), stored AS (
        SELECT l.product_id, count(*) AS pages,
            sum(CASE WHEN l.verdict = '{Verdict.REVIEW}' THEN pages.reviews ELSE 0 END) AS reviews
        FROM page_products l JOIN pages ON pages.id = l.page_id
        WHERE l.product_id IN (SELECT id FROM chosen) AND l.verdict <> '{Verdict.REMOVED}'
        GROUP BY l.product_id
    )
    SELECT p.id, p.name, m.name AS counted_as, p.counted_as AS counted_as_id, p.category, p.aliases, p.priority,
        p.created_at, {_LAST_KEYWORDS} AS keywords,
        s.every_s AS recrawl_every_s, s.cron AS recrawl_cron, s.next_at AS next_crawl_at,
        coalesce(stored.pages, 0) AS pages, coalesce(stored.reviews, 0) AS reviews,
        p.sites IS NULL OR p.sites <> '[]' AS looked_for
    FROM chosen p LEFT JOIN stored ON stored.product_id = p.id LEFT JOIN schedules s ON s.product_id = p.id
    LEFT JOIN products m ON m.id = p.counted_as
    ORDER BY p.id
"""


_ALL = _select_products("true")
_BY_NUMBER = _select_products("id IN :numbers")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteProgress:
    """A product at a site, over all its rounds.

    Attributes:
        states: subtasks by queue.
        found: hits that its last task found, as far as known.
    """

    site: str
    engine: str
    found: int | None
    provenance: str
    states: Mapping[str, int] = field(default_factory=dict)

    @property
    def settled(self) -> int:
        """Number of subtasks that are done, cancelled or left to a person."""
        return sum(n for name, n in self.states.items() if State(name).settled)

    @property
    def open(self) -> int:
        """Number of subtasks that are cancelled if the product is removed."""
        return sum(n for name, n in self.states.items() if State(name) not in SETTLED)

    @property
    def subtasks(self) -> int:
        """Number of subtasks in all queues."""
        return sum(self.states.values())


def list_progress(tx: Transaction, product_id: int) -> list[SiteProgress]:
    """Return how far a product is at each of its sites, by site."""
    states: dict[str, dict[str, int]] = {}
    for site, state, n in tx.rows(_STATES, product=product_id):
        states.setdefault(site, {})[state] = n
    last = tx.records(SiteProgress, _LAST_TASKS, product=product_id)
    return [replace(row, states=states.get(row.site, {})) for row in last]


_LAST_TASKS = """
    SELECT site, engine, found, found_provenance AS provenance FROM tasks
    WHERE id IN (SELECT max(id) FROM tasks WHERE product_id = :product GROUP BY site) ORDER BY site
"""
_STATES = """
    SELECT t.site, s.state, count(*) FROM tasks t JOIN subtasks s ON s.task_id = t.id
    WHERE t.product_id = :product GROUP BY t.site, s.state
"""


class SearchAddress(NamedTuple):
    """An address that a product is searched for at."""

    site: str
    url: str
    state: str


def list_search_urls(tx: Transaction, product_id: int) -> list[SearchAddress]:
    """Return the newest search URLs of a product that became targets: at most 50, of as many of its newest tasks."""
    return tx.records(SearchAddress, _SEARCH_URLS, product=product_id, most=_MOST_URLS)


_SEARCH_URLS = """
    SELECT last.site, targets.url, targets.state
    FROM (SELECT id, site FROM tasks WHERE product_id = :product ORDER BY id DESC LIMIT :most) last
    JOIN targets ON targets.task_id = last.id
    WHERE targets.kind = 'result' ORDER BY last.id DESC, targets.id LIMIT :most
"""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sums over tasks.

    Attributes:
        stored: hits stored, of tasks whose found is known; without those that were deleted with their product.
        reachable: of the same tasks, the hits that can be listed: each partition's found, at most its engine's cap.
        tasks, known: number of tasks, and of those whose found is known.
        rests_on: tasks by the provenance of their found (reported, counted, capped, unknown).
    """

    stored: int = 0
    reachable: int = 0
    tasks: int = 0
    known: int = 0
    rests_on: Mapping[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """stored / reachable, at most 1; None if no reachable hit is known."""
        return min(1.0, self.stored / self.reachable) if self.reachable else None

    @property
    def at_least(self) -> bool:
        """True if some searches have more hits than can be listed."""
        return bool(self.rests_on.get(Provenance.CAPPED))

    def __add__(self, other: Coverage) -> Coverage:
        """Return the coverage of the tasks of both."""
        names = ("stored", "reachable", "tasks", "known")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Coverage(**sums, rests_on=dict(Counter(self.rests_on) + Counter(other.rests_on)))


class _Task(NamedTuple):
    """A task with the hits it found, those it stored, and those of them that were deleted with their product."""

    id: int
    product_id: int
    engine: str
    found: int | None
    found_provenance: str
    stored: int
    removed: int


def get_coverages(tx: Transaction, cap_of: Callable[[str], int]) -> dict[int, Coverage]:
    """Return the coverage of each product that has tasks, by its id.

    Args:
        cap_of: the most hits an engine lists for one query, by the engine's name.
    """
    divided: dict[int, list[int | None]] = defaultdict(
        list
    )  # found of each partition of tasks that have several
    for task_id, n in tx.rows(_DIVIDED):
        divided[task_id].append(n)
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    rests_on: dict[int, Counter[str]] = defaultdict(Counter)
    for task in tx.records(_Task, _COVERED):
        of_product = sums[task.product_id]
        of_product["tasks"] += 1
        rests_on[task.product_id][task.found_provenance] += 1
        if task.found is not None:
            inside = divided.get(task.id, [task.found])
            # While a partition's found is unknown, partitioning goes on, and all hits may be reached.
            whole = task.found_provenance == Provenance.COUNTED or None in inside
            listed = [task.found] if whole else [min(n or 0, cap_of(task.engine)) for n in inside]
            of_product["known"] += 1
            of_product["stored"] += task.stored - task.removed
            of_product["reachable"] += sum(listed)
    return {
        number: Coverage(**of_product, rests_on=dict(rests_on[number])) for number, of_product in sums.items()
    }


_COVERED = f"""
    WITH stored AS (
        SELECT task_id, count(*) AS n FROM targets WHERE kind = 'hit' AND state = 'stored' GROUP BY task_id
    ), removed AS (
        SELECT targets.task_id, count(*) AS n
        FROM page_products l JOIN pages ON pages.id = l.page_id
        JOIN tasks ON tasks.product_id = l.product_id
        JOIN targets ON targets.task_id = tasks.id AND targets.url_key = pages.url_key
        WHERE l.verdict = '{Verdict.REMOVED}' AND targets.kind = 'hit' AND targets.state = 'stored'
        GROUP BY targets.task_id
    )
    SELECT t.id, t.product_id, t.engine, t.found, t.found_provenance,
        coalesce(stored.n, 0) AS stored, coalesce(removed.n, 0) AS removed
    FROM tasks t LEFT JOIN stored ON stored.task_id = t.id LEFT JOIN removed ON removed.task_id = t.id
    ORDER BY t.id
"""
_DIVIDED = f"""
    SELECT task_id, found FROM task_parts
    WHERE state IN ('{PartitionState.OPEN}', '{PartitionState.FULL}')
        AND task_id IN (SELECT task_id FROM task_parts GROUP BY task_id HAVING count(*) > 1)
"""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A search that had no hit with all of its keywords, and what it was relaxed to."""

    product_id: int
    site: str
    keywords: tuple[str, ...]
    dropped: tuple[str, ...]
    found: int | None


def list_relaxed(tx: Transaction) -> list[Relaxed]:
    """Return relaxed searches; not those that were relaxed further."""
    return tx.records(Relaxed, _RELAXED)


_RELAXED = f"""
    SELECT t.product_id, t.site, p.keywords, p.dropped, p.found
    FROM task_parts p JOIN tasks t ON t.id = p.task_id
    WHERE p.parent_id IS NOT NULL AND p.start_at IS NULL AND p.state <> '{PartitionState.RELAXED}'
    ORDER BY p.id
"""
