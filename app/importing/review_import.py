"""Import a file of reviews: read it record by record, and store its reviews in batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from app.actions.product_actions import record_added
from app.actions.review_actions import begin_import
from app.files.table_files import BadRow
from app.importing.review_checks import ProductNames, RefusedReview, ReviewChecks
from app.importing.review_files import ImportedLine
from tasks.store.content import counted_reviews, imported_products, imports, numbered_imports, products
from tasks.store.content.imports import ImportedReview
from tasks.store.sql.database import Store

BATCH = 1000
"""Number of lines in one transaction."""
MOST_REFUSED = 1000
"""Maximum number of refused lines that are listed; all are counted."""


@dataclass(slots=True)
class Imported:
    """The result of importing a file.

    Attributes:
        lines: number of lines with a review, including refused lines.
        added: number of newly stored reviews.
        known: number of reviews that were stored before, by an earlier import or line.
        refused: the first `MOST_REFUSED` refused lines.
        refused_by: number of refused lines by field.
    """

    lines: int = 0
    added: int = 0
    known: int = 0
    refused: list[RefusedReview] = field(default_factory=list)
    refused_by: Counter[str] = field(default_factory=Counter)

    def refuse(self, one: RefusedReview) -> None:
        """Count a refused line."""
        self.refused_by[one.field or "line"] += 1
        if len(self.refused) < MOST_REFUSED:
            self.refused.append(one)


def import_reviews(
    records: Iterator[ImportedLine | BadRow],
    checks: ReviewChecks,
    save: Callable[[Sequence[ImportedReview]], Sequence[bool]],
    progress: Callable[[int], None],
) -> Imported:
    """Read all records, and store their reviews in batches.

    Args:
        save: stores reviews, and returns True for each one that was already stored.
        progress: called after each batch with the number of lines read.
    """
    done = Imported()
    while batch := list(islice(records, BATCH)):
        came: list[ImportedReview] = []
        for record in batch:
            one = (
                RefusedReview(record.line, "", record.why)
                if isinstance(record, BadRow)
                else checks.make_review(record)
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
    """Stores reviews and their products, one transaction per batch.

    Args:
        source: name of the source of the reviews.
        file: name of the imported file.
        who: person who imports the file, for the audit log.

    Attributes:
        number: number of the import; `None` before the first batch.
    """

    def __init__(self, store: Store, source: str, names: ProductNames, file: str, who: str) -> None:
        self._store = store
        self._source = source
        self._names = names
        self._file = file
        self._who = who
        self._stored_products = 0
        self._added = 0
        self.number: int | None = None

    def save(self, came: Sequence[ImportedReview]) -> Sequence[bool]:
        """Store reviews. Return for each one True if it was stored before.

        Raises InputError if the import was undone.
        """
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
        self._added += len(came) - sum(repeated)
        return repeated

    def end(self) -> None:
        """Record that the whole file was read."""
        if self.number is not None:
            with self._store.begin() as tx:
                numbered_imports.end(tx, self.number)
                if self._added >= BATCH:
                    counted_reviews.refresh_statistics(tx)


class Trying:
    """Finds out which reviews would be stored, without storing anything.

    It takes 8 bytes of memory per review, to recognise repeated reviews.

    Args:
        store: the store; `None` if it does not exist yet.
    """

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._seen: set[int] = set()
        self.number: int | None = None

    def save(self, came: Sequence[ImportedReview]) -> Sequence[bool]:
        """Return for each review True if it is in the store or an earlier line."""
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
        """Do nothing, because no import was begun."""
