"""Actions of a person on products, by command or in the dashboard; noted in the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice

from app.actions.products import UNITS, RefusedProduct, new_product, period
from app.views.words import describe
from splitter.errors import InputError
from splitter.normalize import name_key
from tasks.store.content import imported_products, numbered_imports, products
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.content.products import KnownName, NewProduct, Product, ProductEdit
from tasks.store.content.review_removal import Removed, remove_reviews
from tasks.store.queue import notices
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

_NEVER = "never"
_NAMED = 10
_BATCH = 500
"""Products added in one transaction."""
_EDITED = 20
"""Products changed in one transaction. Each may have some 100 subtasks to cancel."""


def period_or_never(text: str) -> timedelta:
    """Read 7d, 12h, or `never` as zero. Raises InputError."""
    return timedelta() if text.strip().lower() == _NEVER else period(text)


def period_text(seconds: float | None) -> str:
    """A period as `period_or_never` reads it, in its greatest whole unit."""
    if not seconds:
        return _NEVER
    unit = next((unit for unit, length in UNITS.items() if seconds % length == 0), "m")
    return f"{max(1, round(seconds / UNITS[unit]))}{unit}"


@dataclass(slots=True)
class Added:
    """The outcome for products that were given.

    Attributes:
        number: of the import; None if nothing was stored.
        known: products whose names are there already.
        kept_out: names of those of them that stay limited to fewer sites than were asked for now.
    """

    added: list[NewProduct] = field(default_factory=list)
    known: list[NewProduct] = field(default_factory=list)
    refused: list[RefusedProduct] = field(default_factory=list)
    kept_out: list[str] = field(default_factory=list)
    number: int | None = None

    @property
    def doubtful(self) -> list[NewProduct]:
        """Products that were added paused, as their line names no site or page to ask."""
        return [one for one in self.added if one.sites == ()]


def add(store: Store, given: Iterable[NewProduct | RefusedProduct], who: str, file: str = "") -> Added:
    """Add products as a numbered import, at most `_BATCH` in one transaction.

    Args:
        file: that they came from; empty: a person typed them.

    Raises:
        InputError: the import was undone meanwhile.
    """
    result = Added()
    rest = iter(given)
    with store.read() as tx:
        there: dict[str, NewProduct | KnownName] = {one.name_key: one for one in products.list_names(tx)}
    while batch := list(islice(rest, _BATCH)):
        result.refused += [one for one in batch if isinstance(one, RefusedProduct)]
        wanted = [_name_as_stored(one, there) for one in batch if isinstance(one, NewProduct)]
        if not wanted:
            continue
        with store.begin() as tx:
            number = result.number
            if number is None:
                number = numbered_imports.begin(tx, ImportKind.PRODUCTS, file, who)
            numbered_imports.hold(tx, number)
            are_added = imported_products.add(tx, number, wanted)
            new = [one for one, is_added in zip(wanted, are_added, strict=True) if is_added]
            numbered_imports.count(tx, number, len(new), len(wanted) - len(new))
            record_added(tx, [one.name for one in new], who, number)
        result.number = number
        _sort_outcome(result, wanted, are_added, there)
    if result.number is not None:
        with store.begin() as tx:
            numbered_imports.end(tx, result.number)
    return result


def _name_as_stored(one: NewProduct, there: dict[str, NewProduct | KnownName]) -> NewProduct:
    """Return a product with the name that one with its key has already."""
    return replace(one, name=there.setdefault(name_key(one.name), one).name)


def _sort_outcome(
    result: Added,
    wanted: Sequence[NewProduct],
    are_added: Sequence[bool],
    there: dict[str, NewProduct | KnownName],
) -> None:
    for one, is_added in zip(wanted, are_added, strict=True):
        if is_added:
            result.added.append(one)
            there[name_key(one.name)] = one
            continue
        result.known.append(one)
        known = there[name_key(one.name)]
        if known.sites and (one.sites is None or not set(one.sites) <= set(known.sites)):
            result.kept_out.append(one.name)


def preview(store: Store | None, given: Iterable[NewProduct | RefusedProduct]) -> Added:
    """Return what `add` would do, without doing it; None is a store without a product."""
    result = Added()
    is_crawled: dict[str, bool] = {}
    if store is not None:
        with store.read() as tx:
            is_crawled = {one.name_key: one.sites != () for one in products.list_names(tx)}
    for one in given:
        if isinstance(one, RefusedProduct):
            result.refused.append(one)
            continue
        key = name_key(one.name)
        if is_crawled.get(key) or (key in is_crawled and one.sites == ()):
            result.known.append(one)
        else:
            result.added.append(one)
            is_crawled[key] = one.sites != ()
    return result


def record_added(tx: Transaction, names: Sequence[str], who: str, number: int) -> None:
    """Record in the audit log that products were added, if there are any."""
    if names:
        few = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
        notices.record_action(tx, who, "add products", few, count=len(names), number=number)


def remove(
    store: Store, names: Sequence[str], who: str, *, delete_reviews: bool = False
) -> list[tuple[Product, Removed | None]]:
    """Stop crawling products, and delete their pages and reviews if `delete_reviews`; if one is unknown, change none.

    Returns:
        The work and reviews of each before that, and the numbers of deleted rows; `None` if none was deleted.

    Raises:
        InputError: there is none of a name.
    """
    done: list[tuple[Product, Removed | None]] = []
    with store.begin() as tx:
        for name in dict.fromkeys(names):
            was = products.remove(tx, name)
            detail, removed = {"cancelled": was.open}, None
            if delete_reviews:
                from tasks.jobs.repost_linking import compare_again  # it brings the reading

                removed = remove_reviews(tx, was.id)
                compare_again(tx, removed.alone)
                detail |= {"deleted": removed.reviews, "kept": removed.kept}
            notices.record_action(tx, who, "remove product", was.name, **detail)
            done.append((was, removed))
    return done


def edit(store: Store, name: str, wanted: ProductEdit, who: str) -> tuple[int, Product]:
    """Change a product; with other words, sites or pages it is looked for anew, and its work under way is cancelled.

    Returns:
        How many subtasks were cancelled, and what there is of it now.

    Raises:
        InputError: there is none of that name, its words give no query, or it is to be looked for every so often and is
            looked for at no site.
    """
    with store.begin() as tx:
        return _edit(tx, products.find(tx, name), wanted, who)


def _edit(tx: Transaction, row: Product, wanted: ProductEdit, who: str) -> tuple[int, Product]:
    if wanted.recrawl_every and not row.is_crawled and wanted.sites is None and not wanted.all_sites:
        raise InputError(
            "{name} is no longer collected, or came by an import: add it again",
            name=row.name,
        )
    again = None
    if wanted.name is not None or wanted.begins_again:
        again = new_product(
            row.name if wanted.name is None else wanted.name,
            keywords=row.keywords if wanted.keywords is None else wanted.keywords,
            aliases=row.aliases if wanted.aliases is None else wanted.aliases,
        )
        wanted = wanted if wanted.name is None else replace(wanted, name=again.name)
    cancelled = products.edit(tx, row.name, wanted, again if wanted.begins_again else None)
    if wanted != ProductEdit():
        detail = _audit_detail(wanted, cancelled)
        notices.record_action(tx, who, "edit product", row.name, **detail)
    return cancelled, products.find(tx, wanted.name or row.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkEdit:
    """A change of many products.

    Attributes:
        change: what becomes the same of all.
        add_keywords, drop_keywords: words that each gets, and loses.
    """

    change: ProductEdit = field(default_factory=ProductEdit)
    add_keywords: tuple[str, ...] = ()
    drop_keywords: tuple[str, ...] = ()

    def find_change(self, row: Product) -> ProductEdit:
        """Return the change that a product still needs. Raises InputError if it would lose all its keywords."""
        wanted = self.change
        if self.add_keywords or self.drop_keywords:
            wanted = replace(wanted, keywords=self._change_keywords(row))
        if wanted.category == row.category:
            wanted = replace(wanted, category=None)
        if wanted.priority == row.priority:
            wanted = replace(wanted, priority=None)
        if row.sites is not None and wanted.sites is not None and {*wanted.sites} == {*row.sites}:
            wanted = replace(wanted, sites=None)
        return replace(wanted, all_sites=wanted.all_sites and row.sites is not None)

    def _change_keywords(self, row: Product) -> tuple[str, ...] | None:
        before = row.keywords or new_product(row.name).keywords
        dropped = {name_key(word) for word in self.drop_keywords}
        after = dict.fromkeys(word for word in before if name_key(word) not in dropped)
        after |= dict.fromkeys(self.add_keywords)
        if not after:
            raise InputError("{name} would have no keyword left", name=row.name)
        return None if tuple(after) == before else tuple(after)


@dataclass(slots=True)
class BulkEdited:
    """The outcome of a change of many products.

    Attributes:
        changed: how many subtasks of each were cancelled, and the product now.
        same: names of products that were so already.
        refused: names of products that can't be changed so, with the reason.
    """

    changed: list[tuple[int, Product]] = field(default_factory=list)
    same: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)

    @property
    def cancelled(self) -> int:
        """Number of cancelled subtasks."""
        return sum(n for n, _ in self.changed)


def edit_each(
    store: Store, names: Iterable[str], wanted: BulkEdit, who: str, *, dry_run: bool = False
) -> BulkEdited:
    """Change each product; one that can't be changed does not hold up the others. Each gets a row of the audit log.

    If it is interrupted, call it again to continue.

    Args:
        dry_run: return what would be done, and change nothing.
    """
    result = BulkEdited()
    rest = iter(names)
    while batch := list(islice(rest, _EDITED)):
        with suppress(_DryRun), store.begin() as tx:
            for name in batch:
                _edit_one(tx, name, wanted, who, result)
            if dry_run:
                raise _DryRun
    return result


class _DryRun(Exception):
    """Rolls a transaction back."""


def _edit_one(tx: Transaction, name: str, wanted: BulkEdit, who: str, result: BulkEdited) -> None:
    try:
        row = products.find(tx, name)
        change = wanted.find_change(row)
        if change == ProductEdit():
            result.same.append(row.name)
        else:
            result.changed.append(_edit(tx, row, change, who))
    except InputError as error:
        result.refused.append((name, describe(error)))


def _audit_detail(wanted: ProductEdit, cancelled: int) -> dict[str, object]:
    """A change, for the audit log."""
    every = wanted.recrawl_every
    told = {
        "name": wanted.name,
        "category": wanted.category,
        "keywords": None if wanted.keywords is None else " & ".join(wanted.keywords) or "of the name",
        "aliases": None if wanted.aliases is None else ", ".join(wanted.aliases) or "none",
        "priority": None if wanted.priority is None else str(wanted.priority),
        "recrawl": None if every is None else period_text(every.total_seconds()),
        "pages": None if wanted.pages is None else str(wanted.pages),
        "sites": "all" if wanted.all_sites else None if wanted.sites is None else ", ".join(wanted.sites),
        "cancelled": cancelled,
    }
    return {name: value for name, value in told.items() if value is not None}
