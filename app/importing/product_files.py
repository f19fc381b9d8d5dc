"""Read files of products: a table with a header, or one name per line. Nothing is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import BinaryIO, TextIO

from app.files.table_files import BadRow
from app.files.text_files import open_text, read_lines
from app.files.xlsx_reader import MOST_UNPACKED
from app.importing.columns import ColumnChoice, FieldPlaces, column_words, find_fields, list_unused_columns
from app.importing.name_lists import LOOKED_AT, are_numbered, read_names, refuse_other_text
from app.importing.sheets import FoundTable, TableChoice, WantedTable, find_table, is_foot
from splitter.errors import InputError, Message, list_names
from tasks.reading.file_encoding import encoding_of

FIELDS = ("name", "keywords", "aliases", "priority", "pages", "recrawl", "category", "sites")

_WORDS = column_words("products")

_NAME_TABLE = Message("Name sheet, header row (0: none) and column: --sheet, --header-row, --column")
_NUMBER_AND_NAME = 2
"""Number of cells in a line of a numbered list with a delimiter after the number."""
_RIGHT = Message(
    "Give one name a line, or a table with a column 商品名称 or name. "
    "--as-list, or its box in the browser, takes each line as a name"
)
Line = tuple[int, Mapping[str, str], Message | None]
"""A line of a file of products: number, cells by field, and the reason if it can't be read, else `None`."""


def open_product_file(
    file: BinaryIO,
    origin: str,
    choice: TableChoice | None = None,
    columns: ColumnChoice | None = None,
    *,
    as_list: bool = False,
    most_unpacked: int = MOST_UNPACKED,
) -> tuple[FoundTable, Iterator[Line]]:
    """Find the table in a file of products. Return it with an iterator that reads its lines on demand.

    A table may have any of `FIELDS`. Columns are recognised by their English or Chinese names; others are not read.
    In a file with one name per line, lines that begin with # are skipped.

    Args:
        file: a seekable file, which must stay open while lines are read.
        choice: a person's choice of the table.
        columns: a person's choice of columns.
        as_list: True to take each line of a text as a name, whatever it looks like.
        most_unpacked: maximum number of bytes after decompression.

    Raises:
        InputError: the file can't be read or exceeds a limit, no column of names is recognised, a chosen column does
            not exist, or the text is neither a list nor a table.
    """
    choice = choice or TableChoice()
    columns = columns or ColumnChoice()
    is_chosen = bool(columns.mapping) or choice != TableChoice()
    if as_list and is_chosen:
        raise InputError("--as-list can't be used with --sheet, --header-row, --column or --map")

    def find(names: Sequence[str]) -> FieldPlaces:
        return find_fields(names, _WORDS, columns, is_header=choice.header_row is not None)

    found = find_table(file, origin, choice, WantedTable(find, FIELDS[:1]), most_unpacked)
    if not found.sample:
        return found, iter(())
    if found.entry is None:
        found = replace(found, names=(), fields={}, header_row=0, last_row=0)
    is_text = not found.table.sheet
    if as_list and not is_text:
        raise InputError("{origin}: is a workbook, no text. {instead}", origin=origin, instead=_NAME_TABLE)
    if as_list or (is_text and not is_chosen and _is_list(found, file, origin)):
        columns.check((), origin)
        return replace(found, names=(), fields={}, header_row=0), _read_list(file, origin)
    if not is_chosen:
        _check_names(found, origin)
    if not found.fields and not is_chosen and max(len(row.places()) for row in found.sample) == 1:
        [place, *others] = {place for row in found.sample for place in row.places()}
        found = found if others else replace(found, fields={"name": place})
    if choice.header_row == 0:
        found = replace(found, fields=find(()))
    if found.entry is None:
        raise _no_names(found, origin, columns.mapping.get("name"))
    columns.check(found.names, origin)
    found = replace(found, unused=list_unused_columns(found.names, found.fields, columns))
    return found, _rows(found)


def _no_names(found: FoundTable, origin: str, column: str | None) -> InputError:
    """Return the error for a table without a recognised column of names. The message quotes the widest row."""
    row = max(found.sample, key=lambda row: len(row.places()))
    table: Message = Message("row {line}", line=row.line)
    if found.table.sheet:
        table = Message("sheet {sheet}, row {line}", sheet=found.table.sheet, line=row.line)
    return InputError(
        "{origin}: no column {column} is found; {table} holds {cells}. {instead}",
        origin=origin,
        column=column or ("商品名称", "产品名称", "品名", "name"),
        table=table,
        cells=list_names([*filter(None, row.cells)]),
        instead=_NAME_TABLE,
    )


def _rows(found: FoundTable) -> Iterator[Line]:
    entry = found.fields["name"]
    for row in found.rows():
        if isinstance(row, BadRow):
            yield row.line, {}, row.why
        elif is_foot(row.cell(entry)):
            found.passed.append(row.line)
        else:
            yield row.line, {field: row.cell(place) for field, place in found.fields.items()}, None


def _is_list(found: FoundTable, file: BinaryIO, origin: str) -> bool:
    """Return True if a text has one name per line. Raises InputError if it is neither a list nor a table."""
    wide = sum(len(row.places()) > 1 for row in found.sample)
    if found.fields and (len(found.fields) > 1 or wide):
        return False
    refuse_other_text(_lines(file, origin), origin, _RIGHT)
    if found.fields or wide * 2 <= len(found.sample):
        return not found.fields
    wider = sum(len(row.places()) > _NUMBER_AND_NAME for row in found.sample)
    if wider * 2 > len(found.sample):
        return False
    return are_numbered([line for _, line in _list_head(file, origin)])


def _check_names(found: FoundTable, origin: str) -> None:
    """Raise InputError if a file that looks like a table is really settings, code or markup with words of a header."""
    entry = found.fields.get("name", 0)
    header = [(row.line, ",".join(row.cells)) for row in found.sample if row.line == found.header_row]
    names = [
        (row.line, row.cell(entry)) for row in found.sample if row.line > found.last_row and row.cell(entry)
    ]
    refuse_other_text([*header, *names], origin, _RIGHT, prose=found.header_row == 0)


def _read_list(file: BinaryIO, origin: str) -> Iterator[Line]:
    encoding = encoding_of(file, origin)
    is_numbered = are_numbered([line for _, line in _list_head(file, origin)])
    for number, name in read_names(_lines(file, origin), numbered=is_numbered):
        if not is_foot(name):
            yield number, {"name": name}, encoding.find_fault(name)


def read_typed_names(text: str, origin: str, *, as_list: bool) -> list[tuple[int, str]]:
    """Return the names that a person typed or pasted, one per line, each with the number of its line.

    Args:
        as_list: True to take each line as a name, whatever it looks like.

    Raises:
        InputError: the text is not a list of names.
    """
    lines = list(_number_lines(text.splitlines()))
    if not as_list:
        refuse_other_text(lines, origin, _RIGHT)
    is_numbered = are_numbered([line for _, line in lines])
    return list(read_names(lines, numbered=is_numbered))


def _list_head(file: BinaryIO, origin: str) -> list[tuple[int, str]]:
    return list(islice(_lines(file, origin), LOOKED_AT))


def _lines(file: BinaryIO, origin: str) -> Iterator[tuple[int, str]]:
    with open_text(file, encoding_of(file, origin)) as text:
        yield from _number_lines(_short_lines(text, origin))


def _short_lines(text: TextIO, origin: str) -> Iterator[str]:
    for number, line, too_long in read_lines(text):
        if too_long:
            raise InputError("{origin}, line {n}: {why}", origin=origin, n=number, why=too_long)
        yield line


def _number_lines(text: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers, except blank lines and comments."""
    for number, line in enumerate(text, 1):
        stripped = line.strip()
        if stripped and not stripped.startswith("#"):
            yield number, stripped
