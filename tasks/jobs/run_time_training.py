"""The sweep that trains the run-time model of `balance` from the newest attempts of nodes whose machine is known.

It computes on its thread, outside any transaction and without the scheduler's lock, and then stores the network: in a
cluster any scheduler may train and every scheduler decides, and `explain` asks in a process of its own. A new
scheduler has it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks.scheduling.balance.learned import LEAST_RUNS, TrainingEnded, train
from tasks.scheduling.balance.parameters import NodeParameters, Sample
from tasks.store.queries.pairs import list_node_parameters, list_runs
from tasks.store.queue import upkeep
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

TRAIN_EVERY = timedelta(minutes=10)
MOST_RUNS = 500
"""Attempts that are learned from. They bound the work: usually 6 CPU seconds, 18 if each fit took
all its steps, every 10 minutes."""

_SEED = 0


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """The training data: recorded runs, the number of the newest attempt among them, and when they were read."""

    samples: Sequence[Sample]
    newest_attempt: int
    read_at: datetime


def train_run_times(
    store: Store, write: Callable[[Operation[None]], None], go_on: Callable[[], bool] = lambda: True
) -> int:
    """Train and store the network where one is due.

    Args:
        store: to read from.
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        go_on: asked several times a second; training ends once it says no, and nothing is stored.

    Returns:
        On how many attempts it was trained; 0 where it was not.
    """
    with store.read() as tx:
        found = training_set(tx)
    if found is None:
        return 0
    try:
        trained = train(found.samples, _SEED, go_on)
    except TrainingEnded:
        return 0
    data = {"newest_attempt": found.newest_attempt, "network": trained.as_json()}
    write(lambda tx: upkeep.store_value(tx, upkeep.RUN_TIME_MODEL, found.read_at, data))
    return trained.runs


def training_set(tx: Transaction) -> TrainingSet | None:
    """The newest attempts; None where training is not due: it was done lately, there are too few, or no new ones."""
    before = upkeep.load_value(tx, upkeep.RUN_TIME_MODEL)
    if before is not None and abs(tx.now - before.at) < TRAIN_EVERY:
        return None
    machines = {node: NodeParameters.of(of) for node, of in list_node_parameters(tx).items()}
    runs = list_runs(tx, machines, MOST_RUNS)
    if len(runs) < LEAST_RUNS or (
        before is not None and runs[-1].attempt_id == before.data["newest_attempt"]
    ):
        return None
    samples = [Sample(machines[run.node], run.urls, run.seconds) for run in runs]
    return TrainingSet(samples, runs[-1].attempt_id, tx.now)
