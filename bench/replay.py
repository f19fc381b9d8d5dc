"""A lab run over real HTTP, and what the simulator says of it from the run's own store.

The lab and `reviewloop run` are processes of their own (`bench.field`). Two runs are made of each world: one with
`feedback`, one with `random`. The store of the first is the scenario (`simulate --from`); it is simulated with both
strategies, and what each stores by some moments is compared with what its own run had stored then.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from app.simulator.outcome import Options
from app.simulator.recorded import scenario_of_run
from app.simulator.scenario import Scenario
from app.simulator.simulate import simulate
from bench.field.measured import OURS, run_once
from bench.field.worlds import Regime, World, draw
from splitter.catalog.load import load_catalog
from splitter.errors import InputError
from tasks.store.database import Store
from tasks.store.tables import attempts, pages

RECORDED, OTHER = OURS, "random"
"""The strategy of the recorded run, and the one that is predicted from it."""

_PRODUCTS, _SITES, _NODES = 12, 12, 4
_SECONDS = 60.0
_MARKS = (0.25, 0.5, 0.9)
"""Moments that are compared, as shares of a run's time, from its first lease on."""

_SIMULATED_SEEDS = 5
"""A simulated figure is the mean of so many runs; a page is drawn anew in each."""


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
        regime: of `bench field`; None: scarce.
        seeds: how many worlds; None: one.
        seed_from: the first seed.
        seconds: the most a run takes.
        products, sites, nodes: of a world.

    Returns:
        ``ratios``: pages simulated over pages stored, by `STRATEGY.SECONDSs`, means over the worlds; the recorded
        run's own strategy first. ``figures``: both figures of every world.

    Raises:
        InputError: no such regime.
        ReviewloopError: a run did not start.
    """
    if regime is not None and regime not in tuple(Regime):
        raise InputError(f"regime {regime!r}: there is {', '.join(Regime)}")
    chosen = Regime(regime or Regime.SCARCE)
    if smallest:
        seconds, products, sites, nodes = 12.0, 1, 3, 2
    figures = {}
    for seed in range(seed_from, seed_from + (seeds or 1)):
        world = draw(
            chosen,
            seed,
            products=products or _PRODUCTS,
            sites=sites or _SITES,
            nodes=nodes or _NODES,
        )
        figures[f"{chosen}.{seed}"] = _of_world(world, seconds or _SECONDS)
    return {"bench": "replay", "ratios": _ratios(figures), "figures": figures}


def _of_world(world: World, seconds: float) -> dict[str, Any]:
    """By strategy: stored and simulated pages at each mark, and the load of the machine."""
    marks = [share * seconds for share in _MARKS]
    with tempfile.TemporaryDirectory(prefix="reviewloop-replay-") as name:
        stored = {}
        for strategy in (RECORDED, OTHER):
            folder = Path(name) / strategy
            folder.mkdir()
            load = run_once(world, strategy, seconds=seconds, mark_s=seconds, kept=folder).load
            stored[strategy] = load, _stored(folder, marks)
        scenario = _scenario(Path(name) / RECORDED)
    return {
        strategy: {
            "load": load,
            **{
                f"{mark:g}s": {"stored": pages, "simulated": _simulated(scenario, strategy, mark)}
                for mark, pages in by_mark.items()
            },
        }
        for strategy, (load, by_mark) in stored.items()
    }


def _store(folder: Path) -> Store:
    return Store.open(f"sqlite:///{folder / 'run.db'}")


def _stored(folder: Path, marks: Sequence[float]) -> dict[float, int]:
    """Pages that a run had stored so many seconds after its first lease, where the simulator's time begins."""
    with closing(_store(folder)) as store, store.read() as conn:
        begun = conn.execute(select(func.min(attempts.c.allocated_at))).scalar_one()
        times = [(at - begun).total_seconds() for (at,) in conn.execute(select(pages.c.fetched_at))]
    return {mark: sum(at <= mark for at in times) for mark in marks}


def _scenario(folder: Path) -> Scenario:
    """That of the run whose files are there."""
    catalog = load_catalog(folder / "sites.yaml")
    with closing(_store(folder)) as store, store.read() as conn:
        return scenario_of_run(conn, catalog)


def _simulated(scenario: Scenario, strategy: str, until_s: float) -> float:
    """Pages that the simulator stores by a moment, on average."""
    until = scenario.model_copy(update={"until_done": False, "duration_s": until_s})
    return statistics.fmean(
        simulate(until, strategy, seed, Options(oracle=False)).pages_collected
        for seed in range(_SIMULATED_SEEDS)
    )


def _ratios(figures: Mapping[str, Any]) -> dict[str, float | None]:
    ratios: dict[str, list[float]] = {}
    for of_world in figures.values():
        for strategy, told in of_world.items():
            for mark, one in told.items():
                if mark != "load" and one["stored"]:
                    ratios.setdefault(f"{strategy}.{mark}", []).append(one["simulated"] / one["stored"])
    return {name: round(statistics.fmean(values), 3) for name, values in ratios.items()}
