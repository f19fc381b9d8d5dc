"""The scenario of a recorded run: its work, overhead told apart from page time, completion, blocks."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.simulator.outcome import Options
from research.simulator.recorded import recorded_scenario
from research.simulator.recorded_blocks import blocks
from research.simulator.recorded_overheads import overheads
from research.simulator.recorded_rates import Completions
from research.simulator.recorded_rows import RecordedAttempt, RecordedTask
from research.simulator.scenario import NodeSpec
from research.simulator.simulate import simulate
from research.simulator.world import Block
from splitter.catalog.load import parse_catalog

NODE = NodeSpec(name="a")
CATALOG = """
version: 1
name: made
limits: {per_address_per_s: 100, total_per_s: 100}
rules: {list: {review: li, body: p}}
engines: {e: {kind: meta, url: "http://engine.cn/s", params: {q: "{query}"}, results: {hit: div, link: a@href, title: a}}}
sites: {x.cn: {engine: e, rules: list, quota: {min: 5, max: 50}, budget_s: {min: 10, max: 20}}}
"""
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def attempt(
    tried: int, active_s: float, node: str = "a", outcome: str = "succeeded", collected: int | None = None
) -> RecordedAttempt:
    ended = BEGUN + timedelta(seconds=30)
    return RecordedAttempt(
        site="x",
        node=node,
        begun_at=BEGUN,
        ended_at=ended,
        outcome=outcome,
        offered=tried,
        tried=tried,
        collected=tried if collected is None else collected,
        active_s=active_s,
    )


@given(st.floats(0.0, 5.0), st.floats(0.5, 3.0), st.floats(0.5, 3.0))
def test_attempts_of_several_sizes_tell_overhead_and_page_time_apart(
    overhead_s: float, slow_s: float, fast_s: float
) -> None:
    sizes = (10, 20, 30)
    attempts = [attempt(n, overhead_s + n * slow_s, "a") for n in sizes]
    attempts += [attempt(n, overhead_s + n * fast_s, "b") for n in sizes]
    assert overheads(attempts)["x"] == pytest.approx(overhead_s, abs=1e-3)


def test_it_is_never_negative_nor_more_than_half_of_an_attempt() -> None:
    assert overheads([attempt(1, 1.0), attempt(5, 9.0), attempt(9, 30.0)])["x"] == 0.0
    assert overheads([attempt(1, 10.0), attempt(5, 10.0), attempt(9, 10.0)])["x"] == 5.0
    assert overheads([attempt(4, 4.0), attempt(4, 5.0), attempt(4, 6.0)])["x"] == 0.0
    assert overheads([attempt(0, 3.0, outcome="failed")]) == {}


def test_result_pages_take_what_attempts_took_that_read_nothing_else() -> None:
    vain = [replace(attempt(0, 0.08), offered=0, requests=1) for _ in range(3)]
    paged = [replace(attempt(n, 0.08 + 0.5 * n), requests=n + 1) for n in (4, 5, 4)]
    again = [replace(attempt(2, 1.0), requests=2)]  # its result pages were read before
    catalog = parse_catalog(CATALOG, "sites.yaml")
    attempts = [replace(one, site="x.cn") for one in vain + paged + again]
    made = recorded_scenario([NODE], [RecordedTask("x.cn", "meta", 15)], attempts, catalog)
    assert made.engines[0].seconds_per_page == pytest.approx(0.08)
    assert made.pairs[-1].seconds_per_page == pytest.approx(0.5)
    assert (made.engines[0].name, made.engines[0].total_per_s) == ("engine.cn", 100)
    assert (made.quota.max, made.budget_s.max) == (50, 20)


def test_searches_that_find_nothing_are_attempts_and_tasks_not_read_are_like_those_that_were() -> None:
    attempts = [attempt(n, 1.5 + 0.25 * n) for n in (2, 6)]
    tasks = [
        RecordedTask("x", "meta", 2, vain=2),
        RecordedTask("x", "meta", 0, vain=1),
        RecordedTask("x", "meta", 0, vain=1, read=False),
    ]
    made = recorded_scenario([NODE], tasks, attempts)
    assert made.work.hits.listed == {"x": (2, 0, 2)}
    assert made.work.hits.vain == {"x": (2, 1, 2)}
    again = simulate(made, "feedback", 1, Options(oracle=False))
    assert (again.pages_collected, again.attempts, again.manual, again.settled) == (4, 7, 0, True)


def test_few_pages_of_a_pair_are_treated_as_few() -> None:
    by_pair = {("x", f"n{n}"): [attempt(40, 1.0, collected=8 * n)] for n in range(6)}
    few = [attempt(2, 1.0, collected=0)]
    found = Completions.of_pairs({**by_pair, ("x", "few"): few})
    assert found.fresh("x") == pytest.approx(0.5, abs=0.1)
    assert 0.1 < found.after("x", few) < 0.4
    assert found.after("x", by_pair["x", "n5"]) == pytest.approx(1.0, abs=0.05)


def test_what_a_host_bears_is_read_from_the_attempts_that_it_refused() -> None:
    """Pages are spread evenly over attempts of ten seconds: one a second, then a refusal."""

    def run_of(node: str, *tried: int, refused: int) -> list[RecordedAttempt]:
        found = []
        for place, pages in enumerate(tried):
            begun = BEGUN + timedelta(seconds=10 * place)
            last = refused if place == len(tried) - 1 else 0
            found.append(
                replace(
                    attempt(pages + last, 1.0, node),
                    begun_at=begun,
                    ended_at=begun + timedelta(seconds=10),
                    errors={"forbidden": last} if last else {},
                )
            )
        return found

    by_pair = {
        ("x", "a"): run_of("a", 9, 9, refused=2),
        ("x", "b"): run_of("b", 4, 4, 4, 12, refused=1),
        ("x", "c"): run_of("c", 2, 2, 2, refused=0),
        ("y", "a"): run_of("a", 9, 9, 9, refused=0),
    }
    found = blocks(by_pair)
    assert set(found) == {("x", "a"), ("x", "b"), ("x", "c"), ("x", "")}
    assert found["x", "a"] == Block(18, 20.0, 300.0)
    assert found["x", "b"].pages == 16
    assert found["x", "c"].pages == found["x", ""].pages == 17
    assert blocks({pair: of for pair, of in by_pair.items() if pair[0] == "y"}) == {}
