"""Check that `review_days` and `review_themes` follow from reviews, their judgements and the links of their pages."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.store.content.counted_reviews import (
    COUNTS,
    COUNTS_THEMES,
    DAY_COLUMNS,
    QUOTE_COLUMNS,
    THEME_COLUMNS,
    get_unfilled,
    select_days,
    select_themes,
)
from tasks.store.queue.upkeep import get_mark
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.invariants import Violation

# Two nodes may store equal texts at once: the sweep for reposts counts them once.
_IS_SETTLED = "(r.id <= :compared OR (r.copy_key IS NULL AND r.same_as IS NULL))"
_IS_FILLED = "(r.id <= :after OR r.id > :upto)"


def counted_violations(tx: Transaction) -> Iterator[Violation]:
    """Yield the rows that are there and should not be, and those that are missing."""
    after, upto = get_unfilled(tx)
    compared = get_mark(tx, "reposts")
    tables = (
        ("review_days", DAY_COLUMNS, select_days(sqlite=tx.is_sqlite), COUNTS),
        (
            "review_themes",
            (*THEME_COLUMNS, *QUOTE_COLUMNS),
            select_themes(sqlite=tx.is_sqlite),
            COUNTS_THEMES,
        ),
    )
    for table, columns, query, condition in tables:
        names = ", ".join(columns)
        same = " AND ".join(f"x.{name} = d.{name}" for name in columns)
        due = f"{query} WHERE {condition}"
        unsettled = f"SELECT 1 FROM reviews r WHERE r.id = d.review_id AND NOT {_IS_SETTLED}"
        wrong = f"""
            SELECT {names} FROM {table} d WHERE NOT EXISTS (SELECT 1 FROM ({due} AND r.id = d.review_id) x WHERE {same})
                AND NOT EXISTS ({unsettled})
        """
        for row in tx.stream(tuple, wrong, compared=compared):
            yield Violation("counted", None, f"{table} has {row}, which follows from no review")
        missing = f"""
            SELECT {names} FROM ({due} AND {_IS_SETTLED} AND {_IS_FILLED}) x
            WHERE NOT EXISTS (SELECT 1 FROM {table} d WHERE {same})
        """
        for row in tx.stream(tuple, missing, compared=compared, after=after, upto=upto):
            yield Violation("counted", None, f"{table} lacks {row}, which follows from a review")
