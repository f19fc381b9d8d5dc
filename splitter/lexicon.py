"""Knowledge about words: our dictionary with the role of each word, and the lexicon of names and spellings.

Our dictionary (``data/userdict.txt``) has jieba's format, a line ``word frequency role``. Frequencies are such that the
word is cut whole, and hardly greater, so that its neighbours stay whole too. ``data/brands.txt`` holds more
brands. The lexicon (``data/lexicon.yaml``) holds what a name leaves out and what means the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files

import yaml


def data(name: str) -> str:
    """Return the text of a data file of the splitter."""
    return files("splitter").joinpath("data", name).read_text("utf-8")


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line of a table, which stand between tabs; ``#`` opens a comment."""
    return (line.split("\t") for line in text.splitlines() if not line.startswith("#"))


class Role(StrEnum):
    """The role of a word of our dictionary."""

    BRAND = "brand"
    SERIES = "series"  # a product line of a brand
    PRODUCT = "product"  # the kind of thing it is
    TRAIT = "trait"  # an attribute in which products differ
    PLACE = "place"  # its origin
    NOISE = "noise"  # promotion, packaging, size words: never a keyword
    PLATFORM = "platform"  # a shop or carrier: a brand if it opens a name without another one, else noise


_BRAND_FREQUENCY = 500
"""Frequency of each brand in ``data/brands.txt``: most brands of the dictionary have it."""


@cache
def user_words() -> dict[str, tuple[int, Role]]:
    """Return frequency and role of each word of our own dictionary, the list of brands among them."""
    words = {brand: (_BRAND_FREQUENCY, Role.BRAND) for (brand,) in rows(data("brands.txt"))}
    for (line,) in rows(data("userdict.txt")):
        word, frequency, role = line.split(" ")
        words[word] = (int(frequency), Role(role))
    return words


def title_role(word: str) -> Role | None:
    """Return the role of a word in a shop's title: there a platform is noise."""
    role = roles().get(word)
    return Role.NOISE if role is Role.PLATFORM else role


def is_brand(word: str) -> bool:
    """Return True for a keyword that is a brand, or a platform that stands for one."""
    return roles().get(word) in (Role.BRAND, Role.PLATFORM)


def numbered_brand(word: str) -> str:
    """Return the brand of a keyword that is a brand and a number as one word (一加 15); empty if it is none."""
    brand, _, number = word.rpartition(" ")
    if not number.isdigit():
        return ""
    named = roles().get(brand) is Role.BRAND or brand.lower() in lexicon().brand_named
    return brand if named else ""


@cache
def roles() -> Mapping[str, Role]:
    """The role of each word of our own dictionary."""
    return {word: role for word, (_, role) in user_words().items()}


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
        forms: words that only name the form of a product: a bundle, an app, a web page.
        models: words that look like an edition and are a product of their own: 青春版.
    """

    brand_of: Mapping[str, str]
    names_of: Mapping[str, tuple[str, ...]]
    brand_named: Mapping[str, str]
    same: Mapping[str, str]
    noise: frozenset[str]
    goods: frozenset[str]
    company: frozenset[str]
    forms: frozenset[str]
    models: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """Return the lexicon that comes with the project."""
    content = yaml.load(data("lexicon.yaml"), yaml.CSafeLoader)
    brands = content["brands"]
    names_of = {
        brand: tuple(name.lower() for name in (brand, *entry.get("also", ())))
        for brand, entry in brands.items()
    }
    return Lexicon(
        brand_of={line: brand for brand, entry in brands.items() for line in entry.get("lines", ())},
        names_of=names_of,
        brand_named={name: brand for brand, names in names_of.items() for name in names},
        same=content["same"],
        noise=frozenset(map(str.lower, content["noise"])),
        **{key: frozenset(content[key]) for key in ("goods", "company", "forms", "models")},
    )
