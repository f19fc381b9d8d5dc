"""The whole loop over real HTTP on loopback: pages over time in worlds drawn by seed, beside what could be had.

The lab and `reviewloop run` (or `up`) are processes of their own; a world is a regime (`research.bench.field.worlds`) and a
seed. Runs are compared with a bound by linear programming (`research.bench.field.bound`), and strategies seed by seed
(`research.bench.field.contest`).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from research.bench.field import asked, contest, records
from research.bench.field.asked import Asked, Choice
from research.bench.field.measured import OURS, run_once
from research.bench.field.records import SMALL, Bound, Record, bound_of
from research.bench.field.report import draw_pages
from research.bench.field.worlds import JOBS, Regime, World, draw
from research.tools.plots import check_there

MARK_S = 45.0
RUNS = Path("field-runs.jsonl")
"""Finished runs of ``full``, where no other file is named."""

_SMALLEST_SECONDS = 4.0
_AROUND_S = 60.0
"""A run takes so much longer than its time at most: start, end, `verify`, the bound."""


def run(
    shared: Path,  # noqa: ARG001 - every bench is called alike
    *,
    smallest: bool = False,
    full: bool = False,
    regime: str | None = None,
    strategies: str | None = None,
    job: str | None = None,
    runner: str | None = None,
    seeds: int | None = None,
    seed_from: int = 1,
    seconds: float | None = None,
    nodes: int | None = None,
    runs: Path | None = None,
    limit_minutes: float | None = None,
    plots: Path | None = None,
) -> dict[str, Any]:
    """Measure.

    Args:
        smallest: one short run in a tiny world.
        full: everything, five seeds, 240 s a run, the most important first (`research.bench.field.asked.full`).
        regime: only these, separated by commas.
        strategies: only these, separated by commas.
        job: small or long.
        runner: embedded or cluster.
        seeds: how many worlds of each regime.
        seed_from: the first seed.
        seconds: the most a run takes.
        nodes: None: four, in `shipped` eight.
        runs: file of finished runs, which are not run again, and which new ones are added to.
            None: with ``full`` `RUNS`, else none.
        limit_minutes: no run is begun that may end later; None: there is no limit.
        plots: folder for the picture of pages over time; None: none.

    Returns:
        ``ratios``: see `research.bench.field.contest.ratios`; ``figures``: every run, and `feedback` against each
        other strategy.

    Raises:
        InputError: no such regime, strategy, job or runner, the file of runs is not one, or plots can't be drawn.
        ReviewloopError: a run did not start.
    """
    begin_s = time.monotonic()
    if smallest:
        return _smallest()
    if plots is not None:
        check_there()
    choice = Choice(
        regimes=regime,
        strategies=strategies,
        jobs=job,
        runners=runner,
        seeds=seeds,
        seed_from=seed_from,
        seconds=seconds,
        nodes=nodes,
    )
    wanted = asked.full(choice) if full else asked.few(choice)
    until_s = begin_s + 60.0 * limit_minutes if limit_minutes is not None else None
    measured = _measured(wanted, runs or (RUNS if full else None), until_s)
    if plots is not None:
        draw_pages(plots / "field.png", measured)
    return _result(measured)


def _smallest() -> dict[str, Any]:
    world = draw(Regime.SCARCE, 1, products=1, nodes=2, sites=3)
    one = Asked(
        regime=Regime.SCARCE, job=SMALL, seed=1, strategy=OURS, nodes=2,
        seconds=_SMALLEST_SECONDS,
    )  # fmt: skip
    return _result([_record(one, world, bound_of(world, _mark_s(one)))])


def _result(found: Sequence[Record]) -> dict[str, Any]:
    runs = {f"{one.label}.{one.strategy}.{one.seed}": contest.shown(one, found) for one in found}
    return {
        "bench": "field",
        "ratios": contest.ratios(found),
        "figures": {
            "runs": runs,
            "against": contest.compared(found, OURS),
        },
    }


def _measured(wanted: Sequence[Asked], file: Path | None, until_s: float | None) -> list[Record]:
    """The wanted runs: those in the file as they are there, the others run now and added to it, while there is time."""
    finished = {one.key: one for one in records.read(file)} if file is not None and file.exists() else {}

    @cache
    def world_of(regime: Regime, job: str, seed: int, nodes: int | None) -> World:
        return draw(regime, seed, products=JOBS[job], nodes=nodes)

    @cache
    def its_bound(world_key: tuple[Regime, str, int, int | None], mark_s: float) -> Bound:
        return bound_of(world_of(*world_key), mark_s)

    found = []
    for place, one in enumerate(wanted, 1):
        world_key = (one.regime, one.job, one.seed, one.nodes)
        world = world_of(*world_key)
        key = one.runner.value, one.regime.value, one.job, world.nodes, one.seed, one.strategy, one.seconds
        if key not in finished:
            if until_s is not None and time.monotonic() + one.seconds + _AROUND_S > until_s:
                print(f"the time is over: {len(wanted) - place + 1} runs are left out", file=sys.stderr)
                break
            finished[key] = _record(one, world, its_bound(world_key, _mark_s(one)))
            if file is not None:
                records.append(file, finished[key])
        found.append(finished[key])
        _tell(finished[key], f"{place}/{len(wanted)}")
    return found


def _tell(one: Record, place: str) -> None:
    measured = one.measured
    print(
        f"{place} {one.label} seed {one.seed} {one.strategy}: {measured.pages_at_mark} of "
        f"{one.bound.pages_at_mark:.0f} pages at the mark, {measured.pages} of {measured.there} "
        f"at {measured.ended_s:.0f} s",
        file=sys.stderr,
    )


def _mark_s(one: Asked) -> float:
    """The mark; of a shorter run its end."""
    return min(MARK_S, one.seconds)


def _record(one: Asked, world: World, its_bound: Bound) -> Record:
    measured = run_once(
        world, one.strategy, seconds=one.seconds, mark_s=_mark_s(one), runner=one.runner
    )  # fmt: skip
    return Record(
        regime=one.regime.value,
        job=one.job,
        nodes=world.nodes,
        seed=one.seed,
        strategy=one.strategy,
        seconds=one.seconds,
        bound=its_bound,
        measured=measured,
        runner=one.runner.value,
    )
