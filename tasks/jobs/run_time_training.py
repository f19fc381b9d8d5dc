"""The sweep that trains the run-time model of `balance` from the newest attempts of nodes whose machine is known.

It computes on its thread, outside any transaction and without the scheduler's lock, and then stores the network. So
every scheduler of a cluster, a newly started one and `explain` can use a network that any scheduler has trained.
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
"""Maximum number of attempts to learn from. It bounds the work, every 10 minutes, to usually 6 CPU seconds, and to
18 if each fit takes all its steps."""

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
    """Train and store the network if it is due.

    Args:
        store: to read from.
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        go_on: called several times a second. When it returns False, training ends, and nothing is stored.

    Returns:
        Number of attempts it was trained on; 0 if it was not trained.
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
    """Return the newest attempts; `None` if training is not due: it was done lately, or there are too few new ones."""
    before = upkeep.load_value(tx, upkeep.RUN_TIME_MODEL)
    if before is not None and abs(tx.now - before.at) < TRAIN_EVERY:
        return None
    machines = {node: NodeParameters.read(of) for node, of in list_node_parameters(tx).items()}
    runs = list_runs(tx, machines, MOST_RUNS)
    if len(runs) < LEAST_RUNS or (
        before is not None and runs[-1].attempt_id == before.data["newest_attempt"]
    ):
        return None
    samples = [Sample(machines[run.node], run.urls, run.seconds) for run in runs]
    return TrainingSet(samples, runs[-1].attempt_id, tx.now)
