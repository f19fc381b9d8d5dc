"""Writes the references that are made from the code: `python -m research.tools.reference` (or `make reference`).

docs/cli.md from click's objects, docs/sites-yaml.md from the catalog's models with examples from the shipped catalogs,
docs/settings.md from the settings, the table of columns in docs/exports.md from the rows of an export.
tests/app/test_documents.py tells when one is no longer what the code says.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import click
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_json

from app.cli.main import cli
from app.files.exporting import columns
from app.run.setting_fields import Settings, as_text, may_be_in_file
from app.run.setting_values import PREFIX
from app.run.version import ROOT
from splitter.catalog.load import builtin_text
from splitter.catalog.model import Catalog
from tasks.store.content.reviews import ReviewRow

_MADE = "<!-- Made by `make reference` from the code: change the texts there. -->\n"
_EXAMPLES = ("today", "lab-login", "paper-2014")
"""Built-in catalogs in which examples of keys are looked for, in this order."""
_LONGEST_EXAMPLE = 70
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_BOUNDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}


# --- commands -----------------------------------------------------------------------------------------------


def commands(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command and all below it, with the words that call them."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None  # it is listed
            yield from commands(below, *path, name)


def cli_text() -> str:
    """The reference of the command line."""
    every = list(commands(cli, "reviewloop"))
    n = sum(not isinstance(one, click.Group) for _, one in every)
    lines = [
        _MADE,
        "# Commands\n",
        f"Every command of reviewloop and every option, {n} commands in all.\n",
        "Exit status of every command: 0 done, 1 the work failed, 2 the input was wrong; some texts below say more. "
        "Every command takes `-h`, `--help`.\n",
        *(f"- [{' '.join(path)}](#{'-'.join(path)}): {_first(one)}" for path, one in every[1:]),
    ]
    for path, command in every:
        lines += ["", f"## {' '.join(path)}", "", *_command(path, command)]
    return "\n".join(lines) + "\n"


def _first(command: click.Command) -> str:
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())


def _command(path: tuple[str, ...], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path))
    yield f"    {' '.join((*path, *command.collect_usage_pieces(context)))}\n"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield _as_written(paragraph) if paragraph.startswith("\b") else " ".join(paragraph.split())
        yield ""
    for param in command.params:
        told = param.get_help_record(context)
        if isinstance(param, click.Argument):
            yield f"- `{param.make_metavar(context)}`: {'needed' if param.required else 'may be left out'}; see above."
        elif told is not None:
            yield f"- `{told[0]}`: {told[1].strip()}"


def _as_written(paragraph: str) -> str:
    """A paragraph whose lines stay: indented ones as code."""
    lines = paragraph.splitlines()[1:]
    parts: list[str] = []
    for line, before in zip(lines, ["", *lines], strict=False):
        if line.startswith(" ") and not before.startswith(" "):
            parts.append("")
        parts.append(f"    {line.removeprefix('  ')}" if line.startswith(" ") else line)
    return "\n".join(parts)


# --- sites.yaml ---------------------------------------------------------------------------------------------


def sites_yaml_text() -> str:
    """The reference of a catalog's keys."""
    given = [yaml.safe_load(builtin_text(name)) for name in _EXAMPLES]
    places: dict[type[BaseModel], list[str]] = {}
    values: dict[type[BaseModel], list[Mapping[str, Any]]] = {}
    _visit(Catalog, "", given, places, values)
    lines = [
        _MADE,
        "# Keys of sites.yaml\n",
        "Every key of a catalog. How they work with each other, with examples of whole entries: "
        "[catalog.md](catalog.md). "
        "`reviewloop sites check --offline` names what is wrong in a file, by line and key; a key that is not here is "
        "refused.\n",
    ]
    for model, at in places.items():
        about = (inspect.getdoc(model) or "").partition("\n\nAttributes:")[0]
        lines += [f"## {_title(at[0])}\n", f"{_plain(' '.join(about.split()))}\n"]
        if at[1:]:
            lines += [f"Also at {', '.join(f'`{place}`' for place in at[1:])}.\n"]
        lines += ["| key | type | default | meaning | example |", "|---|---|---|---|---|"]
        meanings = {key: _plain(text) for key, text in attributes(model).items()}
        for key, field in model.model_fields.items():
            cells = (
                _type(field, places),
                _default(field),
                _named(meanings[key], places),
                _example(key, field, values[model]),
            )
            lines.append(f"| `{key}` | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _visit(
    model: type[BaseModel],
    place: str,
    given: list[Any],
    places: dict[type[BaseModel], list[str]],
    values: dict[type[BaseModel], list[Mapping[str, Any]]],
) -> None:
    """Note where a model and those below it stand, and what the given mappings have there."""
    places.setdefault(model, []).append(place)
    values.setdefault(model, []).extend(given)
    for key, field in model.model_fields.items():
        below, named = _model(field.annotation)
        if below is not None:
            found = [one[key] for one in given if one.get(key)]
            if named:
                found = [entry for one in found for entry in one.values()]
            _visit(below, f"{place}.{key}{'.NAME' * named}".lstrip("."), found, places, values)


def _named(text: str, places: Mapping[type[BaseModel], list[str]]) -> str:
    """A text with the places of models instead of their names."""
    for model, at in places.items():
        text = text.replace(f"`{model.__name__}`", f"`{at[0]}`")
    return text


def _model(annotation: Any) -> tuple[type[BaseModel] | None, bool]:
    """The model in a type, and whether it is one of a mapping's values."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, False
    found = (_model(part)[0] for part in get_args(annotation))
    return next((one for one in found if one is not None), None), get_origin(annotation) is dict


def _title(place: str) -> str:
    return place or "The file"


def _type(field: FieldInfo, places: Mapping[type[BaseModel], list[str]]) -> str:
    limits = [
        f"{words} {getattr(one, name):g}"
        for one in field.metadata
        for name, words in _BOUNDS.items()
        if getattr(one, name, None) is not None
    ]
    limits += ["not empty"] * any(hasattr(one, "min_length") for one in field.metadata)
    return ", ".join((_type_text(field.annotation, places), *limits))


def _type_text(annotation: Any, places: Mapping[type[BaseModel], list[str]]) -> str:
    below, named = _model(annotation)
    if below is not None:
        title = _title(places[below][0])
        anchor = re.sub(r"[^\w-]", "", title.replace(" ", "-")).lower()
        link = f"[{title}](#{anchor})"
        return f"name: {link}" if named else link
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return ", ".join(f"`{one.value}`" for one in annotation)
    parts = [part for part in get_args(annotation) if part not in (NoneType, ...)]
    if get_origin(annotation) is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    inside = [_type_text(part, places) for part in parts]
    if get_origin(annotation) is tuple:
        return f"list of {inside[0]}s"
    return f"name: {inside[1]}" if get_origin(annotation) is dict else " or ".join(inside)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    default = field.get_default(call_default_factory=True)
    if isinstance(default, BaseModel):
        default = default.model_dump(exclude_defaults=True)
    return "none" if default in (None, "", (), {}) else f"`{_flow(default)}`"


def _example(key: str, field: FieldInfo, given: list[Mapping[str, Any]]) -> str:
    """A short value that a shipped catalog has, else one that may stand there."""
    if all(_model(field.annotation)):
        return ""  # a mapping of names has a section of its own
    had = [one[key] for one in given if key in one and one[key] not in (None, "", [], {})]
    had += field.examples or []
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    had += [True] if field.annotation is bool else [default] if default else []
    had += [choice for part in get_args(field.annotation) for choice in get_args(part)]
    texts = [f"{key}: {_flow(one)}" for one in had]
    return next((f"`{text}`" for text in texts if len(text) <= _LONGEST_EXAMPLE), "")


def _flow(value: object) -> str:
    """A value as YAML in one line."""
    plain = json.loads(re.sub(r"\.0\b", "", to_json(value).decode()))
    text = yaml.safe_dump(plain, default_flow_style=True, allow_unicode=True, sort_keys=False, width=1000)
    return text.removesuffix("...\n").strip()


def _plain(text: str) -> str:
    """A docstring's text for readers of YAML."""
    text = (
        text.replace("``", "`")
        .replace("None:", "left out:")
        .replace("False", "false")
        .replace("True", "true")
    )
    return re.sub(r" ?\(see `splitter\.[\w.]+`\)", "", text)


# --- settings -----------------------------------------------------------------------------------------------


def settings_text() -> str:
    """The reference of the settings."""
    lines = [
        _MADE,
        "# Settings\n",
        "Each is a variable of the environment, or a line NAME=VALUE of the file `.env` in the folder a command runs "
        "in (`reviewloop init` writes one). A command's option comes before the variable, the variable before the "
        "file, the file before the default. `reviewloop doctor` names variables that nothing reads. What is marked "
        "*File* may be given as NAME_FILE, the path of a file that holds it, so that a secret is in no environment.\n",
        "Besides: `REVIEWLOOP_LOGIN_...` ([sign-in.md](sign-in.md)), and for the tests `REVIEWLOOP_TEST_...`.\n",
        "| variable | default | meaning |",
        "|---|---|---|",
    ]
    for name, field in Settings.model_fields.items():
        default = as_text(field.default)
        about = " ".join((field.description or "").split()) + (" *File.*" if may_be_in_file(field) else "")
        lines.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else 'none'} | {about} |")
    return "\n".join(lines) + "\n"


_ATTRIBUTE = re.compile(r"^    ([a-z0-9_, ]+): (.*(?:\n {8}.*)*)", re.MULTILINE)


def attributes(of: type) -> dict[str, str]:
    """Return the meanings in the `Attributes:` of a class's docstring by attribute, empty if there is none."""
    meanings = {}
    for names, text in _ATTRIBUTE.findall(inspect.getdoc(of) or ""):
        about = " ".join(text.split())
        meanings.update(dict.fromkeys(names.split(", "), about[:1].upper() + about[1:]))
    return meanings


# --- columns of an export -----------------------------------------------------------------------------------


def exports_text() -> str:
    """docs/exports.md with today's table of columns between its marks; the rest is written by hand."""
    meanings = attributes(ReviewRow)
    kinds = {str: "text", int: "whole number", float: "number", datetime: "time (UTC)"}
    rows = [
        f"| `{name}` | {kinds[kind]} | {meanings[name].replace('None', 'empty')} |"
        for name, kind in columns(ReviewRow).items()
    ]
    before, begin, rest = (ROOT / "docs/exports.md").read_text("utf-8").partition("<!-- columns -->\n")
    _, end, after = rest.partition("<!-- end -->")
    return before + begin + "\n".join(("| column | type | holds |", "|---|---|---|", *rows, "")) + end + after


TEXTS = {
    "docs/cli.md": cli_text,
    "docs/sites-yaml.md": sites_yaml_text,
    "docs/settings.md": settings_text,
    "docs/exports.md": exports_text,
}
"""What makes each file."""


if __name__ == "__main__":
    for name, made in TEXTS.items():
        Path(ROOT / name).write_text(made(), "utf-8")
