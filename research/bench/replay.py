"""Lab runs over real HTTP, and what the simulator says of them from their own stores.

The lab and `reviewloop run` are processes of their own (`research.bench.field`). Two runs are made of each world: one with
`feedback`, one with `random`. Each one's store is a scenario (`simulate --from`), which is simulated with both
strategies: pages stored by some moments, requests for pages and the end are compared with those of the strategy's run.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from research.bench.field.measured import OURS, run_once
from research.bench.field.worlds import Regime, World, draw
from research.simulator.outcome import Options, SimulatedRun
from research.simulator.recorded import scenario_of_run
from research.simulator.scenario import Scenario
from research.simulator.simulate import simulate
from splitter.catalog.load import load_catalog
from splitter.errors import InputError
from tasks.domain.states import State
from tasks.store.database import Store
from tasks.store.tables import attempts, pages, subtasks

_STRATEGIES = (OURS, "random")
"""Of the recorded runs; each is predicted from both."""

_PRODUCTS, _SITES, _NODES = 12, 12, 4
_SECONDS = 60.0
_MARKS = (0.25, 0.5, 0.9)
"""Moments that are compared, as shares of this, from the first lease on ..."""

_LONGEST = 2.0
"""... and the most a run takes, in the same unit."""

_SIMULATED_SEEDS = 5
"""A simulated figure is the mean of so many runs; a page is drawn anew in each."""

Figures = dict[str, float]
"""Of a run: pages by `SECONDSs`, `requests`, and `end_s` where all was settled."""


def run(
    shared: Path,  # noqa: ARG001 - every bench is called alike
    *,
    smallest: bool = False,
    regime: str | None = None,
    seeds: int | None = None,
    seed_from: int = 1,
    seconds: float | None = None,
    products: int | None = None,
    sites: int | None = None,
    nodes: int | None = None,
) -> dict[str, Any]:
    """Measure.

    Args:
        smallest: one short pair of runs in a tiny world.
        regime: of `bench field`, or several, separated by commas; None: scarce.
        seeds: how many worlds; None: one.
        seed_from: the first seed.
        seconds: that moments are shares of; a run takes at most twice as long.
        products, sites, nodes: of a world.

    Returns:
        ``ratios``: of each figure the smaller of run and simulation over the greater, so that 1 is right, by
        `REGIME.RECORDED.STRATEGY.FIGURE`, means over the worlds. ``figures``: both of every world.

    Raises:
        InputError: no such regime.
        ReviewloopError: a run did not start.
    """
    regimes = (regime or Regime.SCARCE).split(",")
    for name in regimes:
        if name not in tuple(Regime):
            raise InputError(f"regime {name!r}: there is {', '.join(Regime)}")
    if smallest:
        seconds, products, sites, nodes = 6.0, 1, 3, 2
    figures = {}
    for seed in range(seed_from, seed_from + (seeds or 1)):
        for name in regimes:
            world = draw(
                Regime(name),
                seed,
                products=products or _PRODUCTS,
                sites=sites or _SITES,
                nodes=nodes or _NODES,
            )
            figures[f"{name}.{seed}"] = _of_world(world, seconds or _SECONDS)
    return {"bench": "replay", "ratios": _ratios(figures), "figures": figures}


def _of_world(world: World, seconds: float) -> dict[str, Any]:
    """By strategy: the load of the machine, what its run came to, and what the simulator says of it from each run."""
    marks = [share * seconds for share in _MARKS]
    longest_s = _LONGEST * seconds
    with tempfile.TemporaryDirectory(prefix="reviewloop-replay-") as name:
        folders = {strategy: Path(name) / strategy for strategy in _STRATEGIES}
        found: dict[str, Any] = {}
        for strategy, folder in folders.items():
            folder.mkdir()
            load = run_once(world, strategy, seconds=longest_s, mark_s=seconds, kept=folder).load
            found[strategy] = {"load": load, "run": _stored(folder, marks)}
        for recorded, folder in folders.items():
            scenario = _scenario(folder)
            for strategy in _STRATEGIES:
                key = f"simulated_from_{recorded}"
                found[strategy][key] = _simulated(scenario, strategy, marks, longest_s)
    return found


def _store(folder: Path) -> Store:
    return Store.open(f"sqlite:///{folder / 'run.db'}")


def _stored(folder: Path, marks: Sequence[float]) -> Figures:
    """What a run came to; its time begins with its first lease, as the simulator's does."""
    with closing(_store(folder)) as store, store.read() as conn:
        begun, ended, tried = conn.execute(
            select(
                func.min(attempts.c.allocated_at), func.max(attempts.c.ended_at), func.sum(attempts.c.tried)
            )
        ).one()
        times = [(at - begun).total_seconds() for (at,) in conn.execute(select(pages.c.fetched_at))]
        states = [State(state) for state in conn.scalars(select(subtasks.c.state).distinct())]
    found: Figures = {f"{mark:g}s": sum(at <= mark for at in times) for mark in marks}
    if all(state.settled for state in states):
        found |= {"requests": tried, "end_s": round((ended - begun).total_seconds(), 1)}
    return found


def _scenario(folder: Path) -> Scenario:
    """That of the run whose files are there."""
    catalog = load_catalog(folder / "sites.yaml")
    with closing(_store(folder)) as store, store.read() as conn:
        return scenario_of_run(conn, catalog)


def _simulated(scenario: Scenario, strategy: str, marks: Sequence[float], longest_s: float) -> Figures:
    """What the simulator says it comes to, on average."""
    found: Figures = {}
    for mark in marks:
        runs = _runs(scenario, strategy, mark)
        found[f"{mark:g}s"] = round(statistics.fmean(one.pages_collected for one in runs), 1)
    runs = _runs(scenario, strategy, longest_s)
    if all(one.settled for one in runs):
        tried = (sum(stats.tried for stats in one.pairs.values()) for one in runs)
        found["requests"] = round(statistics.fmean(tried), 1)
        found["end_s"] = round(statistics.fmean(one.makespan_s for one in runs), 1)
    return found


def _runs(scenario: Scenario, strategy: str, until_s: float) -> list[SimulatedRun]:
    until = scenario.model_copy(update={"until_done": False, "duration_s": until_s})
    options = Options(oracle=False, timeline=True)
    return [simulate(until, strategy, seed, options) for seed in range(_SIMULATED_SEEDS)]


def _ratios(figures: Mapping[str, Any]) -> dict[str, float | None]:
    ratios: dict[str, list[float]] = {}
    for world, of_world in figures.items():
        regime = world.partition(".")[0]
        for strategy, found in of_world.items():
            for recorded in _STRATEGIES:
                said = found[f"simulated_from_{recorded}"]
                for name in found["run"].keys() & said.keys():
                    low, high = sorted((found["run"][name], said[name]))
                    if high > 0:
                        ratios.setdefault(f"{regime}.{recorded}.{strategy}.{name}", []).append(low / high)
    return {name: round(statistics.fmean(values), 3) for name, values in sorted(ratios.items())}
