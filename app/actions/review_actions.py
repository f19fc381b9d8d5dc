"""Actions of people on stored reviews, recorded in the audit log. Used by commands."""

from __future__ import annotations

import time
from collections.abc import Callable

from splitter.catalog.model import Catalog
from tasks.store.content import counted_reviews, numbered_imports, reposts
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.queue import notices
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

_BETWEEN_S = 1.0
"""CPU seconds of work between two reports of progress."""


def begin_import(tx: Transaction, source: str, file: str, who: str) -> int:
    """Begin an import of reviews and record it in the audit log. Return the number of the import."""
    number = numbered_imports.begin(tx, ImportKind.REVIEWS, file, who, source)
    notices.record_action(tx, who, "import reviews", source, file=file, number=number)
    return number


def judge_links(store: Store, catalog: Catalog) -> None:
    """Judge the links between reviews and products that have no verdict yet.

    A running scheduler does this by itself. This function is for stores without one.
    """
    from tasks.jobs import judging  # it brings the reading
    from tasks.reading.judge.reviews import add_judgements

    judging.judge_links(store, store.write, judging.link_judge(catalog, add_judgements), lambda: True)


def link_reposts(store: Store, progress: Callable[[float], None]) -> int:
    """Compare the reviews that were not compared yet with earlier ones, and link reposts to their originals.

    A running scheduler does this by itself. This function is for stores without one.

    Args:
        progress: called about once per second of CPU time with the share of the reviews that are compared, 0 to 1.

    Returns:
        Number of reviews compared by this call.
    """
    from tasks.jobs import repost_linking  # it brings the reading

    compared = 0
    while True:
        n = repost_linking.link_reposts(store, store.write, time.thread_time, _BETWEEN_S)
        if n == 0:
            return compared
        compared += n
        with store.read() as tx:
            progress(reposts.get_compared_share(tx))


def count_older(store: Store, progress: Callable[[float], None]) -> None:
    """Count the reviews that an upgrade left uncounted, as the sweep `counts` does.

    Args:
        progress: called about once per second of CPU time with the share of the reviews that are counted, 0 to 1.
    """
    while store.write(counted_reviews.fill):
        with store.read() as tx:
            progress(counted_reviews.get_filled_share(tx))


def record_judging(store: Store, product: str | None, again: bool, who: str) -> None:
    """Record in the audit log that reviews are judged again: those of `product`, or all if it is `None`."""
    with store.begin() as tx:
        notices.record_action(tx, who, "judge reviews", product or "all products", again=again)


def record_dates(store: Store, product: str | None, who: str) -> None:
    """Record in the audit log that dates are read again: on pages of `product`, or on all if it is `None`."""
    with store.begin() as tx:
        notices.record_action(tx, who, "read dates again", product or "all products")
