"""Read files of reviews record by record. A file is CSV, xlsx, or has one JSON object per line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO

from app.files.table_files import BadRow, is_workbook, refuse_old_workbook
from app.files.text_files import open_text, read_lines
from app.files.visible_text import strip_unseen, visible
from app.importing.columns import ColumnChoice, column_key
from app.importing.name_lists import refuse_other_text
from app.importing.review_columns import NEEDED, review_fields
from app.importing.sheets import FoundTable, TableChoice, WantedTable, find_table
from splitter.errors import InputError, Message, json_reason
from tasks.reading.file_encoding import encoding_of, head_of

_DEEPEST = 3
"""Maximum depth of nested objects whose values become columns."""
_LOOKED_AT = 100
"""Number of lines at the beginning of a JSON file whose keys become the columns."""

_RIGHT = Message(
    "Give a table whose columns have names, 评论内容 or body for the texts, or its header's row with --header-row"
)


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """A line of a file, as a mapping from columns to cells.

    Cells are stripped of surrounding blanks, and empty cells are left out.
    """

    line: int
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReviewFile:
    """A file of reviews with its columns and records.

    Attributes:
        columns: names of the columns; empty for a column without a name. For JSON these are keys; a nested key is
            written ``user.name``.
        records: the records in order; a line that can't be read is a `BadRow` with the reason.
        found: the table in the file; `None` for JSON.
    """

    columns: tuple[str, ...]
    records: Iterator[ImportedLine | BadRow]
    found: FoundTable | None = None


def open_review_file(
    file: BinaryIO, origin: str, choice: TableChoice | None = None, columns: ColumnChoice | None = None
) -> ReviewFile:
    """Find the columns of a file of reviews. The records are read on demand.

    Args:
        file: a seekable file, which must stay open while records are read.
        choice: a person's choice of the table.
        columns: a person's choice of columns.

    Raises:
        InputError: the file is empty, has another format, or exceeds a limit.
    """
    head = head_of(file)
    choice = choice or TableChoice()
    columns = columns or ColumnChoice()
    refuse_old_workbook(head, origin)
    if is_workbook(head):
        return _table(file, origin, choice, columns)
    encoding = encoding_of(file, origin)
    with open_text(file, encoding) as text:
        begin = text.read(1000).lstrip()[:1]
    if begin == "[":
        raise InputError(
            "{origin}: is one JSON list; write one object a line: jq -c '.[]' {origin} > reviews.jsonl",
            origin=origin,
        )
    if begin != "{":
        return _table(file, origin, choice, columns)
    keys: dict[str, None] = {}
    for one in islice(_objects(file, origin), _LOOKED_AT):
        if isinstance(one, ImportedLine):
            keys |= dict.fromkeys(one.cells)
    if not keys:
        raise InputError("{origin}: no line of it is a JSON object with a value", origin=origin)
    return ReviewFile(tuple(keys), _objects(file, origin))


def _table(file: BinaryIO, origin: str, choice: TableChoice, columns: ColumnChoice) -> ReviewFile:
    wanted = WantedTable(
        lambda names: review_fields(names, columns, is_header=choice.header_row is not None), NEEDED
    )
    found = find_table(file, origin, choice, wanted)
    if not found.sample:
        raise InputError("{origin}: is empty; it begins with a line that names its columns", origin=origin)
    if choice is None or choice == TableChoice():
        _check_texts(found, origin)
    if not found.header_row:  # an earlier import may have given unknown names a meaning
        first = next((row for row in found.sample if len(row.places()) > 1), found.sample[0])
        found = replace(found, names=[*map(visible, first.cells)], header_row=first.line, last_row=first.line)
    return ReviewFile(tuple(found.names), _rows(found), found)


def _check_texts(found: FoundTable, origin: str) -> None:
    """Raise InputError if the file is really settings, code or markup with a word of a header, such as `content:`."""
    if not found.table.sheet and max(len(row.places()) for row in found.sample) == 1:
        lines = [(row.line, "".join(row.cells)) for row in found.sample]
        refuse_other_text(lines, origin, _RIGHT, prose=False)


def _rows(found: FoundTable) -> Iterator[ImportedLine | BadRow]:
    places = {column_key(found.names, place): place for place in range(len(found.names))}
    for row in found.rows():
        if isinstance(row, BadRow):
            yield row
        else:
            yield ImportedLine(
                row.line, {name: cell for name, place in places.items() if (cell := row.cell(place))}
            )


def _objects(file: BinaryIO, origin: str) -> Iterator[ImportedLine | BadRow]:
    encoding = encoding_of(file, origin)
    with open_text(file, encoding) as text:
        for number, line, too_long in read_lines(text):
            if why := too_long or encoding.find_fault(line):
                yield BadRow(number, why)
            elif line.strip():
                yield _record(number, line)


def _record(number: int, line: str) -> ImportedLine | BadRow:
    try:
        value = json.loads(line.rstrip("\r\n"))
    except (ValueError, RecursionError) as error:
        problem = (
            Message("it is nested too deeply") if isinstance(error, RecursionError) else json_reason(error)
        )
        if isinstance(error, json.JSONDecodeError):
            problem = Message("{problem} at character {n}", problem=problem, n=error.colno)
        return BadRow(number, Message("is no JSON object: {problem}", problem=problem))
    if not isinstance(value, dict):
        return BadRow(number, Message("is no JSON object"))
    return ImportedLine(number, dict(_flat(value, "", _DEEPEST)))


def _flat(value: Mapping[str, Any], before: str, deep: int) -> Iterator[tuple[str, str]]:
    """Yield each text and number in an object and its nested objects, with its key (``user.name``).

    Skip other values.
    """
    for name, one in value.items():
        if isinstance(one, dict):
            if deep:
                yield from _flat(one, f"{before}{visible(name)}.", deep - 1)
        elif isinstance(one, str):
            text = strip_unseen(one)
            if text:
                yield before + visible(name), text
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield (
                before + visible(name),
                str(int(one)) if isinstance(one, float) and one.is_integer() else str(one),
            )
