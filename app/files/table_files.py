"""Read tables from CSV files (comma, semicolon or tab; current and older encodings) and from xlsx files.

Files are read row by row, so memory holds only a few rows. Only the texts that the cells of a workbook share are
stored completely.
"""

from __future__ import annotations

import csv
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO

from app.files.text_files import LONGEST_LINE, open_text, read_lines
from app.files.visible_text import strip_unseen
from app.files.xlsx_reader import MOST_COLUMNS, MOST_UNPACKED, Sheet, Workbook
from splitter.errors import InputError, Message
from tasks.reading.file_encoding import Encoding, encoding_of, head_of

_DELIMITERS = ",;\t，；"
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_SAMPLE = 1 << 16
"""Number of characters read to find the delimiter of a text."""
_MOST_READ_AGAIN = 50_000_000
"""Maximum number of characters read a second time because a quote is never closed."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row with at least one cell that is not empty.

    Attributes:
        line: line in the file or row in the sheet, from 1; the last line if the row spans several lines.
    """

    line: int
    cells: tuple[str, ...]

    def cell(self, place: int) -> str:
        """Return the cell at a place (from 0); empty if the row has fewer cells."""
        return self.cells[place] if place < len(self.cells) else ""

    def places(self) -> set[int]:
        """Return the places (from 0) of the cells that are not empty."""
        return {place for place, cell in enumerate(self.cells) if cell}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read, with the reason."""

    line: int
    why: Message


@dataclass(frozen=True, slots=True)
class Table:
    """A table in a file: the whole text file, or one sheet of a workbook.

    Attributes:
        rows: yields all rows each time it is called; a row that can't be read is a `BadRow`.
        sheet: the name of the sheet; empty for a text file.
        notes: messages about parts that were not read; complete when `rows` has ended.
    """

    rows: Callable[[], Iterator[TableRow | BadRow]]
    sheet: str = ""
    is_hidden: bool = False
    notes: list[Message] = field(default_factory=list)


def open_tables(file: BinaryIO, origin: str, most_unpacked: int = MOST_UNPACKED) -> list[Table]:
    """Return the tables in an xlsx file or a text file.

    The encoding of a text file is found by `tasks.reading.charsets`. Blanks around cells are removed, and empty rows
    are left out.

    Args:
        file: a seekable file, which must stay open while rows are read.
        origin: name of the file, for messages.
        most_unpacked: maximum number of bytes of a workbook after decompression.

    Raises:
        InputError: the file has another format, or exceeds a limit of `xlsx_reader`.
    """
    head = head_of(file)
    refuse_old_workbook(head, origin)
    if not is_workbook(head):
        encoding = encoding_of(file, origin)
        return [Table(lambda: _strip_rows(_lines(file, encoding)))]
    book = Workbook(file, origin, most_unpacked)
    return [_sheet(book, sheet) for sheet in book.sheets]


def _sheet(book: Workbook, sheet: Sheet) -> Table:
    notes: list[Message] = []
    return Table(lambda: _strip_rows(book.rows(sheet, notes)), sheet.name, sheet.is_hidden, notes)


def _strip_rows(rows: Iterable[tuple[int, list[str]] | BadRow]) -> Iterator[TableRow | BadRow]:
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        line, cells = row
        stripped = tuple(map(strip_unseen, cells))
        if any(stripped):
            yield TableRow(line, stripped)


def refuse_old_workbook(data: bytes, origin: str) -> None:
    """Raise InputError if `data`, the beginning of a file, shows that the file is an xls or an xlsx with a password."""
    if data.startswith(_OLD_EXCEL):
        raise InputError(
            "{origin}: is a workbook of an old Excel (xls), or has a password; save it without a password as .xlsx or "
            "as CSV (UTF-8)",
            origin=origin,
        )


def is_workbook(data: bytes) -> bool:
    """Return True if `data`, the beginning of a file, shows that the file is an xlsx."""
    return data.startswith(_ZIP)


def delimiter_of(sample: str) -> str:
    """Return the sign that separates columns: outside quotes, half of the lines or more have it equally often.

    If no sign is like that, it is the most frequent one in the first line. Chinese commas and semicolons count only if
    the first line contains them, because they are frequent in texts.
    """
    lines = [line for line in "".join(sample.split('"')[::2]).splitlines() if line.strip()] or [""]

    def count_alike(char: str) -> int:
        if not char.isascii() and char not in lines[0]:
            return 0
        return max(Counter(line.count(char) for line in lines if char in line).values(), default=0)

    best = max(_DELIMITERS, key=count_alike)
    if count_alike(best) > 1 and count_alike(best) * 2 >= len(lines):
        return best
    return max(_DELIMITERS, key=lines[0].count)


def _lines(file: BinaryIO, encoding: Encoding) -> Iterator[tuple[int, list[str]] | BadRow]:
    with open_text(file, encoding) as text:
        delimiter = delimiter_of(text.read(_SAMPLE))
    with open_text(file, encoding) as text:
        feed = _Feed(text)
        reader = csv.reader(feed, delimiter=delimiter)
        while True:
            feed.begin_record()
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield feed.refuse(feed.fault or csv_reason(error))
                continue
            if row is None:
                return
            if feed.is_ended:
                yield feed.refuse(Message("unexpected end of data"))
                continue
            why = encoding.find_fault("".join(row))
            if len(row) > MOST_COLUMNS:
                why = Message("has more than {n:,} cells", n=MOST_COLUMNS)
            yield BadRow(feed.line, why) if why else (feed.line, row)


def csv_reason(error: csv.Error) -> Message:
    """Return why a line can't be read as CSV, such as "unexpected end of data"."""
    if "field limit" in str(error):
        return Message("a cell has more than {n:,} characters", n=csv.field_size_limit())
    return Message(str(error))


class _Feed:
    """Gives the lines of a text to a csv reader.

    A quote that is never closed makes one record of all lines after it. These are then given again, as records of
    their own.

    Attributes:
        line: number of the last line that was given.
        is_ended: True if the text ended before the current record did.
        fault: the reason why the last line can't be read; `None` if it can be read.
    """

    def __init__(self, text: TextIO) -> None:
        self._lines = read_lines(text)
        self._again: deque[tuple[int, str, Message | None]] = deque()
        self._record: list[tuple[int, str, Message | None]] = []
        self._length = 0
        self._left = _MOST_READ_AGAIN
        self.line = 0
        self.is_ended = False
        self.fault: Message | None = None

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        entry = self._again.popleft() if self._again else next(self._lines, None)
        if entry is None:
            self.is_ended = bool(self._record)
            raise StopIteration
        self._record.append(entry)
        self.line, line, why = entry
        self._length += len(line)
        if why is None and self._length > LONGEST_LINE:
            why = Message("has more than {n:,} characters", n=LONGEST_LINE)
        if why is not None:
            self.fault = why
            raise csv.Error
        return line

    def begin_record(self) -> None:
        """Begin a new record: forget the lines of the one before."""
        self._record.clear()
        self._length = 0
        self.is_ended = False
        self.fault = None

    def refuse(self, why: Message) -> BadRow:
        """Return the first line of the record as a row that can't be read. The lines after it will be given again."""
        [(first, _, _), *others] = self._record
        if others or self.is_ended:
            why = Message("{why}: a quote is opened and never closed", why=why)
        if self._length <= self._left:
            self._left -= self._length
            self._again.extendleft(reversed(others))
        elif others:
            why = Message("{why}; the rows to line {line} are lost", why=why, line=self.line)
        return BadRow(first, Message("is no CSV ({why})", why=why))
