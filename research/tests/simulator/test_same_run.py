"""A whole run of the node, the store and the scheduler, and the simulator's of the same world: they come to the same.

Hosts limit; one refuses an address that asks too often, and it rests; some pairs answer badly, one is slow. Both have
the same settings. Chance differs, so each is run with several seeds, and their sums are compared: they differ by a
little, those of another world by more.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from statistics import mean

import pytest

from research.simulator import hosts
from research.simulator.outcome import Options
from research.simulator.scenario import Scenario
from research.simulator.simulate import simulate
from research.tests.simulator.virtual_run import ENGINE_HOST, ENGINE_S, Pair, Wanted, run
from splitter.catalog.model import Limits
from tasks.jobs.strategies import ALLOCATION
from tasks.store.sql.database import Store

SITES = ("12365hn.com", "315tousu.org", "cca.org.cn")
NODES = ("node1", "node2", "node3")
BLOCK = (20, 20.0, 60.0)
SEEDS = (1, 2, 3)
TASKS = 12
MOST_APART = 0.25
STRICT = (SITES[0], NODES[0])


def world(seed: int) -> Wanted:
    chance = Random(seed)
    return Wanted(
        hits={site: [chance.randint(5, 10) for _ in range(TASKS)] for site in SITES},
        limits=Limits(per_address_per_s=2, total_per_s=4),
        nodes=dict.fromkeys(NODES, 2),
        pairs={
            (SITES[0], NODES[0]): Pair(block=BLOCK),
            (SITES[0], NODES[1]): Pair(completion=0.3),
            (SITES[1], NODES[0]): Pair(completion=0.4),
            (SITES[2], NODES[2]): Pair(seconds=0.6, completion=0.8),
        },
    )


def scenario(wanted: Wanted) -> Scenario:
    """The same world as a scenario."""
    pairs = [{"seconds_per_page": Pair().seconds}]
    for (site, node), pair in wanted.pairs.items():
        entry = {"site": site, "node": node, "completion": pair.completion, "fault": 1.0}
        entry["seconds_per_page"] = pair.seconds
        if pair.block is not None:
            names = ("block_after_pages", "block_window_s", "block_for_s")
            entry |= dict(zip(names, pair.block, strict=True))
        pairs.append(entry)
    return Scenario.model_validate(
        {
            "until_done": True,
            "shared_slots": False,
            "nodes": [
                {"name": name, "slots": slots, "kinds": ["meta"]} for name, slots in wanted.nodes.items()
            ],
            "sites": [
                {
                    "name": site,
                    "engine": ENGINE_HOST,
                    "per_address_per_s": wanted.limits.per_address_per_s,
                    "total_per_s": wanted.limits.total_per_s,
                }
                for site in wanted.hits
            ],
            "engines": [
                {
                    "name": ENGINE_HOST,
                    "seconds_per_page": ENGINE_S,
                    "per_address_per_s": 100,
                    "total_per_s": 400,
                }
            ],
            "pairs": pairs,
            "quota": wanted.quota.model_dump(),
            "budget_s": wanted.budget_s.model_dump(),
            "work": {
                "products": max(map(len, wanted.hits.values())),
                "hits": {"dist": "listed", "listed": wanted.hits},
            },
        }
    )


@dataclass
class Sums:
    """What came of the runs with all seeds.

    Attributes:
        ended_s: when each ended.
        tried, refused: by (site, node).
        tried_where_it_blocks: of the runs that were refused there.
    """

    pages: float = 0.0
    attempts: float = 0.0
    ended_s: list[float] = field(default_factory=list)
    tried: Counter = field(default_factory=Counter)
    refused: int = 0
    tried_where_it_blocks: list[int] = field(default_factory=list)

    def add(self, pages: float, attempts: float, ended_s: float, tried: Counter, refused: int) -> None:
        self.pages += pages
        self.attempts += attempts
        self.ended_s.append(ended_s)
        self.tried += tried
        self.refused += refused
        if refused:
            self.tried_where_it_blocks.append(tried[STRICT])


Change = Callable[[Wanted], Wanted]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory, _sqlite_template: Path) -> Callable[[str], Sums]:
    """Runs production with every seed; each strategy once."""

    @cache
    def ran(name: str) -> Sums:
        sums = Sums()
        folder = tmp_path_factory.mktemp(name)
        for seed in SEEDS:
            path = shutil.copy(_sqlite_template, folder / f"{seed}.db")
            with closing(Store.open(f"sqlite:///{path}")) as store:
                one = run(store, world(seed), name, seed)
            pages, attempts = one.pages.total(), one.attempts.total()
            sums.add(pages, attempts, one.ended_s, one.tried, one.refused[STRICT])
        return sums

    return ran


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Sums]:
    """Runs the simulator with every seed, and counts the rests that its hosts begin."""
    refused: Counter = Counter()
    refuse = hosts.Hosts.refused

    def counted(self: hosts.Hosts, host: str, node: str, now_s: float) -> float:
        refused[host, node] += 1
        return refuse(self, host, node, now_s)

    monkeypatch.setattr(hosts.Hosts, "refused", counted)

    def ran(name: str, change: Change = lambda wanted: wanted) -> Sums:
        sums = Sums()
        for seed in SEEDS:
            refused.clear()
            made = scenario(change(world(seed)))
            one = simulate(made, name, seed, Options(oracle=False, timeline=True))
            tried = Counter({pair: round(stats.tried) for pair, stats in one.pairs.items()})
            sums.add(one.pages_collected, one.attempts, one.makespan_s, tried, refused[STRICT])
        return sums

    return ran


@pytest.mark.parametrize("name", sorted(ALLOCATION))
def test_whole_runs_come_to_the_same(real, simulated, name: str) -> None:
    assert differences(real(name), simulated(name)) == []


def test_another_world_comes_to_something_else(real, simulated) -> None:
    """So what is allowed is not everything."""
    found = real("feedback")

    def other(change: Change) -> list[str]:
        return differences(found, simulated("feedback", change))

    def well(wanted: Wanted) -> Wanted:
        return replace(wanted, pairs={pair: replace(of, completion=1.0) for pair, of in wanted.pairs.items()})

    def open_to_all(wanted: Wanted) -> Wanted:
        return replace(wanted, pairs={pair: replace(of, block=None) for pair, of in wanted.pairs.items()})

    def slow(wanted: Wanted) -> Wanted:
        return replace(wanted, limits=Limits(per_address_per_s=1, total_per_s=2))

    def stricter(wanted: Wanted) -> Wanted:
        return replace(wanted, pairs={**wanted.pairs, STRICT: Pair(block=(BLOCK[0] // 2, *BLOCK[1:]))})

    assert {"tried", "where"} & set(other(well))
    assert "ended" in other(slow)
    assert "refused" in other(open_to_all)
    assert "tried where it blocks" in other(stricter)


def apart(one: Counter, other: Counter) -> float:
    """Share of the tries that one run gave to other (site, node) than the other did: half the sum of differences."""
    pairs = {*one, *other}
    return sum(abs(one[pair] / one.total() - other[pair] / other.total()) for pair in pairs) / 2


def differences(real: Sums, simulated: Sums) -> list[str]:
    """What differs by more than chance makes it."""
    near = {
        "pages": simulated.pages == pytest.approx(real.pages, rel=0.03),
        "tried": simulated.tried.total() == pytest.approx(real.tried.total(), rel=0.08),
        "attempts": simulated.attempts == pytest.approx(real.attempts, rel=0.15),
        # The last try of the last page is chance.
        "ended": mean(simulated.ended_s) == pytest.approx(mean(real.ended_s), rel=0.35),
        "where": apart(simulated.tried, real.tried) <= MOST_APART,
        # Refusals are counts: twice the standard deviation of their difference.
        "refused": abs(simulated.refused - real.refused) <= 2 * (simulated.refused + real.refused) ** 0.5,
    }
    strict = simulated.tried_where_it_blocks, real.tried_where_it_blocks
    if all(strict):  # a run that is never refused there may try as often as it likes
        near["tried where it blocks"] = mean(strict[0]) == pytest.approx(mean(strict[1]), abs=4)
    return [what for what, same in near.items() if not same]
