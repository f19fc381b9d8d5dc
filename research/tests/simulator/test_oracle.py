"""The bound: what it is where that can be worked out by hand, and that nothing simulated beats it."""

from collections import deque
from statistics import mean

import numpy as np
import pytest

from research.simulator.hosts import Blocking
from research.simulator.linear import Program, solve
from research.simulator.oracle import bound
from research.simulator.outcome import Options
from research.simulator.simulate import simulate
from research.simulator.world import Block

HEAD = "nodes: [{name: a, slots: 2}]\nsites: [{name: x}]\n"


def test_plenty_of_work_is_bounded_by_slots(scenario):
    text = (
        "duration_s: 100\n" + HEAD + "pairs: [{seconds_per_page: 2, completion: 0.5}]\nwork: {products: 1000}"
    )
    assert bound(scenario(text), 1).pages == pytest.approx(2 * 100 / 2 * 0.5)


def test_little_work_is_bounded_by_tries(scenario):
    work = "work: {products: 10, hits: {dist: constant, mean: 10}, tries_per_page: 2}"
    text = "duration_s: 100000\n" + HEAD + "pairs: [{completion: 0.5}]\n" + work
    assert bound(scenario(text), 1).pages == pytest.approx(100 * 0.75)


def test_overhead_is_shared_by_the_largest_attempt(scenario):
    work = "work: {products: 1000, hits: {dist: constant, mean: 50}, chunk_pages: 10}"
    text = "duration_s: 100\n" + HEAD.replace("name: x", "name: x, overhead_s: 5") + work
    assert bound(scenario(text), 1).pages == pytest.approx(200 / 1.5)


def test_each_node_does_what_it_is_best_at(scenario):
    text = (
        "duration_s: 100\nnodes: [{name: a}, {name: b}]\nsites: [{name: x}, {name: y}]\npairs:\n"
        "  - {node: a, site: x, completion: 0.9}\n  - {node: a, site: y, completion: 0.8}\n"
        "  - {node: b, site: x, completion: 0.6}\n  - {node: b, site: y, completion: 0.1}\n"
        "work: {products: 1, hits: {dist: constant, mean: 100}, tries_per_page: 1}"
    )
    assert bound(scenario(text), 1).pages == pytest.approx(100 * 0.8 + 100 * 0.6)


def test_death_limits_and_blocks_bound(scenario):
    work = "work: {products: 1000}"
    dead = "duration_s: 100\n" + HEAD.replace("slots: 2", "slots: 2, dies_at_s: 30") + work
    assert bound(scenario(dead), 1).pages == pytest.approx(60)
    slow = "duration_s: 100\n" + HEAD.replace("name: x", "name: x, per_address_per_s: 0.3") + work
    assert bound(scenario(slow), 1).pages == pytest.approx(31)
    shared = "duration_s: 100\n" + HEAD.replace("name: x", "name: x, total_per_s: 0.3") + work
    assert bound(scenario(shared), 1).pages == pytest.approx(31)
    pairs = "pairs: [{block_after_pages: 5, block_window_s: 50, block_for_s: 100}]\n"
    assert bound(scenario("duration_s: 100\n" + HEAD + pairs + work), 1).pages == pytest.approx(13)


def most_pages(block, length_s):
    """The most pages that count in so many seconds, over all schedules that start pages at whole seconds."""
    best = {((), 0.0): 0}  # by starts in the window, and the end of the block: pages so far
    for now in range(length_s):
        reached = {}
        for (starts, until_s), pages in best.items():
            state = Blocking(deque(starts), until_s)
            for more in range(block.pages + 1):
                pages += more > 0 and state.answers(block, now)
                kept = tuple(at for at in state.starts if at > now + 1 - block.window_s)
                key = kept, max(state.until_s, 0.0)
                reached[key] = max(reached.get(key, 0), pages)
        best = reached
    return max(best.values())


@pytest.mark.parametrize("pages", [1, 2, 3])
@pytest.mark.parametrize("window_s", [1, 2, 4])
@pytest.mark.parametrize("for_s", [1, 3, 5, 11])
def test_no_schedule_beats_the_rate_of_a_block(pages, window_s, for_s):
    block = Block(pages, window_s, for_s)
    for length_s in (1, 3, 8, 23):
        assert most_pages(block, length_s) <= block.most_per_s * length_s + pages + 1e-9
    assert most_pages(block, 23) >= block.most_per_s * 23 - pages, "and one of them comes near it"


def test_what_comes_late_cannot_be_collected_early(scenario):
    text = "duration_s: 100\n" + HEAD + "work: {products: 1000, arrive_s: 60}"
    assert bound(scenario(text), 1).pages == pytest.approx(80)
    text = (
        "duration_s: 100\n"
        + HEAD
        + "work: {products: 10, hits: {dist: constant, mean: 50}, arrive_every_s: 10}"
    )
    assert bound(scenario(text), 1).pages <= 200


def test_the_makespan_of_work_that_is_done(scenario):
    work = "work: {products: 10, hits: {dist: constant, mean: 10}}"
    assert bound(scenario("until_done: true\n" + HEAD + work), 1).makespan_s == pytest.approx(50)
    one_task = "work: {products: 1, hits: {dist: constant, mean: 100}}"
    assert bound(scenario("until_done: true\n" + HEAD + one_task), 1).makespan_s == pytest.approx(100)
    faster = "pairs: [{}, {from_s: 20, seconds_per_page: 0.5}]\n"
    found = bound(scenario("until_done: true\n" + HEAD + faster + work), 1).makespan_s
    assert found == pytest.approx(35, abs=1.0)  # 40 pages in 20 s, then four a second


HARD = """
nodes: [{name: a, slots: 2}, {name: b, slots: 1, dies_at_s: 400, back_at_s: 500}, {name: c}]
sites: [{name: x, overhead_s: 2}, {name: y, total_per_s: 1.5, overhead_s: 1}, {name: z, overhead_s: 0.5}]
pairs:
  - {seconds_per_page: 0.7, completion: 0.7, fail: 0.05, hang: 0.02}
  - {node: a, site: x, from_s: 250, completion: 0.95, seconds_per_page: 0.3}
  - {node: b, site: z, block_after_pages: 9, block_window_s: 20, block_for_s: 60}
  - {node: c, site: "*", from_s: 300, seconds_per_page: 2.5}
"""


@pytest.mark.parametrize("strategy", ["random", "feedback"])
@pytest.mark.parametrize(("products", "shared"), [(10, "true"), (10, "false"), (30, "true")])
def test_no_strategy_beats_it_by_more_than_chance(scenario, strategy, products, shared):
    work = f"work: {{products: {products}, hits: {{mean: 15, sigma: 0.7}}, chunk_pages: 10}}\n"
    work += f"shared_slots: {shared}"
    pages = scenario("duration_s: 600\n" + HARD + work)
    spent = scenario("until_done: true\n" + HARD + work)
    for made in (pages, spent):
        ratios = [simulate(made, strategy, seed, Options()).oracle_ratio for seed in range(5)]
        assert mean(ratios) <= 1.01
        assert max(ratios) <= 1.05


def test_equations_and_bounds_of_a_program():
    program = Program(1, 2)
    program.gain = np.array([1.0, 2.0])
    row = program.rows(1, 3.0)
    program.enter(0, np.array([row, row]), np.array([1.0, 3.0]))
    program.enter(1, np.array([row, row]), 1.0)
    assert solve(program) == pytest.approx(-3.0)
