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
from datetime import date, datetime
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic_core import to_json

from app.cli.main import cli
from app.files.exporting import columns
from app.run.setting_fields import Settings, as_text, may_be_in_file
from app.run.setting_values import PREFIX
from app.run.version import ROOT
from splitter.catalog.load import builtin_text
from splitter.catalog.model import Catalog
from tasks.store.queries.reviews import ReviewRow

_MADE = "<!-- Made by `make reference` from the code: change the texts there. -->\n"
_EXAMPLES = ("today", "lab-login", "paper-2014")
"""Built-in catalogs in which examples of keys are looked for, in this order."""
_LONGEST_EXAMPLE = 70
_NOT_EMPTY = {"minLength", "minItems", "minProperties"}
_TYPES = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
_BOUNDS = {
    "exclusiveMinimum": "above",
    "minimum": "at least",
    "exclusiveMaximum": "below",
    "maximum": "at most",
}


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


_SCHEMA = Catalog.model_json_schema()
_MODELS: Mapping[str, Any] = {
    "": _SCHEMA,
    **{f"#/$defs/{name}": one for name, one in _SCHEMA["$defs"].items()},
}
"""Schemas of the catalog's models and enums by their reference; the catalog's own is empty."""


def sites_yaml_text() -> str:
    """Return the reference of a catalog's keys."""
    places: dict[str, list[str]] = {}
    values: dict[str, list[Any]] = {}
    _visit("", "", [yaml.safe_load(builtin_text(name)) for name in _EXAMPLES], places, values)
    lines = [
        _MADE,
        "# Keys of sites.yaml\n",
        "Every key of a catalog. How they work with each other, with examples of whole entries: "
        "[catalog.md](catalog.md). "
        "`reviewloop sites check` names what is wrong in a file, by line and key; a key that is not here is "
        "refused.\n",
    ]
    for ref, at in places.items():
        model = _MODELS[ref]
        about, _, _ = model["description"].partition("\n\nAttributes:")
        lines += [f"## {at[0] or 'The file'}\n", f"{_plain(' '.join(about.split()))}\n"]
        if at[1:]:
            lines += [f"Also at {', '.join(f'`{place}`' for place in at[1:])}.\n"]
        lines += ["| key | type | default | meaning | example |", "|---|---|---|---|---|"]
        for key, meaning in attributes(model["description"]).items():
            for other, there in places.items():
                meaning = meaning.replace(f"`{other.removeprefix('#/$defs/')}`", f"`{there[0]}`")
            field = model["properties"][key]
            cells = (
                _type(field, places),
                "must be given" if key in model.get("required", ()) else _default(field),
                _plain(meaning),
                _example(key, field, values[ref]),
            )
            lines.append(f"| `{key}` | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def _visit(
    ref: str, place: str, given: list[Any], places: dict[str, list[str]], values: dict[str, list[Any]]
) -> None:
    """Record the places of a model and of the models below it, with the values that the given mappings have there."""
    places.setdefault(ref, []).append(place)
    values.setdefault(ref, []).extend(given)
    for key, field in _MODELS[ref]["properties"].items():
        if below := _below(field):
            found = [one[key] for one in given if one.get(key)]
            if named := "additionalProperties" in field:
                found = [entry for one in found for entry in one.values()]
            _visit(below, f"{place}.{key}{'.NAME' * named}".lstrip("."), found, places, values)


def _below(field: Mapping[str, Any]) -> str:
    """Return the reference to the model in a field, or in a mapping's values; empty if there is none."""
    refs = (one.get("$ref", "") for one in (field, *field.get("anyOf", ()), _values_of(field)))
    return next((ref for ref in refs if "properties" in _MODELS.get(ref or "none", {})), "")


def _values_of(field: Mapping[str, Any]) -> Mapping[str, Any]:
    found = field.get("additionalProperties")
    return found if isinstance(found, dict) else {}


def _type(field: Mapping[str, Any], places: Mapping[str, list[str]]) -> str:
    if "anyOf" in field:
        return " or ".join(_type(one, places) for one in field["anyOf"] if one.get("type") != "null")
    if (ref := field.get("$ref", "")) and ref in places:
        title = places[ref][0]
        return f"[{title}](#{title.replace('.', '').lower()})"
    if ref:
        return _type(_MODELS[ref], places)
    if choices := field.get("enum", [field["const"]] if "const" in field else []):
        return ", ".join(f"`{one}`" for one in choices)
    kind = field["type"]
    text = _TYPES.get(kind) or (
        f"list of {_type(field['items'], places)}s"
        if kind == "array"
        else f"name: {_type(_values_of(field), places)}"
    )
    limits = [f"{words} {field[name]:g}" for name, words in _BOUNDS.items() if name in field]
    return ", ".join((text, *limits, *["not empty"] * bool(_NOT_EMPTY & field.keys())))


def _default(field: Mapping[str, Any]) -> str:
    default = field.get("default")
    if isinstance(default, dict) and (below := _below(field)):
        usual = _MODELS[below]["properties"]
        default = {key: value for key, value in default.items() if value != usual[key].get("default", "")}
    return "none" if default in (None, "", [], {}) else f"`{_flow(default)}`"


def _example(key: str, field: Mapping[str, Any], given: list[Any]) -> str:
    """Return a short value that a shipped catalog has, else one that may stand there."""
    if _below(field) and "additionalProperties" in field:
        return ""  # a mapping of names has a section of its own
    had = [one[key] for one in given if key in one and one[key] not in (None, "", [], {})]
    had += field.get("examples", ())
    had += [True] if field.get("type") == "boolean" else [one for one in (field.get("default"),) if one]
    for one in (field, *field.get("anyOf", ())):
        had += _MODELS.get(one.get("$ref", "none"), one).get("enum", [one["const"]] if "const" in one else [])
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


def attributes(docstring: str) -> dict[str, str]:
    """Return the meanings in the `Attributes:` of a docstring by attribute, empty if there is none."""
    meanings = {}
    for names, text in _ATTRIBUTE.findall(docstring):
        about = " ".join(text.split())
        meanings.update(dict.fromkeys(names.split(", "), about[:1].upper() + about[1:]))
    return meanings


# --- columns of an export -----------------------------------------------------------------------------------


def exports_text() -> str:
    """docs/exports.md with today's table of columns between its marks; the rest is written by hand."""
    meanings = attributes(inspect.getdoc(ReviewRow) or "")
    kinds = {
        str: "text",
        int: "whole number",
        float: "number",
        datetime: "time (UTC)",
        date: "day",
        bool: "yes or no",
        tuple[str, ...]: "list of texts",
    }
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
