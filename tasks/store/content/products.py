"""Products with their names: add, change and remove them. `tasks.store.queue.tasks` holds their tasks.

A product's row stays as long as pages and the event log refer to it. A removed product is crawled at no site,
like an imported one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from splitter.errors import InputError
from splitter.normalize import name_key

from tasks.domain.reasons import Explanation, Reason, because
from tasks.domain.recurrence import Recurrence
from tasks.domain.states import State
from tasks.domain.verdicts import Verdict
from tasks.store.content import numbered_imports
from tasks.store.content.corrections import list_excluded_words, store_excluded_words
from tasks.store.content.counted_reviews import recount_products
from tasks.store.content.review_removal import restore_links
from tasks.store.queue import attempts, schedules
from tasks.store.sql.transaction import Transaction

SETTLED = (State.DONE, State.CANCELLED)
_NAMES_COMPARED = 10_000
CRAWLED = "(sites IS NULL OR CAST(sites AS text) <> '[]')"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProduct:
    """A product to add.

    Attributes:
        keywords: its AND keywords (the splitter's, or a person's).
        own_keywords: keywords that a person set; empty if the splitter decided.
        aliases: alternative names; `alias_keywords` are theirs.
        pages: result pages a site; `None`: the site's own.
        recrawl_every: `None`: once.
        category: of `splitter.catalog.names.Category`; `None`: unknown.
        sites: only these; `None`: all of its category; empty: it came by an import and is not crawled.
        line: of the file that it came from; it is not stored.
    """

    name: str
    keywords: tuple[str, ...]
    own_keywords: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    alias_keywords: tuple[tuple[str, ...], ...] = ()
    priority: int = 0
    pages: int | None = None
    recrawl_every: timedelta | None = None
    category: str | None = None
    sites: tuple[str, ...] | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A stored product as a person set it, with its work and its reviews; the other fields are those of `NewProduct`.

    Attributes:
        open: number of its subtasks that are not settled.
        reviews: number of reviews on its pages.
        excluded_words: a review with one of them does not count for it.
        counted_as: name of the product under which its reviews are counted; `None`: its own.
        counted_with: names of the products that are counted as it.
    """

    id: int
    name: str
    keywords: tuple[str, ...]
    aliases: tuple[str, ...]
    category: str | None
    priority: int
    sites: tuple[str, ...] | None
    open: int
    reviews: int
    counted_as: str | None = None
    excluded_words: tuple[str, ...] = ()
    counted_with: tuple[str, ...] = ()

    @property
    def is_crawled(self) -> bool:
        """False for a product that was removed or came by an import."""
        return self.sites != ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductEdit:
    """Changes to a product by a person; `None`: no change.

    Attributes:
        name: another one, which no other product has; all that belongs to the product stays.
        category: of `splitter.catalog.names.Category`.
        keywords: its AND keywords; empty: those found in its name.
        aliases: its other names, all of them.
        recrawl_every: zero stops recrawling.
        pages: result pages of each site.
        sites: only these.
        all_sites: those of the catalog, whichever it has.
        excluded_words: a review with one of them does not count for the product; all of them.
        counted_as: name of another product under which its reviews are counted; empty, or its own: its own.
    """

    name: str | None = None
    category: str | None = None
    keywords: tuple[str, ...] | None = None
    aliases: tuple[str, ...] | None = None
    priority: int | None = None
    recrawl_every: timedelta | None = None
    pages: int | None = None
    sites: Sequence[str] | None = None
    all_sites: bool = False
    excluded_words: tuple[str, ...] | None = None
    counted_as: str | None = None

    @property
    def begins_again(self) -> bool:
        """True if the product is crawled again from the beginning."""
        changed = (self.keywords, self.aliases, self.pages, self.sites, self.category)
        return self.all_sites or any(one is not None for one in changed)


def add(tx: Transaction, product: NewProduct) -> bool:
    """Add a product and its first virtual task; False if a product of that name is there already.

    An imported product can be added by its name a second time: from then on it is crawled.
    """
    values = {**asdict(product), "keywords": product.own_keywords, "name_key": name_key(product.name)}
    product_id = tx.value(_ADD, now=tx.now, **values)
    if product_id is None:
        return False
    restore_links(tx, product_id)
    begin_round(tx, product_id, product.keywords, product.alias_keywords)
    if (every := product.recrawl_every) is not None:
        schedules.recrawl(tx, product_id, Recurrence(every=every), tx.now + every)
    return True


_ADD = """
    INSERT INTO products (name, name_key, created_at, keywords, aliases, sites, priority, pages, category)
    VALUES (:name, :name_key, :now, :keywords, :aliases, :sites, :priority, :pages, :category)
    ON CONFLICT (name) DO UPDATE SET keywords = excluded.keywords, aliases = excluded.aliases,
        sites = excluded.sites, priority = excluded.priority, pages = excluded.pages, category = excluded.category,
        edited_at = NULL
    WHERE CAST(products.sites AS text) = '[]' AND (excluded.sites IS NULL OR CAST(excluded.sites AS text) <> '[]')
    RETURNING id
"""


def begin_round(
    tx: Transaction, product_id: int, keywords: Sequence[str], aliases: Sequence[Sequence[str]]
) -> None:
    """Add the next virtual task of a product; no task is made of it if the product is not crawled.

    Args:
        keywords: its AND keywords.
        aliases: those of its other names.
    """
    tx.run(_BEGIN_ROUND, id=product_id, keywords=keywords, aliases=aliases, now=tx.now)


_BEGIN_ROUND = f"""
    INSERT INTO virtual_tasks (product_id, keywords, aliases, round, created_at, planned_at)
    SELECT id, :keywords, :aliases, last_round + 1, begun_at, CASE WHEN {CRAWLED} THEN NULL ELSE begun_at END
    FROM (
        SELECT p.id, p.sites, coalesce(max(v.round), 0) AS last_round,
            CASE WHEN max(v.created_at) > :now THEN max(v.created_at) ELSE :now END AS begun_at
        FROM products p LEFT JOIN virtual_tasks v ON v.product_id = p.id WHERE p.id = :id GROUP BY p.id, p.sites
    ) latest
"""


def unknown_product(tx: Transaction, name: str) -> InputError:
    """Return the error of a name that no product has. It lists names near it."""
    known = [one for (one,) in tx.rows("SELECT name FROM products ORDER BY id LIMIT :n", n=_NAMES_COMPARED)]
    return InputError.unknown("there is no product {name!r}", name, known, "`reviewloop product list`")


def find(tx: Transaction, name: str) -> Product:
    """Return a product by its exact name, else by its `name_key`. Raises InputError, which lists names near it."""
    product = tx.record(Product, _FIND, name=name, key=name_key(name), settled=SETTLED)
    if product is None:
        raise unknown_product(tx, name)
    counted_with = tuple(name for (name,) in tx.rows(_COUNTED_WITH, id=product.id))
    return replace(product, excluded_words=list_excluded_words(tx, product.id), counted_with=counted_with)


def find_counted(tx: Transaction, name: str) -> Product:
    """Return the product under which the reviews of a product are counted: another one, or itself. Raises as `find`."""
    product = find(tx, name)
    return product if product.counted_as is None else find(tx, product.counted_as)


def has_number(tx: Transaction, number: int) -> bool:
    """Return True if a product has this number."""
    return tx.value("SELECT id FROM products WHERE id = :id", id=number) is not None


_OPEN = (
    "FROM subtasks WHERE task_id IN (SELECT id FROM tasks WHERE product_id = {}) AND state NOT IN :settled"
)
_FIND = f"""
    SELECT id, name, keywords, aliases, category, priority, sites,
        (SELECT m.name FROM products m WHERE m.id = products.counted_as) AS counted_as,
        (SELECT count(*) {_OPEN.format("products.id")}) AS open, (
        SELECT count(*) FROM page_products l JOIN reviews r ON r.page_id = l.page_id AND r.refused IS NULL
        WHERE l.product_id = products.id AND l.verdict = '{Verdict.REVIEW}'
    ) AS reviews
    FROM products WHERE name_key = :key ORDER BY name <> :name, id LIMIT 1
"""
_COUNTED_WITH = "SELECT name FROM products WHERE counted_as = :id ORDER BY id"


def remove(tx: Transaction, name: str) -> Product:
    """Stop crawling a product, and cancel its work. Its pages and reviews stay; those counted as it count on their own.

    Returns:
        Its work and reviews before that.

    Raises:
        InputError: no product has that name.
    """
    was = find(tx, name)
    end_work(tx, was.id, because(Reason.PRODUCT_REMOVED))
    schedules.recrawl(tx, was.id, None, tx.now)
    tx.run("UPDATE products SET sites = '[]' WHERE id = :id", id=was.id)
    if was.counted_with:
        _set_counted_as(tx, [product_id for (product_id,) in tx.rows(_FOLLOWERS, id=was.id)], None)
    return was


def edit(tx: Transaction, name: str, change: ProductEdit, again: NewProduct | None = None) -> int:
    """Change a product.

    Args:
        again: the product with its words after the change, if that begins again: its work under way is cancelled.

    Returns:
        The number of subtasks that were cancelled.

    Raises:
        InputError: no product has that name, or another product has the new name.
    """
    product_id = find(tx, name).id
    key = None if change.name is None else name_key(change.name)
    if (other := tx.value(_SAME_NAME, key=key, id=product_id)) is not None:
        raise InputError("there is a product {other!r} already; give another name", other=other)
    if change.counted_as is not None:
        _count_as(tx, product_id, change.counted_as)
    names = ("name", "category", "priority", "pages", "sites")
    given = {name: value for name in names if (value := getattr(change, name)) is not None}
    if key is not None:
        given["name_key"] = key
    if again is not None:
        given |= {"keywords": again.own_keywords, "aliases": again.aliases}
    if change.all_sites:
        given["sites"] = None
    if change != ProductEdit():
        tx.update("products", ("id",), [{"id": product_id, "edited_at": tx.now, **given}])
    if change.excluded_words is not None:
        with recount_products(tx, [product_id]):
            store_excluded_words(tx, product_id, change.excluded_words)
    if change.sites is not None or change.all_sites:
        restore_links(tx, product_id)
    if change.priority is not None:
        tx.update("subtasks", ("product_id",), [{"product_id": product_id, "priority": change.priority}])
    cancelled = 0
    if again is not None:
        cancelled = end_work(tx, product_id, because(Reason.PRODUCT_CHANGED))
        begin_round(tx, product_id, again.keywords, again.alias_keywords)
        schedules.restart_interval(tx, product_id)
    if (every := change.recrawl_every) is not None:
        last = tx.time(_LAST_ROUND, id=product_id) or tx.now
        schedules.recrawl(tx, product_id, Recurrence(every=every) if every else None, last + every)
    return cancelled


_LAST_ROUND = "SELECT max(created_at) FROM virtual_tasks WHERE product_id = :id"
_SAME_NAME = "SELECT name FROM products WHERE name_key = :key AND id <> :id LIMIT 1"


def _count_as(tx: Transaction, product_id: int, name: str) -> None:
    """Count a product, with those counted as it, as another one; with no name or its own, as itself alone."""
    numbered_imports.wait_turn(tx)  # an undo may delete the other product
    other = find(tx, name) if name else None
    if other is None or other.id == product_id:
        _set_counted_as(tx, [product_id], None)
        return
    main_id = find_counted(tx, name).id
    if main_id == product_id:
        raise InputError(
            "{other} is counted as this product itself; give {other} its own count first", other=other.name
        )
    followers = [number for (number,) in tx.rows(_FOLLOWERS, id=product_id)]
    _set_counted_as(tx, [product_id, *followers], main_id)


def _set_counted_as(tx: Transaction, product_ids: Collection[int], main_id: int | None) -> None:
    with recount_products(tx, product_ids):
        tx.later("UPDATE products SET counted_as = :main WHERE id IN :ids", main=main_id, ids=product_ids)


_FOLLOWERS = "SELECT id FROM products WHERE counted_as = :id ORDER BY id"


def end_work(tx: Transaction, product_id: int, why: Explanation) -> int:
    """Cancel a product's subtasks, make no more tasks of its rounds, and return the number of cancelled subtasks."""
    found = tx.rows(f"SELECT id {_OPEN.format(':id')} ORDER BY id", id=product_id, settled=SETTLED)
    for (subtask_id,) in found:
        attempts.cancel(tx, subtask_id, why)
    tx.run(_FORGET_SITES, id=product_id)
    tx.run(_END_PLANNING, id=product_id, now=tx.now)
    return len(found)


_FORGET_SITES = """
    DELETE FROM unplanned_sites WHERE virtual_task_id IN (SELECT id FROM virtual_tasks WHERE product_id = :id)
"""
_END_PLANNING = """
    UPDATE virtual_tasks SET planned_at = CASE WHEN created_at > :now THEN created_at ELSE :now END
    WHERE product_id = :id AND planned_at IS NULL
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownName:
    """A product by its names: its own and its aliases, and the keyword sets of each.

    Attributes:
        name_key: `splitter.normalize.name_key` of its own name.
        sites: as of `NewProduct`.
    """

    name: str
    name_key: str
    sites: tuple[str, ...] | None
    aliases: tuple[str, ...]
    keywords: tuple[str, ...]
    alias_keywords: tuple[tuple[str, ...], ...]

    @property
    def keyword_sets(self) -> tuple[tuple[str, ...], ...]:
        """Keywords of its own name, then of each alias."""
        return self.keywords, *(tuple(words) for words in self.alias_keywords)


def list_names(tx: Transaction) -> list[KnownName]:
    """Return the names of every product, in the order they were added, with the keywords of its last round."""
    return tx.records(KnownName, _KNOWN_NAMES)


_KNOWN_NAMES = """
    SELECT p.name, p.name_key, p.sites, p.aliases, v.keywords, v.aliases AS alias_keywords
    FROM (SELECT product_id, max(round) AS round FROM virtual_tasks GROUP BY product_id) latest
    JOIN virtual_tasks v ON v.product_id = latest.product_id AND v.round = latest.round
    JOIN products p ON p.id = v.product_id
    ORDER BY p.id
"""


def ids(tx: Transaction, names: Collection[str]) -> dict[str, int]:
    """Return the numbers of products by name."""
    return dict(tx.rows("SELECT name, id FROM products WHERE name IN :names", names=names))
