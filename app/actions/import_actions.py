"""Undoing an import by its number, by command or in the dashboard; noted in the audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from splitter.errors import InputError
from tasks.domain.errors import StoreConflict
from tasks.store.content import imported_products, imports, numbered_imports
from tasks.store.content.imported_products import Fate, Undone
from tasks.store.content.imports import Removal
from tasks.store.content.numbered_imports import ImportKind, NumberedImport
from tasks.store.queue import notices
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

_REVIEWS = 1000
_PRODUCTS = 10
"""Rows of one transaction. The work of a crawled product is cancelled in it, some 100 subtasks."""
_LISTED = 1000
_TRIES = 10
"""How often a transaction is tried again that loses a deadlock with other work."""

T = TypeVar("T")


@dataclass(slots=True)
class ImportUndo:
    """The outcome of undoing an import, or what it would be.

    Attributes:
        reviews: number of deleted reviews.
        reviews_kept: number of its reviews that stay, as another import has them as well.
        products: number of its products, by their fate.
        stays: the first of the products that stay.
    """

    imported: NumberedImport
    reviews: int = 0
    reviews_kept: int = 0
    products: Counter[Fate] = field(default_factory=Counter)
    stays: list[Undone] = field(default_factory=list)

    def count(self, products: Iterable[Undone]) -> None:
        """Count products."""
        for one in products:
            self.products[one.fate] += 1
            if one.need is not None and len(self.stays) < _LISTED:
                self.stays.append(one)


def preview(store: Store, number: int, kind: ImportKind | None = None) -> ImportUndo:
    """Return what `undo` would do, without doing it. Raises as `undo`."""
    with store.read() as tx:
        found = ImportUndo(_find(tx, number, kind))
        found.reviews, found.reviews_kept = imports.count_removable(tx, number)
        found.count(imported_products.preview(tx, number))
    return found


def undo(store: Store, number: int, who: str, kind: ImportKind | None = None) -> ImportUndo:
    """Remove what an import added, and nothing else, in many transactions.

    If it is interrupted, call it again to continue. An import that is under way ends with its next batch.

    Args:
        kind: of the import; None: either.

    Raises:
        InputError: there is none of that number, it is of another kind, or it is undone already.
    """
    found = _write(store, lambda tx: _begin(tx, number, kind, who))
    while (removal := _write(store, lambda tx: _remove_reviews(tx, number))) is not None:
        found.reviews += removal.reviews
        found.reviews_kept += removal.kept
    while some := _write(store, lambda tx: imported_products.undo(tx, number, _PRODUCTS)):
        found.count(some)
    _write(store, lambda tx: _end(tx, found, who))
    return found


def _write(store: Store, operation: Callable[[Transaction], T]) -> T:
    """Run an operation in a transaction, and again while it loses deadlocks."""
    for _ in range(_TRIES):
        with suppress(StoreConflict):
            return _write_once(store, operation)
    return _write_once(store, operation)


def _write_once(store: Store, operation: Callable[[Transaction], T]) -> T:
    with store.begin() as tx:
        numbered_imports.wait_turn(tx)
        return operation(tx)


def _begin(tx: Transaction, number: int, kind: ImportKind | None, who: str) -> ImportUndo:
    found = ImportUndo(_find(tx, number, kind))
    if found.imported.undo_begun_at is None:
        numbered_imports.begin_undo(tx, number)
        _record(tx, "undo import", found, who)
    return found


def _remove_reviews(tx: Transaction, number: int) -> Removal | None:
    from tasks.jobs.repost_linking import compare_again  # it brings the reading

    removal = imports.remove_some(tx, number, _REVIEWS)
    if removal is not None:
        compare_again(tx, removal.alone)
    return removal


def _end(tx: Transaction, found: ImportUndo, who: str) -> None:
    if numbered_imports.end_undo(tx, found.imported.id):
        _record(tx, "import undone", found, who)


def _find(tx: Transaction, number: int, kind: ImportKind | None) -> NumberedImport:
    found = numbered_imports.find(tx, number)
    if kind is not None and found.kind != kind:
        command = "product import" if found.kind is ImportKind.PRODUCTS else "review import"
        raise InputError(
            "import {number} is one of {kind}: reviewloop {command} --undo {number}",
            number=number,
            kind=found.kind,
            command=command,
        )
    if found.undone_at is not None:
        raise InputError(
            "import {number} is undone already, since {undone_at:%Y-%m-%d %H:%M} UTC",
            number=number,
            undone_at=found.undone_at,
        )
    return found


def _record(tx: Transaction, action: str, found: ImportUndo, who: str) -> None:
    detail = {
        "number": found.imported.id,
        "kind": found.imported.kind,
        "reviews": found.reviews,
        "products": found.products[Fate.DELETED],
        "stay": len(found.stays),
        "reviews_stay": found.reviews_kept,
    }
    subject = found.imported.file or f"import {found.imported.id}"
    notices.record_action(
        tx, who, action, subject, **{name: value for name, value in detail.items() if value}
    )
