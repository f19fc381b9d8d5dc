"""The report of a chaos run: its faults, what `verify` finds, and what differs from a calm run of the same world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from research.chaos.faults import Fault
from research.chaos.movement import Contents
from tasks.domain.states import State
from tasks.store.queries import queues as queue_queries
from tasks.store.queue import transitions
from tasks.store.sql.database import Store
from tasks.store.verify.verify import verify

_SHOWN = 20
_STORED = ("pages", "links", "reviews")
_DONE = (State.DONE, State.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord(Fault):
    """One fault, and what came of it.

    Attributes:
        at_s: seconds from the beginning of the run to the fault.
        note: details of the fault.
        stalled: what stood still, if the survivors did not go on in time.
    """

    at_s: float
    note: str
    stalled: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """How two stores of the same world differ.

    Attributes:
        missing: pages, links and reviews that only the calm run has.
        doubled: those that the chaos run has more often than the calm one.
        examples: some of them, as text.
        miscounted: partitions whose numbers of pages and hits differ from the calm run, as text.
    """

    missing: int
    doubled: int
    examples: tuple[str, ...]
    miscounted: tuple[str, ...]


def compare(found: Contents, calm: Contents) -> Difference:
    """Return how a store differs from what a calm run stores."""
    missing, doubled = 0, 0
    examples: list[str] = []
    for what in _STORED:
        here, there = getattr(found, what), getattr(calm, what)
        missing += (there - here).total()
        doubled += (here - there).total()
        examples += [
            *_difference_lines(f"{what}: missing", there - here),
            *_difference_lines(f"{what}: too many", here - there),
        ]
    miscounted = _difference_lines("counted: pages read, hits listed:", found.partitions - calm.partitions)
    return Difference(missing, doubled, tuple(examples[:_SHOWN]), tuple(miscounted))


def _difference_lines(head: str, rows: Counter[tuple[str, ...]]) -> Iterator[str]:
    for row, n in sorted(rows.items())[:_SHOWN]:
        times = f" ({n} times)" if n > 1 else ""
        yield f"{head} {' '.join(part[:80] for part in row)}{times}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a run at its end.

    Attributes:
        seconds: duration of the run.
        violations: those of `verify` and of the comparison; each with `kind`, `subtask_id` and `message`.
        missing, doubled: pages, links and reviews, compared with a calm run of the same world.
        differences: some of these, as text.
        finished: False if it was interrupted before the comparison.
    """

    seed: int
    nodes: int
    seconds: float
    faults: Sequence[FaultRecord]
    violations: Sequence[Mapping[str, Any]]
    missing: int
    doubled: int
    differences: Sequence[str]
    counts: Mapping[str, int]
    finished: bool

    @property
    def stalls(self) -> int:
        """Number of faults after which the survivors did not go on in time."""
        return sum(fault.stalled is not None for fault in self.faults)

    @property
    def clean(self) -> bool:
        """True if nothing was wrong."""
        return self.finished and not (self.violations or self.missing or self.doubled or self.stalls)

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints; times in seconds."""
        return {**asdict(self), "kills": len(self.faults), "stalls": self.stalls}


def make_report(
    store: Store,
    compared: Difference | None,
    to_a_person: Mapping[int, str],
    *,
    seed: int,
    nodes: int,
    seconds: float,
    faults: Sequence[FaultRecord],
) -> Report:
    """Verify the store and return the report.

    Args:
        compared: with a calm run; `None` if the run did not get that far.
        to_a_person: by subtask that came to a person, why. There was nothing a person could mend.
    """
    with store.read() as tx:
        found = verify(tx)
        queues = transitions.count_queues(tx)
        recalls = queue_queries.get_totals(tx).recalls
    violations = [asdict(one) for one in found.violations]
    violations += [_violation("to a person", why, number) for number, why in to_a_person.items()]
    if compared is not None:
        violations += [_violation("counted", line) for line in compared.miscounted]
        if left := [f"{n} in {state}" for state, n in queues.items() if n and state not in _DONE]:
            violations.append(_violation("unfinished", f"not done: {', '.join(left)}"))
    return Report(
        seed=seed,
        nodes=nodes,
        seconds=round(seconds, 1),
        faults=faults,
        violations=violations,
        missing=compared.missing if compared else 0,
        doubled=compared.doubled if compared else 0,
        differences=compared.examples if compared else (),
        counts={**found.counts, "recalls": recalls},
        finished=compared is not None,
    )


def _violation(kind: str, message: str, subtask_id: int | None = None) -> dict[str, Any]:
    return {"kind": kind, "subtask_id": subtask_id, "message": message}
