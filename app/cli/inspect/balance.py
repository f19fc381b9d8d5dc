"""`reviewloop balance`: divide URLs over nodes, given files of nodes and of recorded runs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from app.cli.command import App, command
from app.cli.options import FILE, settings_of, store_there
from app.cli.output import short
from app.cli.render import Part, table, text
from app.views.fields import extend_row
from app.views.words import translate
from splitter.errors import InputError, Message, system_reason
from tasks.scheduling.balance.curves import (
    AllocationResult,
    Curve,
    CurveError,
    Curves,
    evaluated,
    even,
    linear,
    piecewise,
)
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.balance.learned import HeldOut, Trained, TrainingError, train
from tasks.scheduling.balance.parameters import PARAMETERS, NodeParameters, Sample
from tasks.scheduling.balance.swarm import ITERATIONS, swarm
from tasks.store.queries.pairs import list_node_parameters, list_runs

_MOST_URLS = 10**12
_LINEAR = ("setup_s", "seconds_per_url")
_KEYS = {"a line": _LINEAR, "a curve": ("curve",), "parameters": PARAMETERS}
_FORMS = Message(
    'write {{"name", "setup_s", "seconds_per_url"}}, {{"name", "curve": [[n, seconds], ...]}} or {{"name", {names}}}',
    names=", ".join(json.dumps(name) for name in PARAMETERS),
)

_MOST = 1e300

RunTime = Curve | NodeParameters
"""The run time of a node: its curve, or its parameters for the learned model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceView(AllocationResult):
    """A division of URLs over nodes.

    Attributes:
        feasible, published, fitness: values of the swarm's best particle; `None` for the exact solver.
        even: the division into equal parts, for comparison.
        learned: error of learned run times; `None` if none were learned.
    """

    names: Sequence[str]
    solver: str
    feasible: bool | None
    published: tuple[int, ...] | None
    fitness: float | None
    even: AllocationResult
    learned: HeldOut | None


@dataclass(frozen=True, slots=True)
class SharedUrls:
    """The URLs of a node and their run time, next to those of an even division."""

    node: str
    urls: int
    predicted_s: float
    even_s: float


@command(None, "balance", db=False)
@click.argument("nodes_file", metavar="[NODES.json]", required=False, type=FILE)
@click.option(
    "--total",
    type=click.IntRange(0, _MOST_URLS),
    required=True,
    metavar="N",
    help="Number of URLs to divide.",
)
@click.option(
    "--solver",
    type=click.Choice(("exact", "pso")),
    default="exact",
    show_default=True,
    help="exact: the shortest makespan. pso: the published particle swarm.",
)
@click.option(
    "--iterations",
    type=click.IntRange(1, 100_000),
    default=ITERATIONS,
    show_default=True,
    help="Iterations of the swarm.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of the swarm and of what is learned.",
)
@click.option(
    "--attempts",
    "runs_file",
    type=FILE,
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
def balance(
    _app: App,
    nodes_file: Path | None,
    total: int,
    solver: str,
    iterations: int,
    seed: int,
    runs_file: Path | None,
    recorded: str | None,
) -> BalanceView:
    """Divide URLs over nodes so that all of them are done early.

    \b
    NODES.json is a list; each node has one of these forms
      {"name", "setup_s", "seconds_per_url"}      setup + n x seconds, nothing for n = 0
      {"name", "curve": [[n, seconds], ...]}      straight lines; the last slope continues
      {"name", "cpu_cores", "cpu_ghz", "memory_gb", "net_mbps", "disk_mbps"}

    Run times of nodes with the last form are learned from --attempts; null means that a value is unknown.

    \b
    Examples:
      reviewloop balance nodes.json --total 500
      reviewloop balance nodes.json --total 500 --solver pso --seed 7 --json
      reviewloop balance machines.json --total 500 --attempts runs.csv
      reviewloop balance --from reviewloop.db --total 500
    """
    if runs_file is not None and recorded is not None:
        raise InputError("learn from a file with --attempts or from a recorded run with --from, not both")
    if nodes_file is None and recorded is None:
        raise InputError("name a file of nodes, or a recorded run with --from")
    samples, own = _load_recorded(recorded) if recorded is not None else ([], {})
    where = str(nodes_file or recorded)
    nodes = read_nodes(nodes_file) if nodes_file is not None else own
    trained = None
    if runs_file is not None:
        trained = _learn(str(runs_file), read_runs(runs_file), seed)
    elif recorded is not None:
        trained = _learn(recorded, samples, seed)
    curves = Curves([_curve(where, name, run, trained) for name, run in nodes.items()])
    best = swarm(curves, total, np.random.default_rng(seed), iterations) if solver == "pso" else None
    divided = evaluated(curves, exact(curves, total) if best is None else best.allocation)
    return extend_row(
        BalanceView,
        divided,
        names=list(nodes),
        solver=solver,
        feasible=None if best is None else best.feasible,
        published=None if best is None else best.published,
        fitness=None if best is None else best.fitness,
        even=evaluated(curves, even(len(nodes), total)),
        learned=None if trained is None else trained.held_out,
    )


@text.register
def _(view: BalanceView) -> Iterator[Part]:
    rows = map(SharedUrls, view.names, view.allocation, view.predicted_s, view.even.predicted_s)
    yield table(rows, "node urls predicted_s even_s")
    yield translate(
        "All done after {makespan_s:,.1f} s (variance {variance:,.4g} s^2); split evenly after {even_s:,.1f} s "
        "(variance {even_variance:,.4g} s^2).",
        makespan_s=view.makespan_s,
        variance=view.variance,
        even_s=view.even.makespan_s,
        even_variance=view.even.variance,
    )
    if view.published is not None and not view.feasible:
        yield translate(
            "The best particle was {allocation}, no allocation of {total}: repaired.",
            allocation=_join_counts(view.published),
            total=sum(view.allocation),
        )
    if view.learned is not None:
        yield translate(
            "Learned run times miss {error:.0%} at the median of {n} runs not seen (R^2 {r_squared:.2f}).",
            error=view.learned.median_relative_error,
            n=view.learned.runs,
            r_squared=view.learned.r_squared,
        )


def _load_recorded(name: str) -> tuple[list[Sample], dict[str, RunTime]]:
    """Return samples from a run's attempts, and its nodes with reported parameters. Raises InputError."""
    settings = settings_of(name)
    with store_there(settings) as store, store.read() as tx:
        machines = list_node_parameters(tx)
        runs = list_runs(tx, machines)
    known: dict[str, RunTime] = {node: NodeParameters.of(of) for node, of in machines.items()}
    if not known:
        raise InputError("{name}: no node of this run has reported what machine it runs on", name=name)
    samples = [Sample(NodeParameters.of(machines[run.node]), run.urls, run.seconds) for run in runs]
    return samples, known


def _learn(where: str, samples: Sequence[Sample], seed: int) -> Trained:
    try:
        return train(samples, seed)
    except TrainingError as error:
        raise InputError("{where}: {error}", where=where, error=error) from None


def _curve(path: str, name: str, run: RunTime, trained: Trained | None) -> Curve:
    if isinstance(run, Curve):
        return run
    if trained is None:
        raise InputError(
            "{path}: {name!r} has parameters, not a curve; name recorded runs to learn from with --attempts "
            "FILE",
            path=path,
            name=name,
        )
    return trained.curve(run)


def _join_counts(counts: tuple[int, ...]) -> str:
    shown = "/".join(map(str, counts[:10]))
    return shown if len(counts) <= 10 else f"{shown}/..."


def read_nodes(path: Path) -> dict[str, RunTime]:
    """Return run times by name of the node, in the file's order. Raises InputError with file, place and key."""
    listed = _json(path)
    if not isinstance(listed, list) or not listed:
        raise InputError("{path}: is no list of nodes; write [{{...}}, ...] with at least one", path=path)
    nodes: dict[str, RunTime] = {}
    for place, entry in enumerate(listed):
        where = f"{path}: [{place}]"
        if not isinstance(entry, dict):
            raise InputError("{where} is no object; {forms}", where=where, forms=_FORMS)
        name = entry.get("name")
        if not isinstance(name, str) or not name.strip():
            raise InputError(
                '{where}.name is {name}; give every node a name: "name": "node1"',
                where=where,
                name=_shown(name),
            )
        if name in nodes:
            raise InputError(
                "{where}.name: {name!r} is there twice; give every node a name of its own",
                where=where,
                name=name,
            )
        nodes[name] = _node(where, entry)
    return nodes


def read_runs(path: Path) -> list[Sample]:
    """Read recorded runs from a JSON list of objects or a CSV file with a header.

    Each run has the five parameters, `n` and `seconds`. An unknown parameter is null or an empty cell.

    Raises:
        InputError: a value is wrong; the message has file, place and key.
    """
    if path.suffix.lower() == ".json":
        listed = _json(path)
        if not isinstance(listed, list):
            raise InputError("{path}: is no list of runs; write [{{...}}, ...]", path=path)
        return [_run(f"{path}: [{place}]", entry) for place, entry in enumerate(listed)]
    reader = csv.DictReader(io.StringIO(_text(path), newline=""))
    missing = [name for name in (*PARAMETERS, "n", "seconds") if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError("{path}:1: the header has no {missing}", path=path, missing=", ".join(missing))
    try:
        return [
            _run(f"{path}:{reader.line_num}:", {k: _cell(v) for k, v in row.items() if k}) for row in reader
        ]
    except csv.Error as error:
        raise InputError(
            "{path}:{line}: is no CSV: {error}", path=path, line=reader.line_num, error=error
        ) from None


def _node(where: str, entry: Mapping[str, Any]) -> RunTime:
    given = [form for form, keys in _KEYS.items() if any(key in entry for key in keys)]
    if len(given) != 1:
        if not given:
            raise InputError("{where} has none of the three forms; {forms}", where=where, forms=_FORMS)
        raise InputError(
            "{where} mixes {given}; {forms}",
            where=where,
            given=", ".join(key for key in entry if key != "name"),
            forms=_FORMS,
        )
    for key in entry:
        if key not in ("name", *_KEYS[given[0]]):
            raise InputError(
                "{where}.{key}: there is no such key; {forms}", where=where, key=key, forms=_FORMS
            )
    try:
        if given == ["a curve"]:
            return piecewise(_points(f"{where}.curve", entry["curve"]))
        if given == ["a line"]:
            return linear(*(_number(where, entry, key) for key in _LINEAR))
    except CurveError as error:
        raise InputError("{where}: {error}", where=where, error=error) from None
    return _parameters(where, entry)


def _points(where: str, points: object) -> list[tuple[float, ...]]:
    if not isinstance(points, list):
        raise InputError("{where} is {points}; write [[n, seconds], ...]", where=where, points=_shown(points))
    for place, point in enumerate(points):
        if not isinstance(point, list) or len(point) != 2 or not all(_is_number(value) for value in point):
            raise InputError(
                "{where}[{place}] is {point}; write [n, seconds]",
                where=where,
                place=place,
                point=_shown(point),
            )
    return [tuple(map(float, point)) for point in points]


def _run(where: str, entry: object) -> Sample:
    if not isinstance(entry, dict):
        raise InputError(
            "{where} is no object; give {parameters}, n and seconds",
            where=where,
            parameters=", ".join(PARAMETERS),
        )
    urls, seconds = _number(where, entry, "n"), _number(where, entry, "seconds")
    if urls < 1 or urls != int(urls):
        raise InputError("{where}.n is {urls:g}; give a whole number, 1 or more", where=where, urls=urls)
    if not 0 < seconds < float("inf"):
        raise InputError(
            "{where}.seconds is {seconds:g}; give a finite number above 0", where=where, seconds=seconds
        )
    return Sample(_parameters(where, entry), int(urls), seconds)


def _parameters(where: str, entry: Mapping[str, Any]) -> NodeParameters:
    values: dict[str, float | None] = {}
    for name in PARAMETERS:
        value = values[name] = None if name in entry and entry[name] is None else _number(where, entry, name)
        if value is not None and not 0 < value < float("inf"):
            raise InputError(
                "{where}.{name} is {value:g}; give a finite number above 0, or null where unknown",
                where=where,
                name=name,
                value=value,
            )
    return NodeParameters.of(values)


def _number(where: str, entry: Mapping[str, Any], key: str) -> float:
    if key not in entry:
        raise InputError("{where}.{key} is missing; give a number", where=where, key=key)
    if not _is_number(entry[key]):
        raise InputError(
            "{where}.{key} is {value}; give a number", where=where, key=key, value=_shown(entry[key])
        )
    return float(entry[key])


def _is_number(value: object) -> bool:
    # An integer beyond the range of floats is refused.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


def _cell(text: str | Sequence[str] | None) -> object:
    if not isinstance(text, str) or not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except json.JSONDecodeError as error:
        raise InputError(
            "{path}:{line}:{column}: is no JSON: {problem}",
            path=path,
            line=error.lineno,
            column=error.colno,
            problem=error.msg,
        ) from None
    except RecursionError:
        raise InputError("{path}: is nested too deeply; {forms}", path=path, forms=_FORMS) from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("{path}: is not UTF-8; save it as UTF-8", path=path) from None
    except OSError as error:
        raise InputError("{path}: cannot be read: {reason}", path=path, reason=system_reason(error)) from None


def _shown(value: object) -> str:
    return short(json.dumps(value, ensure_ascii=False), 40)
