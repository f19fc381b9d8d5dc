"""Actions of people on products, recorded in the audit log. Used by commands, dashboard and API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import islice

from app.actions.products import UNITS, RefusedProduct, new_product, period
from app.views.doubts import Doubt, list_doubts
from app.views.fields import extend_row
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
"""Maximum number of products added in one transaction."""
_EDITED = 20
"""Maximum number of products changed in one transaction. Each may have about 100 subtasks to cancel."""


def period_or_never(text: str) -> timedelta:
    """Parse a period such as 7d or 12h. "never" gives a period of zero. Raises InputError."""
    return timedelta() if text.strip().lower() == _NEVER else period(text)


def period_text(seconds: float | None) -> str:
    """Return a period in the form that `period_or_never` parses, in the largest unit that gives a whole number."""
    if not seconds:
        return _NEVER
    unit = next((unit for unit, length in UNITS.items() if seconds % length == 0), "m")
    return f"{max(1, round(seconds / UNITS[unit]))}{unit}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenProduct:
    """A product that a person wants to add, with its line if it is from a file."""

    line: int | None
    name: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedProduct(GivenProduct):
    """An added product, with the doubts about it that a person should check."""

    aliases: tuple[str, ...]
    priority: int
    category: str | None
    doubts: list[Doubt]


@dataclass(slots=True, kw_only=True)
class Added:
    """The result of adding products.

    Attributes:
        number: number of the import; `None` if nothing was stored.
        known: given products that were stored before; `already` has their stored names.
        doubtful: products added as paused, because their line allows no site or no page to be crawled.
        kept_out: names of known products that stay limited to certain sites, although more sites were requested.
        dry_run: True if nothing was stored.
    """

    number: int | None = None
    added: list[AddedProduct] = field(default_factory=list)
    known: list[GivenProduct] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    doubtful: list[GivenProduct] = field(default_factory=list)
    refused: list[RefusedProduct] = field(default_factory=list)
    kept_out: list[str] = field(default_factory=list)
    dry_run: bool = False

    def note_added(self, one: NewProduct) -> None:
        """Note that a product was added."""
        given = GivenProduct(line=one.line, name=one.name, keywords=one.keywords)
        doubts = list_doubts(one)
        self.added.append(
            extend_row(
                AddedProduct,
                given,
                aliases=one.aliases,
                priority=one.priority,
                category=one.category,
                doubts=doubts,
            )
        )
        if Doubt.NO_SITE in doubts:
            self.doubtful.append(given)

    def note_known(self, one: NewProduct) -> None:
        """Note that a given product was not added, because it is stored already."""
        self.known.append(GivenProduct(line=one.line, name=one.name, keywords=one.keywords))
        self.already.append(one.name)


def add(store: Store, given: Iterable[NewProduct | RefusedProduct], who: str, file: str = "") -> Added:
    """Add products as a numbered import, at most `_BATCH` in one transaction.

    Args:
        file: name of the file that the products are from; empty if a person typed them.

    Raises:
        InputError: the import was undone while it ran.
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
    """Return `one`, under the name of the stored product if one with the same key is stored."""
    return replace(one, name=there.setdefault(name_key(one.name), one).name)


def _sort_outcome(
    result: Added,
    wanted: Sequence[NewProduct],
    are_added: Sequence[bool],
    there: dict[str, NewProduct | KnownName],
) -> None:
    for one, is_added in zip(wanted, are_added, strict=True):
        if is_added:
            result.note_added(one)
            there[name_key(one.name)] = one
            continue
        result.note_known(one)
        known = there[name_key(one.name)]
        if known.sites and (one.sites is None or not set(one.sites) <= set(known.sites)):
            result.kept_out.append(one.name)


def preview(store: Store | None, given: Iterable[NewProduct | RefusedProduct]) -> Added:
    """Return what `add` would change, and store nothing.

    Args:
        store: the store; `None` if there is none yet.
    """
    result = Added(dry_run=True)
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
            result.note_known(one)
        else:
            result.note_added(one)
            is_crawled[key] = one.sites != ()
    return result


def record_added(tx: Transaction, names: Sequence[str], who: str, number: int) -> None:
    """Record added products in the audit log. Do nothing if there are none."""
    if names:
        few = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
        notices.record_action(tx, who, "add products", few, count=len(names), number=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedProduct:
    """A product that is no longer collected.

    Attributes:
        cancelled: number of unsettled subtasks that are cancelled.
        reviews: number of the product's reviews before the removal.
        deleted: number of reviews that were deleted; `None` if deleting was not requested.
        was_looked_for: False if the product was removed before, or is only known from an import of reviews.
        counted_with: names of the products that were counted under this one. They are counted on their own afterwards.
    """

    id: int
    name: str
    cancelled: int
    reviews: int
    was_looked_for: bool
    counted_with: tuple[str, ...]
    deleted: int | None


def remove(
    store: Store, names: Sequence[str], who: str, *, delete_reviews: bool = False, dry_run: bool = False
) -> list[RemovedProduct]:
    """Stop crawling products. If `delete_reviews`, also delete their pages and reviews.

    Args:
        dry_run: True to change nothing and only return the result.

    Raises:
        InputError: a name is unknown. Nothing is changed.
    """
    if dry_run:
        with store.read() as tx:
            return [_view_removed(products.find(tx, name), None) for name in dict.fromkeys(names)]
    return store.write(
        lambda tx: [_remove(tx, name, who, delete_reviews=delete_reviews) for name in dict.fromkeys(names)]
    )


def _remove(tx: Transaction, name: str, who: str, *, delete_reviews: bool) -> RemovedProduct:
    was = products.remove(tx, name)
    removed: Removed | None = None
    detail: dict[str, object] = {"cancelled": was.open}
    if was.counted_with:
        detail["counted_with"] = ", ".join(was.counted_with)
    if delete_reviews:
        from tasks.jobs.repost_linking import compare_again  # it brings the reading

        removed = remove_reviews(tx, was.id)
        compare_again(tx, removed.alone)
        detail |= {"deleted": removed.reviews, "kept": removed.kept}
    notices.record_action(tx, who, "remove product", was.name, **detail)
    return _view_removed(was, removed)


def _view_removed(was: Product, removed: Removed | None) -> RemovedProduct:
    return RemovedProduct(
        id=was.id,
        name=was.name,
        cancelled=was.open,
        reviews=was.reviews,
        was_looked_for=was.is_crawled,
        counted_with=was.counted_with,
        deleted=None if removed is None else removed.reviews,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedProduct(Product):
    """A product after a change.

    Attributes:
        cancelled: number of subtasks that the change cancelled.
        begins_again: True if the product is crawled again because of the change.
        looked_for: False if no site is crawled for the product.
    """

    cancelled: int
    begins_again: bool
    looked_for: bool


def edit(store: Store, name: str, wanted: ProductEdit, who: str) -> ChangedProduct:
    """Change a product. If its words, sites or pages change, cancel its subtasks and crawl it again.

    Raises:
        InputError: the name is unknown, the words can't be searched for, or the change asks for regular crawls of a
            product that is crawled at no site.
    """
    return store.write(lambda tx: _edit(tx, products.find(tx, name), wanted, who))


def _edit(tx: Transaction, row: Product, wanted: ProductEdit, who: str) -> ChangedProduct:
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
    now = products.find(tx, wanted.name or row.name)
    return extend_row(
        ChangedProduct,
        now,
        cancelled=cancelled,
        begins_again=wanted.begins_again,
        looked_for=now.is_crawled,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkEdit:
    """A change to make to many products.

    Attributes:
        change: values that all products get.
        add_keywords, drop_keywords: keywords to add to each product, and to remove from it.
    """

    change: ProductEdit = field(default_factory=ProductEdit)
    add_keywords: tuple[str, ...] = ()
    drop_keywords: tuple[str, ...] = ()

    def find_change(self, row: Product) -> ProductEdit:
        """Return those values of the change that differ from the product's.

        Raises InputError if no keyword would be left.
        """
        wanted = self.change
        if self.add_keywords or self.drop_keywords:
            wanted = replace(wanted, keywords=self._change_keywords(row))
        if wanted.category == row.category:
            wanted = replace(wanted, category=None)
        if wanted.priority == row.priority:
            wanted = replace(wanted, priority=None)
        if wanted.counted_as is not None:
            main, wanted_main = row.counted_as or row.name, wanted.counted_as or row.name
            if name_key(main) == name_key(wanted_main):
                wanted = replace(wanted, counted_as=None)
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
    """The result of changing many products.

    Attributes:
        unchanged: names of products that had these values before.
        refused: products that can't be changed, each with the reason.
        dry_run: True if nothing was changed.
    """

    changed: list[ChangedProduct] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refused: list[RefusedProduct] = field(default_factory=list)
    dry_run: bool = False

    @property
    def cancelled(self) -> int:
        """Number of subtasks that were cancelled."""
        return sum(one.cancelled for one in self.changed)

    def add(self, other: BulkEdited) -> None:
        """Add the results for other products."""
        self.changed += other.changed
        self.unchanged += other.unchanged
        self.refused += other.refused


def edit_each(
    store: Store, names: Iterable[str], wanted: BulkEdit, who: str, *, dry_run: bool = False
) -> BulkEdited:
    """Change each product, and record it in the audit log. If one can't be changed, the others still are.

    If it is interrupted, call it again to continue.

    Args:
        dry_run: True to change nothing and only return the result.

    Raises:
        InputError: the product under which `wanted` counts them does not exist.
    """
    result = BulkEdited(dry_run=dry_run)
    if wanted.change.counted_as:
        with store.read() as tx:
            products.find(tx, wanted.change.counted_as)
    rest = iter(names)
    while batch := list(islice(rest, _EDITED)):
        result.add(store.write(partial(_edit_batch, batch, wanted, who), dry_run=dry_run))
    return result


def _edit_batch(names: Sequence[str], wanted: BulkEdit, who: str, tx: Transaction) -> BulkEdited:
    result = BulkEdited()
    for name in names:
        _edit_one(tx, name, wanted, who, result)
    return result


def _edit_one(tx: Transaction, name: str, wanted: BulkEdit, who: str, result: BulkEdited) -> None:
    try:
        row = products.find(tx, name)
        change = wanted.find_change(row)
        if change == ProductEdit():
            result.unchanged.append(row.name)
        else:
            result.changed.append(_edit(tx, row, change, who))
    except InputError as error:
        result.refused.append(RefusedProduct(name, error.message))


def _audit_detail(wanted: ProductEdit, cancelled: int) -> dict[str, object]:
    """Return a change as the audit log stores it."""
    every = wanted.recrawl_every
    told = {
        "name": wanted.name,
        "category": wanted.category,
        "keywords": None if wanted.keywords is None else " & ".join(wanted.keywords) or "of the name",
        "aliases": None if wanted.aliases is None else ", ".join(wanted.aliases) or "none",
        "priority": None if wanted.priority is None else str(wanted.priority),
        "recrawl": None if every is None else period_text(every.total_seconds()),
        "pages": None if wanted.pages is None else str(wanted.pages),
        "excluded_words": None
        if wanted.excluded_words is None
        else ", ".join(wanted.excluded_words) or "none",
        "counted_as": None if wanted.counted_as is None else wanted.counted_as or "none",
        "sites": "all" if wanted.all_sites else None if wanted.sites is None else ", ".join(wanted.sites),
        "cancelled": cancelled,
    }
    return {name: value for name, value in told.items() if value is not None}
