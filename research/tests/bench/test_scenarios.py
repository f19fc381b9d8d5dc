"""Scenarios of the strategy bench: all of them load, say what they show, and can be simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.bench.proximity import delays, drawn
from research.bench.strategy_runs import contest, near, switched_off
from research.bench.strategy_runs.runs import Run, Scene, loaded
from research.simulator.outcome import Options
from research.simulator.scenario_file import load_scenario
from research.simulator.simulate import simulate
from research.simulator.world import World

FILES = sorted(contest.SCENARIOS.glob("*.yaml"))
SHARED = Path(__file__).parents[4] / "shared" / "data"

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not beside the project")


def test_there_are_at_least_twelve() -> None:
    assert len(FILES) >= 12


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_loads_and_says_at_its_head_what_it_shows(path: Path) -> None:
    head = [line for line in path.read_text("utf-8").splitlines()[:3] if line.startswith("# ")]
    scenario = load_scenario(path)
    assert len(head) == 3
    assert len(World(scenario).nodes) >= 4


@pytest.mark.parametrize("name", ["slow_decay", "flaky_node"])
def test_feedback_is_ahead_of_random_on_a_scenario_cut_short(name: str) -> None:
    scenario = load_scenario(contest.SCENARIOS / f"{name}.yaml").model_copy(update={"duration_s": 1200.0})
    options = Options(oracle=False)
    by_name = {strategy: simulate(scenario, strategy, 1, options) for strategy in ("feedback", "random")}
    assert by_name["feedback"].pages_collected > by_name["random"].pages_collected > 0


def test_figures_of_a_scenario_say_who_is_ahead_and_by_how_much() -> None:
    scene = Scene.read(contest.SCENARIOS / "flaky_node.yaml")
    short = loaded(scene).model_copy(update={"duration_s": 600.0})
    labels = ("feedback", "random")
    outcomes = {
        (scene.name, label, seed): simulate(short, label, seed) for label in labels for seed in (1, 2)
    }
    told = contest.compared(outcomes, scene.name, labels)
    lead = told["feedback_against_the_best_other"]
    median, least, most = told["oracle_ratio"]["feedback"]
    assert 0 < least <= median <= most <= 1
    assert lead["other"] == "random"
    assert (told["winner"] == "feedback") == (lead["lead"] > 0)


def test_a_run_is_told_apart_by_scenario_label_and_seed() -> None:
    runs = contest.runs([Scene.read(path) for path in FILES])
    assert len({run.key for run in runs}) == len(runs)


def test_work_that_stays_where_it_is_has_not_moved() -> None:
    scene = Scene.read(contest.SCENARIOS / "flaky_node.yaml")
    short = loaded(scene).model_copy(update={"duration_s": 600.0})
    whole = simulate(short, "random", 1, Options(oracle=False, timeline=True, window_s=600.0))
    parts = simulate(short, "random", 1, Options(oracle=False, timeline=True, window_s=100.0))
    assert switched_off.moved(parts) > 0
    assert switched_off.moved(whole) <= switched_off.moved(parts)


@needs_shared
def test_coordinates_are_those_of_the_hosts_that_the_scenario_draws() -> None:
    run: Run = next(run for run in near.runs(SHARED) if run.label == near.TOP_1)
    world, draw = World(loaded(run.scene)), drawn(delays(SHARED), run.seed, 9)
    names = [node.name for node in world.nodes]
    distances = run.options.allocating.distances
    assert distances is not None
    told = distances.ms(["site203", "site1"], names)
    for row, site in ((0, 202), (1, 0)):
        trips_ms = [
            (world.course(site, node).rates[0].seconds_per_page - 0.1) / 4.0 * 1000.0 for node in range(30)
        ]
        assert np.allclose(trips_ms, draw.truth[site], atol=0.01)
        assert np.allclose(told[row, draw.landmarks], draw.truth[site, draw.landmarks])
