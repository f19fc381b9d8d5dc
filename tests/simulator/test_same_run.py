"""A whole run of the node, the store and the scheduler, and the simulator's of the same world: they come to the same.

Hosts limit; one refuses an address that asks too often, and it rests; some pairs answer badly, one is slow. Both have
the same settings. Chance differs, so the figures of two runs differ by a little; those of another world by more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from app.simulator import hosts
from app.simulator.outcome import Options, SimulatedRun
from app.simulator.scenario import Scenario
from app.simulator.simulate import simulate
from app.version import ROOT
from splitter.catalog.model import Limits
from tasks.scheduling.strategies import ALLOCATION
from tasks.store import migrate
from tasks.store.database import Store
from tests.simulator.virtual_run import ENGINE_HOST, ENGINE_S, Pair, Ran, Wanted, run

SITES = ("12365hn.com", "315tousu.org", "cca.org.cn")
NODES = ("node1", "node2", "node3")
BLOCK = (20, 20.0, 60.0)
SEED = 5
TASKS = 12
MOST_APART = 0.25


def world() -> Wanted:
    chance = Random(SEED)
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


def apart(one: Counter, other: Counter) -> float:
    """Share of the tries that one run gave to other (site, node) than the other did: half the sum of differences."""
    pairs = {*one, *other}
    return sum(abs(one[pair] / one.total() - other[pair] / other.total()) for pair in pairs) / 2


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path / 'run.db'}")) as made:
        migrate.upgrade(made, ROOT / "migrations")
        yield made


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Rests that the simulator's hosts begin, by (host, node)."""
    counts: Counter = Counter()
    refuse = hosts.Hosts.refused

    def counted(self: hosts.Hosts, host: str, node: str, now_s: float) -> float:
        counts[host, node] += 1
        return refuse(self, host, node, now_s)

    monkeypatch.setattr(hosts.Hosts, "refused", counted)
    return counts


@pytest.mark.parametrize("name", sorted(ALLOCATION))
def test_a_whole_run_comes_to_the_same(sqlite_store: Store, refused: Counter, name: str) -> None:
    wanted = world()
    real = run(sqlite_store, wanted, name, SEED)
    assert differences(real, simulated(wanted, name), refused) == []


def test_another_world_comes_to_something_else(sqlite_store: Store, refused: Counter) -> None:
    """So what is allowed above is not everything."""
    wanted = world()
    real = run(sqlite_store, wanted, "feedback", SEED)
    well = {pair: replace(of, completion=1.0) for pair, of in wanted.pairs.items()}
    assert "tried" in differences(real, simulated(replace(wanted, pairs=well), "feedback"), refused)
    slower = replace(wanted, limits=Limits(per_address_per_s=1, total_per_s=2))
    assert "ended" in differences(real, simulated(slower, "feedback"), refused)
    refused.clear()
    open_to_all = {pair: replace(of, block=None) for pair, of in wanted.pairs.items()}
    found = differences(real, simulated(replace(wanted, pairs=open_to_all), "feedback"), refused)
    assert {"tried where it blocks", "refused"} <= set(found)


def simulated(wanted: Wanted, name: str) -> SimulatedRun:
    return simulate(scenario(wanted), name, SEED, Options(oracle=False, timeline=True))


def differences(real: Ran, simulated: SimulatedRun, refused: Counter) -> list[str]:
    """What differs by more than chance makes it."""
    strict = (SITES[0], NODES[0])
    tried = Counter({pair: round(stats.tried) for pair, stats in simulated.pairs.items()})
    near = {
        "pages": simulated.pages_collected == pytest.approx(real.pages.total(), rel=0.03),
        "tried": tried.total() == pytest.approx(real.tried.total(), rel=0.08),
        "attempts": simulated.attempts == pytest.approx(real.attempts.total(), rel=0.15),
        # The last try of the last page is chance.
        "ended": simulated.makespan_s == pytest.approx(real.ended_s, rel=0.35),
        "where": apart(tried, real.tried) <= MOST_APART,
        "tried where it blocks": tried[strict] == pytest.approx(real.tried[strict], abs=4),
        "refused": (refused[strict] > 0) == (real.refused[strict] > 0),
    }
    return [what for what, same in near.items() if not same]
