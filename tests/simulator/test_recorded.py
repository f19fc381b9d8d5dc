"""The scenario of a recorded run: overhead told apart from page time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulator.outcome import Options
from app.simulator.recorded import RecordedNode, overheads, recorded_scenario
from app.simulator.simulate import simulate
from tasks.store.recorded import RecordedAttempt, RecordedTask

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def attempt(tried: int, active_s: float, node: str = "a", outcome: str = "succeeded") -> RecordedAttempt:
    ended = BEGUN + timedelta(seconds=30)
    return RecordedAttempt(
        site="x",
        node=node,
        begun_at=BEGUN,
        ended_at=ended,
        outcome=outcome,
        offered=tried,
        tried=tried,
        collected=tried,
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


def test_page_times_that_vary_leave_it_near_the_truth() -> None:
    chance = Random(1)
    attempts = [
        attempt(n, 2.0 + sum(chance.expovariate(2.0) for _ in range(n)))
        for n in (chance.randint(1, 20) for _ in range(400))
    ]
    assert overheads(attempts)["x"] == pytest.approx(2.0, rel=0.1)


def test_it_is_never_negative_nor_more_than_half_of_an_attempt() -> None:
    assert overheads([attempt(1, 1.0), attempt(5, 9.0), attempt(9, 30.0)])["x"] == 0.0
    assert overheads([attempt(1, 10.0), attempt(5, 10.0), attempt(9, 10.0)])["x"] == 5.0
    assert overheads([attempt(4, 4.0), attempt(4, 5.0), attempt(4, 6.0)])["x"] == 0.0
    assert overheads([attempt(0, 3.0, outcome="failed")]) == {}


def test_a_slot_that_crawls_it_again_takes_what_it_took() -> None:
    attempts = [attempt(n, 1.5 + 0.25 * n) for n in (2, 6, 10, 14)]
    nodes = [RecordedNode("a", frozenset({"meta"}), 1)]
    tasks = [RecordedTask("x", "meta", n) for n in (2, 6, 10, 14)]
    again = simulate(recorded_scenario(nodes, tasks, attempts, {}), "feedback", 1, Options())
    took_s = sum(one.active_s for one in attempts)
    assert again.pages_collected == 32
    assert again.makespan_s == pytest.approx(took_s, rel=0.01)
    assert again.oracle_makespan_s == pytest.approx(took_s, rel=0.3)
