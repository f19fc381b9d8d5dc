"""Knowledge about words: our dictionary with the role of each word, and the lexicon of names and spellings.

Our dictionary (``data/userdict.txt``) has jieba's format, a line ``word frequency role``. Frequencies are such that the
word is cut whole, and hardly greater, so that its neighbours stay whole too. ``data/brands.txt`` holds more
brands. The lexicon (``data/lexicon.yaml``) holds what a name leaves out and what means the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from splitter import yamlfile
from splitter.errors import InputError
from splitter.yamlfile import Document, Problem

if TYPE_CHECKING:
    from splitter.lexicon_file import LexiconFile


class Role(StrEnum):
    """The role of a word of our dictionary."""

    BRAND = "brand"
    SERIES = "series"  # a product line of a brand
    PRODUCT = "product"  # the kind of thing it is
    TRAIT = "trait"  # an attribute that tells products apart
    PLACE = "place"  # where it comes from
    NOISE = "noise"  # promotion, packaging, size words: never a keyword


_BRAND_FREQUENCY = 500
"""Of each brand in ``data/brands.txt``: most brands of the dictionary have it."""

_ROLES = frozenset(role.value for role in Role)


@cache
def user_words() -> dict[str, tuple[int, Role]]:
    """Frequency and role of each word of our own dictionary, the list of brands among them."""
    words = parse_user_words(_data("userdict.txt"), "userdict.txt")
    brands = (line for line in _data("brands.txt").splitlines() if not line.startswith("#"))
    return {**dict.fromkeys(brands, (_BRAND_FREQUENCY, Role.BRAND)), **words}


def parse_user_words(text: str, origin: str) -> dict[str, tuple[int, Role]]:
    """Reads a dictionary of ours.

    Raises:
        InputError: a line is not ``word frequency role``, or a word is there twice; names every such line.
    """
    words: dict[str, tuple[int, Role]] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        word, _, rest = line.partition(" ")
        frequency, _, role = rest.partition(" ")
        if not (word and frequency.isdigit() and int(frequency) and role in _ROLES):
            problems.append(
                f"{origin}:{number}: {line!r} is not 'word frequency role'; roles: {', '.join(Role)}"
            )
        elif word in words:
            problems.append(f"{origin}:{number}: {word} is there twice; keep one of them")
        else:
            words[word] = (int(frequency), Role(role))
    if problems:
        raise InputError("\n".join(problems))
    return words


@cache
def roles() -> Mapping[str, Role]:
    """The role of each word of our own dictionary."""
    return {word: role for word, (_, role) in user_words().items()}


def _data(name: str) -> str:
    return files("splitter").joinpath("data", name).read_text("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Facts about words, beyond how they are cut.

    Attributes:
        brand_of: brand of a product line that is no other brand's.
        names_of: every way a brand is written, in lower case.
        brand_named: the brand that such a way stands for.
        same: the one spelling of a word with several.
        noise: words that are never keywords, in lower case.
        goods: words of the role noise that may be what a shop's title sells.
        company: words that after a brand only name the company.
    """

    brand_of: Mapping[str, str]
    names_of: Mapping[str, tuple[str, ...]]
    brand_named: Mapping[str, str]
    same: Mapping[str, str]
    noise: frozenset[str]
    goods: frozenset[str]
    company: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """The lexicon that comes with the project."""
    return parse_lexicon(_data("lexicon.yaml"), "lexicon.yaml")


def parse_lexicon(text: str, origin: str) -> Lexicon:
    """Reads a lexicon from its text.

    Raises:
        CatalogError: with every problem, one a line, each with line and key.
    """
    # It takes a while to import: a store's reports know the words without reading them.
    from pydantic import ValidationError

    from splitter.lexicon_file import LexiconFile

    document = yamlfile.read(text, origin)
    problems = list(document.problems)
    try:
        content = LexiconFile.model_validate_json(document.json())
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
        brand_of=brand_of,
        names_of=names_of,
        brand_named=brand_named,
        same=content.same,
        noise=frozenset(word.lower() for word in content.noise),
        goods=frozenset(content.goods),
        company=frozenset(content.company),
    )


def _contradictions(document: Document, content: LexiconFile) -> list[Problem]:
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
