"""`reviewloop simulate`: a scenario in virtual time, by the strategies that run for real."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.options import json_option, settings_of, store_there
from app.cli.output import percent, print_json, printed, say, seconds, table
from splitter.errors import InputError

if TYPE_CHECKING:
    from app.simulator.outcome import Outcome
    from app.simulator.scenario import Scenario

_TOLD = (
    "strategy",
    "seed",
    "pages_collected",
    "pages_found",
    "makespan_s",
    "goodput_pages_per_s",
    "recalls",
    "manual",
    "oracle_pages",
    "oracle_makespan_s",
    "oracle_ratio",
    "decisions",
    "decision_us_p50",
    "decision_us_p99",
)
"""Keys of the document, in their order; of the two bounds only the one that there is."""


@click.command()
@click.argument("scenario", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--strategy", default="feedback", show_default=True, help="Of allocation.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the work drawn and of all chance.")
@click.option(
    "--from",
    "recorded",
    metavar="RUN",
    help="Instead of SCENARIO: the rates and the work of a recorded run (its database: a file or a URL).",
)
@click.option("--sites", help="Catalog of the recorded run, for its hosts' limits.")
@click.option("--write", type=click.Path(dir_okay=False, path_type=Path), help="Save that scenario as YAML.")
@click.option(
    "--timeline",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write completion rates per (site, node) over time as CSV.",
)
@click.option(
    "--no-modification", is_flag=True, help="Leave quota and budget at the defaults of their bounds."
)
@click.option("--no-recall", is_flag=True, help="Give every failed subtask to a person at once.")
@json_option
def simulate(
    scenario: Path | None,
    strategy: str,
    seed: int,
    recorded: str | None,
    sites: str | None,
    write: Path | None,
    timeline: Path | None,
    no_modification: bool,
    no_recall: bool,
    as_json: bool,
) -> None:
    """Run scenarios in virtual time and compare with a proven bound.

    SCENARIO is a YAML file (docs/simulator.md). The bound is what a scheduler could expect at best that knows all
    rates in advance.

    \b
    Examples:
      reviewloop simulate paper2014.yaml --strategy random
      reviewloop simulate --from run.db --strategy feedback --write run.yaml
    """
    # Slow to import (numpy, scipy); a wrong option should be told at once.
    from app.simulator.load import load_scenario, write_scenario
    from app.simulator.outcome import Options
    from app.simulator.simulate import simulate as run

    if (scenario is None) == (recorded is None):
        raise InputError("name a scenario file, or a recorded run with --from: one of both")
    if write is not None and recorded is None:
        raise InputError("--write saves the scenario of a recorded run: name one with --from")
    if recorded is not None:
        played = _of_run(recorded, sites)
        say(_left_out(limits_known=sites is not None), "dim")
    else:
        assert scenario is not None
        played = load_scenario(scenario)
    if write is not None:
        write_scenario(played, write)
        say(f"The run's scenario is in {write}.", "dim")
    options = Options(modification=not no_modification, recall=not no_recall, timeline=timeline is not None)
    done = run(played, strategy, seed, options)
    if timeline is not None:
        _write_timeline(timeline, done)
    if as_json:
        print_json(
            {key: value for key, value in _told(done).items() if value is not None or key == "oracle_ratio"}
        )
    else:
        _print(done)


def _left_out(*, limits_known: bool) -> str:
    """What a recorded run took time for and its scenario does not."""
    limits = "" if limits_known else "the hosts' limits (name the run's catalog with --sites), "
    return (
        f"Left out of this scenario and of its bound: {limits}finding out what there is to crawl, splitting it into "
        "subtasks, rests of hosts, and the time a lease takes to reach a node. So the run itself took longer."
    )


def _told(done: Outcome) -> dict[str, object]:
    return {key: getattr(done, key) for key in _TOLD}


def _print(done: Outcome) -> None:
    out = printed()
    rows: list[tuple[str, str | int | float | None]] = [
        ("strategy", done.strategy),
        ("seed", done.seed),
        ("pages collected", done.pages_collected),
        ("of pages found", done.pages_found),
        ("makespan" if done.settled else "ended, with work left, after", seconds(done.makespan_s)),
        ("pages per second", done.goodput_pages_per_s),
        ("recalls", done.recalls),
        ("left to a person", done.manual),
    ]
    if done.oracle_pages is not None:
        rows.append(("bound: pages", round(done.oracle_pages)))
    if done.oracle_makespan_s is not None:
        rows.append(("bound: makespan", seconds(done.oracle_makespan_s)))
    rows += [
        ("share of the bound", percent(done.oracle_ratio)),
        ("decisions", done.decisions),
        ("microseconds a decision, median", done.decision_us_p50),
        ("microseconds a decision, 99 %", done.decision_us_p99),
    ]
    out.print(table(("", "value"), rows))


def _write_timeline(path: Path, done: Outcome) -> None:
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
    from app.simulator.recorded import RecordedNode, recorded_scenario
    from tasks.store import nodes
    from tasks.store.recorded import recorded_attempts, recorded_tasks

    settings = settings_of(database if "://" in database else f"sqlite:///{database}", sites)
    with store_there(settings) as store, store.read() as conn:
        known = [
            RecordedNode(row.node.name, frozenset(row.node.kinds), row.node.slots)
            for row in nodes.listed(conn)
        ]
        tasks, attempts = recorded_tasks(conn), recorded_attempts(conn)
    limits = {}
    if sites is not None:
        catalog = settings.catalog()
        limits = {name: site.limits or catalog.limits for name, site in catalog.sites.items()}
    return recorded_scenario(known, tasks, attempts, limits)
