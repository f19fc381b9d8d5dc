"""Records of a chaos run: one for each fault, the report, and the file that a longer run goes on from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from splitter.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRecord:
    """One fault, and what it cost.

    Attributes:
        at_s: when it came, in seconds since the run began (runs before a resumption included).
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
    """A run so far; written to its file after every fault.

    Attributes:
        kills: how many faults are wanted.
        to_a_person: subtasks that came to a person though nothing a person cures was wrong.
        seconds: that it took so far.
    """

    seed: int
    kills: int
    nodes: int
    kinds: list[str]
    records: list[FaultRecord] = field(default_factory=list)
    to_a_person: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0

    def write(self, path: Path) -> None:
        """Write it to a file, whole or not at all."""
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps(asdict(self), ensure_ascii=False, indent=1), encoding="utf-8")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> Session:
        """The run of a file. Raises InputError where there is none."""
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            records = [FaultRecord(**one) for one in found.pop("records")]
            persons = {int(number): why for number, why in found.pop("to_a_person").items()}
            return cls(**found, records=records, to_a_person=persons)
        except FileNotFoundError:
            raise InputError(
                f"there is no {path}: name the folder of an earlier run, which it prints at its start"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} cannot be read ({error}): begin a new run in another folder") from None


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
            "by_kind": [asdict(cost) for cost in costs(session.records)],
            "faults": [asdict(record) for record in session.records],
            "counts": dict(self.counts),
            "nodes": session.nodes,
            "seconds": round(session.seconds, 1),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The cost of the faults of one kind.

    Attributes:
        first_median_s, first_most_s: seconds until something moved (`FaultRecord.first_s`).
        standstill_median_s, standstill_most_s, standstill_s: seconds in which nothing moved; the last one is their sum.
    """

    kind: str
    faults: int
    first_median_s: float | None
    first_most_s: float | None
    standstill_median_s: float
    standstill_most_s: float
    standstill_s: float
    stalls: int


def costs(records: Sequence[FaultRecord]) -> Iterator[Cost]:
    """The cost of each kind of fault, the dearest first."""
    kinds = sorted({record.kind for record in records}, key=lambda kind: (-_worst(records, kind), kind))
    for kind in kinds:
        of_kind = [record for record in records if record.kind == kind]
        firsts = [record.first_s for record in of_kind if record.first_s is not None]
        lost = [record.standstill_s for record in of_kind]
        yield Cost(
            kind=kind,
            faults=len(of_kind),
            first_median_s=round(median(firsts), 1) if firsts else None,
            first_most_s=round(max(firsts), 1) if firsts else None,
            standstill_median_s=round(median(lost), 1),
            standstill_most_s=round(max(lost), 1),
            standstill_s=round(sum(lost), 1),
            stalls=sum(record.stalled is not None for record in of_kind),
        )


def _worst(records: Sequence[FaultRecord], kind: str) -> float:
    return max(record.standstill_s for record in records if record.kind == kind)
