"""Summarise a run for `run`, `demo` and `up`, and write the report of waiting subtasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from app.views.failed import get_cause
from app.views.fields import extend_row
from app.views.status import StatusView
from tasks.domain.states import count_open
from tasks.store.queries import pairs
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.pairs import AttemptSums, PairRow
from tasks.store.queries.products import list_products
from tasks.store.queries.queues import Stored
from tasks.store.queries.reviews import ReviewFilter, ReviewRow, list_reviews
from tasks.store.queue import manual, snapshot
from tasks.store.queue.manual import ManualRow
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

_SHORTEST_SAMPLE = 20
_LOOKED_AT = 2_000
"""Maximum number of reviews among which samples are chosen."""
_SAMPLES = 3


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Numbers of pages and reviews that a run stored."""

    pages: int
    reviews: int


@dataclass(frozen=True, kw_only=True)
class ProgressView(StatusView):
    """The state of the system during a run.

    Attributes:
        seconds: seconds since the run began.
        added: numbers of pages and reviews that this run stored. All other counts cover the whole store.
    """

    seconds: float
    added: StoredRows


@dataclass(frozen=True, kw_only=True)
class RunView(ProgressView):
    """The state of the system at the end of a run, with the results of the run.

    Attributes:
        left: number of unsettled subtasks at the sites that the run crawled.
        reviews_stored: number of all reviews in the store; the field `reviews` of the status, under its name in a run's
            JSON.
        manual: number of subtasks that wait for a person.
        reviews_by_product: number of reviews of each product with reviews, the greatest number first.
        waits_for_a_person: the subtasks that wait for a person, by cause.
        statistics: statistics of this run's attempts.
        settings: settings that the figures depend on.
        samples: reviews that this run stored, at most one per product.
    """

    left: int
    pairs: Sequence[PairRow]
    reviews_stored: int
    manual: int
    reviews_by_product: Mapping[str, int]
    waits_for_a_person: Sequence[ManualRow]
    statistics: AttemptSums
    settings: Mapping[str, Any]
    samples: Sequence[ReviewRow]

    @property
    def is_settled(self) -> bool:
        """True if no work is left that continues without a person."""
        return not count_open(self.queues)


def mark(store: Store) -> Stored:
    """Return the newest row numbers of the store. Call it at the beginning of a run, for `get_run_view`."""
    with store.read() as tx:
        return queue_queries.get_mark(tx)


def get_run_view(
    tx: Transaction,
    begin: Stored,
    status: StatusView,
    *,
    seconds: float,
    settings: Mapping[str, Any],
    only_sites: Collection[str] = (),
) -> RunView:
    """Return the results of a run that has just ended.

    Args:
        begin: mark of the store at the beginning of the run.
        status: state of the system at the end.
        seconds: duration of the run.
        settings: settings that influence the results.
        only_sites: the sites that the run crawled; empty for all.
    """
    rows = sorted((row for row in list_products(tx) if row.reviews), key=lambda row: (-row.reviews, row.name))
    added = queue_queries.count_stored_since(tx, begin)
    waiting = sorted(manual.list_manual(tx), key=get_cause)
    return extend_row(
        RunView,
        status,
        left=snapshot.count_open_at(tx, only_sites) if only_sites else count_open(status.queues),
        pairs=pairs.list_pairs(tx),
        reviews_stored=status.reviews,
        added=StoredRows(added.pages, added.reviews),
        manual=len(waiting),
        reviews_by_product={row.name: row.reviews for row in rows},
        waits_for_a_person=waiting,
        statistics=pairs.get_run_sums(tx, begin.attempt_id),
        seconds=round(seconds, 2),
        settings=settings,
        samples=samples(list_reviews(tx, ReviewFilter(after=begin.review_id, counted=True))),
    )


def readable(rows: Iterable[ReviewRow]) -> Iterator[ReviewRow]:
    """Look at the first `_LOOKED_AT` reviews, and yield those with enough text for a sample that are no reposts."""
    return (
        row for row in islice(rows, _LOOKED_AT) if row.original is None and len(row.body) >= _SHORTEST_SAMPLE
    )


def samples(rows: Iterable[ReviewRow]) -> tuple[ReviewRow, ...]:
    """Return at most one readable review per product, for the first `_SAMPLES` products."""
    found: dict[str, ReviewRow] = {}
    for row in readable(rows):
        found.setdefault(row.product, row)
        if len(found) == _SAMPLES:
            break
    return tuple(found.values())


def write_report(store: Store, file: str | None) -> None:
    """Write the report on subtasks that wait for a person. The file is written completely or not at all.

    Args:
        file: path of the report; `None` writes none.
    """
    if not file:
        return
    from app.files.exporting import whole_file
    from app.reports.failed_report import FORMATS, write_failed_report  # brings Jinja2

    path = Path(file)
    with store.read() as tx, whole_file(path) as out:
        write_failed_report(tx, FORMATS.get(path.suffix.lower(), "md"), out)
