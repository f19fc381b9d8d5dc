"""`reviewloop balance`: how many URLs each node gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from app.balance_files import RunTime, read_nodes, read_runs
from app.cli.options import json_option, settings_of, store_there
from app.cli.output import print_json, printed, table
from splitter.errors import InputError
from tasks.scheduling.balance.curves import AllocationResult, Curve, Curves, evaluated, even
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.balance.learned import Trained, TrainingError, train
from tasks.scheduling.balance.parameters import PARAMETERS, NodeParameters, Sample
from tasks.scheduling.balance.swarm import ITERATIONS, swarm
from tasks.store.recorded import recorded_parameters, recorded_runs

_MOST_URLS = 10**12


@click.command()
@click.argument(
    "nodes_file", metavar="[NODES.json]", required=False, type=click.Path(dir_okay=False, path_type=Path)
)
@click.option(
    "--total", type=click.IntRange(0, _MOST_URLS), required=True, metavar="N", help="URLs to divide."
)
@click.option(
    "--solver",
    type=click.Choice(("exact", "pso")),
    default="exact",
    show_default=True,
    help="exact: the least makespan there is. pso: the published particle swarm.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, 100_000),
    default=ITERATIONS,
    show_default=True,
    help="Of the swarm.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Of the swarm, and of what is learned.",
)
@click.option(
    "--attempts",
    "runs_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=f"Recorded runs to learn run times from, for nodes given by parameters: CSV (or .json, a list of objects) "
    f"with {', '.join(PARAMETERS)}, n, seconds.",
)
@click.option(
    "--from",
    "recorded",
    metavar="RUN",
    help="Learn from the attempts of a recorded run instead (its database: a file or a URL); without NODES.json "
    "its own nodes are divided over.",
)
@json_option
def balance(
    nodes_file: Path | None,
    total: int,
    solver: str,
    iterations: int,
    seed: int,
    runs_file: Path | None,
    recorded: str | None,
    as_json: bool,
) -> None:
    """Divide URLs over nodes so that all is done early.

    \b
    NODES.json is a list; each node has one of
      {"name", "setup_s", "seconds_per_url"}      setup + n x seconds, nothing for n = 0
      {"name", "curve": [[n, seconds], ...]}      straight lines; the last slope goes on
      {"name", "cpu_cores", "cpu_ghz", "memory_gb", "net_mbps", "disk_mbps"}
                                                  learned from --attempts; null: not known

    \b
    Examples:
      reviewloop balance nodes.json --total 500
      reviewloop balance nodes.json --total 500 --solver pso --seed 7 --json
      reviewloop balance machines.json --total 500 --attempts runs.csv
      reviewloop balance --from reviewloop.db --total 500
    """
    if runs_file is not None and recorded is not None:
        raise InputError("learn from a file with --attempts, or from a recorded run with --from: one of both")
    if nodes_file is None and recorded is None:
        raise InputError("name a file of nodes, or a recorded run with --from")
    samples, own = _recorded(recorded) if recorded is not None else ([], {})
    where = str(nodes_file or recorded)
    nodes = read_nodes(nodes_file) if nodes_file is not None else own
    trained = None
    if runs_file is not None:
        trained = _learned(str(runs_file), read_runs(runs_file), seed)
    elif recorded is not None:
        trained = _learned(recorded, samples, seed)
    curves = Curves([_curve(where, name, run, trained) for name, run in nodes.items()])
    found: dict[str, Any] = {}
    if solver == "pso":
        best = swarm(curves, total, np.random.default_rng(seed), iterations)
        divided = evaluated(curves, best.allocation)
        found = {"feasible": best.feasible, "published": best.published, "fitness": best.fitness}
    else:
        divided = evaluated(curves, exact(curves, total))
    compared = evaluated(curves, even(len(nodes), total))
    learned = None if trained is None else trained.held_out
    if as_json:
        print_json(
            {
                **asdict(divided),
                "names": list(nodes),
                "solver": solver,
                **found,
                "even": asdict(compared),
                "learned": learned and asdict(learned),
            }
        )
        return
    _print_table(nodes, divided, compared)
    if found and not found["feasible"]:
        click.echo(
            f"The best particle was {_listed(found['published'])}, no allocation of {total}: repaired."
        )
    if learned is not None:
        click.echo(
            f"Learned run times miss {learned.median_relative_error:.0%} at the median of {learned.runs} runs not "
            f"seen (R^2 {learned.r_squared:.2f})."
        )


def _recorded(name: str) -> tuple[list[Sample], dict[str, RunTime]]:
    """What a run's attempts took, and its nodes that reported parameters. Raises InputError."""
    settings = settings_of(name if "://" in name else f"sqlite:///{name}")
    with store_there(settings) as store, store.read() as conn:
        machines, runs = recorded_parameters(conn), recorded_runs(conn)
    known: dict[str, RunTime] = {node: NodeParameters.of(of) for node, of in machines.items()}
    if not known:
        raise InputError(f"{name}: no node of this run has reported what machine it runs on")
    samples = [
        Sample(NodeParameters.of(machines[run.node]), run.urls, run.seconds)
        for run in runs
        if run.node in machines
    ]
    return samples, known


def _learned(where: str, samples: Sequence[Sample], seed: int) -> Trained:
    try:
        return train(samples, seed)
    except TrainingError as error:
        raise InputError(f"{where}: {error}") from None


def _curve(path: str, name: str, run: RunTime, trained: Trained | None) -> Curve:
    if isinstance(run, Curve):
        return run
    if trained is None:
        raise InputError(
            f"{path}: {name!r} has parameters, not a curve; name recorded runs to learn from with --attempts FILE"
        )
    return trained.curve(run)


def _print_table(nodes: Mapping[str, RunTime], divided: AllocationResult, compared: AllocationResult) -> None:
    rows = [
        (name, urls, seconds, other)
        for name, urls, seconds, other in zip(
            nodes, divided.allocation, divided.predicted_s, compared.predicted_s, strict=True
        )
    ]
    printed().print(table(("node", "URLs", "seconds", "seconds, even split"), rows))
    click.echo(
        f"All done after {divided.makespan_s:,.1f} s (variance {divided.variance:,.4g} s^2); "
        f"split evenly after {compared.makespan_s:,.1f} s (variance {compared.variance:,.4g} s^2)."
    )


def _listed(counts: tuple[int, ...]) -> str:
    shown = "/".join(map(str, counts[:10]))
    return shown if len(counts) <= 10 else f"{shown}/..."
