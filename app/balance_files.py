"""Files of `reviewloop balance`: nodes to divide URLs over (NODES.json), and recorded runs to learn from."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from splitter.errors import InputError
from tasks.scheduling.balance.curves import Curve, CurveError, linear, piecewise
from tasks.scheduling.balance.parameters import PARAMETERS, NodeParameters, Sample

_LINEAR = ("setup_s", "seconds_per_url")
_KEYS = {"a line": _LINEAR, "a curve": ("curve",), "parameters": PARAMETERS}
_FORMS = (
    'write {"name", "setup_s", "seconds_per_url"}, {"name", "curve": [[n, seconds], ...]} or '
    f'{{"name", {", ".join(json.dumps(name) for name in PARAMETERS)}}}'
)

_MOST = 1e300

RunTime = Curve | NodeParameters
"""What is known of a node's run time: its curve, or parameters for the learned model."""


def read_nodes(path: Path) -> dict[str, RunTime]:
    """Nodes by name, in the file's order. Raises InputError with file, place and key."""
    listed = _json(path)
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{path}: is no list of nodes; write [{{...}}, ...] with at least one")
    nodes: dict[str, RunTime] = {}
    for place, entry in enumerate(listed):
        where = f"{path}: [{place}]"
        if not isinstance(entry, dict):
            raise InputError(f"{where} is no object; {_FORMS}")
        name = entry.get("name")
        if not isinstance(name, str) or not name.strip():
            raise InputError(f'{where}.name is {_shown(name)}; give every node a name: "name": "node1"')
        if name in nodes:
            raise InputError(f"{where}.name: {name!r} is there twice; give every node a name of its own")
        nodes[name] = _node(where, entry)
    return nodes


def read_runs(path: Path) -> list[Sample]:
    """Recorded runs: JSON, a list of objects, or CSV with a header; both with the five parameters, `n` and `seconds`.

    A parameter that is not known is null or an empty cell.

    Raises:
        InputError: with file, place and key.
    """
    if path.suffix.lower() == ".json":
        listed = _json(path)
        if not isinstance(listed, list):
            raise InputError(f"{path}: is no list of runs; write [{{...}}, ...]")
        return [_run(f"{path}: [{place}]", entry) for place, entry in enumerate(listed)]
    reader = csv.DictReader(io.StringIO(_text(path), newline=""))
    missing = [name for name in (*PARAMETERS, "n", "seconds") if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{path}:1: the header has no {', '.join(missing)}")
    try:
        return [
            _run(f"{path}:{reader.line_num}:", {k: _cell(v) for k, v in row.items() if k}) for row in reader
        ]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: is no CSV: {error}") from None


def _node(where: str, entry: Mapping[str, Any]) -> RunTime:
    given = [form for form, keys in _KEYS.items() if any(key in entry for key in keys)]
    if len(given) != 1:
        what = f"mixes {' with '.join(given)}" if given else "has none of the three forms"
        raise InputError(f"{where} {what}; {_FORMS}")
    for key in entry:
        if key not in ("name", *_KEYS[given[0]]):
            raise InputError(f"{where}.{key}: there is no such key; {_FORMS}")
    try:
        if given == ["a curve"]:
            return piecewise(_points(f"{where}.curve", entry["curve"]))
        if given == ["a line"]:
            return linear(*(_number(where, entry, key) for key in _LINEAR))
    except CurveError as error:
        raise InputError(f"{where}: {error}") from None
    return _parameters(where, entry)


def _points(where: str, points: object) -> list[tuple[float, ...]]:
    if not isinstance(points, list):
        raise InputError(f"{where} is {_shown(points)}; write [[n, seconds], ...]")
    for place, point in enumerate(points):
        if not isinstance(point, list) or len(point) != 2 or not all(_is_number(value) for value in point):
            raise InputError(f"{where}[{place}] is {_shown(point)}; write [n, seconds]")
    return [tuple(map(float, point)) for point in points]


def _run(where: str, entry: object) -> Sample:
    if not isinstance(entry, dict):
        raise InputError(f"{where} is no object; give {', '.join(PARAMETERS)}, n and seconds")
    urls, seconds = _number(where, entry, "n"), _number(where, entry, "seconds")
    if urls < 1 or urls != int(urls):
        raise InputError(f"{where}.n is {urls:g}; give a whole number, 1 or more")
    if not 0 < seconds < float("inf"):
        raise InputError(f"{where}.seconds is {seconds:g}; give a finite number above 0")
    return Sample(_parameters(where, entry), int(urls), seconds)


def _parameters(where: str, entry: Mapping[str, Any]) -> NodeParameters:
    values: dict[str, float | None] = {}
    for name in PARAMETERS:
        value = values[name] = None if name in entry and entry[name] is None else _number(where, entry, name)
        if value is not None and not 0 < value < float("inf"):
            raise InputError(
                f"{where}.{name} is {value:g}; give a finite number above 0, or null where unknown"
            )
    return NodeParameters.of(values)


def _number(where: str, entry: Mapping[str, Any], key: str) -> float:
    if key not in entry:
        raise InputError(f"{where}.{key} is missing; give a number")
    if not _is_number(entry[key]):
        raise InputError(f"{where}.{key} is {_shown(entry[key])}; give a number")
    return float(entry[key])


def _is_number(value: object) -> bool:
    # An integer beyond the range of floating point is no number here.
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
        raise InputError(f"{path}:{error.lineno}:{error.colno}: is no JSON: {error.msg}") from None
    except RecursionError:
        raise InputError(f"{path}: is nested too deeply; {_FORMS}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"
