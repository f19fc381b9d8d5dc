"""`reviewloop simulate`: a document whose keys stay as they are, a table for people, clear errors."""

import csv
import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from app.cli.main import cli
from research.simulator.recorded import recorded_scenario, write_scenario
from research.simulator.recorded_rows import RecordedAttempt, RecordedTask
from research.simulator.scenario import NodeSpec, ScenarioError
from research.simulator.scenario_file import load_scenario
from research.simulator.world import World, draw_work

TEXT = """
duration_s: 300
nodes: [{name: a, slots: 2}, {name: b}]
sites: [{name: x, overhead_s: 1}]
pairs: [{node: a, completion: 0.8}]
work: {products: 100, hits: {mean: 10}}
"""
KEYS = [
    "strategy", "seed", "pages_collected", "pages_found", "makespan_s", "goodput_pages_per_s", "recalls", "manual",
    "oracle_pages", "oracle_ratio", "decisions", "decision_us_p50", "decision_us_p99",
]  # fmt: skip


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(TEXT, "utf-8")
    return path


def simulated(*arguments):
    return CliRunner().invoke(cli, ["simulate", *map(str, arguments)])


def test_the_document_has_the_keys_of_the_contract(scenario, tmp_path):
    timeline = tmp_path / "t.csv"
    done = simulated(scenario, "--strategy", "random", "--seed", 3, "--timeline", timeline, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert list(told) == KEYS
    assert (told["strategy"], told["seed"]) == ("random", 3)
    assert 0 < told["oracle_ratio"] <= 1.05
    with timeline.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["collected"]) for row in rows) == told["pages_collected"]
    assert {row["node"] for row in rows} == {"a", "b"}


def test_work_done_to_its_end_tells_the_other_bound(scenario):
    scenario.write_text(TEXT.replace("duration_s: 300", "until_done: true"), "utf-8")
    told = json.loads(simulated(scenario, "--json").stdout)
    assert list(told) == [key.replace("oracle_pages", "oracle_makespan_s") for key in KEYS]


def test_a_table_for_people(scenario):
    done = simulated(scenario, "--no-modification", "--no-recall")
    assert done.exit_code == 0
    assert "share of the proven bound" in done.output


def test_several_strategies_and_seeds_in_one_table_of_80_columns(scenario, monkeypatch):
    monkeypatch.setattr("app.cli.output._WIDTH_OF_FILES", 80)
    done = simulated(scenario, "--strategy", "feedback,random", "--strategy", "proximity", "--seeds", 2)
    assert done.exit_code == 0, done.output
    assert max(map(len, done.output.splitlines())) <= 80
    assert "…" not in done.output
    for said in ("feedback", "random", "proximity", "makespan", "seeds 1, 2"):
        assert said in done.output


def test_several_runs_are_one_object_a_line_each_as_if_alone(scenario):
    done = simulated(scenario, "--strategy", "random,feedback", "--seed", 3, "--seed", 1, "--json")
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(run["strategy"], run["seed"]) for run in runs] == [
        ("random", 3), ("random", 1), ("feedback", 3), ("feedback", 1),
    ]  # fmt: skip
    alone = json.loads(simulated(scenario, "--strategy", "feedback", "--seed", 1, "--json").stdout)
    measured = {"decision_us_p50", "decision_us_p99"}
    assert {**runs[3], **dict.fromkeys(measured)} == {**alone, **dict.fromkeys(measured)}


def test_a_shipped_scenario_is_known_by_its_name():
    options = ("--strategy", "random", "--json")
    by_name, by_path = (
        json.loads(simulated(which, *options).stdout)
        for which in ("everything_fails", "research/scenarios/everything_fails.yaml")
    )
    measured = dict.fromkeys(("decision_us_p50", "decision_us_p99"))
    assert by_name | measured == by_path | measured


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "one of both"),
        (["none.yaml"], "none.yaml"),
        (["--from", "none.db"], "no database"),
        (["SCENARIO", "--strategy", "best"], "no strategy 'best'"),
        (["SCENARIO", "--write", "x.yaml"], "--from"),
        (["SCENARIO", "--seeds", "2", "--timeline", "x.csv"], "--timeline"),
    ],
)
def test_wrong_input_ends_with_2(scenario, arguments, told):
    done = simulated(*(scenario if one == "SCENARIO" else one for one in arguments))
    assert done.exit_code == 2
    assert told in done.output


def attempt(minute, node, tried, collected, active_s, outcome="succeeded"):
    begun = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)
    ended = begun + timedelta(seconds=30)
    return RecordedAttempt(
        site="x",
        node=node,
        begun_at=begun,
        ended_at=ended,
        outcome=outcome,
        offered=tried,
        tried=tried,
        collected=collected,
        active_s=active_s,
    )


def test_a_recorded_run_gives_its_rates_from_each_change_on(tmp_path):
    attempts = [
        attempt(0, "a", 10, 9, 5.0),
        attempt(5, "a", 0, 0, 1.0, "failed"),
        attempt(10, "a", 10, 9, 5.0),
        attempt(100, "a", 10, 2, 20.0),
        attempt(110, "a", 10, 2, 20.0),
    ]
    nodes = [NodeSpec(name="a", slots=2), NodeSpec(name="b")]
    tasks = [RecordedTask("x", "meta", 12), RecordedTask("x", "meta", 8)]
    made = recorded_scenario(nodes, tasks, attempts)
    world = World(made)
    course = world.course(0, 0)
    first, last = course.rates[course.at(10.0)], course.rates[course.at(7000.0)]
    assert world.sites[0].spec.overhead_s == 1.0  # sizes don't differ: what the attempt without a page took
    assert course.from_s == (0.0, 6000.0)
    assert (first.seconds_per_page, last.seconds_per_page) == (0.4, 1.9)
    assert first.completion == pytest.approx(0.9, abs=0.02)
    assert last.completion == pytest.approx(0.2, abs=0.02)
    assert first.fail == pytest.approx(1 / 5, abs=1e-4)
    unknown = world.course(0, 1).rates[0]
    assert (unknown.seconds_per_page, unknown.completion) == (1.15, 0.55)
    assert [task.hits for task in draw_work(world, 1)] == [12, 8]
    write_scenario(made, tmp_path / "run.yaml")
    assert load_scenario(tmp_path / "run.yaml").model_dump() == made.model_dump()


def test_a_run_without_a_page_is_no_scenario():
    with pytest.raises(ScenarioError, match="no crawled page"):
        recorded_scenario([], [], [])
