"""Find the table in a file by the words in its header.

The sheet may have titles above the table and totals below it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import BinaryIO

from app.files.table_files import BadRow, Table, TableRow, open_tables
from app.files.visible_text import visible
from app.files.xlsx_reader import MOST_UNPACKED
from app.importing.columns import FieldPlaces, describe_unused
from splitter.errors import InputError, Message, list_names

_LOOKED_AT = 30
"""Number of rows at the beginning of a sheet in which the header is searched."""
_LONGEST_NAME = 200
_FEWEST = 2
"""Minimum number of known fields in a header that lacks the needed ones."""
_NOTE_SHEET = re.compile(
    "说明|须知|指南|规范|注意|备注|封面|目录|字典|枚举|示例|样例|帮助|readme|note|help|cover|guide|example",
    re.IGNORECASE,
)
"""Usual names of sheets with notes."""
_FOOT = re.compile(
    r"[合总小共]\s*计(?:[\W\d].*)?|共\s*\d+.*|[（(]?(?:此行)?以下(?:空白|无内容|为空)[）)]?|(?:制表|填表|填报|填写|编制|审核|复核|批准|负责|备注|说明|注)(?:人|单位|部门|日期|时间)?\s*[:：].*",
    re.DOTALL,
)
FindFields = Callable[[Sequence[str]], FieldPlaces]
"""Function that returns the places of the known fields in a row of column names."""


@dataclass(frozen=True, slots=True)
class WantedTable:
    """The fields that an import needs from a table.

    Attributes:
        needed: fields that the table should have. In each row of data, the first of them must not be empty.
    """

    find_fields: FindFields
    needed: Sequence[str]


@dataclass(frozen=True, slots=True)
class TableChoice:
    """A person's choice of the table in a file. `None` leaves the choice to the importer.

    Attributes:
        sheet: name or number (from 1) of the sheet.
        header_row: number of the header's row, from 1; 0 if the table has no header.
    """

    sheet: str | None = None
    header_row: int | None = None


@dataclass(frozen=True, slots=True)
class FoundTable:
    """A table in a file. It may have no header.

    Attributes:
        sample: rows at the beginning of the table, or around a chosen header.
        names: names of the columns.
        needed: as in `WantedTable`.
        fields: place (from 0) of each known field's column.
        header_row: row of the header; of a header with two rows, the one with the first needed field; 0 without a
            header.
        last_row: last row of the header.
        others: names of other sheets that are not empty and are not read.
        passed: rows that `rows` left out.
        unused: columns that no field is read from, except those that a person chose to ignore.
    """

    table: Table
    sample: Sequence[TableRow]
    needed: Sequence[str]
    names: Sequence[str] = ()
    fields: FieldPlaces = field(default_factory=dict)
    header_row: int = 0
    last_row: int = 0
    others: Sequence[str] = ()
    passed: list[int] = field(default_factory=list)
    unused: Sequence[str] = ()

    @property
    def entry(self) -> int | None:
        """Place (from 0) of the column that must not be empty in a row of data; `None` if it was not found."""
        return self.fields.get(self.needed[0])

    @property
    def rank(self) -> tuple[int, int, bool]:
        """Value for comparing headers, the greatest is the best.

        It consists of the number of needed fields, the number of known fields, and True if there are several names.
        """
        needed = sum(name in self.fields for name in self.needed)
        return needed, len(self.fields), len([*filter(None, self.names)]) > 1

    def rows(self) -> Iterator[TableRow | BadRow]:
        """Yield the rows of data: those below the header except totals, signatures, headings and repeated headers."""
        headers = {row.cells for row in self.sample if row.line == self.header_row}
        self.passed.clear()
        for row in self.table.rows():
            if row.line <= self.last_row:
                continue
            if isinstance(row, TableRow):
                if row.cells in headers or self._is_no_entry(row):
                    self.passed.append(row.line)
                    continue
                if self.names and not self.table.sheet and any(row.cells[len(self.names) :]):
                    why = Message(
                        "has {n} cells, the header {of}; put a cell that holds a delimiter in quotes",
                        n=len(row.cells),
                        of=len(self.names),
                    )
                    yield BadRow(row.line, why)
                    continue
            yield row

    def check(self) -> None:
        """Read a sheet to its end, so that an exceeded limit is reported before any row is stored."""
        if self.table.sheet:
            for _ in self.table.rows():
                pass

    def _is_no_entry(self, row: TableRow) -> bool:
        filled = row.places()
        first = min(filled)
        entry = self.entry
        if entry is None or entry in filled:
            return False
        is_alone = len(filled) == 1 and first < entry and first not in self.fields.values()
        return is_foot(row.cells[first]) or (is_alone and not row.cells[first].isdecimal())

    @property
    def columns(self) -> dict[str, str]:
        """Name of each known field's column; empty without a header."""
        return {field: self.names[place] for field, place in self.fields.items() if self.header_row}

    @property
    def where(self) -> Message:
        """The place of the header (sheet and row), for messages."""
        header = Message("no header")
        if self.header_row:
            header = Message("header in row {row}", row=self.header_row)
        if not self.table.sheet:
            return header
        return Message("sheet {sheet}, {header}", sheet=self.table.sheet, header=header)

    @property
    def notes(self) -> list[Message]:
        """Messages about parts of the file that are not read; complete after `rows` has ended."""
        notes = list(self.table.notes)
        if self.others:
            notes.append(
                Message("not read, choose it with --sheet: {sheets}", sheets=list_names(self.others))
            )
        if self.passed:
            rows = list_names([*map(str, self.passed)])
            notes.append(Message("no entries, but totals, signatures or headings: rows {rows}", rows=rows))
        if self.unused:
            notes.append(describe_unused(self.unused))
        return notes


def find_table(
    file: BinaryIO,
    origin: str,
    choice: TableChoice,
    wanted: WantedTable,
    most_unpacked: int = MOST_UNPACKED,
) -> FoundTable:
    """Find the table in a file, and its header. The header may have two rows.

    The header is the row with the most needed fields; of several such rows, the one with the most known fields, then
    the first. If two sheets have equally good headers, a sheet whose name means notes is not taken. Hidden sheets are
    read only if a person chose them.

    Raises:
        InputError: the file can't be read, or the chosen sheet or row does not exist.
    """
    tables = _chosen(open_tables(file, origin, most_unpacked), choice.sheet, origin)
    found = [_look_at(table, choice.header_row, wanted) for table in tables]

    def rank(one: FoundTable) -> tuple[object, ...]:
        needed, known, _ = one.rank
        is_note = _NOTE_SHEET.search(one.table.sheet) is not None
        return needed, known, one.header_row > 0, len(one.sample) > 0, not is_note

    best = max(found, key=rank)
    if choice.header_row and not best.header_row:
        raise InputError("{origin}: row {row} is empty", origin=origin, row=choice.header_row)
    return replace(best, others=[one.table.sheet for one in found if one.sample and one is not best])


def _chosen(tables: Sequence[Table], sheet: str | None, origin: str) -> Sequence[Table]:
    if sheet is None:
        return [table for table in tables if not table.is_hidden] or tables
    numbered = [table for number, table in enumerate(tables, 1) if str(number) == sheet]
    chosen = [table for table in tables if table.sheet == sheet] or numbered
    if not chosen or not tables[0].sheet:
        has = list_names([one.sheet for one in tables if one.sheet]) or Message("none")
        raise InputError(
            "{origin}: there is no sheet {sheet}; it has {has}", origin=origin, sheet=sheet, has=has
        )
    return chosen


def _look_at(table: Table, header_row: int | None, wanted: WantedTable) -> FoundTable:
    rows = (row for row in table.rows() if isinstance(row, TableRow) and row.line >= (header_row or 0) - 1)
    sample = [
        TableRow(row.line, tuple(cell[:_LONGEST_NAME] for cell in row.cells))
        for row in islice(rows, _LOOKED_AT)
    ]
    best = FoundTable(table, sample, wanted.needed)
    for place, row in enumerate(sample):
        if header_row is not None:
            if row.line == header_row:
                return _header(best, place, wanted)
            continue
        filled = row.places()
        fields = wanted.find_fields(row.cells)
        if len(fields) == 1 and len(filled) > 2 and any(filled <= one.places() for one in sample[:place]):
            continue  # an entry with a column's name in one of its cells
        if len(fields) >= _FEWEST or not fields.keys().isdisjoint(wanted.needed):
            one = _header(best, place, wanted)
            if one.rank > best.rank:
                best = one
    return best


def _header(found: FoundTable, place: int, wanted: WantedTable) -> FoundTable:
    """Read the names of the columns from a row. If merged cells spread the names over two rows, read both."""
    row = found.sample[place]
    width = max(len(one.cells) for one in found.sample)
    names = [*row.cells, *[""] * (width - len(row.cells))]
    entry = wanted.find_fields(names).get(wanted.needed[0], 0)
    empty = {column for column in range(width) if not names[column]}
    groups = {column for column in range(width) if {column, column + 1} & {*empty, width}}
    last_row = row.line
    for other in found.sample[max(0, place - 1) : place + 2]:
        filled = {column for column in other.places() if other.cells[column] != names[column]}
        is_above = other.line == row.line - 1 and len(filled) > 1
        if other.line == row.line + 1 and filled & empty and filled <= groups and entry not in filled:
            last_row = other.line
        elif not is_above:
            continue
        for column in filled & empty if is_above else filled:
            names[column] = other.cells[column]
    names = [visible(name) for name in names]
    usual = _usual_width(one for one in found.sample if one.line > last_row)
    while len(names) > max(len(row.cells), usual) and not names[-1]:
        names.pop()
    return replace(
        found, names=names, fields=wanted.find_fields(names), header_row=row.line, last_row=last_row
    )


def _usual_width(rows: Iterable[TableRow]) -> int:
    """Return the number of columns that more than half of the rows have; 0 if there is no such number.

    The header may have fewer cells, if the last columns have no names.
    """
    widths = Counter(max(row.places()) + 1 for row in rows)
    if not widths:
        return 0
    [(width, n)] = widths.most_common(1)
    return width if n > 1 and 2 * n > widths.total() else 0


def is_foot(text: str) -> bool:
    """Return True if a text belongs to a total or a signature below a table."""
    return _FOOT.fullmatch(text) is not None
