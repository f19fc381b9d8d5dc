"""The themes file: what reviews of a category complain about, as terms that a person can edit.

A term is plain text, or ``A..B``: B begins at most `REACH` characters behind A, in the same clause. Texts of `except`
cancel a theme's terms in their clause. A file with a problem is refused as a whole; the message names line and key of
each problem.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails
from splitter.catalog import yamlfile
from splitter.catalog.wrong_values import explain_found_value
from splitter.catalog.yamlfile import CatalogFault, Document, Place
from splitter.errors import CatalogError, Message, WrongValue

log = logging.getLogger("reviewloop.reading")

REACH: Final = 8
"""Characters between the two parts of a term, at most."""
GAP: Final = ".."
MOST_PARTS: Final = 2
LONGEST: Final = 24
"""Characters of a part of a term, at most."""
MOST_TERMS: Final = 5000
"""Terms of a category, at most."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60)]
Id = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,59}$")]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ThemeEntry(_Entry):
    """A theme of a category.

    Attributes:
        zh, en: its names.
        terms: texts that show it.
        exceptions: texts in whose clause no term counts.
    """

    zh: Text
    en: Text
    terms: tuple[Text, ...] = ()
    exceptions: tuple[Text, ...] = Field(default=(), alias="except")


class ThemeFile(_Entry):
    """All themes by category and id."""

    goods: Mapping[Id, ThemeEntry] = {}
    car: Mapping[Id, ThemeEntry] = {}
    restaurant: Mapping[Id, ThemeEntry] = {}

    def list_themes(self, category: str) -> Mapping[str, ThemeEntry]:
        """Return the themes of a category; none for a category without a set of themes."""
        found: Mapping[str, ThemeEntry] = getattr(self, category, {}) if category in CATEGORIES else {}
        return found


CATEGORIES: Final = tuple(ThemeFile.model_fields)
_KEYS: Final = tuple(field.alias or name for name, field in ThemeEntry.model_fields.items())


@cache
def builtin_themes() -> ThemeFile:
    """Return the themes that come with the project."""
    return parse_themes(builtin_text(), "themes.yaml")


def builtin_text() -> str:
    """Return the text of the themes file that comes with the project."""
    return files("tasks.reading.judge").joinpath("themes.yaml").read_text("utf-8")


def load_themes(path: Path) -> ThemeFile:
    """Read a themes file.

    Raises:
        CatalogError: the file can't be read, is not UTF-8, or is wrong.
    """
    return parse_themes(yamlfile.read_text(path, Message("give a themes file")), str(path))


def parse_themes(text: str, origin: str) -> ThemeFile:
    """Read themes from the text of a file.

    Args:
        origin: name of the file, for messages.

    Raises:
        CatalogError: with every problem, by line and key.
    """
    document = yamlfile.read(text, origin)
    try:
        found = ThemeFile.model_validate_json(document.json())
    except ValidationError as error:
        problems = [_shape_problem(document, detail) for detail in error.errors(include_url=False)]
        yamlfile.raise_problems([*document.problems, *problems], origin)
        raise
    except (TypeError, ValueError) as error:
        yamlfile.raise_problems(document.problems or [CatalogFault(1, "", str(error))], origin)
        raise
    problems = [document.problem(place, message) for place, message in _list_problems(found)]
    yamlfile.raise_problems([*document.problems, *problems], origin)
    return found


class ThemesInForce:
    """The themes that this process reads texts for. A file that changes is read again before the next texts.

    If the changed file is wrong, that is logged, and the last good one stays in force.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        self._is_optional = False
        self._stamp: tuple[int, int] | None = None
        self._held: tuple[ThemeFile, str] | None = None

    def use(self, path: Path | None, *, is_optional: bool = False) -> None:
        """Read a file from now on; `None` stands for the one that comes with the project.

        Args:
            is_optional: while the file is not there, the one that comes with the project is in force.

        Raises:
            CatalogError: the file can't be read, or is wrong.
        """
        held = None
        stamp = None
        if path is not None:
            stamp = _stamp(path)
            if stamp is not None or not is_optional:
                found = load_themes(path)
                held = (found, _version(found))
        self.path, self._is_optional, self._stamp, self._held = path, is_optional, stamp, held

    def get(self) -> tuple[ThemeFile, str]:
        """Return the themes in force, and their version."""
        if self.path is not None and (stamp := _stamp(self.path)) != self._stamp:
            self._stamp = stamp
            try:
                self.use(self.path, is_optional=self._is_optional)
            except CatalogError as error:
                log.warning("the themes file is wrong, the last good one stays in force: %s", error)
        if self._held is None:
            self._held = (builtin_themes(), _version(builtin_themes()))
        return self._held


IN_FORCE: Final = ThemesInForce()


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _version(themes: ThemeFile) -> str:
    return hashlib.sha256(themes.model_dump_json(by_alias=True).encode()).hexdigest()[:12]


def _shape_problem(document: Document, detail: ErrorDetails) -> CatalogFault:
    place: Place = tuple(step for step in detail["loc"] if step != "[key]")
    if detail["type"] == "extra_forbidden":
        problem = WrongValue("unknown key; a theme has zh, en, terms and except")
        known: Collection[str] = _KEYS
        if len(place) == 1:
            problem = WrongValue("unknown category; there are {known}", known=", ".join(CATEGORIES))
            known = CATEGORIES
        return document.problem(place, problem.suggest(str(place[-1]), known, 1) or problem)
    if detail["type"] == "missing":
        return document.problem(place, Message("missing; a theme needs its names zh and en"))
    if "[key]" in detail["loc"]:
        return document.problem(
            place, Message("write an id of small letters, digits and _, such as foreign_matter")
        )
    return document.problem(place, explain_found_value(detail))


def _list_problems(found: ThemeFile) -> Iterator[tuple[Place, Message]]:
    for category in CATEGORIES:
        count = 0
        for name, theme in found.list_themes(category).items():
            for key, terms in (("terms", theme.terms), ("except", theme.exceptions)):
                count += len(terms)
                for number, term in enumerate(terms):
                    problem = find_problem(term)
                    if problem is not None:
                        yield (category, name, key, number), problem
        if count > MOST_TERMS:
            yield (category,), Message("{n} terms; a category has at most {most}", n=count, most=MOST_TERMS)


def find_problem(term: str) -> Message | None:
    """Return what is wrong about a term; `None` if nothing is."""
    parts = term.split(GAP)
    if len(parts) > MOST_PARTS:
        return Message("{term!r} has more than two parts; write A..B", term=term)
    for part in parts:
        if not part or part != part.strip():
            return Message("{term!r} has an empty part, or a blank beside the dots; write A..B", term=term)
        if len(part) > LONGEST:
            return Message("{part!r} is too long; a part has at most {n} characters", part=part, n=LONGEST)
    return None
