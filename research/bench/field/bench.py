"""The whole loop over real HTTP on loopback: pages over time in worlds drawn by seed, compared with a bound.

The lab and `reviewloop run` (or `up`) are processes of their own; a world is a regime (`research.bench.field.worlds`) and a
seed. Runs are compared with a bound by linear programming (`research.bench.field.bound`), and strategies seed by seed
(`research.bench.field.contest`).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import click

from app.cli.options import FILE
from app.cli.output import say
from research.bench.field import bound, contest, records
from research.bench.field.measured import ABLATION, OURS, Runner, run_once
from research.bench.field.records import SMALL, Bound, Record, Run, bound_of, facts_of
from research.bench.field.worlds import JOBS, Regime, World, draw, node_count
from research.bench.options import names_of, seeds_options
from research.tools.plots import lines, plots_option
from tasks.jobs.strategies import ALLOCATION

MARK_S = 45.0
_POINTS = 24
_STRATEGIES = (OURS, "random")


@click.option("--regime", "regimes", type=names_of("regime", Regime), help="Only these.  [default: all]")
@click.option(
    "--strategies",
    type=names_of("strategy", (*ALLOCATION, *ABLATION)),
    default=",".join(_STRATEGIES),
    show_default=True,
)
@click.option(
    "--job", "jobs", type=names_of("job", JOBS), default=SMALL, show_default=True, help="6 or 30 products."
)
@click.option(
    "--runner",
    "runners",
    type=names_of("runner", Runner),
    default=Runner.EMBEDDED.value,
    show_default=True,
    help="One process (`run`) or a cluster (`up`).",
)
@seeds_options(1)
@click.option(
    "--nodes", type=click.IntRange(1, 250), help="Number of crawl nodes. Default: 4, in `shipped` 8."
)
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(0, min_open=True),
    default=50.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of a run.",
)
@click.option(
    "--runs", type=FILE, help="File of finished runs: they are not run again, and new ones are added."
)
@plots_option
def run(
    _shared: Path,
    smallest: bool,
    regimes: Sequence[str] | None = None,
    strategies: Sequence[str] = _STRATEGIES,
    jobs: Sequence[str] = (SMALL,),
    runners: Sequence[str] = (Runner.EMBEDDED.value,),
    seeds: int = 1,
    seed_from: int = 1,
    nodes: int | None = None,
    seconds: float = 50.0,
    runs: Path | None = None,
    plots: Path | None = None,
) -> dict[str, Any]:
    """Measure; strategies take turns within a world. With `smallest` one short run in a tiny world.

    Returns:
        ``ratios``: see `research.bench.field.contest.ratios`; ``figures``: every run, and `feedback` against each
        other strategy.

    Raises:
        InputError: the file of runs is not one.
        BenchError: a run did not start.
    """
    if smallest:
        tiny = draw(Regime.SCARCE, 1, products=1, nodes=2, sites=3)
        one = Run(regime=Regime.SCARCE.value, job=SMALL, nodes=2, seed=1, strategy=OURS, seconds=4.0)
        return _result([_measured(one, tiny, bound_of(tiny, _mark_s(one)))])
    finished = {_key(one): one for one in records.read(runs)} if runs is not None and runs.exists() else {}

    @cache
    def world_of(regime: Regime, job: str, seed: int) -> World:
        return draw(regime, seed, products=JOBS[job], nodes=nodes)

    @cache
    def its_bound(regime: Regime, job: str, seed: int) -> Bound:
        return bound_of(world_of(regime, job, seed), min(MARK_S, seconds))

    found: list[Record] = []
    chosen = tuple(map(Regime, regimes or Regime))
    last = seed_from + seeds
    for seed, job, regime, runner in product(range(seed_from, last), jobs, chosen, runners):
        for strategy in strategies:
            one = Run(
                regime=regime.value, job=job, nodes=nodes or node_count(regime), seed=seed,
                strategy=strategy, seconds=seconds, runner=runner,
            )  # fmt: skip
            if _key(one) not in finished:
                measured = _measured(one, world_of(regime, job, seed), its_bound(regime, job, seed))
                finished[_key(one)] = measured
                if runs is not None:
                    records.append(runs, measured)
            found.append(finished[_key(one)])
            _report(found[-1])
    if plots is not None:
        _draw(plots, found)
    return _result(found)


def _key(one: Run) -> tuple[str, str, str, int, int, str, float]:
    return one.runner, one.regime, one.job, one.nodes, one.seed, one.strategy, one.seconds


def _mark_s(one: Run) -> float:
    """Return the mark; the end of a run that is shorter."""
    return min(MARK_S, one.seconds)


def _measured(one: Run, world: World, limit: Bound) -> Record:
    runner = Runner(one.runner)
    measured = run_once(world, one.strategy, seconds=one.seconds, mark_s=_mark_s(one), runner=runner)
    return Record(**asdict(one), bound=limit, measured=measured)


def _report(one: Record) -> None:
    measured = one.measured
    say(
        f"{one.label} seed {one.seed} {one.strategy}: {measured.pages_at_mark} of "
        f"{one.bound.pages_at_mark:.0f} pages at the mark, {measured.pages} of {measured.there} "
        f"at {measured.ended_s:.0f} s",
        "dim",
    )


def _result(found: Sequence[Record]) -> dict[str, Any]:
    runs = {f"{one.label}.{one.strategy}.{one.seed}": contest.shown(one, found) for one in found}
    return {
        "bench": "field",
        "ratios": contest.ratios(found),
        "figures": {"runs": runs, "against": contest.compared(found, OURS)},
    }


def _draw(folder: Path, found: Sequence[Record]) -> None:
    """Draw the pages stored over time, mean over the seeds: a picture for each regime."""
    for label in dict.fromkeys(one.label for one in found):
        runs = [one for one in found if one.label == label]
        last_s = max(min(one.seconds, one.measured.ended_s) for one in runs)
        times = [last_s * n / _POINTS for n in range(_POINTS + 1)]
        series = {}
        for strategy in dict.fromkeys(one.strategy for one in runs):
            group = [one for one in runs if one.strategy == strategy]
            series[strategy] = [(t, statistics.fmean(stored_by(one, t) for one in group)) for t in times]
        facts = [facts_of(one.world) for one in {one.seed: one for one in runs}.values()]
        series["limit"] = [(t, statistics.fmean(bound.pages_by(one, t) for one in facts)) for t in times]
        axes = ("seconds from the first request", "pages")
        lines(folder / f"field-{label}.png", f"Pages stored over real HTTP: {label}", axes, series, "")


def stored_by(one: Record, t: float) -> float:
    """Return the pages that a run had stored by whole seconds, at the last one until ``t``."""
    by_s = (0, *one.measured.stored_by_s)
    return float(by_s[min(int(t), len(by_s) - 1)])
