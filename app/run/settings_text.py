"""Describes each setting in text: the file `.env` of `reviewloop init`, and docs/settings.md."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from textwrap import wrap

from app.run.setting_values import written
from app.run.settings import MAY_BE_FILES, PREFIX, Settings

_NAMED = re.compile("`(" + "|".join(setting.name for setting in fields(Settings)) + ")`")
_ATTRIBUTE = re.compile(r"^    ([a-z0-9_, ]+): (.*(?:\n {8}.*)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingText:
    """A setting as text.

    Attributes:
        name: as an attribute of `Settings`.
        variable: its name in the environment.
        default: as it is written in a file; empty: none.
        in_file: a file with the value may be named instead (the variable's name with _FILE).
    """

    name: str
    variable: str
    default: str
    about: str
    in_file: bool


def attributes(of: type) -> Mapping[str, str]:
    """The meanings in the `Attributes:` of a class's docstring, by the attribute's name; an empty text: none."""
    said = {}
    for names, text in _ATTRIBUTE.findall(inspect.getdoc(of) or ""):
        about = " ".join(text.split())
        said.update(dict.fromkeys(names.split(", "), about[:1].upper() + about[1:]))
    return said


def _variable(named: re.Match[str]) -> str:
    return f"{PREFIX}{named[1].upper()}"


def setting_texts() -> Iterator[SettingText]:
    """Every setting, in the order of `Settings`."""
    about = attributes(Settings)
    for setting in fields(Settings):
        yield SettingText(
            name=setting.name,
            variable=f"{PREFIX}{setting.name.upper()}",
            default="" if setting.default is None else written(setting.default),
            about=_NAMED.sub(_variable, about[setting.name].replace("None:", "empty:")),
            in_file=setting.name in MAY_BE_FILES,
        )


def settings_text(without: Collection[str]) -> str:
    """A file of settings: each with what it does and its default, commented out; some left out, by name."""
    lines = []
    for setting in setting_texts():
        if setting.name not in without:
            lines += [f"# {line}" for line in wrap(setting.about, 110)]
            lines += [f"# {setting.variable}={setting.default}", ""]
    return "\n".join(lines)
