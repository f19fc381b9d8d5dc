"""Undo an import, given by number, and record it in the audit log. Used by the command, the dashboard and the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from splitter.errors import InputError
from tasks.store.content import imported_products, imports, numbered_imports
from tasks.store.content.imported_products import Fate, Undone
from tasks.store.content.imports import Removal
from tasks.store.content.numbered_imports import ImportKind, NumberedImport
from tasks.store.queue import notices
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

_REVIEWS = 1000
_PRODUCTS = 10
"""Maximum number of products in one transaction. Each may have about 100 subtasks to cancel."""
_LISTED = 1000

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class ImportUndo:
    """The changes made by undoing an import; in a dry run, those that would be made.

    Attributes:
        number, kind, file: number, kind and file name of the import.
        reviews_stay: number of the import's reviews that stay, because another import also contains them.
        products_restored: number of products whose settings are again those from before the import.
        stays: names of some of the products that stay.
        dry_run: True if nothing was changed.
    """

    number: int
    kind: ImportKind
    file: str
    reviews_removed: int = 0
    reviews_stay: int = 0
    products_removed: int = 0
    products_restored: int = 0
    stays: list[Undone] = field(default_factory=list)
    dry_run: bool = False

    def count(self, products: Iterable[Undone]) -> None:
        """Add these products to the counts."""
        for one in products:
            self.products_removed += one.fate is Fate.DELETED
            self.products_restored += one.fate is Fate.RESTORED
            if one.need is not None and len(self.stays) < _LISTED:
                self.stays.append(one)


def preview(store: Store, number: int, kind: ImportKind | None = None) -> ImportUndo:
    """Return what `undo` would change, and change nothing. Raises the same errors as `undo`."""
    with store.read() as tx:
        found = _make_undo(_find(tx, number, kind))
        found.dry_run = True
        found.reviews_removed, found.reviews_stay = imports.count_removable(tx, number)
        found.count(imported_products.preview(tx, number))
    return found


def undo(store: Store, number: int, who: str, kind: ImportKind | None = None) -> ImportUndo:
    """Remove the rows that an import added. It takes many transactions.

    If it is interrupted, call it again to continue. An import that is still running stops at its next batch.

    Args:
        kind: the kind that the import must have; `None` accepts both.

    Raises:
        InputError: no import has this number, it has another kind, or it was undone before.
    """
    found = _write(store, lambda tx: _begin(tx, number, kind, who))
    while (removal := _write(store, lambda tx: _remove_reviews(tx, number))) is not None:
        found.reviews_removed += removal.reviews
        found.reviews_stay += removal.kept
    while some := _write(store, lambda tx: imported_products.undo(tx, number, _PRODUCTS)):
        found.count(some)
    _write(store, lambda tx: _end(tx, found, who))
    return found


def _write(store: Store, operation: Callable[[Transaction], T]) -> T:
    """Run an operation in a transaction. No other import or undo can run at the same time."""

    def write(tx: Transaction) -> T:
        numbered_imports.wait_turn(tx)
        return operation(tx)

    return store.write(write)


def _begin(tx: Transaction, number: int, kind: ImportKind | None, who: str) -> ImportUndo:
    imported = _find(tx, number, kind)
    found = _make_undo(imported)
    if imported.undo_begun_at is None:
        numbered_imports.begin_undo(tx, number)
        _record(tx, "undo import", found, who)
    return found


def _make_undo(imported: NumberedImport) -> ImportUndo:
    return ImportUndo(number=imported.id, kind=imported.kind, file=imported.file)


def _remove_reviews(tx: Transaction, number: int) -> Removal | None:
    from tasks.jobs.repost_linking import compare_again  # it brings the reading

    removal = imports.remove_some(tx, number, _REVIEWS)
    if removal is not None:
        compare_again(tx, removal.alone)
    return removal


def _end(tx: Transaction, found: ImportUndo, who: str) -> None:
    if numbered_imports.end_undo(tx, found.number):
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
        "number": found.number,
        "kind": found.kind,
        "reviews": found.reviews_removed,
        "products": found.products_removed,
        "stay": len(found.stays),
        "reviews_stay": found.reviews_stay,
    }
    subject = found.file or f"import {found.number}"
    notices.record_action(
        tx, who, action, subject, **{name: value for name, value in detail.items() if value}
    )
