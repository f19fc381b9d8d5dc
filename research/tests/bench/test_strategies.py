"""Scenarios load and say what they show; runs in many processes are those of one; leads are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.bench.strategies import contest, near, switched_off
from research.bench.strategies.drawn import Kind, draw
from research.bench.strategies.runs import Run, Scene, loaded, simulated
from research.papers.proximity import delays, drawn
from research.simulator.outcome import Options
from research.simulator.scenario_file import load_scenario
from research.simulator.simulate import simulate
from research.simulator.world import World

FILES = sorted(contest.SCENARIOS.glob("*.yaml"))
SHARED = Path(__file__).parents[4] / "shared" / "data"
SHORT = """
duration_s: 300
nodes: [{name: n, count: 3, slots: 2}]
sites: [{name: s, count: 2, overhead_s: 0.5}]
pairs: [{node: n1, site: s1, seconds_per_page: 0.4}]
work: {products: 60, hits: {dist: lognormal, mean: 10, sigma: 0.5}}
"""
UNTIL_DONE = SHORT.replace("duration_s: 300", "until_done: true").replace("products: 60", "products: 8")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_scenario_loads_and_says_at_its_head_what_it_shows(path):
    head = [line for line in path.read_text("utf-8").splitlines()[:3] if line.startswith("# ")]
    assert len(head) == 3
    assert len(World(load_scenario(path)).nodes) >= 4


def test_a_drawn_scenario_is_the_same_for_a_seed():
    assert draw(Kind.DRIFTING, 1) == draw(Kind.DRIFTING, 1) != draw(Kind.DRIFTING, 2)
    assert len(draw(Kind.RESTLESS, 1).pairs) > len(draw(Kind.SPREAD, 1).pairs)


def test_runs_of_many_processes_are_those_of_one():
    scenes = Scene("short", SHORT, "."), Scene("done", UNTIL_DONE, ".")
    runs = [Run(scene, name, name, 1) for scene in scenes for name in ("feedback", "random")]
    runs.append(Run(scenes[0], "no bound", "hash", 1, Options(oracle=False)))
    found = simulated(runs)
    assert list(found) == [run.key for run in runs]
    for run in runs:
        alone, one = simulate(loaded(run.scene), run.strategy, run.seed, run.options), found[run.key]
        assert (one.pages_collected, one.attempts, one.oracle_ratio) == (
            alone.pages_collected, alone.attempts, alone.oracle_ratio,
        )  # fmt: skip


def test_no_run_is_made_twice():
    scenes = [Scene(path.stem, SHORT, ".") for path in FILES]
    keys = [run.key for run in (*contest.runs(scenes), *switched_off.runs(scenes))]
    assert len(keys) == len(set(keys))


def test_figures_say_who_is_ahead_and_by_how_much():
    scene = Scene.read(contest.SCENARIOS / "flaky_node.yaml")
    short = loaded(scene).model_copy(update={"duration_s": 600.0})
    labels = ("feedback", "random")
    outcomes = {(scene.name, one, seed): simulate(short, one, seed) for one in labels for seed in (1, 2)}
    found = contest.compared(outcomes, scene.name, labels)
    median, least, most = found["oracle_ratio"]["feedback"]
    assert 0 < least <= median <= most <= 1
    lead = found["feedback_against_the_best_other"]
    assert lead["other"] == "random"
    assert (found["winner"] == "feedback") == (lead["lead"] > 0)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are missing")
def test_coordinates_are_those_of_the_hosts_that_the_scenario_draws():
    run = next(run for run in near.runs(SHARED) if run.label == near.TOP_1)
    world, hosts = World(loaded(run.scene)), drawn(delays(SHARED), run.seed, 9)
    distances = run.options.allocating.distances
    told = distances.ms(["site203", "site1"], [node.name for node in world.nodes])
    for row, site in ((0, 202), (1, 0)):
        paces = [world.course(site, node).rates[0].seconds_per_page for node in range(30)]
        assert np.allclose([(pace - 0.1) / 4.0 * 1000.0 for pace in paces], hosts.truth[site], atol=0.01)
        assert np.allclose(told[row, hosts.landmarks], hosts.truth[site, hosts.landmarks])
