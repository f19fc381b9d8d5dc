"""Imports by number: each file of products or reviews that a person brings, and what it added.

An import that added a row owns it, until another import has it as well and the first one is undone: then that one owns
it. Rows that are older than the first numbered import that has them have no owner, and no undo removes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from splitter.errors import InputError, Message, join_messages

from tasks.store.sql.database import wait_lock
from tasks.store.sql.transaction import Transaction

_NAMED = 5
_LONGEST_FILE = 500


class ImportKind(StrEnum):
    """The kind of rows that an import adds."""

    PRODUCTS = "products"
    REVIEWS = "reviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedImport:
    """An import.

    Attributes:
        id: its number.
        file: its name as the person gave it; empty if they typed names.
        source: the origin of its reviews; None for products.
        begun_at, ended_at: None: it is under way, or was broken off.
        undo_begun_at, undone_at: None: it was not.
        added: number of products, or reviews, that were new.
        known: number of those that were there already.
    """

    id: int
    kind: ImportKind
    file: str
    source: str | None
    who: str
    begun_at: datetime
    ended_at: datetime | None
    undo_begun_at: datetime | None
    undone_at: datetime | None
    added: int
    known: int


def begin(tx: Transaction, kind: ImportKind, file: str, who: str, source: str | None = None) -> int:
    """Begin an import, and return its number."""
    values = {"kind": kind, "file": file[:_LONGEST_FILE], "source": source, "who": who[:200], "now": tx.now}
    number: int = tx.value(_BEGIN, **values)
    return number


_BEGIN = """
    INSERT INTO imports (kind, file, source, who, begun_at) VALUES (:kind, :file, :source, :who, :now) RETURNING id
"""


def wait_turn(tx: Transaction) -> None:
    """Wait until no other transaction imports or undoes anything: they would wait for each other's rows."""
    wait_lock(tx, "imports")


def hold(tx: Transaction, number: int) -> None:
    """Keep an import from being undone, and others from importing, until this transaction ends.

    Raises:
        InputError: it was undone meanwhile.
    """
    wait_turn(tx)
    if not tx.run("UPDATE imports SET ended_at = NULL WHERE id = :id AND undo_begun_at IS NULL", id=number):
        raise InputError("import {number} was undone while it was under way: it ends here", number=number)


def count(tx: Transaction, number: int, added: int, known: int) -> None:
    """Count rows of an import."""
    tx.later(_COUNT, id=number, added=added, known=known)


_COUNT = "UPDATE imports SET added = added + :added, known = known + :known WHERE id = :id"


def end(tx: Transaction, number: int) -> None:
    """Note that a file was read to its end, unless it is being undone."""
    tx.later(_END, id=number, now=tx.now)


_LATER = "CASE WHEN {} > :now THEN {} ELSE :now END"
_END = f"""
    UPDATE imports SET ended_at = {_LATER.format("begun_at", "begun_at")} WHERE id = :id AND undo_begun_at IS NULL
"""


def begin_undo(tx: Transaction, number: int) -> None:
    """Note that an import is being undone: from then on it adds nothing."""
    tx.later(_BEGIN_UNDO, id=number, now=tx.now)


def end_undo(tx: Transaction, number: int) -> bool:
    """Note that an import is undone; False if that is noted already."""
    return bool(tx.run(_END_UNDO, id=number, now=tx.now))


_LAST = "coalesce(ended_at, begun_at)"
_BEGIN_UNDO = f"UPDATE imports SET undo_begun_at = {_LATER.format(_LAST, _LAST)} WHERE id = :id"
_END_UNDO = f"""
    UPDATE imports SET undone_at = {_LATER.format("undo_begun_at", "undo_begun_at")}
    WHERE id = :id AND undone_at IS NULL
"""


def list_imports(tx: Transaction, *, before: int | None = None, most: int) -> list[NumberedImport]:
    """Return imports, the newest first; only those with a number below `before`, if it is given."""
    return tx.records(NumberedImport, _LIST, before=before, most=most)


_COLUMNS = ", ".join(field.name for field in fields(NumberedImport))
_LIST = f"""
    SELECT {_COLUMNS} FROM imports WHERE CAST(:before AS bigint) IS NULL OR id < :before ORDER BY id DESC LIMIT :most
"""


def find(tx: Transaction, number: int) -> NumberedImport:
    """Return an import. Raises InputError if there is none of that number, which lists some."""
    found = tx.record(NumberedImport, f"SELECT {_COLUMNS} FROM imports WHERE id = :id", id=number)
    if found is None:
        some = [
            Message("{n} ({file})", n=one.id, file=one.file or Message(str(one.kind)))
            for one in list_imports(tx, most=_NAMED)
        ]
        if not some:
            raise InputError("there is no import {number}; there is none yet", number=number)
        raise InputError(
            "there is no import {number}; there is {some}", number=number, some=join_messages(some, ", ")
        )
    return found


def name_products(tx: Transaction, number: int, product_ids: Iterable[int]) -> None:
    """Note that an import has reviews of products that are there already."""
    rows = [(number, one, False) for one in sorted(set(product_ids))]
    tx.insert("import_products", ("import_id", "product_id", "added"), rows, skip_known=True)


def note_reviews(tx: Transaction, number: int, rows: Iterable[tuple[int, bool]]) -> None:
    """Note reviews of an import by number, and whether it added them."""
    found = sorted(rows)
    tx.insert(
        "import_reviews",
        ("import_id", "review_id", "added"),
        [(number, *row) for row in found],
        skip_known=True,
    )


class HeldReview(NamedTuple):
    """A row of `import_reviews`, by the review's key on its page."""

    import_id: int
    key: str
    added: bool


def take_reviews(tx: Transaction, review_ids: Collection[int]) -> list[HeldReview]:
    """Remove the imports of reviews that are inserted again, and return them for `give_back`."""
    held = tx.records(HeldReview, _HELD, ids=review_ids)
    tx.later("DELETE FROM import_reviews WHERE review_id IN :ids", ids=review_ids)
    return held


_HELD = """
    SELECT i.import_id, r.key, i.added FROM import_reviews i JOIN reviews r ON r.id = i.review_id
    WHERE i.review_id IN :ids
"""


def give_back(tx: Transaction, page_id: int, held: Sequence[HeldReview]) -> None:
    """Note the imports of a page's reviews that were inserted again."""
    for one in held:
        tx.later(_GIVE_BACK, page=page_id, **one._asdict())


_GIVE_BACK = """
    INSERT INTO import_reviews (import_id, review_id, added)
    SELECT :import_id, id, :added FROM reviews WHERE page_id = :page AND key = :key
"""
