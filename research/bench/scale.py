"""What a decision of `feedback` costs, from 10^3 to 10^6 waiting subtasks: in memory, and through the real store.

In memory the ready queue is kept as it is, as the simulator keeps it: a slot becomes free, the strategy decides, the
subtask goes back behind the others. Time passes as it would with attempts of `ATTEMPT_S`, so new plans come as often
as they would, and their cost is in the mean of a decision. What is counted is CPU time, as the strategy waits for
nothing.

Plans come by time, however many decisions there are (`REPLAN_S`). So the decisions a second that one core can make are

    (1 - share) / cost,    share = CPU of plans / time they were made in,    cost = mean of all other decisions

Through the store it is the scheduler's turn (admit and allocate, `tasks.jobs.ticks`), committed, with the subtasks in
PRIORITY: on a SQLite file and on a PostgreSQL of the bench's own, which keeps its settings (it waits for the disk).
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from research.tools.scale_store import SERVERS, measure_turns
from tasks.domain.facts import NodeFacts, SubtaskFacts
from tasks.domain.pair_stats import PairStats
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.decision import AllocationSettings
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.statistics import Knowledge

ATTEMPT_S = 10.0
SLOTS = 4
_SIZES = (1_000, 10_000, 100_000, 1_000_000)
_CLUSTERS = ((10, 50), (100, 100), (1000, 200))
"""Nodes and sites of the clusters in memory."""
_VIRTUAL_S = 100.0
"""How long each ready queue is kept busy: as long as a plan of the largest cluster lasts."""
_ROUNDS = 4
_BLOCK = 20
"""Decisions that are timed together: a clock of CPU time is not made for tens of microseconds."""
_LIKE_A_PLAN = 0.3
"""A block that takes more than this share of the first decision, which made a plan, made one too."""
_STORED = (250, 100)
"""Nodes and sites of the stores: their slots take the leases of a full turn."""


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure everything; four to eight minutes.

    Returns:
        ``ratios``: `cost_1e6_vs_1e3` (mean CPU of a decision, plans included; the worst of the three clusters in
        memory), the same of a lease through each store, CPU of all processes; `decisions_per_s_memory` (1,000 nodes,
        10^6 waiting: the module's formula; `between_plans`: without the share), `decisions_per_s_postgres` and
        `decisions_per_s_sqlite` (250 nodes, 10^6 in PRIORITY, leases of turns that give 1,000, by the clock; `cpu`:
        by CPU). ``figures``: microseconds a decision (mean with plans; mean and median of the others), milliseconds a
        plan and its share, milliseconds a turn.
    """
    sizes = (100, 1_000) if smallest else _SIZES
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {"slots_a_node": SLOTS, "attempt_s": ATTEMPT_S}
    worst = []
    for nodes, sites in ((10, 50),) if smallest else _CLUSTERS:
        measured = _in_memory(nodes, sites, sizes)
        figures |= {f"memory.{nodes}_nodes_{sites}_sites.{name}": one for name, one in measured.items()}
        worst.append(measured[f"mean_us.{sizes[-1]}"] / measured[f"mean_us.{sizes[0]}"])
        ratios[f"cost_1e6_vs_1e3.memory_{nodes}_nodes"] = round(worst[-1], 2)
        between = 1e6 / measured[f"between_us.{sizes[-1]}"]
        ratios[f"decisions_per_s_memory.{nodes}_nodes_between_plans"] = round(between)
        ratios["decisions_per_s_memory"] = round((1.0 - measured[f"plan_share.{sizes[-1]}"]) * between)
        ratios[f"decisions_per_s_memory.{nodes}_nodes"] = ratios["decisions_per_s_memory"]
    ratios["cost_1e6_vs_1e3"] = round(max(worst), 2)
    count, leases = (1, 20) if smallest else (8, 1000)
    for name, started in SERVERS.items():
        with (
            tempfile.TemporaryDirectory(prefix="reviewloop-scale-") as folder,
            started(Path(folder)) as server,
        ):
            stored = (10, 10) if smallest else _STORED
            measured = measure_turns(server, stored, SLOTS, sizes, count, leases)
        figures |= {f"{name}.{key}": value for key, value in measured.items()}
        cost = {size: measured[f"lease_cpu_us.{size}"] for size in sizes}
        ratios[f"cost_1e6_vs_1e3.{name}"] = round(cost[sizes[-1]] / cost[sizes[0]], 2)
        ratios[f"decisions_per_s_{name}"] = round(measured[f"leases_per_s.{sizes[-1]}"])
        ratios[f"decisions_per_s_{name}.cpu"] = round(1e6 / cost[sizes[-1]])
    return {"bench": "scale", "ratios": ratios, "figures": figures}


def _in_memory(nodes: int, sites: int, sizes: Sequence[int]) -> dict[str, float]:
    """Measure decisions. Queues of all sizes take turns, so that a machine that slows down slows all of them."""
    names, of_sites = [f"n{n}" for n in range(nodes)], [f"site{n}.cn" for n in range(sites)]
    knowledge = Knowledge()
    for (site, node), stats in _known(of_sites, names, Random(1)).items():
        knowledge.put(site, node, stats, 0.0)
    steady = {size: _Steady(knowledge, names, of_sites, size) for size in sizes}
    took: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(_ROUNDS):
        for size, one in steady.items():
            took[size] += one.go_on(round(_VIRTUAL_S / ATTEMPT_S * SLOTS * nodes / _ROUNDS))
    figures: dict[str, float] = {}
    us = 1e6 / _BLOCK
    for size, each in took.items():
        plan_s = steady[size].plan_s
        plans = [one for one in each if one > _LIKE_A_PLAN * plan_s]
        others = [one for one in each if one <= _LIKE_A_PLAN * plan_s]
        figures[f"mean_us.{size}"] = round(statistics.fmean(each) * us, 1)
        figures[f"between_us.{size}"] = round(statistics.fmean(others) * us, 1)
        figures[f"median_us.{size}"] = round(statistics.median(each) * us, 1)
        figures[f"plan_ms.{size}"] = round(plan_s * 1e3, 1)
        figures[f"plan_share.{size}"] = round(sum(plans) / _VIRTUAL_S, 4)
    return figures


class _Steady:
    """A cluster that is busy all the time, and a backlog that stays as long as it is.

    Attributes:
        plan_s: CPU seconds of the first decision, which is nearly all of them for its plan.
    """

    def __init__(
        self, knowledge: Knowledge, names: Sequence[str], sites: Sequence[str], waiting: int
    ) -> None:
        self._rng = Random(1)
        self._nodes = names
        self._strategy = ALLOCATION["feedback"](AllocationSettings())
        self._ready = ReadyQueue([NodeFacts(name, frozenset({"meta"}), 0, SLOTS) for name in names])
        self._knowledge = knowledge
        for number in range(waiting):
            place = number % len(sites)
            hosts = (f"engine{place % 8}", sites[place])
            self._ready.put(
                SubtaskFacts(
                    id=number,
                    site=sites[place],
                    kind="meta",
                    hosts=hosts,
                    left=self._rng.randint(1, 50),
                    priority=0,
                )
            )
        self._next = waiting
        self._now_s = 0.0
        self._step_s = ATTEMPT_S / (SLOTS * len(names))
        (self.plan_s,) = self.go_on(1, 1)

    def go_on(self, decisions: int, block: int = _BLOCK) -> list[float]:
        """CPU seconds of each block of decisions, with the changes of the ready queue that belong to them."""
        took = []
        for _ in range(decisions // block):
            begin = time.process_time()
            for _ in range(block):
                self._now_s += self._step_s
                self._ready.set_free(self._rng.choice(self._nodes), 1)
                (given,) = self._strategy.decide(self._ready, self._knowledge, self._now_s, self._rng)
                self._ready.put(replace(given.subtask, id=self._next))
                self._next += 1
            took.append(time.process_time() - begin)
        return took


def _known(sites: Sequence[str], nodes: Sequence[str], rng: Random) -> dict[tuple[str, str], PairStats]:
    """Every pair after some attempts: nodes differ by half, sites by half, pairs by a fifth."""
    speed = {name: rng.uniform(0.5, 1.5) for name in (*sites, *nodes)}
    return {
        (site, node): PairStats(
            attempts=9,
            failed=1,
            offered=180,
            tried=180,
            collected=150,
            active_s=0.5 * 180 * speed[site] * speed[node] * rng.uniform(0.8, 1.2),
        )
        for site in sites
        for node in nodes
    }
