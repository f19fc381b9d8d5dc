"""Reading catalogs: from a file, a text, or the ones that come with the project.

A catalog that is wrong is refused whole, with every problem named by file, line and dotted key. Its shape is
checked here against the models; what the shapes cannot say is in ``splitter.catalog.checks``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from splitter import yamlfile
from splitter.catalog.checks import problems_of
from splitter.catalog.model import Catalog
from splitter.catalog.names import BUILTIN
from splitter.errors import CatalogError
from splitter.yamlfile import Document, Place, Problem

_LINK = re.compile(r"[./\w-]+\.yaml")


def find_catalog(spec: str | None, default: Path) -> Catalog:
    """The catalog of a name or path.

    Args:
        spec: name of a built-in catalog, or a path; None: ``default``.
        default: path of the catalog used when none is named.

    Raises:
        CatalogError: there is none of that name, or it is wrong.
    """
    if spec is None:
        return load_catalog(default)
    return builtin(spec) if spec in BUILTIN else load_catalog(Path(spec))


def builtin(name: str) -> Catalog:
    """A catalog that comes with the project. Raises CatalogError for an unknown name."""
    return parse_catalog(builtin_text(name), f"{name}.yaml")


def builtin_text(name: str) -> str:
    """The text of a catalog that comes with the project. Raises CatalogError for an unknown name."""
    if name not in BUILTIN:
        raise CatalogError(f"no built-in catalog {name!r}; there is {', '.join(BUILTIN)}")
    data = files("splitter").joinpath("data")
    text = data.joinpath(f"{name}.yaml").read_text("utf-8")
    # A checkout without symbolic links has the path of the link's target as the file's text.
    return data.joinpath(text).read_text("utf-8") if _LINK.fullmatch(text) else text


def load_catalog(path: Path) -> Catalog:
    """Reads a catalog file.

    Raises:
        CatalogError: the file cannot be read, is not UTF-8, or is wrong.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        known = ", ".join(BUILTIN)
        reason = error.strerror or type(error).__name__
        raise CatalogError(f"{path}: {reason}; give a file or a built-in catalog ({known})") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CatalogError(f"{path}:{line}: not UTF-8; save the file as UTF-8") from error
    return parse_catalog(text, str(path))


def parse_catalog(text: str, origin: str) -> Catalog:
    """Reads a catalog from its text.

    Args:
        text: YAML with the keys of ``Catalog``.
        origin: name of the file, for messages.

    Raises:
        CatalogError: with every problem, one a line: ``origin:line: key: what is wrong; what is right``.
    """
    document = yamlfile.read(text, origin)
    try:
        catalog = Catalog.model_validate_json(document.json())
    except ValidationError as error:
        found = [_shape_problem(document, detail) for detail in error.errors(include_url=False)]
        yamlfile.raise_problems([*document.problems, *found], origin)
        raise AssertionError("a validation error has a problem") from error
    except (TypeError, ValueError) as error:  # keys no JSON can hold; named by line already
        yamlfile.raise_problems([*document.problems, Problem(1, "", str(error))], origin)
        raise
    found = [document.problem(place, message) for place, message in problems_of(catalog)]
    yamlfile.raise_problems([*document.problems, *found], origin)
    return catalog


def _shape_problem(document: Document, detail: ErrorDetails) -> Problem:
    place: Place = tuple(step for step in detail["loc"] if step != "[key]")
    kind = detail["type"]
    if kind == "extra_forbidden":
        return document.problem(place, _unknown_key(place))
    if kind == "missing":
        return document.problem(place, "missing; it has no default")
    return document.problem(place, _plain(kind, detail))


def _plain(kind: str, detail: ErrorDetails) -> str:
    given = detail["input"]
    if kind == "string_type" and isinstance(given, int | float):
        shown = str(given).lower() if isinstance(given, bool) else given
        return f"{shown!r} is not text; write it in quotes".replace("''", "'")
    if isinstance(given, Mapping | list):
        return f"{detail['msg']}; found a {'list' if isinstance(given, list) else 'mapping'}"
    return f"{detail['msg']}; found {'nothing' if given is None else repr(given)}"


def _unknown_key(place: Place) -> str:
    known = _keys_at(place[:-1])
    near = difflib.get_close_matches(str(place[-1]), known, n=1, cutoff=0.5)
    if near:
        return f"unknown key; did you mean '{near[0]}'?"
    return f"unknown key; known are {', '.join(known)}"


def _keys_at(place: Place) -> list[str]:
    """Names of the keys a mapping at a place may have."""
    shape: Any = Catalog
    for step in place:
        shape = _inside(shape, step)
    return list(shape.model_fields) if isinstance(shape, type) and issubclass(shape, BaseModel) else []


def _inside(shape: Any, step: str | int) -> Any:
    """The type of what stands under a key of a model or a dictionary of models; None where it has no keys."""
    if isinstance(shape, type) and issubclass(shape, BaseModel):
        found = shape.model_fields.get(str(step))
        shape = found.annotation if found else None
        models = [part for part in get_args(shape) if isinstance(part, type) and issubclass(part, BaseModel)]
        return models[0] if models and get_origin(shape) is not dict else shape
    return get_args(shape)[1] if get_origin(shape) is dict else None
