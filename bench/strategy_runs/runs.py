"""Many simulated runs, one process a core: the same outcomes whatever the order they end in."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from app.simulator.load import parse_scenario
from app.simulator.outcome import Options, Outcome
from app.simulator.scenario import Scenario
from app.simulator.simulate import simulate

FEEDBACK = "feedback"


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

Outcomes = Mapping[Key, Outcome]


def simulated(runs: Iterable[Run]) -> dict[Key, Outcome]:
    """Simulate all, on every core this process may use; by key, in the order given.

    Raises:
        InputError: a scenario or a strategy is wrong.
    """
    wanted = list(runs)
    longest_first = sorted(wanted, key=_weight, reverse=True)
    # Spawned, not forked: a fork would copy threads' locks as they happen to be.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), mp_context=context) as pool:
        found = dict(zip((run.key for run in longest_first), pool.map(_one, longest_first), strict=True))
    return {run.key: found[run.key] for run in wanted}


def loaded(scene: Scene) -> Scenario:
    """The scenario of a scene."""
    return parse_scenario(scene.text, scene.name, Path(scene.folder))


def _weight(run: Run) -> tuple[int, bool]:
    scenario = _loaded(run.scene)
    nodes = sum(spec.count or 1 for spec in scenario.nodes)
    sites = sum(spec.count or 1 for spec in scenario.sites)
    return nodes * sites, run.strategy == FEEDBACK


# Kept: a scenario keeps its bounds by seed, which are worked out only once a process.
_loaded = lru_cache(maxsize=None)(loaded)


def _one(run: Run) -> Outcome:
    return simulate(_loaded(run.scene), run.strategy, run.seed, run.options)
