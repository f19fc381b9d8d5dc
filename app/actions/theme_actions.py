"""Actions of people on the themes file, recorded in the audit log. Used by the command and the dashboard.

The file is edited as text, so that comments and the order of lines stay.
"""

from __future__ import annotations

import json
import os
import re
import stat
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from app.files.exporting import whole_file
from app.views.theme_names import name_theme
from app.views.words import translate
from splitter.errors import InputError, system_reason
from tasks.reading.judge.theme_file import ThemeFile, builtin_text, find_problem, parse_themes
from tasks.store.queue import notices
from tasks.store.sql.database import Store, try_lock

_LOCK = "themes file"
_LOCK_S = 2.0
_LONGEST_LINE = 110
_PLAIN = re.compile(r"[\u4e00-\u9fff][\u4e00-\u9fffA-Za-z0-9]*(?:\.\.[\u4e00-\u9fffA-Za-z0-9]+)?")
"""Terms that need no quotes in YAML."""
_ID = re.compile(r"[a-z][a-z0-9_]{0,39}")
_FILE_MODE = 0o644


@dataclass(frozen=True, slots=True)
class NewTheme:
    """The Chinese and the English name of a theme to add."""

    zh: str
    en: str

    @classmethod
    def read(cls, zh: str | None, en: str | None) -> NewTheme:
        """Return the names that a person gave, without blanks around them. Raises InputError if one is missing."""
        if not (zh and zh.strip() and en and en.strip()):
            raise InputError("a new theme needs its names in Chinese and in English")
        return cls(zh.strip(), en.strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedTerm:
    """A term that was added to a theme of a product category in a themes file."""

    theme: str
    term: str
    category: str
    file: str

    @property
    def sentence(self) -> str:
        """Return a sentence for people about what was done."""
        return translate(
            "{theme} has the term {term} now, in {file}; `reviewloop judge` reads the stored reviews again.",
            theme=name_theme(self.theme),
            term=self.term,
            file=self.file,
        )


def adopt_term(
    store: Store, path: Path, category: str, theme: str, term: str, who: str, new: NewTheme | None = None
) -> AdoptedTerm:
    """Add a term to a theme in a themes file, and record it. If the file is missing, copy the built-in themes first.

    Args:
        theme: id of the theme.
        new: names of the theme, if it must be added first.

    Raises:
        InputError, CatalogError: the term or theme is wrong, or the file can't be changed. The file stays as it is.
    """
    given, path = path, path.resolve()
    if path == Path(str(files("tasks.reading.judge"))).joinpath("themes.yaml").resolve():
        raise InputError(
            "{path} comes with reviewloop; name a copy of it in REVIEWLOOP_THEMES", path=str(path)
        )
    with store.begin() as tx:
        if not try_lock(tx, _LOCK, _LOCK_S):
            raise InputError("somebody is changing the themes file; try again")
        text, mode = _read(path)
        parse_themes(text, str(path))
        edited = add_term(text, category, theme, term, new)
        notices.record_action(tx, who, "add term", theme, term=term, file=str(path))
        with whole_file(path) as file:
            os.fchmod(file.fileno(), mode)
            file.write(edited.encode())
    return AdoptedTerm(theme=theme, term=term, category=category, file=str(given))


def _read(path: Path) -> tuple[str, int]:
    """Return the text of a file and its permission bits. Raises InputError."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        return text, stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return builtin_text(), _FILE_MODE
    except OSError as error:
        raise InputError(
            "{path} cannot be read: {reason}", path=str(path), reason=system_reason(error)
        ) from error
    except UnicodeDecodeError as error:
        raise InputError("{path} is not UTF-8; save it as UTF-8", path=str(path)) from error


def add_term(text: str, category: str, theme: str, term: str, new: NewTheme | None = None) -> str:
    """Return the text of a themes file with the term added.

    Raises:
        InputError: the term or theme is wrong or exists already, or the layout of the text can't be edited.
    """
    problem = find_problem(term)
    if problem is not None:
        raise InputError("{problem}", problem=problem)
    if new is not None and not _ID.fullmatch(theme):
        raise InputError(
            "{theme!r}: write an id of small letters, digits and _, such as pet_hair", theme=theme[:60]
        )
    before = parse_themes(text, "themes.yaml").model_dump(by_alias=True, mode="json")
    if new is None and theme not in before[category]:
        raise InputError(
            "{category} has no theme {theme!r}; there are {known}",
            category=category,
            theme=theme[:60],
            known=", ".join(before[category]),
        )
    wanted = before[category].setdefault(theme, {"zh": "", "en": "", "terms": [], "except": []})
    if new is None and term in wanted["terms"]:
        raise InputError("{theme} has the term {term!r} already", theme=theme, term=term)
    if new is not None and wanted["zh"]:
        raise InputError(
            "{category} has a theme {theme!r} already; choose it", category=category, theme=theme
        )
    wanted["terms"].append(term)
    if new is not None:
        wanted |= {"zh": new.zh, "en": new.en}
    edited = _edit(text, category, theme, term, new)
    if parse_themes(edited, "themes.yaml") != ThemeFile.model_validate_json(json.dumps(before)):
        raise InputError("the file is written in a form that is not edited here; add the term by hand")
    return edited


def _edit(text: str, category: str, theme: str, term: str, new: NewTheme | None) -> str:
    """Return the text with a term or a theme inserted."""
    end = "\r\n" if "\r\n" in text else "\n"
    themes = _value(yaml.compose(text, Loader=yaml.SafeLoader), category)
    if new is not None:
        lines = [f"zh: {_quote(new.zh)}", f"en: {_quote(new.en)}", f"terms: [{_quote(term)}]"]
        if not isinstance(themes, yaml.MappingNode) or not themes.value:
            rest = [f"  {theme}:", *(f"    {line}" for line in lines)]
            return _join_lines(text, len(text), [f"{category}:", *rest], end)
        indent = " " * themes.start_mark.column
        step = "  "
        rest = [f"{indent}{theme}:", *(f"{indent}{step}{line}" for line in lines)]
        return _join_lines(text, _end_of(themes), rest, end)
    entry = _value(themes, theme)
    terms = _value(entry, "terms")
    if not isinstance(terms, yaml.SequenceNode):
        begin = entry.start_mark
        if entry.flow_style:
            return _insert(text, begin.index + 1, f"terms: [{_quote(term)}], ")
        return _insert(text, begin.index, f"terms: [{_quote(term)}]{end}{' ' * begin.column}")
    if not terms.flow_style:
        line = f"{' ' * terms.start_mark.column}- {_quote(term)}"
        return _join_lines(text, _end_of(terms), [line], end)
    if not terms.value:
        return _insert(text, terms.start_mark.index + 1, _quote(term))
    last = terms.value[-1].end_mark
    between = " "
    if last.column + len(term) > _LONGEST_LINE:
        between = f"{end}{' ' * (entry.start_mark.column + 2)}"
    return _insert(text, last.index, f",{between}{_quote(term)}")


def _value(node: Any, key: str) -> Any:
    """Return the YAML node of a key in a mapping; `None` if the mapping lacks the key."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for one, value in pairs if one.value == key), None)


def _end_of(node: Any) -> int:
    """Return the place in the text at which the last value of a YAML node ends.

    YAML itself reports a later place for a mapping: after the blanks that follow it.
    """
    while not isinstance(node, yaml.ScalarNode) and node.value and not node.flow_style:
        node = node.value[-1][1] if isinstance(node, yaml.MappingNode) else node.value[-1]
    return int(node.end_mark.index)


def _insert(text: str, place: int, more: str) -> str:
    return f"{text[:place]}{more}{text[place:]}"


def _join_lines(text: str, place: int, lines: list[str], end: str) -> str:
    """Return the text with lines inserted after the line that contains a place."""
    here = text.find("\n", place)
    if here < 0:
        return f"{text.rstrip()}{end}{end.join(lines)}{end}"
    return _insert(text, here + 1, "".join(f"{line}{end}" for line in lines))


def _quote(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
