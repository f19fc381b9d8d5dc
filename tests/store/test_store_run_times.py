"""Run times of nodes are learned from the store's own attempts, and `balance` decides by them."""

from collections import Counter
from datetime import timedelta

import pytest
from world import CATALOG, SITE, START, World

from tasks.jobs import sweeps
from tasks.jobs.context import LoopSettings
from tasks.jobs.run_time_training import MOST_RUNS, TRAIN_EVERY, train_run_times, training_set
from tasks.scheduling.balance.learned import LEAST_RUNS
from tasks.scheduling.balance.parameters import NodeParameters
from tasks.store.queue import nodes, upkeep
from tasks.store.sql.tables import attempts, subtasks

SECONDS_PER_PAGE = {"swift": 0.5, "slow": 3.0, "unknown": 1.0}
MACHINES = {"swift": NodeParameters(8, 3.0, 16, 200, 900), "slow": NodeParameters(2, 2.0, 4, 20, None)}


@pytest.fixture
def balanced(store):
    """Three nodes, two of them with known machines, and a subtask of every site."""
    world = World(store, LoopSettings(allocation="balance"))
    for name in SECONDS_PER_PAGE:
        world.node(name, slots=40)
    for name, machine in MACHINES.items():
        world.do(lambda tx, n=name, m=machine: nodes.describe(tx, [n], m))
    world.waiting(sites=tuple(CATALOG.sites))
    yield world
    world.run("DELETE FROM attempts")  # they were not folded into the statistics
    assert world.verification().violations == ()


def record(world, count, *names, outcome="succeeded"):
    """Store closed attempts of these nodes in turn, with 1 to 20 pages."""
    (subtask, *_) = world.rows(subtasks)
    first = len(world.rows(attempts)) + 1
    shared = {
        "subtask_id": subtask.id,
        "product_id": subtask.product_id,
        "round": 1,
        "site": SITE,
        "quota": 20,
    }
    shared |= {"budget_s": 30.0, "allocated_at": START, "ended_at": START, "outcome": outcome, "errors": {}}
    rows = []
    for no in range(first, first + count):
        node, pages = names[no % len(names)], no % 20 + 1
        rows.append((no, f"t{no}", node, pages, pages, 1.0 + SECONDS_PER_PAGE[node] * pages))
    columns = ("no", "token", "node", "tried", "collected", "active_s")
    world.do(lambda tx: tx.insert("attempts", columns, rows, shared=shared))


def train(world):
    return train_run_times(world.store, world.do)


def decided(world):
    """How many subtasks `explain` would see each node get, and why it got one of them; a minute later."""
    world.pass_s(60)
    for name in SECONDS_PER_PAGE:
        world.node(name, slots=40)
    assignments = world.sweep(sweeps.preview).assignments
    return Counter(one.node for one in assignments), {
        one.node: str(one.candidates[0].because) for one in assignments
    }


@pytest.mark.slow
def test_after_training_balance_decides_by_the_network(balanced):
    before, why = decided(balanced)
    assert before["swift"] - before["slow"] in (-1, 0, 1), "nothing is known of them"
    assert all("the mean of attempts" in of_node for of_node in why.values())
    record(balanced, LEAST_RUNS - 1, *MACHINES)
    assert train(balanced) == 0
    record(balanced, 50, "unknown")
    assert train(balanced) == 0, "of no known machine"
    record(balanced, 1, *MACHINES)
    assert train(balanced) == LEAST_RUNS
    after, why = decided(balanced)
    assert after["swift"] > 3 * after["slow"] > 0
    assert "the trained network" in why["swift"]
    assert "the trained network" in why["slow"]
    assert "the mean of attempts" in why["unknown"]


def keep(world, at, newest_attempt):
    """Store a model that was trained then, and see that it is the one that is loaded."""
    data = {"newest_attempt": newest_attempt, "network": {"weights": [0.1]}}
    world.do(lambda tx: upkeep.store_value(tx, upkeep.RUN_TIME_MODEL, at, data))
    assert world.look(upkeep.load_value, upkeep.RUN_TIME_MODEL) == (at, data)


def test_a_network_is_trained_again_after_ten_minutes_if_there_are_new_attempts(balanced):
    record(balanced, LEAST_RUNS, *MACHINES)
    first = balanced.look(training_set)
    assert first is not None
    keep(balanced, START, first.newest_attempt)
    later = START + TRAIN_EVERY
    balanced.now = later
    assert balanced.look(training_set) is None, "nothing is new"
    record(balanced, 1, *MACHINES, outcome="failed")
    assert balanced.look(training_set) is None, "it did not succeed"
    record(balanced, MOST_RUNS, *MACHINES)
    balanced.now = later - timedelta(seconds=1)
    assert balanced.look(training_set) is None
    balanced.now = later
    again = balanced.look(training_set)
    assert again is not None
    assert len(again.samples) == MOST_RUNS
    assert again.newest_attempt == balanced.rows(attempts)[-1].id
    keep(balanced, later, again.newest_attempt)
