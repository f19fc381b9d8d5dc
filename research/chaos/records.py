"""Records of a chaos run: one for each fault, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """One fault, and what it cost.

    Attributes:
        at_s: seconds from the beginning of the run to the fault.
        note: what it came to.
        first_s: seconds until something moved, from the fault on, or from the return of the server that it took away;
            None: nothing moved before the next fault.
        standstill_s: seconds from the fault to the end of the pause after it in which nothing moved.
        stalled: what stood still, where the survivors did not go on in time; None: they did.
    """

    no: int
    kind: str
    target: str
    for_s: float
    at_s: float
    note: str
    first_s: float | None
    standstill_s: float
    stalled: str | None


@dataclass(slots=True, kw_only=True)
class Session:
    """A run so far.

    Attributes:
        kills: number of faults that are wanted.
        to_a_person: subtasks that came to a person though nothing a person cures was wrong.
        seconds: duration so far.
    """

    seed: int
    kills: int
    nodes: int
    kinds: list[str]
    records: list[FaultRecord] = field(default_factory=list)
    to_a_person: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of a run at its end.

    Attributes:
        violations: of `verify`, and what else may never be; each with `kind`, `subtask_id` and `message`.
        missing, doubled: pages, links and reviews, beside a calm run of the same world.
        differences: some of these, as text.
        finished: False where it was interrupted: there was nothing to compare yet.
    """

    session: Session
    violations: Sequence[Mapping[str, Any]]
    missing: int
    doubled: int
    differences: Sequence[str]
    counts: Mapping[str, int]
    finished: bool

    @property
    def stalls(self) -> int:
        """Faults after which the survivors did not go on in time."""
        return sum(record.stalled is not None for record in self.session.records)

    @property
    def clean(self) -> bool:
        """Whether nothing was wrong."""
        return self.finished and not (self.violations or self.missing or self.doubled or self.stalls)

    def document(self) -> dict[str, Any]:
        """As `--json` prints it; times in seconds."""
        session = self.session
        return {
            "seed": session.seed,
            "kills": len(session.records),
            "violations": list(self.violations),
            "missing": self.missing,
            "doubled": self.doubled,
            "stalls": self.stalls,
            "finished": self.finished,
            "differences": list(self.differences),
            "faults": [asdict(record) for record in session.records],
            "counts": dict(self.counts),
            "nodes": session.nodes,
            "seconds": round(session.seconds, 1),
        }
