"""The whole loop over real HTTP on loopback: pages over time in worlds drawn by seed, beside what could be had.

The lab and `reviewloop run` are processes of their own; a world is a regime (`bench.field.worlds`) and a seed. Runs are
compared with a bound by linear programming (`bench.field.bound`), and strategies seed by seed (`bench.field.contest`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from app.version import VERSION
from bench.field import bound, contest
from bench.field.contest import Bound, Record
from bench.field.measured import SHARES, SLOTS, run_once
from bench.field.worlds import JOBS, Regime, World, draw, hits
from splitter.errors import InputError
from tasks.scheduling.strategies import ALLOCATION
from tasks.worker.settings import CrawlSettings

MARK_S = 45.0
OURS = "feedback"
DEFAULT_STRATEGIES = (OURS, "random")
ALL_STRATEGIES = (OURS, "random", "hash", "sed", "feedback2014")
RUNS = Path("field-runs.jsonl")
"""Finished runs of ``full``, where no other file is named."""

_SECONDS, _FULL_SECONDS = 55.0, 240.0
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

    Returns:
        ``ratios``: see `bench.field.contest.ratios`; ``figures``: every run, and `feedback` against each other
        strategy.

    Raises:
        InputError: no such regime, strategy or job, or the file of runs is not one.
        ReviewloopError: a run did not start.
    """
    if smallest:
        return _smallest()
    wanted = list(
        _wanted(
            regimes=_named("regime", regime, tuple(Regime), tuple(Regime)),
            strategies=_named(
                "strategy", strategies, tuple(ALLOCATION), ALL_STRATEGIES if full else DEFAULT_STRATEGIES
            ),
            jobs=_named("job", job, tuple(JOBS), tuple(JOBS) if full else (contest.LABEL_OF_SMALL,)),
            everything_long=job is not None,
            seeds=range(seed_from, seed_from + (seeds or (_FULL_SEEDS if full else 1))),
            seconds=seconds or (_FULL_SECONDS if full else _SECONDS),
            nodes=nodes,
        )
    )
    return _result(_measured(wanted, runs or (RUNS if full else None)))


def _smallest() -> dict[str, Any]:
    world = draw(Regime.SCARCE, 1, products=1, nodes=2, sites=3)
    asked = Asked(
        regime=Regime.SCARCE, job=contest.LABEL_OF_SMALL, seed=1, strategy=OURS, nodes=2,
        seconds=_SMALLEST_SECONDS,
    )  # fmt: skip
    return _result([_record(asked, world, bound_of(world, asked.seconds))])


def _result(records: Sequence[Record]) -> dict[str, Any]:
    runs = {f"{one.label}.{one.strategy}.{one.seed}": contest.shown(one, records) for one in records}
    return {
        "bench": "field",
        "ratios": contest.ratios(records),
        "figures": {"runs": runs, "against": contest.compared(records, OURS)},
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
                if job != contest.LABEL_OF_SMALL and regime is not Regime.SCARCE and not everything_long:
                    continue
                for strategy in strategies:
                    yield Asked(
                        regime=regime, job=job, seed=seed, strategy=strategy, nodes=nodes, seconds=seconds
                    )  # fmt: skip


def _measured(wanted: Sequence[Asked], file: Path | None) -> list[Record]:
    """The wanted runs: those in the file as they are there, the others run now and added to it."""
    finished = {_key(one): one for one in read_runs(file)} if file is not None and file.exists() else {}

    @cache
    def world_of(regime: Regime, job: str, seed: int, nodes: int | None) -> World:
        return draw(regime, seed, products=JOBS[job], nodes=nodes)

    @cache
    def its_bound(world_key: tuple[Regime, str, int, int | None], seconds: float) -> Bound:
        return bound_of(world_of(*world_key), seconds)

    records = []
    for place, asked in enumerate(wanted, 1):
        world_key = (asked.regime, asked.job, asked.seed, asked.nodes)
        world = world_of(*world_key)
        key = (asked.regime, asked.job, world.nodes, asked.seed, asked.strategy, asked.seconds)
        if key not in finished:
            finished[key] = _record(asked, world, its_bound(world_key, asked.seconds))
            if file is not None:
                with file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(asdict(finished[key])) + "\n")
        records.append(finished[key])
        _tell(finished[key], f"{place}/{len(wanted)}")
    return records


def _key(one: Record) -> tuple[str, str, int, int, str, float]:
    return (one.regime, one.job, one.nodes, one.seed, one.strategy, one.seconds)


def _tell(one: Record, place: str) -> None:
    measured = one.measured
    print(
        f"{place} {one.label} seed {one.seed} {one.strategy}: {measured.pages_at_mark} of "
        f"{one.bound.pages_at_mark:.0f} pages at the mark, {measured.pages} of {measured.there} "
        f"at {measured.ended_s:.0f} s",
        file=sys.stderr,
    )


def read_runs(file: Path) -> list[Record]:
    """The finished runs in a file: one JSON object a line. Raises InputError."""
    adapter = TypeAdapter(Record)
    records = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        try:
            records.append(adapter.validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(f"{file}:{number}: no run of `bench field`: {first['msg']}") from error
    return records


def bound_of(world: World, seconds: float) -> Bound:
    """The bound of a world at the mark (or at the end of shorter runs), and when shares could be stored."""
    facts = bound.facts_of(world, hits(world), SLOTS * CrawlSettings().lanes)
    return Bound(
        pages_at_mark=bound.pages_by(facts, min(MARK_S, seconds)),
        possible_at={name: bound.time_of(facts, share) for name, share in SHARES.items()},
    )


def _record(asked: Asked, world: World, its_bound: Bound) -> Record:
    measured = run_once(
        world, asked.strategy, seconds=asked.seconds, mark_s=min(MARK_S, asked.seconds)
    )  # fmt: skip
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
