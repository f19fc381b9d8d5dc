"""How much a subtask's best yield elsewhere counts, by how long the backlog lasts."""

from math import inf
from random import Random

import pytest

from tasks.domain.facts import NodeFacts, SubtaskFacts
from tasks.domain.pair_stats import AttemptOutcome, AttemptResult
from tasks.scheduling.decision import AllocationSettings
from tasks.scheduling.pair_backoff import PairBackoff
from tasks.scheduling.planner import Planner, scarcity
from tasks.scheduling.ready_queue import Backlog, ReadyQueue
from tasks.scheduling.statistics import Knowledge


@pytest.mark.parametrize(
    ("drain_s", "counts"), [(0.0, 0.7), (7200.0, 0.7), (10_080.0, 0.5), (1e5, 0.3), (inf, 0.3)]
)
def test_it_counts_less_the_longer_the_backlog_lasts(drain_s, counts):
    assert scarcity(drain_s) == pytest.approx(counts)


@pytest.mark.parametrize(("pending", "counts"), [(0, 0.7), (1_000_000, 0.3)])
def test_a_subtask_is_less_scarce_where_many_have_still_to_be_admitted(pending, counts):
    ready = ReadyQueue([NodeFacts(name, frozenset({"meta"}), 1, 1) for name in ("fast", "slow")])
    ready.put(SubtaskFacts(id=1, site="s", kind="meta", hosts=("s",), left=20, priority=0))
    ready.set_pending({"s": Backlog(pending // 20, pending)})
    knowledge = Knowledge()
    for node, seconds in (("fast", 5.0), ("slow", 20.0)):
        done = AttemptOutcome.SUCCEEDED
        attempt = AttemptResult(
            site="s", node=node, outcome=done, offered=20, tried=20, collected=20, active_s=seconds
        )
        for _ in range(20):
            knowledge.fold(attempt, 0.0)
    planner = Planner(AllocationSettings(), PairBackoff())
    planner.update(ready, knowledge, 0.0, Random(1))
    (group,) = next(ready.levels()).sites["s"]
    best, slow = planner.rate(group, planner.best_nodes("s")[0]), planner.rate(group, "slow")
    assert planner.best_nodes("s") == ["fast", "slow"]
    assert planner.worth(group, "slow") == pytest.approx(slow / best**counts)
