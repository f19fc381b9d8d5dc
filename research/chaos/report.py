"""The report of a chaos run: what `verify` finds, what else may never be, and what differs from a calm run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from research.chaos.compare import Difference
from research.chaos.records import Report, Session
from tasks.domain.states import State
from tasks.store.queries import reports
from tasks.store.queue import transitions
from tasks.store.sql.database import Store, read_now
from tasks.store.verify.verify import verify

_DONE = (State.DONE, State.CANCELLED)


def reported(store: Store, session: Session, compared: Difference | None) -> Report:
    """The report.

    Args:
        compared: with a calm run; None: the run did not get that far.
    """
    with store.read() as conn:
        found = verify(conn, read_now(conn))
        queues = transitions.count_queues(conn)
        recalls = reports.totals(conn).recalls
    left = {state: n for state, n in queues.items() if n and state not in _DONE}
    return Report(
        session=session,
        violations=[
            *(asdict(one) for one in found.violations),
            *_of_session(session),
            *(_of_difference(compared, left) if compared is not None else ()),
        ],
        missing=compared.missing if compared else 0,
        doubled=compared.doubled if compared else 0,
        differences=compared.examples if compared else (),
        counts={**found.counts, "recalls": recalls},
        finished=compared is not None and len(session.records) >= session.kills,
    )


def _of_session(session: Session) -> Iterator[dict[str, Any]]:
    for number, why in session.to_a_person.items():
        yield {"kind": "to a person", "subtask_id": number, "message": why}


def _of_difference(compared: Difference, left: dict[str, int]) -> Iterator[dict[str, Any]]:
    for line in compared.miscounted:
        yield {"kind": "counted", "subtask_id": None, "message": line}
    if left:
        told = ", ".join(f"{n} in {state}" for state, n in left.items())
        yield {"kind": "unfinished", "subtask_id": None, "message": f"not done: {told}"}
