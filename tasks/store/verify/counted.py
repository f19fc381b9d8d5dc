"""Check that `review_days` and `review_themes` follow from reviews, their judgements and the links of their pages."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.store.content.counted_reviews import (
    DAY_COLUMNS,
    IS_BUYERS,
    IS_COUNTED,
    IS_FIRST,
    IS_SHOWN,
    QUOTE_COLUMNS,
    THEME_COLUMNS,
    get_unfilled,
    select_days,
    select_themes,
)
from tasks.store.queue.upkeep import get_mark
from tasks.store.sql.transaction import Transaction, as_pattern
from tasks.store.verify.invariants import Violation

# Two nodes may store equal texts at once: the sweep for reposts counts them once.
_IS_SETTLED = "(r.id <= :compared OR (r.copy_key IS NULL AND r.same_as IS NULL))"
_IS_FILLED = "(r.id <= :after OR r.id > :upto)"


def counted_violations(tx: Transaction) -> Iterator[Violation]:
    """Yield the rows that are there and should not be, and those that are missing.

    Without the right patterns of excluded words nothing else can be judged: then they alone are yielded.
    """
    wrong_patterns = list(_list_wrong_patterns(tx))
    if wrong_patterns:
        yield from wrong_patterns
        return
    after, upto = get_unfilled(tx)
    compared = get_mark(tx, "reposts")
    days = select_days(sqlite=tx.is_sqlite)
    themes = select_themes(sqlite=tx.is_sqlite)
    tables = (
        ("review_days", DAY_COLUMNS, f"{days} WHERE {IS_SHOWN}"),
        (
            "review_themes",
            (*THEME_COLUMNS, *QUOTE_COLUMNS),
            f"{themes} WHERE {IS_SHOWN} AND {IS_BUYERS} AND {IS_COUNTED}",
        ),
    )
    for table, columns, query in tables:
        names = ", ".join(columns)
        same = " AND ".join(f"x.{name} = d.{name}" for name in columns)
        allowed = f"{query} AND (NOT {_IS_SETTLED} OR {IS_FIRST}) AND r.id = d.review_id"
        wrong = f"SELECT {names} FROM {table} d WHERE NOT EXISTS (SELECT 1 FROM ({allowed}) x WHERE {same})"
        for row in tx.stream(tuple, wrong, compared=compared):
            yield Violation("counted", None, f"{table} has {row}, which follows from no review")
        due = f"{query} AND {IS_FIRST} AND {_IS_SETTLED} AND {_IS_FILLED}"
        missing = f"SELECT {names} FROM ({due}) x WHERE NOT EXISTS (SELECT 1 FROM {table} d WHERE {same})"
        for row in tx.stream(tuple, missing, compared=compared, after=after, upto=upto):
            yield Violation("counted", None, f"{table} lacks {row}, which follows from a review")


def _list_wrong_patterns(tx: Transaction) -> Iterator[Violation]:
    """Yield excluded words that are stored with the pattern of another word."""
    for product_id, word, pattern in tx.rows("SELECT product_id, word, pattern FROM excluded_words"):
        if pattern != as_pattern(word):
            yield Violation(
                "counted",
                None,
                f"{word!r}, which must not occur for product {product_id}, is looked for as {pattern!r}",
            )
