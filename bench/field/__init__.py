"""The whole loop over real HTTP on loopback: pages over time in worlds drawn by seed, beside what could be had.

The lab and `reviewloop run` are processes of their own; a world is a regime (`bench.field.worlds`) and a seed. Runs are
compared with a bound by linear programming (`bench.field.bound`), and strategies seed by seed (`bench.field.contest`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from app.version import VERSION
from bench.field import contest, records
from bench.field.measured import run_once
from bench.field.records import SMALL, Bound, Record, bound_of
from bench.field.report import draw_pages
from bench.field.worlds import JOBS, Regime, World, draw
from bench.tools.plots import check_there
from splitter.errors import InputError
from tasks.scheduling.strategies import ALLOCATION

MARK_S = 45.0
OURS = "feedback"
DEFAULT_STRATEGIES = (OURS, "random")
ALL_STRATEGIES = (OURS, "random", "hash", "sed", "feedback2014")
RUNS = Path("field-runs.jsonl")
"""Finished runs of ``full``, where no other file is named."""

_SECONDS, _FULL_SECONDS = 50.0, 240.0
_FULL_SEEDS = 5
_SMALLEST_SECONDS = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run that is wanted."""

    regime: Regime
    job: str
    seed: int
    strategy: str
    nodes: int | None
    seconds: float


def run(
    shared: Path,  # noqa: ARG001 - every bench is called alike
    *,
    smallest: bool = False,
    full: bool = False,
    regime: str | None = None,
    strategies: str | None = None,
    job: str | None = None,
    seeds: int | None = None,
    seed_from: int = 1,
    seconds: float | None = None,
    nodes: int | None = None,
    runs: Path | None = None,
    plots: Path | None = None,
) -> dict[str, Any]:
    """Measure.

    Args:
        smallest: one short run in a tiny world.
        full: all strategies, five seeds, 240 s a run; the small job in every regime and the long one in `scarce`.
        regime: only these, separated by commas.
        strategies: only these, separated by commas.
        job: small or long.
        seeds: how many worlds of each regime.
        seed_from: the first seed.
        seconds: the most a run takes.
        nodes: None: four, in `shipped` eight.
        runs: file of finished runs, which are not run again, and which new ones are added to. None: with ``full``
            `RUNS`, else none.
        plots: folder for the picture of pages over time; None: none.

    Returns:
        ``ratios``: see `bench.field.contest.ratios`; ``figures``: every run, and `feedback` against each other
        strategy.

    Raises:
        InputError: no such regime, strategy or job, the file of runs is not one, or plots can't be drawn.
        ReviewloopError: a run did not start.
    """
    if smallest:
        return _smallest()
    if plots is not None:
        check_there()
    wanted = list(
        _wanted(
            regimes=_named("regime", regime, tuple(Regime), tuple(Regime)),
            strategies=_named(
                "strategy", strategies, tuple(ALLOCATION), ALL_STRATEGIES if full else DEFAULT_STRATEGIES
            ),
            jobs=_named("job", job, tuple(JOBS), tuple(JOBS) if full else (SMALL,)),
            everything_long=job is not None,
            seeds=range(seed_from, seed_from + (seeds or (_FULL_SEEDS if full else 1))),
            seconds=seconds or (_FULL_SECONDS if full else _SECONDS),
            nodes=nodes,
        )
    )
    measured = _measured(wanted, runs or (RUNS if full else None))
    if plots is not None:
        draw_pages(plots / "field.png", measured)
    return _result(measured)


def _smallest() -> dict[str, Any]:
    world = draw(Regime.SCARCE, 1, products=1, nodes=2, sites=3)
    asked = Asked(
        regime=Regime.SCARCE, job=SMALL, seed=1, strategy=OURS, nodes=2,
        seconds=_SMALLEST_SECONDS,
    )  # fmt: skip
    return _result([_record(asked, world, bound_of(world, _mark_s(asked)))])


def _result(found: Sequence[Record]) -> dict[str, Any]:
    runs = {f"{one.label}.{one.strategy}.{one.seed}": contest.shown(one, found) for one in found}
    return {
        "bench": "field",
        "ratios": contest.ratios(found),
        "figures": {"runs": runs, "against": contest.compared(found, OURS)},
    }


def _named(what: str, given: str | None, known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """The names in a list separated by commas. Raises InputError."""
    names = tuple(default) if given is None else tuple(part.strip() for part in given.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"{what} {name!r}: there is {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def _wanted(
    *,
    regimes: Iterable[str],
    strategies: Sequence[str],
    jobs: Sequence[str],
    everything_long: bool,
    seeds: Iterable[int],
    seconds: float,
    nodes: int | None,
) -> Iterator[Asked]:
    """Runs in their order: strategies take turns within a world. The long job is for `scarce`, unless it was named."""
    chosen = [Regime(name) for name in regimes]
    for seed in seeds:
        for job in jobs:
            for regime in chosen:
                if job != SMALL and regime is not Regime.SCARCE and not everything_long:
                    continue
                for strategy in strategies:
                    yield Asked(
                        regime=regime, job=job, seed=seed, strategy=strategy, nodes=nodes, seconds=seconds
                    )  # fmt: skip


def _measured(wanted: Sequence[Asked], file: Path | None) -> list[Record]:
    """The wanted runs: those in the file as they are there, the others run now and added to it."""
    finished = {one.key: one for one in records.read(file)} if file is not None and file.exists() else {}

    @cache
    def world_of(regime: Regime, job: str, seed: int, nodes: int | None) -> World:
        return draw(regime, seed, products=JOBS[job], nodes=nodes)

    @cache
    def its_bound(world_key: tuple[Regime, str, int, int | None], mark_s: float) -> Bound:
        return bound_of(world_of(*world_key), mark_s)

    found = []
    for place, asked in enumerate(wanted, 1):
        world_key = (asked.regime, asked.job, asked.seed, asked.nodes)
        world = world_of(*world_key)
        key = (asked.regime, asked.job, world.nodes, asked.seed, asked.strategy, asked.seconds)
        if key not in finished:
            finished[key] = _record(asked, world, its_bound(world_key, _mark_s(asked)))
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


def _mark_s(asked: Asked) -> float:
    """The mark; of a shorter run its end."""
    return min(MARK_S, asked.seconds)


def _record(asked: Asked, world: World, its_bound: Bound) -> Record:
    measured = run_once(world, asked.strategy, seconds=asked.seconds, mark_s=_mark_s(asked))
    return Record(
        regime=asked.regime.value,
        job=asked.job,
        nodes=world.nodes,
        seed=asked.seed,
        strategy=asked.strategy,
        seconds=asked.seconds,
        version=VERSION,
        bound=its_bound,
        measured=measured,
    )
