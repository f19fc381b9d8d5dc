"""`reviewloop simulate`: a scenario in virtual time, with the allocation strategies that production runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from app.cli.options import FILE, json_option, settings_of, store_there
from app.cli.output import Cell, make_console, print_json, say, table
from app.views.durations import seconds
from splitter.errors import InputError

if TYPE_CHECKING:
    from research.simulator.outcome import SimulatedRun
    from research.simulator.scenario import Scenario

_SCENARIOS = Path(__file__).parents[1] / "scenarios"
_LEFT_OUT = (
    "settled", "attempts", "given_up", "manual_pages", "windows",
)  # fmt: skip
"""Fields of a run that its document leaves out; of the two bounds it has only the one that there is."""


@click.command()
@click.argument("scenario", required=False)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    default=("feedback",),
    show_default=True,
    metavar="NAME[,NAME...]",
    help="Allocation strategy. Repeatable.",
)
@click.option(
    "--seed",
    "seeds",
    type=int,
    multiple=True,
    default=(0,),
    show_default=True,
    help="Seed of the work and of all chance. Repeatable.",
)
@click.option(
    "--seeds", "first_seeds", type=click.IntRange(1), metavar="N", help="Use seeds 1 to N instead of --seed."
)
@click.option(
    "--from",
    "recorded",
    metavar="RUN",
    help="Use the rates and the work of a recorded run instead of SCENARIO (its database: a file or a URL).",
)
@click.option("--sites", help="Catalog of the recorded run, for its hosts' limits.")
@click.option("--write", type=FILE, help="Save that scenario as YAML.")
@click.option("--timeline", type=FILE, help="Write completion rates per (site, node) over time as CSV.")
@click.option(
    "--no-modification",
    is_flag=True,
    help="Use the default upper bounds of quota and budget; no attempt ends early.",
)
@click.option("--no-recall", is_flag=True, help="Give every failed subtask to a person at once.")
@json_option
def simulate(
    scenario: str | None,
    strategies: tuple[str, ...],
    seeds: tuple[int, ...],
    first_seeds: int | None,
    recorded: str | None,
    sites: str | None,
    write: Path | None,
    timeline: Path | None,
    no_modification: bool,
    no_recall: bool,
    as_json: bool,
) -> None:
    """Run scenarios in virtual time and compare with a proven bound.

    SCENARIO is a YAML file (docs/simulator.md), or the name of a scenario in research/scenarios. The bound is
    the most that a scheduler could reach if it knew all rates in advance. Each strategy runs with each
    seed. --json prints one document, or one object per line if there are several runs.

    \b
    Examples:
      reviewloop simulate flaky_node --strategy random
      reviewloop simulate research/scenarios/blocks.yaml --strategy feedback,random --seeds 5
      reviewloop simulate --from run.db --strategy feedback --write run.yaml
    """
    # Slow to import (numpy, scipy); a wrong option should be refused at once.
    from research.simulator.outcome import Options
    from research.simulator.recorded import write_scenario
    from research.simulator.scenario_file import load_scenario
    from research.simulator.simulate import simulate as run

    if (scenario is None) == (recorded is None):
        raise InputError("name a scenario file, or a recorded run with --from: one of both")
    if write is not None and recorded is None:
        raise InputError("--write saves the scenario of a recorded run: name one with --from")
    if recorded is not None:
        played = _of_run(recorded, sites)
        say(_left_out(limits_known=sites is not None), "dim")
    else:
        assert scenario is not None
        shipped = _SCENARIOS / f"{scenario}.yaml"
        played = load_scenario(shipped if shipped.is_file() else Path(scenario))
    if write is not None:
        write_scenario(played, write)
        say(f"The run's scenario is in {write}.", "dim")
    options = Options(modification=not no_modification, recall=not no_recall, timeline=timeline is not None)
    names = list(dict.fromkeys(name.strip() for text in strategies for name in text.split(",")))
    drawn = list(dict.fromkeys(range(1, first_seeds + 1) if first_seeds else seeds))
    several = len(names) * len(drawn) > 1
    if several and timeline is not None:
        raise InputError("--timeline is of one run: name one strategy and one seed")
    done: dict[str, list[SimulatedRun]] = {}
    for name in names:
        for seed in drawn:
            one = run(played, name, seed, options)
            done.setdefault(name, []).append(one)
            if timeline is not None:
                _write_timeline(timeline, one)
            if as_json and several:
                click.echo(json.dumps(_document(one)))
            elif as_json:
                print_json(_document(one))
    if not as_json:
        _print(done, drawn)


def _left_out(*, limits_known: bool) -> str:
    """Costs of a recorded run that its scenario leaves out."""
    limits = "" if limits_known else "the hosts' limits (name the run's catalog with --sites), "
    return (
        f"Left out of this scenario and of its bound: {limits}finding out what there is to crawl, splitting it into "
        "subtasks, and the time a lease takes to reach a node. So the run itself took longer."
    )


def _document(done: SimulatedRun) -> dict[str, object]:
    values = {one.name: getattr(done, one.name) for one in fields(done) if one.name not in _LEFT_OUT}
    return {key: value for key, value in values.items() if value is not None or key == "oracle_ratio"}


def _print(done: Mapping[str, Sequence[SimulatedRun]], seeds: Sequence[int]) -> None:
    """A row for each strategy: the mean over the seeds, below it the lowest and the highest."""
    rows: list[list[Cell]] = [
        [name, *(_spread(runs, of, show) for of, show in _COLUMNS.values())] for name, runs in done.items()
    ]
    several = f"Mean of seeds {', '.join(map(str, seeds))}; below it the lowest and the highest."
    out = make_console()
    out.print(table(("strategy", *_COLUMNS), rows, caption=several if len(seeds) > 1 else ""))
    found = [one.pages_found for runs in done.values() for one in runs]
    out.print(
        f"{sum(found) / len(found):,.0f} pages found. of bound: share of the proven bound; manual: subtasks left to a "
        "person.",
        style="dim",
        soft_wrap=False,
    )
    for name, runs in done.items():
        if left := [str(one.seed) for one in runs if not one.settled]:
            out.print(f"{name}: ended with work left (seed {', '.join(left)}).", style="dim")


_COLUMNS: Mapping[str, tuple[Callable[[SimulatedRun], float | None], Callable[[float], str]]] = {
    "pages": (lambda one: one.pages_collected, lambda value: f"{value:,.0f}"),
    "of bound": (lambda one: one.oracle_ratio, lambda value: f"{value:.1%}"),
    "makespan": (lambda one: one.makespan_s, lambda value: seconds(value) or ""),
    "recalls": (lambda one: one.recalls, lambda value: f"{value:,.0f}"),
    "manual": (lambda one: one.manual, lambda value: f"{value:,.0f}"),
    "decision": (lambda one: one.decision_us_p50, lambda value: f"{value:,.0f} us"),
}


def _spread(
    runs: Sequence[SimulatedRun], of: Callable[[SimulatedRun], float | None], show: Callable[[float], str]
) -> Text:
    """Mean of the runs that have a value and, of several runs, the lowest and the highest below it."""
    values = [value for one in runs if (value := of(one)) is not None]
    if not values:
        return Text("-", style="dim")
    text = Text(show(sum(values) / len(values)), justify="right")
    if len(runs) > 1:
        text.append(f"\n{show(min(values))}\n{show(max(values))}", style="dim")
    return text


def _write_timeline(path: Path, done: SimulatedRun) -> None:
    """Raises InputError: the file cannot be written."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            out = csv.writer(file)
            out.writerow(("from_s", "site", "node", "offered", "tried", "collected", "completion"))
            for one in done.windows:
                seen = one.stats
                counts = (round(n) for n in (seen.offered, seen.tried, seen.collected))
                rate = "" if seen.completion is None else f"{seen.completion:.4f}"
                out.writerow((f"{one.from_s:g}", one.site, one.node, *counts, rate))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def _of_run(database: str, sites: str | None) -> Scenario:
    """The scenario of a recorded run. Raises InputError."""
    from research.simulator.recorded import scenario_of_run

    settings = settings_of(database, sites)
    with store_there(settings) as store, store.read() as tx:
        return scenario_of_run(tx, settings.catalog() if sites is not None else None)
