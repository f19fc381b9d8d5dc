"""Reading catalogs: from a file, a text, or the ones that come with the project.

A catalog with a problem is refused whole, with every problem named by file, line and dotted key. Its shape is
checked here against the models; ``splitter.catalog.checks`` has all other checks.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from splitter.catalog import yamlfile
from splitter.catalog.checks import problems_of
from splitter.catalog.model import Catalog
from splitter.catalog.names import BUILTIN
from splitter.catalog.rules import Entry
from splitter.catalog.wrong_values import explain_found_value, explain_wrong_value
from splitter.catalog.yamlfile import CatalogFault, Document, Place
from splitter.errors import CatalogError, Message, WrongValue

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
        raise CatalogError(
            "no built-in catalog {name!r}; there is {known}", name=name, known=", ".join(BUILTIN)
        )
    data = files("splitter").joinpath("data")
    text = data.joinpath(f"{name}.yaml").read_text("utf-8")
    # A checkout without symbolic links has the path of the link's target as the file's text.
    return data.joinpath(text).read_text("utf-8") if _LINK.fullmatch(text) else text


def load_catalog(path: Path) -> Catalog:
    """Reads a catalog file.

    Raises:
        CatalogError: the file cannot be read, is not UTF-8, or is wrong.
    """
    advice = Message("give a file or a built-in catalog ({known})", known=", ".join(BUILTIN))
    return parse_catalog(yamlfile.read_text(path, advice), str(path))


def parse_catalog(text: str, origin: str) -> Catalog:
    """Reads a catalog from its text.

    Args:
        text: YAML with the keys of ``Catalog``.
        origin: name of the file, for messages.

    Raises:
        CatalogError: with every problem, one a line: ``origin:line: key: problem; a correct form``.
    """
    document = yamlfile.read(text, origin)
    try:
        catalog = Catalog.model_validate_json(document.json())
    except ValidationError as error:
        found = [_shape_problem(document, detail) for detail in error.errors(include_url=False)]
        yamlfile.raise_problems([*document.problems, *found], origin)
        raise AssertionError("a validation error has a problem") from error
    except (TypeError, ValueError) as error:  # keys no JSON can hold; named by line already
        yamlfile.raise_problems(document.problems or [CatalogFault(1, "", str(error))], origin)
        raise
    found = [document.problem(place, message) for place, message in problems_of(catalog)]
    yamlfile.raise_problems([*document.problems, *found], origin)
    return catalog


def _shape_problem(document: Document, detail: ErrorDetails) -> CatalogFault:
    place: Place = tuple(step for step in detail["loc"] if step != "[key]")
    kind = detail["type"]
    if kind == "extra_forbidden":
        models = [Catalog] if len(place) == 1 else Entry.__subclasses__()
        known = {name for model in models for name in model.model_fields}
        near = WrongValue("unknown key").suggest(str(place[-1]), known, 1)
        return document.problem(
            place, near or Message("unknown key; docs/sites-yaml.md lists the known ones")
        )
    if kind == "missing":
        return document.problem(place, explain_wrong_value(detail))
    if kind == "string_type" and isinstance(detail["input"], int | float):
        shown = json.dumps(detail["input"])
        return document.problem(place, Message("{shown} is not text; write it in quotes", shown=shown))
    return document.problem(place, explain_found_value(detail))
