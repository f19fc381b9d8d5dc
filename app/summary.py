"""What a run comes to: the one document `run`, `demo` and `up` print at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.config import Settings
from tasks.store import reports
from tasks.store.database import Store
from tasks.store.reports import FailedRow, PairRow, Stored, Totals


@dataclass(frozen=True, slots=True)
class Summary:
    """The store at the end of a run.

    Attributes:
        added: pages and reviews stored by this run; all else is over the whole store.
        seconds: the run took.
    """

    queues: Mapping[str, int]
    pairs: tuple[PairRow, ...]
    totals: Totals
    added: Stored
    manual: tuple[FailedRow, ...]
    seconds: float
    settings: Mapping[str, Any]

    @property
    def settled(self) -> bool:
        """True where nothing more happens by itself."""
        return not any(self.queues[name] for name in ("PRIORITY", "WAIT", "CRAWL", "SLEEP", "FAILED"))


def mark(store: Store) -> Stored:
    """Where a run begins, for `summary`."""
    with store.read() as conn:
        begin = reports.stored_since(conn, Stored())
    return Stored(page_id=begin.page_id, review_id=begin.review_id)


def summary(store: Store, begin: Stored, seconds: float, settings: Mapping[str, Any]) -> Summary:
    """Look at the store at the end of a run that began at `begin`."""
    with store.read() as conn:
        return Summary(
            reports.queues(conn),
            tuple(reports.pairs(conn)),
            reports.totals(conn),
            reports.stored_since(conn, begin),
            tuple(reports.waiting_for_a_person(conn)),
            round(seconds, 2),
            settings,
        )


def settings_told(settings: Settings, nodes: int) -> dict[str, Any]:
    """Settings of a run that its figures depend on."""
    return {
        "sites": settings.catalog().name,
        "lab": "{}:{}".format(*settings.lab) if settings.lab else None,
        "nodes": nodes,
        "slots": settings.slots,
        "allocation": settings.allocation,
        "modification": settings.modification,
        "recall": settings.recall,
        "silent_after_s": settings.silent_after_s,
        "backoff_s": settings.backoff_s,
        "rest_factor": settings.rest_factor,
        "seed": settings.seed,
    }


def document(done: Summary) -> dict[str, Any]:
    """The summary as `--json` prints it; times in seconds."""
    totals = done.totals
    return {
        "queues": dict(done.queues),
        "pairs": [pair_document(pair) for pair in done.pairs],
        "products": totals.products,
        "tasks": totals.tasks,
        "pages": totals.pages,
        "reviews": totals.reviews,
        "reviews_stored": totals.reviews,
        "added": {"pages": done.added.pages, "reviews": done.added.reviews},
        "targets": dict(totals.targets),
        "recalls": totals.recalls,
        "manual": len(done.manual),
        "waits_for_a_person": [asdict(row) for row in done.manual],
        "seconds": done.seconds,
        "settings": dict(done.settings),
    }


def pair_document(pair: PairRow) -> dict[str, Any]:
    """A pair with its two rates."""
    return {**asdict(pair), "completion": pair.completion, "efficiency_s": pair.efficiency_s}
