"""Many simulated runs, one process a core: the same outcomes whatever the order they end in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from app.cli.output import say
from research.simulator.outcome import Options, SimulatedRun
from research.simulator.scenario import Scenario
from research.simulator.scenario_file import parse_scenario
from research.simulator.simulate import simulate
from research.tools.processes import forkserver

FEEDBACK = "feedback"
_REPORT_EVERY = 20


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


def simulated(runs: Sequence[Run]) -> dict[Key, SimulatedRun]:
    """Simulate all on every core that this process may use, and return the outcomes by key, in the order given.

    Raises:
        InputError: a scenario or a strategy is wrong.
    """
    found: dict[Key, SimulatedRun] = {}
    with forkserver().Pool(len(os.sched_getaffinity(0))) as pool:
        for run, outcome in zip(runs, pool.imap(_one, runs), strict=True):
            found[run.key] = outcome
            if len(found) % _REPORT_EVERY == 0 or len(found) == len(runs):
                say(f"{len(found)} of {len(runs)} runs done", "dim")
    return found


# Kept, with its bounds: a process simulates a scenario several times.
@cache
def loaded(scene: Scene) -> Scenario:
    """Return the scenario of a scene."""
    return parse_scenario(scene.text, scene.name, Path(scene.folder))


def _one(run: Run) -> SimulatedRun:
    return simulate(loaded(run.scene), run.strategy, run.seed, run.options)
