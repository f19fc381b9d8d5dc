"""Many simulated runs and other jobs, one process a core: the same outcomes whatever the order they end in.

Bounds are apart from runs: what one (scenario, seed) allows is worked out once, by whichever process is free, and every
strategy is compared with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing.pool import Pool
from pathlib import Path
from typing import Any

from app.cli.output import say
from research.simulator.oracle import Bound, bound
from research.simulator.outcome import Options, SimulatedRun
from research.simulator.scenario import Scenario
from research.simulator.scenario_file import parse_scenario
from research.simulator.simulate import measured_by, simulate
from research.tools.processes import forkserver

FEEDBACK = "feedback"
_REPORT_EVERY_S = 10.0

_PLANS = (FEEDBACK, "balance")
"""Strategies that take several times as long as the others."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A scenario as text, so that it is cheap to hand to another process.

    Attributes:
        name: in tables.
        text: YAML.
        folder: where files it names are.
    """

    name: str
    text: str
    folder: str

    @classmethod
    def read(cls, path: Path) -> Scene:
        """That of a file, by the file's name."""
        return cls(path.stem, path.read_text("utf-8"), str(path.parent))


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    Attributes:
        label: of the strategy in tables; `strategy` is the name the simulator knows.
        options: of the simulator.
    """

    scene: Scene
    label: str
    strategy: str
    seed: int
    options: Options = field(default_factory=Options)

    @property
    def key(self) -> Key:
        """What tells it apart from others of the same bench."""
        return self.scene.name, self.label, self.seed


Key = tuple[str, str, int]
"""(scenario, label, seed)."""

Outcomes = Mapping[Key, SimulatedRun]

_Limit = tuple[Scene, int, tuple[tuple[str, int], ...]]
"""What a bound depends on: scenario, seed and, where work is done to its end, hits left to a person by site."""


class Workers:
    """Processes that simulate, and run other jobs meanwhile. Progress is reported every ten seconds and at the end."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._begin_s = self._reported_s = time.monotonic()

    def _report(self, part: str, done: int, total: int) -> None:
        now_s = time.monotonic()
        if done == total or now_s - self._reported_s >= _REPORT_EVERY_S:
            self._reported_s = now_s
            say(f"{part}: {done} of {total} done, {now_s - self._begin_s:.0f} s", "dim")

    def simulated(self, runs: Iterable[Run]) -> dict[Key, SimulatedRun]:
        """Simulate all, the longest first, and return the outcomes by key, in the order given.

        Raises:
            InputError: a scenario or a strategy is wrong.
        """
        wanted = list(runs)
        longest_first = sorted(wanted, key=weight, reverse=True)
        found: dict[Key, SimulatedRun] = {}
        for key, outcome in self._pool.imap_unordered(_one, longest_first):
            found[key] = outcome
            self._report("runs", len(found), len(wanted))
        limits = self._bounds({run.key: _limit(run, found[run.key]) for run in wanted if run.options.oracle})
        return {
            run.key: measured_by(limits[run.key], found[run.key]) if run.options.oracle else found[run.key]
            for run in wanted
        }

    def begin(self, job: Callable[[], Any]) -> Callable[[], Any]:
        """Run a function that can be pickled as soon as a process is free; returns what waits for its result."""
        return self._pool.apply_async(job).get

    def _bounds(self, of: Mapping[Key, _Limit]) -> dict[Key, Bound]:
        wanted = list(dict.fromkeys(of.values()))
        found: dict[_Limit, Bound] = {}
        for limit, worked_out in self._pool.imap_unordered(_bound, wanted):
            found[limit] = worked_out
            self._report("bounds", len(found), len(wanted))
        return {key: found[limit] for key, limit in of.items()}


@contextmanager
def workers() -> Iterator[Workers]:
    """Yield one process for every core that this one may use."""
    with forkserver().Pool(len(os.sched_getaffinity(0))) as pool:
        yield Workers(pool)


def loaded(scene: Scene) -> Scenario:
    """The scenario of a scene."""
    return parse_scenario(scene.text, scene.name, Path(scene.folder))


def weight(run: Run) -> float:
    """About how long a run takes, to begin with the longest: its attempts, and what deciding on one costs."""
    scenario = _loaded(run.scene)
    nodes = sum(spec.count or 1 for spec in scenario.nodes)
    sites = sum(spec.count or 1 for spec in scenario.sites)
    slots = sum((spec.count or 1) * spec.slots for spec in scenario.nodes)
    hits = scenario.work.products * sites * scenario.work.hits.mean
    seconds = hits if scenario.duration_s is None else scenario.duration_s * slots
    return seconds * (1.0 + nodes / 30.0) * (4.0 if run.strategy in _PLANS else 1.0)


# Kept: whoever simulates a scenario does so several times.
_loaded = lru_cache(maxsize=None)(loaded)


def _one(run: Run) -> tuple[Key, SimulatedRun]:
    options = replace(run.options, oracle=False)
    return run.key, simulate(_loaded(run.scene), run.strategy, run.seed, options)


def _limit(run: Run, outcome: SimulatedRun) -> _Limit:
    left = outcome.manual_pages if _loaded(run.scene).until_done else {}
    return run.scene, run.seed, tuple(sorted(left.items()))


def _bound(limit: _Limit) -> tuple[_Limit, Bound]:
    scene, seed, left = limit
    return limit, bound(_loaded(scene), seed, dict(left))
