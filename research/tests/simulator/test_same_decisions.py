"""Production and the simulator decide alike: a moment of a simulated run, put into a store, gets the same decision."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from math import ceil
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import insert, update

from research.simulator.outcome import Options
from research.simulator.scenario_file import parse_scenario
from research.simulator.simulate import simulate
from tasks.domain.pair_stats import SUMS
from tasks.domain.states import State
from tasks.jobs import sweeps
from tasks.jobs.context import LoopSettings
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.decision import AllocationSettings
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.rebalancing import BufferRule
from tasks.store.sql.tables import pair_stats, subtasks
from tests.store.world import World

SCENARIO = """
duration_s: 600
nodes: [{name: n1, slots: 2}, {name: n2, slots: 2}, {name: n3, slots: 3}]
sites: [{name: 12315.com, overhead_s: 0.5}, {name: 315tousu.org, overhead_s: 1.0}, {name: cca.org.cn, overhead_s: 1.0}]
pairs:
  - {node: "*", site: "*", seconds_per_page: 1.0, completion: 0.7}
  - {node: n1, site: 12315.com, seconds_per_page: 0.3, completion: 0.95}
  - {node: n2, site: cca.org.cn, seconds_per_page: 0.4, completion: 0.9}
work: {products: 20, hits: {dist: lognormal, mean: 30, sigma: 0.7}, chunk_pages: 10}
"""


class Watched:
    """A strategy that keeps what it was shown at some of its decisions."""

    def __init__(self, name, moments):
        self._strategy = ALLOCATION[name](AllocationSettings())
        self._moments = moments
        self.seen = []
        self.calls = 0

    def decide(self, ready, knowledge, now_s, rng, *, explain=False):
        self.calls += 1
        if self.calls in self._moments:
            self.seen.append((deepcopy(ready), deepcopy(knowledge), now_s))
        return self._strategy.decide(ready, knowledge, now_s, rng, explain=explain)

    def why_held_back(self, ready, group):
        return self._strategy.why_held_back(ready, group)


def waiting_on(ready):
    return sorted(
        (
            one
            for level in ready.levels()
            for groups in level.sites.values()
            for g in groups
            for one in g.queue
        ),
        key=lambda one: one.id,
    )


@pytest.mark.parametrize("name", sorted(ALLOCATION))
def test_the_same_moment_gets_the_same_decision(store, monkeypatch, name):
    watched = Watched(name, moments={60})
    simulate(parse_scenario(SCENARIO, "made.yaml", Path()), watched, 1, Options(oracle=False))
    ((ready, knowledge, now_s),) = watched.seen
    waits = waiting_on(ready)
    assert len(waits) > 30
    for node in list(ready.nodes.values()):
        ready.set_node(replace(node, free=node.slots))  # every slot is free, here as there

    loop = LoopSettings(allocation=name, buffer=BufferRule(slots_over=0, refill_s=0.0))
    world = World(store, loop)
    numbers = put_into(world, waits, ready.nodes.values(), knowledge, now_s)
    monkeypatch.setattr(sweeps, "_hosts", lambda *_: {})  # neither has a host with a limit
    world.context.rng.seed(7)
    produced = {(one.subtask.id, one.node) for one in world.sweep(sweeps.preview).assignments}

    fresh = ALLOCATION[name](AllocationSettings())
    simulated = fresh.decide(numbered(ready, numbers), knowledge, now_s, Random(7))
    assert len(simulated) > 1
    assert produced == {(one.subtask.id, one.node) for one in simulated}


def numbered(ready, numbers):
    """The queue with the store's numbers of its subtasks, since some strategies decide by these."""
    again = ReadyQueue()
    for node in ready.nodes.values():
        again.set_node(node)
    for one in waiting_on(ready):
        again.put(replace(one, id=numbers[one.id]))
    return again


def put_into(world, waits, nodes, knowledge, now_s):
    """The moment as rows of a store; returns the number that each simulated subtask has there."""
    for node in nodes:
        world.node(node.name, node.slots)
    made = [world.add(f"product {n}", sites=(one.site,))[0] for n, one in enumerate(waits)]
    numbers = {one.id: number for one, number in zip(waits, made, strict=True)}
    with world.store.begin() as tx:
        for one in waits:
            here = subtasks.c.id == numbers[one.id]
            values = {
                "state": State.WAIT,
                "left": one.left,
                "kind": one.kind,
                "failed_on": list(one.failed_on),
            }
            tx.engine_connection.execute(update(subtasks).where(here).values(values))
        for (site, name), pair in knowledge.list_pairs(now_s).items():
            faded = {f"f_{field}": getattr(pair, field) for field in SUMS}
            plain = {field: ceil(getattr(pair, field)) for field in SUMS}
            row = {"site": site, "node": name, "faded_at": world.now, **plain, **faded}
            tx.engine_connection.execute(insert(pair_stats).values(row))
    return numbers
