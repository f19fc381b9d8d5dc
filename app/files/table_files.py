"""Tables that people have: CSV with commas, semicolons or tabs, in today's and older encodings, and xlsx.

They are read as a stream: a file of any length takes the memory of a few of its rows. Only the shared texts of a
workbook are in memory.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, TextIO

from app.files.visible_text import strip_unseen
from app.files.xlsx_reader import MOST_UNPACKED, Sheet, Workbook
from splitter.errors import InputError

_DELIMITERS = ",;\t，；"
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_HEAD = 1000
"""Bytes at the beginning of a file that tell what it is."""
_CHUNK = 1 << 18
_SAMPLE = 1 << 16
"""Number of characters that are enough to find the delimiter of a text."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row that is not empty.

    Attributes:
        line: of the file, or row of the sheet, from 1; where a cell spans lines, its last.
    """

    line: int
    cells: tuple[str, ...]

    def cell(self, place: int) -> str:
        """Return the cell of a column; empty if the row is shorter."""
        return self.cells[place] if place < len(self.cells) else ""

    def places(self) -> set[int]:
        """Return the places of the cells that are not empty."""
        return {place for place, cell in enumerate(self.cells) if cell}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be read, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is encoded.

    Attributes:
        name: for Python.
        is_broken: some bytes can't be decoded.
    """

    name: str
    is_broken: bool = False

    def find_fault(self, text: str) -> str:
        """Return why a line that was read by `opened_text` can't be taken; empty if it can."""
        is_faulty = self.is_broken and "\ufffd" in text
        return f"holds bytes that are no {self.name.removesuffix('-sig').upper()}" if is_faulty else ""


@dataclass(frozen=True, slots=True)
class Table:
    """A text file of rows, or a sheet of a workbook.

    Attributes:
        rows: yields the rows from the first one on, each time it is called. One that can't be read has its reason.
        sheet: the name of the sheet; empty for a text file.
        notes: sentences on what was not read; complete when `rows` has ended.
    """

    rows: Callable[[], Iterator[TableRow | BadRow]]
    sheet: str = ""
    is_hidden: bool = False
    notes: list[str] = field(default_factory=list)


def open_tables(file: BinaryIO, origin: str, most_unpacked: int = MOST_UNPACKED) -> list[Table]:
    """Return the tables of a file that can be read from its beginning again.

    UTF-8 and UTF-16 (with or without mark), GB18030 (GBK, GB2312) and xlsx are read. Cells have no blanks around them,
    and rows without a filled cell are left out.

    Args:
        file: stays open as long as rows are read.
        most_unpacked: bytes that a workbook may unpack to.

    Raises:
        InputError: it is no such file, or exceeds a limit of `xlsx_reader`.
    """
    head = head_of(file)
    if head.startswith(_OLD_EXCEL):
        raise InputError(
            f"{origin}: is a workbook of an old Excel (xls), or has a password; save it as xlsx or CSV"
        )
    if not is_workbook(head):
        encoding = encoding_of(file, origin)
        return [Table(lambda: _strip_rows(_lines(file, encoding)))]
    book = Workbook(file, origin, most_unpacked)
    return [_sheet(book, sheet) for sheet in book.sheets]


def _sheet(book: Workbook, sheet: Sheet) -> Table:
    notes: list[str] = []
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


def head_of(file: BinaryIO) -> bytes:
    """Return the first bytes of a file, and go back to its beginning."""
    file.seek(0)
    head = file.read(_HEAD)
    file.seek(0)
    return head


def is_workbook(data: bytes) -> bool:
    """Return True if a file that begins with these bytes is an xlsx."""
    return data.startswith(_ZIP)


def encoding_of(file: BinaryIO, origin: str) -> Encoding:
    """Read a file to its end, and return the encoding of all of it, else that of its longest beginning.

    Raises:
        InputError: it is no text.
    """
    head = head_of(file)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Encoding("utf-16", _broken(file, "utf-16") is not None)
    if b"\0" in head:
        # Without a mark: which byte of a pair is zero tells the order; text of Chinese alone has hardly any.
        zeros = Counter(place % 2 for place, byte in enumerate(head) if not byte)
        name = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
        odd = file.seek(0, io.SEEK_END) % 2
        at = _broken(file, name)
        in_head = at is not None and at < len(head)
        if odd or in_head or abs(zeros[0] - zeros[1]) < sum(zeros.values()) / 2:
            raise InputError(f"{origin}: is no text; give a CSV file, an xlsx, or one name a line")
        return Encoding(name, at is not None)
    ends: dict[str, int] = {}
    for name in ("utf-8-sig", "gb18030"):
        at = _broken(file, name)
        if at is None:
            return Encoding(name)
        ends[name] = at
    return Encoding(max(ends, key=lambda name: ends[name]), is_broken=True)


def _broken(file: BinaryIO, encoding: str) -> int | None:
    """Return the position of the first bytes that can't be decoded, or None."""
    decoder = codecs.getincrementaldecoder(encoding)()
    file.seek(0)
    at = 0
    while True:
        chunk = file.read(_CHUNK)
        held = len(decoder.getstate()[0])
        try:
            decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            return max(0, at - held + error.start)
        if not chunk:
            return None
        at += len(chunk)


@contextmanager
def opened_text(file: BinaryIO, encoding: Encoding) -> Iterator[TextIO]:
    """Give the text of a file from its beginning, with U+FFFD for undecodable bytes. The file stays open."""
    file.seek(0)
    text = io.TextIOWrapper(file, encoding.name, "replace", newline="")
    try:
        yield text
    finally:
        with suppress(ValueError):  # its owner may have closed the file before the last row was read
            text.detach()


def delimiter_of(sample: str) -> str:
    """Return the delimiter that most lines have equally often outside quotes, else the one that the first has most of.

    A comma or semicolon of Chinese counts only if the first line has it: texts are full of them.
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
    with opened_text(file, encoding) as text:
        delimiter = delimiter_of(text.read(_SAMPLE))
        text.seek(0)
        reader = csv.reader(text, delimiter=delimiter)
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield BadRow(reader.line_num, f"is no CSV ({error}): is a quote opened and never closed?")
                continue
            if row is None:
                return
            why = encoding.find_fault("".join(row))
            yield BadRow(reader.line_num, why) if why else (reader.line_num, row)
