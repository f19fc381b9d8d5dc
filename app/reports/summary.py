"""The summary that `run`, `demo` and `up` print at the end, and the report of subtasks that wait for a person."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from app.views.failed import get_cause, group_by_cause
from app.views.loop_state import LoopState, read_state
from app.views.moments import clock_text_with_zone
from tasks.store.queries import pairs
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.pairs import AttemptSums, PairRow
from tasks.store.queries.products import ProductRow, list_products
from tasks.store.queries.queues import Stored, Totals
from tasks.store.queries.reviews import ReviewFilter, ReviewRow, list_reviews
from tasks.store.queue import manual, snapshot
from tasks.store.queue.manual import ManualRow
from tasks.store.queue.snapshot import HostsOf
from tasks.store.sql.database import Store

_SHORTEST_SAMPLE = 20
_LOOKED_AT = 2_000
"""Reviews, for samples."""
_SAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The store at the end of a run.

    Attributes:
        left: number of subtasks that are not settled, at the sites that the run crawled.
        added: pages and reviews stored by this run; all else is over the whole store.
        seconds: the run took.
        products: those that have reviews, most first.
        samples: reviews that this run stored, each of another product.
        statistics: of this run's attempts.
    """

    state: LoopState
    left: int
    pairs: tuple[PairRow, ...]
    totals: Totals
    added: Stored
    manual: tuple[ManualRow, ...]
    seconds: float
    settings: Mapping[str, Any]
    products: tuple[ProductRow, ...]
    samples: tuple[ReviewRow, ...]
    statistics: AttemptSums

    @property
    def settled(self) -> bool:
        """True if nothing more happens by itself."""
        return not self.state.open


def mark(store: Store) -> Stored:
    """Return the place in the store at which a run begins, for `summary`."""
    with store.read() as tx:
        return queue_queries.get_mark(tx)


def summary(
    store: Store,
    begin: Stored,
    seconds: float,
    settings: Mapping[str, Any],
    hosts_of: HostsOf = lambda site: (site, site),
    only_sites: Collection[str] = (),
) -> Summary:
    """The store now, at the end of a run that began at `begin`, and crawled only these sites, or all."""
    with store.read() as tx:
        state = read_state(tx, hosts_of, timedelta(seconds=15))
        return Summary(
            state=state,
            left=snapshot.count_open_at(tx, only_sites) if only_sites else state.open,
            pairs=tuple(pairs.list_pairs(tx)),
            totals=queue_queries.get_totals(tx),
            added=queue_queries.count_stored_since(tx, begin),
            manual=tuple(sorted(manual.list_manual(tx), key=get_cause)),
            seconds=round(seconds, 2),
            settings=settings,
            products=tuple(sorted((row for row in list_products(tx) if row.reviews), key=_most_first)),
            samples=samples(list_reviews(tx, ReviewFilter(after=begin.review_id, counted=True))),
            statistics=pairs.get_run_sums(tx, begin.attempt_id),
        )


def _most_first(row: ProductRow) -> tuple[int, str]:
    return -row.reviews, row.name


def readable(rows: Iterable[ReviewRow]) -> Iterator[ReviewRow]:
    """Yield those of the first reviews that are long enough to be worth reading, and no reposts."""
    return (
        row for row in islice(rows, _LOOKED_AT) if row.original is None and len(row.body) >= _SHORTEST_SAMPLE
    )


def samples(rows: Iterable[ReviewRow]) -> tuple[ReviewRow, ...]:
    """Return the first readable review of each of the first products."""
    found: dict[str, ReviewRow] = {}
    for row in readable(rows):
        found.setdefault(row.product, row)
        if len(found) == _SAMPLES:
            break
    return tuple(found.values())


def document(done: Summary) -> dict[str, Any]:
    """The summary as `--json` prints it; times in seconds."""
    return {
        "queues": dict(done.state.queues),
        "pairs": [pair_document(pair) for pair in done.pairs],
        **asdict(done.totals),
        "reviews_stored": done.totals.reviews,
        "added": {"pages": done.added.pages, "reviews": done.added.reviews},
        "manual": len(done.manual),
        "waits_for_hosts": [asdict(wait) for wait in done.state.waits],
        "sites_not_asked": [asdict(site) for site in done.state.unplanned],
        "reviews_by_product": {row.name: row.reviews for row in done.products},
        "waits_for_a_person": [asdict(row) for row in done.manual],
        "statistics": asdict(done.statistics),
        "seconds": done.seconds,
        "settings": dict(done.settings),
    }


def pair_document(pair: PairRow) -> dict[str, Any]:
    """A pair with its rates; of one product, with its name."""
    told = asdict(pair)
    del told["lost_s"]
    return told if pair.product else {name: value for name, value in told.items() if name != "product"}


def _report(rows: Sequence[ManualRow], when: str) -> str:
    """Return the report of subtasks that wait for a person as Markdown, by cause, with suggestions."""
    lines = [f"# Subtasks that wait for a person: {len(rows)} at {when}", ""]
    for cause in group_by_cause(rows).groups:
        lines += [
            f"## {cause.reason}: {cause.site} ({cause.count})",
            "",
            f"Suggested: {cause.suggestion}.",
            "",
        ]
        lines += [
            f"- subtask {r.subtask_id}: {r.product}, chunk {r.chunk}, {r.attempts} attempts on "
            f"{', '.join(r.nodes) or 'no node'}; {r.why}"
            for r in cause.subtasks
        ]
        lines.append("")
    return "\n".join(lines)


def write_report(store: Store, file: str | None) -> None:
    """Write the report of subtasks that wait for a person to a file, whole or not at all; `None` writes none."""
    if not file:
        return
    with store.read() as tx:
        text = _report(manual.list_manual(tx), clock_text_with_zone(tx.now))
    path = Path(file)
    draft = path.with_name(path.name + ".new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
