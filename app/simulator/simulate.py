"""One call: a scenario, a strategy and a seed in, figures out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.simulator.engine import Engine
from app.simulator.oracle import Bound, bound
from app.simulator.outcome import Options, Outcome
from app.simulator.scenario import Scenario
from app.simulator.world import World, draw_work
from splitter.errors import InputError
from tasks.scheduling.decision import AllocationStrategy
from tasks.scheduling.strategies import ALLOCATION


def simulate(
    scenario: Scenario, strategy: str | AllocationStrategy, seed: int, options: Options | None = None
) -> Outcome:
    """Run a scenario in virtual time; the same figures for the same seed, but for the time decisions took.

    Args:
        scenario: validated.
        strategy: name of an allocation strategy, or one that is used once.
        seed: of the work and of all chance; the work is the same for every strategy.
        options: of the run.

    Raises:
        InputError: no strategy of that name.
    """
    options = options or Options()
    name = strategy if isinstance(strategy, str) else type(strategy).__name__
    world = World(scenario)
    engine = Engine(world, _chosen(strategy, options), draw_work(world, seed), seed, options)
    engine.run()
    settled = engine.settled
    makespan_s = engine.settled_s if settled or scenario.duration_s is None else scenario.duration_s
    median, high = (
        np.percentile(np.frombuffer(engine.decision_us), (50, 99)).tolist()
        if engine.decision_us
        else (0.0, 0.0)
    )
    names = [site.name for site in world.sites], [node.name for node in world.nodes]
    told = Outcome(
        strategy=name,
        seed=seed,
        pages_collected=engine.collected,
        pages_found=engine.found,
        makespan_s=makespan_s,
        goodput_pages_per_s=engine.collected / makespan_s if makespan_s > 0 else 0.0,
        recalls=engine.recalls,
        manual=engine.manual,
        oracle_pages=None,
        oracle_makespan_s=None,
        oracle_ratio=None,
        decisions=len(engine.decision_us),
        decision_us_p50=median,
        decision_us_p99=high,
        settled=settled,
        attempts=engine.attempts,
        given_up=engine.given_up,
        manual_pages=engine.manual_pages,
        pairs={(names[0][site], names[1][node]): totals for (site, node), totals in engine.pairs.items()},
        window_s=options.window_s,
        pages_over_time=tuple(engine.over_time),
        windows=engine.windows(),
    )
    return measured_by(bound(scenario, seed, told.manual_pages), told) if options.oracle else told


def measured_by(limit: Bound, outcome: Outcome) -> Outcome:
    """The outcome with the bound of its scenario and seed, and the share of it that was reached."""
    return replace(
        outcome,
        oracle_pages=limit.pages,
        oracle_makespan_s=limit.makespan_s,
        oracle_ratio=_ratio(limit, outcome),
    )


def _chosen(strategy: str | AllocationStrategy, options: Options) -> AllocationStrategy:
    if not isinstance(strategy, str):
        return strategy
    if strategy not in ALLOCATION:
        raise InputError(f"there is no strategy {strategy!r}: there is {', '.join(ALLOCATION)}")
    return ALLOCATION[strategy](replace(options.allocating, waits_hold_slots=True))


def _ratio(limit: Bound, outcome: Outcome) -> float | None:
    """Share of the bound that was reached; None where there is none to reach, or the work was never done."""
    if limit.pages is not None:
        return outcome.pages_collected / limit.pages if limit.pages > 0 else None
    if limit.makespan_s is None or not outcome.settled or outcome.makespan_s <= 0:
        return None
    return limit.makespan_s / outcome.makespan_s
