"""Reads scenario files (docs/simulator.md): the models of `scenario`, or every problem with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from research.simulator.scenario import ANY, PairSpec, Scenario, ScenarioError
from splitter.catalog import yamlfile
from splitter.catalog.yamlfile import CatalogFault, Document, Place
from splitter.errors import CatalogError

_BASE_S, _TRIPS = 0.1, 4.0
"""Seconds of a page: so many, and so many round trips."""


def load_scenario(path: Path) -> Scenario:
    """Read a scenario; its round trips, if any, become entries of `pairs`, before all others.

    Raises:
        ScenarioError: the file cannot be read or is wrong.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(f"scenario {path}: {error}; right would be a YAML file in UTF-8") from error
    return parse_scenario(text, str(path), path.parent)


def parse_scenario(text: str, origin: str, folder: Path) -> Scenario:
    """Read a scenario from its YAML text; `origin` names the file in messages, `folder` has the files it names.

    Raises:
        ScenarioError: with every problem, one a line.
    """
    try:
        document = yamlfile.read(text, origin)
    except CatalogError as error:
        raise ScenarioError(f"scenario {error}") from error
    try:
        scenario = Scenario.model_validate(document.data)
    except ValidationError as error:
        problems = [*document.problems, *(_problem(document, each) for each in error.errors())]
    else:
        problems = [*document.problems, *_strangers(document, scenario)]
    try:
        yamlfile.raise_problems(problems, origin)
    except CatalogError as error:
        raise ScenarioError(f"scenario {error}") from error
    return _with_round_trips(scenario, folder, origin)


def _problem(document: Document, error: Any) -> CatalogFault:
    place: Place = tuple(error["loc"])
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        message = f"no such key; known are {', '.join(_keys(place[0] if len(place) > 1 else None))}"
    elif error["type"] == "missing":
        message = "missing; it has no default"
    elif not isinstance(error["input"], dict | list):
        message += f" (got {error['input']!r})"
    return document.problem(place, message)


def _keys(part: str | int | None) -> list[str]:
    """Keys at the top of a scenario, or in one of its parts."""
    if part is None:
        return list(Scenario.model_fields)
    field = Scenario.model_fields[str(part)].annotation
    shapes = [field, *getattr(field, "__args__", ())]
    return next((list(shape.model_fields) for shape in shapes if hasattr(shape, "model_fields")), [])


def _strangers(document: Document, scenario: Scenario) -> list[CatalogFault]:
    """Names in `pairs` and `listed` that no node or site has."""
    names = {
        "node": {ANY, *(n for spec in scenario.nodes for n in (spec.name, *spec.names()))},
        "site": {ANY, *(n for spec in scenario.sites for n in (spec.name, *spec.names()))},
    }
    problems = []
    for index, pair in enumerate(scenario.pairs):
        for key, known in names.items():
            name = getattr(pair, key)
            if name not in known:
                right = ", ".join(sorted(known)[:8])
                message = f"there is no {key} {name!r}; right would be one of {right}"
                problems.append(document.problem(("pairs", index, key), message))
    for key, by_site in (("listed", scenario.work.hits.listed), ("vain", scenario.work.hits.vain)):
        problems += [
            document.problem(("work", "hits", key, site), "there is no such site")
            for site in by_site
            if site not in names["site"]
        ]
    return problems


def _with_round_trips(scenario: Scenario, folder: Path, origin: str) -> Scenario:
    """The scenario with seconds_per_page = 0.1 + 4 round trips of each pair."""
    if scenario.rtt_ms is None:
        return scenario
    matrix = read_round_trips(folder / scenario.rtt_ms.file)
    nodes = [name for spec in scenario.nodes for name in spec.names()]
    sites = [name for spec in scenario.sites for name in spec.names()]
    wanted = len(nodes) + len(sites)
    if wanted > len(matrix):
        raise ScenarioError(
            f"scenario {origin}: rtt_ms: {len(nodes)} nodes and {len(sites)} sites need {wanted} rows, "
            f"the matrix has {len(matrix)}; right would be fewer of them"
        )
    rows = np.arange(len(matrix))
    if scenario.rtt_ms.seed is not None:
        rows = np.random.default_rng(scenario.rtt_ms.seed).permutation(rows)
    trips_s = matrix[np.ix_(rows[: len(nodes)], rows[len(nodes) : wanted])] / 1000.0
    pairs = tuple(
        PairSpec(node=node, site=site, seconds_per_page=round(_BASE_S + _TRIPS * float(trips_s[i, j]), 6))
        for i, node in enumerate(nodes)
        for j, site in enumerate(sites)
    )
    return scenario.model_copy(update={"pairs": pairs + scenario.pairs, "rtt_ms": None, "_kept": {}})


def read_round_trips(path: Path) -> NDArray[np.float64]:
    """A square matrix of milliseconds. Raises ScenarioError."""
    try:
        matrix = np.loadtxt(path, ndmin=2)
    except (OSError, ValueError) as error:
        wrong = f"{error}; right would be a file in the scenario's folder, rows of numbers of equal length"
    else:
        if matrix.shape[0] == matrix.shape[1] and np.isfinite(matrix).all() and not (matrix < 0).any():
            return np.asarray(matrix, dtype=np.float64)
        wrong = "right would be as many rows as columns, none negative"
    raise ScenarioError(f"rtt_ms: {path}: {wrong}")
