"""The command `reviewloop balance`: divide URLs over nodes, given files of nodes and of recorded runs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import click
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.cli.command import App, command
from app.cli.options import FILE, settings_of, store_there
from app.cli.render import Part, table, text
from app.files.table_files import csv_reason
from app.views.fields import extend_row
from app.views.words import translate
from splitter.catalog.wrong_values import explain_found_value, explain_wrong_value
from splitter.errors import InputError, Message, json_reason, system_reason
from tasks.scheduling.balance.curves import (
    AllocationResult,
    Curve,
    CurveError,
    Curves,
    evaluate,
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
_FIELDS = "node urls predicted_s even_s"
_FORMS = Message(
    'write {{"name", "setup_s", "seconds_per_url"}}, {{"name", "curve": [[n, seconds], ...]}} or {{"name", {names}}}',
    names=", ".join(json.dumps(name) for name in PARAMETERS),
)

_MOST = 1e300

RunTime = Curve | NodeParameters
"""The run time of a node: its curve, or its parameters for the learned model."""

_Number = Annotated[float, Field(strict=True, gt=-_MOST, lt=_MOST, allow_inf_nan=False)]
_Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
F = TypeVar("F", bound=BaseModel)


class _NamedNode(BaseModel):
    """A node in the file NODES.json. Subclasses add the ways to describe how long its work takes."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    name: Annotated[str, Field(min_length=1)]


class _LinearNode(_NamedNode):
    """A node that needs setup_s + n x seconds_per_url for n URLs."""

    setup_s: _Number
    seconds_per_url: _Number

    def get_run_time(self) -> RunTime:
        """Return the function that gives the node's seconds for a number of URLs."""
        return linear(self.setup_s, self.seconds_per_url)


class _CurveNode(_NamedNode):
    """A node whose run time is given by points (n URLs, seconds)."""

    curve: list[tuple[_Number, _Number]]

    def get_run_time(self) -> RunTime:
        """Return the function that gives the node's seconds for a number of URLs.

        Raises:
            CurveError: a number is wrong, no point has URLs, or the curve falls.
        """
        return piecewise(self.curve)


class _MachineParameters(BaseModel):
    """Parameters of a machine; `None` if a parameter is unknown."""

    cpu_cores: _Positive | None
    cpu_ghz: _Positive | None
    memory_gb: _Positive | None
    net_mbps: _Positive | None
    disk_mbps: _Positive | None


class _MachineNode(_NamedNode, _MachineParameters):
    """A node that is described by its machine. How long its work takes is learned from recorded runs."""

    def get_run_time(self) -> RunTime:
        """Return the parameters of the node's machine. Its run time is learned from them later."""
        return NodeParameters.read(self.model_dump())


class _RecordedRun(_MachineParameters):
    """A recorded run: the machine, the number of URLs, and the seconds that they took."""

    n: Annotated[int, Field(ge=1)]
    seconds: _Positive


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceView(AllocationResult):
    """A division of URLs over nodes.

    Attributes:
        feasible, published, fitness: values of the particle swarm's best particle; `None` for the exact solver.
        even: the division into equal parts, for comparison.
        learned: error of the learned run times; `None` if none were learned.
    """

    names: Sequence[str]
    solver: str
    feasible: bool | None
    published: tuple[int, ...] | None
    fitness: float | None
    even: AllocationResult
    learned: HeldOut | None


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
    divided = evaluate(curves, exact(curves, total) if best is None else best.allocation)
    return extend_row(
        BalanceView,
        divided,
        names=list(nodes),
        solver=solver,
        feasible=None if best is None else best.feasible,
        published=None if best is None else best.published,
        fitness=None if best is None else best.fitness,
        even=evaluate(curves, even(len(nodes), total)),
        learned=None if trained is None else trained.held_out,
    )


@text.register
def _(view: BalanceView) -> Iterator[Part]:
    figures = zip(view.names, view.allocation, view.predicted_s, view.even.predicted_s, strict=True)
    rows = [dict(zip(_FIELDS.split(), row, strict=True)) for row in figures]
    yield table(rows, _FIELDS)
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
    """Return samples from the attempts of a run, and its nodes that reported their machine. Raises InputError.

    Args:
        name: database of the run.
    """
    settings = settings_of(name)
    with store_there(settings) as store, store.read() as tx:
        machines = list_node_parameters(tx)
        runs = list_runs(tx, machines)
    known: dict[str, RunTime] = {node: NodeParameters.read(of) for node, of in machines.items()}
    if not known:
        raise InputError("{name}: no node of this run has reported what machine it runs on", name=name)
    samples = [Sample(NodeParameters.read(machines[run.node]), run.urls, run.seconds) for run in runs]
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
    """Read a file of nodes. Return the run time of each node by its name, in the order of the file.

    Raises:
        InputError: the file is wrong; the message names the place and the key.
    """
    listed = _read_json(path)
    if not isinstance(listed, list) or not listed:
        raise InputError("{path}: is no list of nodes; write [{{...}}, ...] with at least one", path=path)
    nodes: dict[str, RunTime] = {}
    for place, entry in enumerate(listed):
        where = f"{path}: [{place}]"
        node = _read_entry(_choose_form(where, entry), where, entry)
        if node.name in nodes:
            raise InputError(
                "{where}.name: {name!r} is there twice; give every node a name of its own",
                where=where,
                name=node.name,
            )
        try:
            nodes[node.name] = node.get_run_time()
        except CurveError as error:
            raise InputError("{where}: {error}", where=where, error=error) from None
    return nodes


def read_runs(path: Path) -> list[Sample]:
    """Read recorded runs from a file: a JSON list of objects, or CSV with a header.

    Each has the five parameters of a machine, `n` URLs and `seconds`. An unknown parameter is null or an empty cell.

    Raises:
        InputError: the file is wrong; the message names the place and the key.
    """
    if path.suffix.lower() == ".json":
        listed = _read_json(path)
        if not isinstance(listed, list):
            raise InputError("{path}: is no list of runs; write [{{...}}, ...]", path=path)
        return [_read_run(f"{path}: [{place}]", entry) for place, entry in enumerate(listed)]
    reader = csv.DictReader(io.StringIO(_read_text(path), newline=""))
    missing = [name for name in (*PARAMETERS, "n", "seconds") if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError("{path}:1: the header has no {missing}", path=path, missing=", ".join(missing))
    try:
        return [
            _read_run(f"{path}:{reader.line_num}:", {k: _read_cell(v) for k, v in row.items() if k})
            for row in reader
        ]
    except csv.Error as error:
        raise InputError(
            "{path}:{line}: is no CSV: {error}", path=path, line=reader.line_num, error=csv_reason(error)
        ) from None


def _choose_form(where: str, entry: object) -> type[_LinearNode | _CurveNode | _MachineNode]:
    """Return the class that fits the keys of an entry in the file of nodes.

    Args:
        where: place of the entry, for the message.

    Raises:
        InputError: the keys fit none of the three forms, or several.
    """
    keys = entry.keys() - {"name"} if isinstance(entry, dict) else set()
    given = [form for form in (_LinearNode, _CurveNode, _MachineNode) if keys & form.model_fields.keys()]
    if len(given) != 1:
        raise InputError(
            "{where} has {n} of the three forms; {forms}", where=where, n=len(given), forms=_FORMS
        )
    return given[0]


def _read_run(where: str, entry: object) -> Sample:
    run = _read_entry(_RecordedRun, where, entry)
    return Sample(NodeParameters.read(run.model_dump()), run.n, run.seconds)


def _read_entry(form: type[F], where: str, entry: object) -> F:
    try:
        return form.model_validate(entry)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
        explain = explain_wrong_value if detail["type"] == "missing" else explain_found_value
        raise InputError(
            "{where}{place}: {problem}", where=where, place=place, problem=explain(detail)
        ) from None


def _read_cell(text: str | Sequence[str] | None) -> object:
    if not isinstance(text, str) or not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _read_json(path: Path) -> Any:
    try:
        return json.loads(_read_text(path))
    except json.JSONDecodeError as error:
        raise InputError(
            "{path}:{line}:{column}: is no JSON: {problem}",
            path=path,
            line=error.lineno,
            column=error.colno,
            problem=json_reason(error),
        ) from None
    except RecursionError:
        raise InputError("{path}: is nested too deeply; {forms}", path=path, forms=_FORMS) from None


def _read_text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("{path}: is not UTF-8; save it as UTF-8", path=path) from None
    except OSError as error:
        raise InputError("{path}: cannot be read: {reason}", path=path, reason=system_reason(error)) from None
