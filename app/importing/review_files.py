"""Files of reviews that people have, record by record: CSV, xlsx, or one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from app.files.table_files import BadRow, encoding_of, head_of, is_workbook, opened_text, stream_table
from splitter.errors import InputError

_LONGEST_LINE = 10_000_000
"""Characters of a line of JSON; more is no review."""
_DEEPEST = 3
"""Objects within objects whose values are columns of their own."""
_LOOKED_AT = 100
"""Lines at the beginning of a file of JSON whose keys are its columns."""


@dataclass(frozen=True, slots=True)
class Record:
    """A line's cells by column; texts without blanks around them, empty ones left out."""

    line: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """A file whose columns are known.

    Attributes:
        columns: names of columns; of JSON the keys, those of an object within as ``user.name``.
        records: of its lines, in order; those that can't be read with the reason.
    """

    columns: tuple[str, ...]
    records: Iterator[Record | BadRow]


def open_review_file(file: BinaryIO, origin: str) -> ReviewFile:
    """Read a file's columns; its records are read as they are asked for.

    Args:
        file: can be read from its beginning again, and stays open as long as records are read.

    Raises:
        InputError: it is empty, or no such file.
    """
    head = head_of(file)
    if is_workbook(head):
        return _table(file, origin)
    encoding = encoding_of(file, origin)
    with opened_text(file, encoding) as text:
        begin = text.read(1000).lstrip("\ufeff \t\r\n")[:1]
    if begin == "[":
        raise InputError(
            f"{origin}: is one JSON list; write one object a line: jq -c '.[]' {origin} > reviews.jsonl"
        )
    if begin != "{":
        return _table(file, origin)
    keys: dict[str, None] = {}
    for one in islice(_objects(file, origin), _LOOKED_AT):
        if isinstance(one, Record):
            keys |= dict.fromkeys(one.cells)
    if not keys:
        raise InputError(f"{origin}: no line of it is a JSON object with a value")
    return ReviewFile(tuple(keys), _objects(file, origin))


def _table(file: BinaryIO, origin: str) -> ReviewFile:
    rows = stream_table(file, origin)
    header = next(rows, None)
    if header is None:
        raise InputError(f"{origin}: is empty; it begins with a line that names its columns")
    if isinstance(header, BadRow):
        raise InputError(f"{origin}:{header.line}: {header.why}")
    return ReviewFile(tuple(dict.fromkeys(filter(None, header.cells))), _rows(header.cells, rows))


def _rows(header: Sequence[str], rows: Iterator[Any]) -> Iterator[Record | BadRow]:
    places = {
        name: place for place, name in reversed(list(enumerate(header))) if name
    }  # of equal ones the first
    for row in rows:
        if isinstance(row, BadRow):
            yield row
        elif any(row.cells[len(header) :]):
            why = f"has {len(row.cells)} cells, the header {len(header)}: put a cell that holds a delimiter in quotes"
            yield BadRow(row.line, why)
        else:
            cells = row.cells
            found = {
                name: cells[place] for name, place in places.items() if place < len(cells) and cells[place]
            }
            yield Record(row.line, found)


def _objects(file: BinaryIO, origin: str) -> Iterator[Record | BadRow]:
    encoding = encoding_of(file, origin)
    with opened_text(file, encoding) as text:
        number = 0
        while line := text.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                while (rest := text.readline(_LONGEST_LINE)) and not rest.endswith("\n"):
                    pass
                yield BadRow(number, f"is longer than {_LONGEST_LINE:,} characters")
            elif encoding.broken_at is not None and "\ufffd" in line:
                yield BadRow(number, f"holds bytes that are no {encoding.name.removesuffix('-sig').upper()}")
            elif line.strip():
                yield _record(number, line)


def _record(number: int, line: str) -> Record | BadRow:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        told = error.msg if isinstance(error, json.JSONDecodeError) else "it can't be read"
        return BadRow(number, f"is no JSON object: {told}")
    if not isinstance(value, dict):
        return BadRow(number, "is no JSON object")
    return Record(number, dict(_flat(value, "", _DEEPEST)))


def _flat(value: Mapping[str, Any], before: str, deep: int) -> Iterator[tuple[str, str]]:
    """Texts and numbers of an object by name, and those of objects in it; lists, truth values and null are left out."""
    for name, one in value.items():
        if isinstance(one, dict):
            if deep:
                yield from _flat(one, f"{before}{name}.", deep - 1)
        elif isinstance(one, str):
            if text := one.strip():
                yield before + name, text
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield before + name, str(int(one)) if isinstance(one, float) and one.is_integer() else str(one)
