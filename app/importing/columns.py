"""Find the column that each field of a file is read from, by the names in its header and by a person's choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from unicodedata import normalize

import yaml

from app.files.merged_cells import COLUMNS
from app.files.visible_text import visible
from splitter.errors import InputError, Message, list_names

_REMARK = re.compile(r"[(\[【〔<][^()\[\]【】〔〕<>]*+[)\]】〕>]$")
_MARKS = re.compile(r"[\s_\-*:：·•、。!?？“”\"'《》「」#]+")
_TWO_SCRIPTS = re.compile(r"([^\x00-\x7f]{1,20}) ([A-Za-z _.-]{1,30})")
_PARTS = re.compile(r"[/\\|、,;&]+")
_LETTERS = list(COLUMNS)

Words = Mapping[str, Mapping[str, int]]
"""Names of columns, as `plain_name` returns them, with their ranks, by field."""
FieldPlaces = Mapping[str, int]
"""Places of columns by field."""


def column_words(name: str) -> Words:
    """Return the column names that an import knows: the entry `products` or `reviews` of ``column_words.yaml``."""
    return {
        field: {word: rank for rank, word in reversed(list(enumerate(words.split())))}
        for field, words in _load()[name].items()
    }


@cache
def _load() -> Mapping[str, Mapping[str, str]]:
    text = Path(__file__).with_name("column_words.yaml").read_text("utf-8")
    known: Mapping[str, Mapping[str, str]] = yaml.safe_load(text)
    return known


@cache
def _synonyms() -> list[frozenset[str]]:
    """Return sets of column names with the same meaning, one set for each field."""
    return [frozenset(words.split()) for fields in _load().values() for words in fields.values()]


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A person's choice of columns of a file.

    Attributes:
        mapping: for each field, its column by name or letter. If the column is empty, the field is not read.
        ignored: columns that must not be read, by name or letter.
    """

    mapping: Mapping[str, str] = field(default_factory=dict)
    ignored: Sequence[str] = ()

    def check(self, names: Sequence[str], origin: str) -> None:
        """Raise InputError if a chosen column does not exist."""
        there = list_names([*filter(None, names)]) or Message("no columns")
        for name, column in self.mapping.items():
            if column and find_column(names, column) is None:
                raise InputError(
                    "{origin}: there is no column {column!r} for {name}; it has {there}",
                    origin=origin,
                    column=column,
                    name=name,
                    there=there,
                )
        for column in self.ignored:
            if find_column(names, column) is None:
                raise InputError(
                    "{origin}: there is no column {column!r} to ignore; it has {there}",
                    origin=origin,
                    column=column,
                    there=there,
                )


def find_column(names: Sequence[str], column: str) -> int | None:
    """Return the place (from 0) of a column given by name or letter; `None` if it does not exist."""
    place = _find_name(names, column)
    return _find_letter(names, column) if place is None else place


def _find_name(names: Sequence[str], column: str) -> int | None:
    if column in names:
        return names.index(column)
    plain = plain_name(column)
    if plain:
        for place, name in enumerate(names):
            if plain_name(name) == plain:
                return place
    return None


def _find_letter(names: Sequence[str], column: str) -> int | None:
    """Return the place (from 0) of a column given by letter; `None` if the header has fewer columns."""
    place = COLUMNS.get(column, 0) - 1
    if place < 0 or (names and place >= len(names)):
        return None
    return place


def find_fields(
    names: Sequence[str], words: Words, choice: ColumnChoice, *, is_header: bool = False
) -> dict[str, int]:
    """Return the place (from 0) of each known field's column. A person's choice overrides the names in the header.

    Each column gets at most one field.

    Args:
        is_header: True if `names` is certainly a header. Otherwise letters count only if another column is recognised.
    """
    found: dict[str, int] = {}
    for name, column in choice.mapping.items():
        place = _find_name(names, column) if column else None
        if place is not None:
            found[name] = place
    taken = {*found.values(), *(find_column(names, column) for column in choice.ignored)}
    plain = [_plain_parts(name) for name in names]
    for name, known in words.items():
        if name in choice.mapping:
            continue
        fitting = [
            (min(known[part] for part in parts if part in known), place)
            for place, parts in enumerate(plain)
            if place not in taken and not known.keys().isdisjoint(parts)
        ]
        if fitting:
            found[name] = min(fitting)[1]
            taken.add(found[name])
    if not found and not is_header:
        return {}
    for name, column in choice.mapping.items():
        place = _find_letter(names, column)
        if name not in found and place is not None:
            found = {other: at for other, at in found.items() if at != place} | {name: place}
    return found


def column_key(names: Sequence[str], place: int) -> str:
    """Return the key of a column: its name, or its letter if the name is empty or used by an earlier column."""
    name = names[place]
    return name if name and names.index(name) == place else _LETTERS[place]


def list_unused_columns(names: Sequence[str], fields: FieldPlaces, choice: ColumnChoice) -> list[str]:
    """Return the columns that no field is read from, except those that a person chose to ignore."""
    used = {*fields.values(), *(find_column(names, column) for column in choice.ignored)}
    return list(dict.fromkeys(name for place, name in enumerate(names) if name and place not in used))


def describe_unused(columns: Sequence[str]) -> Message:
    """Return a message about columns that no field is read from."""
    return Message(
        "not used: {columns}; a column that holds a field is named with --map FIELD=COLUMN",
        columns=list_names(columns),
    )


def parse_mapping(given: Sequence[str], fields: Sequence[str]) -> dict[str, str]:
    """Parse arguments of the form FIELD=COLUMN. Raises InputError."""
    said: dict[str, str] = {}
    for text in given:
        name, equals, column = text.partition("=")
        name = name.strip().casefold()
        if not equals or name not in fields:
            raise InputError(
                "--map {text!r}: write FIELD=COLUMN, FIELD one of {fields}; FIELD= leaves the field out",
                text=text,
                fields=tuple(fields),
            )
        said[name] = column.strip()
    return said


def plain_name(name: str) -> str:
    """Return a column's name in lower case, without blanks and punctuation, and without brackets at its end."""
    plain = _MARKS.sub("", normalize("NFKC", visible(name))).casefold()
    return _REMARK.sub("", plain) or plain.strip("()[]【】〔〕<>")


def _plain_parts(name: str) -> list[str]:
    """Return the plain name of a column, and those of its parts if it has two: 商品名称/Product or 商品名称 Product."""
    parts = _PARTS.split(normalize("NFKC", name))
    two = _TWO_SCRIPTS.fullmatch(visible(name))
    if two is not None and any({plain_name(two[1]), plain_name(two[2])} <= known for known in _synonyms()):
        parts += two.groups()
    return [plain_name(name), *map(plain_name, parts)]
