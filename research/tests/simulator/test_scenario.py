"""Scenario files: what they say, and what is told of wrong ones."""

from pathlib import Path

import numpy as np
import pytest

from research.simulator.recorded import write_scenario
from research.simulator.scenario import ScenarioError
from research.simulator.scenario_file import load_scenario, parse_scenario
from research.simulator.world import Block, World, chunks, draw_hits, draw_work

SHARED = Path(__file__).parents[4] / "shared" / "scenarios" / "paper2014.yaml"

SMALL = """
duration_s: 100
nodes: [{name: a, slots: 2}, {name: b, kinds: [meta, microblog], dies_at_s: 10, back_at_s: 20}]
sites: [{name: x, kind: meta}, {name: y, kind: microblog}]
pairs:
  - {node: "*", site: "*", seconds_per_page: 2.0, completion: 0.5}
  - {node: a, site: x, completion: 0.9}
  - {node: a, site: x, from_s: 50, completion: 0.1}
  - {node: "*", site: x, fail: 0.2}
  - {node: b, site: x, block_after_pages: 3, block_window_s: 6, block_for_s: 30}
work: {products: 3, hits: {dist: constant, mean: 4}}
"""


def test_later_entries_override_earlier_ones_where_they_match(scenario):
    world = World(scenario(SMALL))
    course = world.course(0, 0)
    assert course.from_s == (0.0, 50.0)
    assert [(r.seconds_per_page, r.completion, r.fail) for r in course.rates] == [
        (2.0, 0.9, 0.2),
        (2.0, 0.1, 0.2),
    ]
    assert [course.at(t) for t in (0.0, 49.9, 50.0, 99.0)] == [0, 0, 1, 1]
    assert world.course(0, 1).rates[0].block == Block(3, 6.0, 30.0)
    assert world.course(1, 0).rates[0].fail == 0.0
    assert world.course(1, 0) is world.course(1, 1)
    assert world.ever_blocks == [True, False]
    assert [world.eligible(1, node) for node in (0, 1)] == [False, True]
    assert world.nodes[1].alive(100.0) == [(0.0, 10), (20, 100.0)]


def test_without_a_match_a_pair_is_perfect(scenario):
    world = World(scenario("until_done: true\nnodes: [{name: a}]\nsites: [{name: x}]\nwork: {products: 1}"))
    assert tuple(world.course(0, 0).rates[0]) == (1.0, 1.0, 0.0, 0.0, 0.0, None)


def test_a_group_is_many_of_a_kind(scenario):
    world = World(
        scenario(
            "until_done: true\nnodes: [{name: fast, count: 3}, {name: slow}]\nsites: [{name: x}]\n"
            "pairs: [{node: fast, seconds_per_page: 0.5}]\nwork: {products: 1}"
        )
    )
    assert [node.name for node in world.nodes] == ["fast1", "fast2", "fast3", "slow"]
    assert [world.course(0, n).rates[0].seconds_per_page for n in range(4)] == [0.5, 0.5, 0.5, 1.0]


@pytest.mark.parametrize(
    ("wrong", "right", "told"),
    [
        (
            "completion: 0.9",
            "completion: 1.5",
            ["made.yaml:7", "pairs[1].completion", "less than or equal to 1"],
        ),
        ("site: x, completion: 0.9", "site: z, completion: 0.9", ["pairs[1].site", "no site 'z'", "x, y"]),
        ("duration_s: 100", "", ["one of duration_s"]),
        ("slots: 2", "slot: 2", ["nodes[0].slot", "no such key", "slots"]),
        ("name: y", "name: x", ["'x' is there twice"]),
        ("back_at_s: 20", "back_at_s: 5", ["comes back before it dies"]),
        ("work: {products: 3, hits: {dist: constant, mean: 4}}", "", ["work", "missing"]),
        ("dist: constant", "dist: normal", ["work.hits.dist"]),
    ],
)
def test_what_is_wrong_is_told_with_its_place(scenario, wrong, right, told):
    with pytest.raises(ScenarioError) as error:
        scenario(SMALL.replace(wrong, right))
    for part in told:
        assert part in str(error.value)


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ScenarioError, match=r"none\.yaml"):
        load_scenario(tmp_path / "none.yaml")


def test_what_is_written_reads_the_same(scenario, tmp_path):
    first = scenario(SMALL)
    write_scenario(first, tmp_path / "copy.yaml")
    again = load_scenario(tmp_path / "copy.yaml")
    assert again.model_dump() == first.model_dump()


def test_round_trips_give_seconds_per_page(tmp_path):
    np.savetxt(tmp_path / "rtt", [[0, 10, 100], [10, 0, 50], [100, 50, 0]])
    text = "until_done: true\nnodes: [{name: a}]\nsites: [{name: x}, {name: y}]\nwork: {products: 1}\n"
    world = World(parse_scenario(text + "rtt_ms: rtt", "t", tmp_path))
    assert [world.course(site, 0).rates[0].seconds_per_page for site in (0, 1)] == pytest.approx([0.14, 0.5])
    drawn = [
        World(parse_scenario(text + f"rtt_ms: {{file: rtt, seed: {n}}}", "t", tmp_path)) for n in (3, 3, 4)
    ]
    seconds = [[w.course(s, 0).rates[0].seconds_per_page for s in (0, 1)] for w in drawn]
    assert seconds[0] == seconds[1]
    with pytest.raises(ScenarioError, match="need 4 rows"):
        parse_scenario(text.replace("{name: a}", "{name: a, count: 2}") + "rtt_ms: rtt", "t", tmp_path)


@pytest.mark.parametrize(
    "dist", ["{dist: lognormal, mean: 40, sigma: 0.8}", "{dist: pareto, mean: 40, alpha: 2.5}"]
)
def test_hits_have_the_mean_that_was_asked_for(scenario, dist):
    text = f"until_done: true\nnodes: [{{name: a}}]\nsites: [{{name: x}}]\nwork: {{products: 50000, hits: {dist}}}"
    hits = draw_hits(World(scenario(text)), 1)
    assert hits.min() >= 1
    assert hits.mean() == pytest.approx(40, rel=0.03)


def test_work_is_the_same_for_a_seed_and_cut_into_chunks(scenario):
    world = World(scenario(SMALL))
    assert draw_work(world, 5) == draw_work(world, 5)
    assert len(draw_work(world, 5)) == 6
    assert chunks(50, 20) == [20, 20, 10]
    assert chunks(50, 0) == [50]


@pytest.mark.skipif(not SHARED.is_file(), reason="the shared scenarios are not here")
def test_the_papers_scenario_is_read():
    world = World(load_scenario(SHARED))
    assert (len(world.nodes), len(world.sites)) == (4, 5)
    assert any(rates.block is not None for rates in world.course(0, 1).rates)
