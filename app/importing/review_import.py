"""Imports reviews that people have: reads a file as a stream, and stores its reviews batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from app.actions.product_actions import record_added
from app.actions.review_actions import begin_import
from app.files.table_files import BadRow
from app.importing.review_checks import ProductNames, RefusedReview, ReviewChecks
from app.importing.review_files import Record
from tasks.store.content import imported_products, imports, numbered_imports, products
from tasks.store.content.imports import ImportedReview
from tasks.store.sql.database import Store

BATCH = 1000
"""Lines of one transaction."""
MOST_REFUSED = 1000
"""Refused lines that are listed one by one; all are counted."""


@dataclass(slots=True)
class Imported:
    """The outcome of importing a file.

    Attributes:
        lines: with a review in them or refused.
        added, known: reviews stored now; and stored already, by an earlier import or an earlier line.
        refused: the first `MOST_REFUSED` lines that were not taken.
        refused_by: how many were not taken, by field.
    """

    lines: int = 0
    added: int = 0
    known: int = 0
    refused: list[RefusedReview] = field(default_factory=list)
    refused_by: Counter[str] = field(default_factory=Counter)

    def refuse(self, one: RefusedReview) -> None:
        """Count a line that is not taken."""
        self.refused_by[one.field or "line"] += 1
        if len(self.refused) < MOST_REFUSED:
            self.refused.append(one)


def import_reviews(
    records: Iterator[Record | BadRow],
    checks: ReviewChecks,
    save: Callable[[Sequence[ImportedReview]], Sequence[bool]],
    progress: Callable[[int], None],
) -> Imported:
    """Read records to their end.

    Args:
        save: stores reviews; of each, whether it was known.
        progress: told after each batch how many lines were read.
    """
    done = Imported()
    while batch := list(islice(records, BATCH)):
        came: list[ImportedReview] = []
        for record in batch:
            one = (
                RefusedReview(record.line, "", record.why)
                if isinstance(record, BadRow)
                else checks.of(record)
            )
            if isinstance(one, RefusedReview):
                done.refuse(one)
            else:
                came.append(one)
        repeated = sum(save(came)) if came else 0
        done.lines += len(batch)
        done.known += repeated
        done.added += len(came) - repeated
        progress(done.lines)
    return done


class Saving:
    """Stores reviews with their products, a batch a transaction.

    Args:
        source: name of where the reviews come from.
        file: the first batch begins an import of it.
        who: imports it.

    Attributes:
        number: of the import; None before the first batch.
    """

    def __init__(self, store: Store, source: str, names: ProductNames, file: str, who: str) -> None:
        self._store = store
        self._source = source
        self._names = names
        self._file = file
        self._who = who
        self._stored_products = 0
        self.number: int | None = None

    def save(self, came: Sequence[ImportedReview]) -> Sequence[bool]:
        """Store reviews; of each, whether it was known. Raises InputError if the import was undone meanwhile."""
        with self._store.begin() as tx:
            number = self.number
            if number is None:
                number = begin_import(tx, self._source, self._file, self._who)
            numbered_imports.hold(tx, number)
            new = list(self._names.added.values())
            wanted = new[self._stored_products :]
            are_added = imported_products.add(tx, number, wanted)
            added = [one.name for one, is_added in zip(wanted, are_added, strict=True) if is_added]
            record_added(tx, added, self._who, number)
            ids = products.ids(tx, {one.product for one in came})
            repeated = imports.save(tx, self._source, came, ids, number)
        self._stored_products, self.number = len(new), number
        return repeated

    def end(self) -> None:
        """Note that the file was read to its end."""
        if self.number is not None:
            with self._store.begin() as tx:
                numbered_imports.end(tx, self.number)


class Trying:
    """Looks which reviews would be stored; changes nothing.

    It remembers 8 bytes of each, to know those that come twice.

    Args:
        store: None where there is none yet.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._seen: set[int] = set()
        self.number: int | None = None

    def save(self, came: Sequence[ImportedReview]) -> Sequence[bool]:
        """Return for each review whether it is known."""
        if self._store is None:
            stored = [False] * len(came)
        else:
            with self._store.read() as tx:
                stored = imports.are_known(tx, came)
        repeated = []
        for one, is_stored in zip(came, stored, strict=True):
            digest = int.from_bytes(one.page[:8], "big") ^ int(one.review.key[:16], 16)
            repeated.append(is_stored or digest in self._seen)
            self._seen.add(digest)
        return repeated

    def end(self) -> None:
        """Do nothing: no import was begun."""
