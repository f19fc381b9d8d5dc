"""Runs in many processes: the same figures as one by one, bounds worked out once, progress told."""

from __future__ import annotations

import io
from functools import partial

from research.bench.strategy_runs import contest, switched_off
from research.bench.strategy_runs.runs import Progress, Run, Scene, loaded, weight, workers
from research.simulator.outcome import Options
from research.simulator.simulate import simulate

SHORT = """
duration_s: 300
nodes: [{name: n, count: 3, slots: 2}]
sites: [{name: s, count: 2, overhead_s: 0.5}]
pairs: [{node: n1, site: s1, seconds_per_page: 0.4}]
work: {products: 60, hits: {dist: lognormal, mean: 10, sigma: 0.5}}
"""
UNTIL_DONE = SHORT.replace("duration_s: 300", "until_done: true").replace("products: 60", "products: 8")


def figures(outcome):
    return outcome.pages_collected, outcome.attempts, outcome.oracle_ratio, outcome.makespan_s


def test_runs_of_many_processes_are_those_of_one() -> None:
    scenes = Scene("short", SHORT, "."), Scene("done", UNTIL_DONE, ".")
    runs = [Run(scene, name, name, 1) for scene in scenes for name in ("feedback", "random")]
    runs.append(Run(scenes[0], "no bound", "hash", 1, Options(oracle=False)))
    told = io.StringIO()
    with workers(Progress(told)) as at_work:
        later = at_work.begin(partial(sum, (1, 2)))
        found = at_work.simulated(runs)
        assert later() == 3
    assert list(found) == [run.key for run in runs]
    for run in runs:
        alone = simulate(loaded(run.scene), run.strategy, run.seed, run.options)
        assert figures(found[run.key]) == figures(alone)
    assert found["short", "no bound", 1].oracle_ratio is None
    assert "runs: 5 of 5 done" in told.getvalue()
    assert "bounds: 2 of 2 done" in told.getvalue()  # four runs were compared with two


def test_progress_is_told_now_and_then_and_at_the_end() -> None:
    told, times = io.StringIO(), iter([0.0, 1.0, 5.0, 12.0, 13.0])
    progress = Progress(told, every_s=10.0, clock=lambda: next(times))
    for done in (1, 2, 3, 4):
        progress.tell("runs", done, 4)
    assert told.getvalue().splitlines() == [
        "runs: 1 of 4 done, 1 s",
        "runs: 3 of 4 done, 12 s",
        "runs: 4 of 4 done, 13 s",
    ]


def test_what_takes_longest_begins_first() -> None:
    scene = Scene("short", SHORT, ".")
    longer = Scene("longer", SHORT.replace("300", "3000"), ".")
    assert weight(Run(longer, "random", "random", 1)) > weight(Run(scene, "random", "random", 1))
    assert weight(Run(scene, "feedback", "feedback", 1)) > weight(Run(scene, "random", "random", 1))


def test_all_variants_with_one_strategy_off_are_run_once() -> None:
    scenes = [Scene(name, SHORT, ".") for name in contest.WINDOWED]
    keys = [run.key for run in (*contest.runs(scenes), *switched_off.runs(scenes))]
    assert len(keys) == len(set(keys))
    told = switched_off.with_all_on(dict.fromkeys(keys))  # type: ignore[arg-type]  # which runs, not their outcomes
    assert {label for _, label, _ in told} == {
        switched_off.ALL_ON,
        "allocation off",
        "modification off",
        "recall off",
    }
