"""What a name leaves out and what means the same: the lexicon (``data/lexicon.yaml``), validated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import BaseModel, ConfigDict, ValidationError

from splitter import yamlfile
from splitter.yamlfile import Document, Problem


class _Brand(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    lines: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    version: int
    brands: dict[str, _Brand]
    same: dict[str, str]
    noise: tuple[str, ...]
    company: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What is known about words beyond how they are cut.

    Attributes:
        brand_of: brand of a product line that is no other brand's.
        names_of: every way a brand is written, in lower case.
        brand_named: the brand that such a way stands for.
        same: the one spelling of a word with several.
        noise: words that are never keywords, in lower case.
        company: words that after a brand only name the company.
    """

    brand_of: Mapping[str, str]
    names_of: Mapping[str, tuple[str, ...]]
    brand_named: Mapping[str, str]
    same: Mapping[str, str]
    noise: frozenset[str]
    company: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """The lexicon that comes with the project."""
    return parse_lexicon(
        files("splitter").joinpath("data", "lexicon.yaml").read_text("utf-8"), "lexicon.yaml"
    )


def parse_lexicon(text: str, origin: str) -> Lexicon:
    """Reads a lexicon from its text.

    Raises:
        CatalogError: with every problem, one a line, each with line and key.
    """
    document = yamlfile.read(text, origin)
    problems = list(document.problems)
    try:
        content = _File.model_validate_json(document.json())
    except ValidationError as error:
        problems += [document.problem(found["loc"], found["msg"]) for found in error.errors()]
    else:
        problems += _contradictions(document, content)
    yamlfile.raise_problems(problems, origin)
    brand_of = {line: brand for brand, entry in content.brands.items() for line in entry.lines}
    names_of = {
        brand: tuple(name.lower() for name in (brand, *entry.also)) for brand, entry in content.brands.items()
    }
    brand_named = {name: brand for brand, names in names_of.items() for name in names}
    return Lexicon(
        brand_of,
        names_of,
        brand_named,
        content.same,
        frozenset(word.lower() for word in content.noise),
        frozenset(content.company),
    )


def _contradictions(document: Document, content: _File) -> list[Problem]:
    problems: list[Problem] = []
    if content.version != 1:
        problems.append(document.problem(("version",), f"{content.version} is not known here; write 1"))
    owner: dict[str, str] = {}
    for brand, entry in content.brands.items():
        for index, line in enumerate(entry.lines):
            if line in owner:
                message = f"{line} is a line of {owner[line]} already; a line has one brand"
                problems.append(document.problem(("brands", brand, "lines", index), message))
            owner.setdefault(line, brand)
    for spelling, word in content.same.items():
        if word in content.same:
            message = f"{word} is replaced itself; write {content.same[word]}"
            problems.append(document.problem(("same", spelling), message))
    return problems
