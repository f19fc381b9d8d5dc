"""Which runs are wanted, and in which order: by default few, with `--full` all, the most important first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from research.bench.field.measured import ABLATION, OURS, Runner
from research.bench.field.records import SMALL
from research.bench.field.worlds import JOBS, Regime
from splitter.errors import InputError
from tasks.jobs.strategies import ALLOCATION

STRATEGIES = (*ALLOCATION, *ABLATION)
DEFAULT_STRATEGIES = (OURS, "random")
OTHERS = ("hash", "sed", "feedback2014")
"""What `--full` runs besides these two."""

LONG = "long"
_SECONDS, _FULL_SECONDS = 50.0, 240.0
_FULL_SEEDS = 5
_ABLATED = (Regime.SCARCE, Regime.BLOCKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A run that is wanted.

    Attributes:
        nodes: None: as many as the regime has.
        seconds: the most it takes.
    """

    regime: Regime
    job: str
    seed: int
    strategy: str
    nodes: int | None
    seconds: float
    runner: Runner = Runner.EMBEDDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is asked for on the command line; None: all that the default, or `--full`, has.

    Attributes:
        regimes, strategies, jobs, runners: names, separated by commas.
        seeds: how many worlds of each regime.
    """

    regimes: str | None = None
    strategies: str | None = None
    jobs: str | None = None
    runners: str | None = None
    seeds: int | None = None
    seed_from: int = 1
    seconds: float | None = None
    nodes: int | None = None


def few(choice: Choice) -> list[Asked]:
    """The small job, one seed, ours and `random`, embedded, in every regime; or as chosen. Raises InputError.

    Strategies take turns within a world.
    """
    return [
        _asked(choice, regime, job, seed, strategy, runner, _SECONDS)
        for seed in _seeds(choice, 1)
        for job in _named("job", choice.jobs, tuple(JOBS), (SMALL,))
        for regime in _named("regime", choice.regimes, tuple(Regime), tuple(Regime))
        for runner in _named("runner", choice.runners, tuple(Runner), (Runner.EMBEDDED,))
        for strategy in _named("strategy", choice.strategies, STRATEGIES, DEFAULT_STRATEGIES)
    ]


def full(choice: Choice) -> list[Asked]:
    """All runs of `--full`, or what was chosen of them, in the order of their weight. Raises InputError."""
    regimes = _named("regime", choice.regimes, tuple(Regime), tuple(Regime))
    strategies = _named("strategy", choice.strategies, STRATEGIES, STRATEGIES)
    jobs = _named("job", choice.jobs, tuple(JOBS), tuple(JOBS))
    runners = _named("runner", choice.runners, tuple(Runner), tuple(Runner))
    chosen = [
        _asked(choice, regime, job, seed, strategy, runner, _FULL_SECONDS)
        for regime, job, seed, strategy, runner in _by_weight(_seeds(choice, _FULL_SEEDS))
        if regime in regimes and strategy in strategies and job in jobs and runner in runners
    ]
    if not chosen:
        raise InputError("nothing of --full is left by these options")
    return chosen


def _by_weight(seeds: Sequence[int]) -> Iterator[tuple[Regime, str, int, str, Runner]]:
    """`scarce`; every other regime once, then with more seeds; the long job; the cluster; other strategies; the
    ablation."""
    here = Runner.EMBEDDED
    others: list[Regime] = [regime for regime in Regime if regime is not Regime.SCARCE]
    for seed in seeds:
        for strategy in DEFAULT_STRATEGIES:
            yield Regime.SCARCE, SMALL, seed, strategy, here
    for seed in seeds:
        for regime in others:
            for strategy in DEFAULT_STRATEGIES:
                yield regime, SMALL, seed, strategy, here
    for seed in seeds:
        for strategy in DEFAULT_STRATEGIES:
            yield Regime.SCARCE, LONG, seed, strategy, here
    for seed in seeds:
        yield Regime.SCARCE, SMALL, seed, OURS, Runner.CLUSTER
    for seed in seeds:
        for regime in (Regime.SCARCE, *others):
            for strategy in OTHERS:
                yield regime, SMALL, seed, strategy, here
    for seed in seeds:
        for regime in _ABLATED:
            for strategy in ABLATION:
                yield regime, SMALL, seed, strategy, here


def _asked(
    choice: Choice, regime: str, job: str, seed: int, strategy: str, runner: str, seconds: float
) -> Asked:
    return Asked(
        regime=Regime(regime),
        job=job,
        seed=seed,
        strategy=strategy,
        nodes=choice.nodes,
        seconds=choice.seconds or seconds,
        runner=Runner(runner),
    )


def _seeds(choice: Choice, usual: int) -> range:
    return range(choice.seed_from, choice.seed_from + (choice.seeds or usual))


def _named(what: str, given: str | None, known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """The names in a list separated by commas. Raises InputError."""
    names = tuple(default) if given is None else tuple(part.strip() for part in given.split(","))
    for name in names:
        if name not in known:
            raise InputError(f"{what} {name!r}: there is {', '.join(known)}")
    return tuple(dict.fromkeys(names))
