"""Tables that people have: CSV with commas, semicolons or tabs, in today's and older encodings, and xlsx.

They are read as a stream: a file of any length takes the memory of a few of its rows. Of a workbook, its shared texts
are in memory.
"""

from __future__ import annotations

import codecs
import csv
import io
import logging
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import BinaryIO, TextIO

from splitter.errors import InputError

log = logging.getLogger("reviewloop.tables")

_DELIMITERS = ",;\t，；"
_ZIP, _OLD_EXCEL = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
_HEAD = 1000
"""Bytes at the beginning of a file that tell what it is."""
_CHUNK = 1 << 18
_MOST_UNPACKED = 500_000_000
"""Bytes that a workbook may unpack to."""
_LONGEST_HEADER = 1 << 16


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row that is not empty.

    Attributes:
        line: of the file, or row of the sheet, from 1; where a cell spans lines, its last.
    """

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be read, and why."""

    line: int
    why: str


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is encoded.

    Attributes:
        name: for Python; without a byte order mark where the file has one.
        broken_at: line of the first bytes that are no text in it; None: all are.
    """

    name: str
    broken_at: int | None = None


def read_table(data: bytes, origin: str) -> Iterator[TableRow]:
    """The rows of a file, cells without blanks around them; of a workbook its first sheet.

    UTF-8 and UTF-16 (with or without mark), GB18030 (GBK, GB2312) and xlsx are read. The delimiter is the one of comma,
    semicolon and tab that the first line has most of.

    Raises:
        InputError: it is none of these; the message names the file, and the line where there is one.
    """
    file = io.BytesIO(data)
    whole_encoding(file, origin)
    for row in stream_table(file, origin):
        if isinstance(row, BadRow):
            raise InputError(f"{origin}:{row.line}: {row.why}")
        yield row


def stream_table(file: BinaryIO, origin: str) -> Iterator[TableRow | BadRow]:
    """The rows of a file that can be read from its beginning again; those that can't be read with the reason.

    Args:
        file: is left open.

    Raises:
        InputError: it is no such file.
    """
    head = head_of(file)
    if head.startswith(_OLD_EXCEL):
        raise InputError(f"{origin}: is a workbook of an old Excel (xls); save it as xlsx or CSV")
    for row in _sheet(file, origin) if is_workbook(head) else _lines(file, origin):
        if isinstance(row, BadRow):
            yield row
            continue
        line, cells = row
        stripped = tuple(cell.strip() for cell in cells)
        if any(stripped):
            yield TableRow(line, stripped)


def head_of(file: BinaryIO) -> bytes:
    """The first bytes of a file; it stands at its beginning then."""
    file.seek(0)
    head = file.read(_HEAD)
    file.seek(0)
    return head


def is_workbook(data: bytes) -> bool:
    """Whether it is an xlsx, by its first bytes."""
    return data.startswith(_ZIP)


def text_of(data: bytes, origin: str) -> str:
    """The text of a file in one of the encodings `read_table` reads. Raises InputError."""
    return data.decode(whole_encoding(io.BytesIO(data), origin))


def whole_encoding(file: BinaryIO, origin: str) -> str:
    """The encoding of a file (any, of a workbook). Raises InputError where not all of it is text."""
    if is_workbook(head_of(file)) or head_of(file).startswith(_OLD_EXCEL):
        return "utf-8-sig"
    found = encoding_of(file, origin)
    if found.broken_at is None:
        return found.name
    if found.name.startswith("utf-16"):
        raise InputError(f"{origin}:{found.broken_at}: is no UTF-16 from here on; save it as UTF-8")
    raise InputError(
        f"{origin}:{found.broken_at}: is neither UTF-8 nor GB18030 (GBK, GB2312); save it as UTF-8"
    )


def encoding_of(file: BinaryIO, origin: str) -> Encoding:
    """The encoding that all of a file can be read in, or else the one that most of it can: it is read to its end.

    Raises:
        InputError: it is no text.
    """
    head = head_of(file)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return Encoding("utf-16", _line_at(file, _broken(file, "utf-16")))
    if b"\0" in head:
        # Without a mark: which byte of a pair is zero tells the order; text of Chinese alone has hardly any.
        zeros = Counter(place % 2 for place, byte in enumerate(head) if not byte)
        name = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
        odd = file.seek(0, io.SEEK_END) % 2
        at = _broken(file, name)
        in_head = at is not None and at < len(head)
        if odd or in_head or abs(zeros[0] - zeros[1]) < sum(zeros.values()) / 2:
            raise InputError(f"{origin}: is no text; give a CSV file, an xlsx, or one name a line")
        return Encoding(name, _line_at(file, at))
    ends: dict[str, int] = {}
    for name in ("utf-8-sig", "gb18030"):
        at = _broken(file, name)
        if at is None:
            return Encoding(name)
        ends[name] = at
    best = max(ends, key=lambda name: ends[name])
    return Encoding(best, _line_at(file, ends[best]))


def _broken(file: BinaryIO, encoding: str) -> int | None:
    """Position of the first bytes that can't be decoded; None: all can."""
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


def _line_at(file: BinaryIO, place: int | None) -> int | None:
    """The line of a place in a file; None for None."""
    if place is None:
        return None
    file.seek(0)
    lines, left = 1, place
    while left > 0 and (chunk := file.read(min(_CHUNK, left))):
        lines += chunk.count(b"\n")
        left -= len(chunk)
    return lines


@contextmanager
def opened_text(file: BinaryIO, encoding: Encoding) -> Iterator[TextIO]:
    """The text of a file from its beginning, with U+FFFD for what can't be decoded; the file stays open."""
    file.seek(0)
    text = io.TextIOWrapper(
        file, encoding.name, "strict" if encoding.broken_at is None else "replace", newline=""
    )
    try:
        yield text
    finally:
        with suppress(ValueError):  # its owner may have closed the file before the last row was read
            text.detach()


def delimiter_of(line: str) -> str:
    """The delimiter a line has most of, outside quotes; a comma where it has none."""
    outside = "".join(line.split('"')[::2])
    return max(_DELIMITERS, key=outside.count) if any(char in outside for char in _DELIMITERS) else ","


def _lines(file: BinaryIO, origin: str) -> Iterator[tuple[int, list[str]] | BadRow]:
    encoding = encoding_of(file, origin)
    with opened_text(file, encoding) as text:
        while (first := text.readline(_LONGEST_HEADER)) and not first.strip():
            pass
        text.seek(0)
        reader = csv.reader(text, delimiter=delimiter_of(first))
        while True:
            try:
                row = next(reader, None)
            except csv.Error as error:
                yield BadRow(reader.line_num, f"is no CSV ({error}): is a quote opened and never closed?")
                continue
            if row is None:
                return
            if encoding.broken_at is not None and any("\ufffd" in cell for cell in row):
                yield BadRow(
                    reader.line_num, f"holds bytes that are no {encoding.name.removesuffix('-sig').upper()}"
                )
            else:
                yield reader.line_num, row


def _sheet(file: BinaryIO, origin: str) -> Iterator[tuple[int, list[str]]]:
    from openpyxl import load_workbook  # slow to import

    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
        if unpacked > _MOST_UNPACKED:
            raise InputError(f"{origin}: unpacks to {unpacked:,} bytes; split it, or save it as CSV")
        book = load_workbook(file, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        if (sheets := len(book.worksheets)) > 1:
            log.warning("%s: of %d sheets only the first is read: %s", origin, sheets, sheet.title)
        sheet.reset_dimensions()  # some writers say a wrong size
        for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
            yield number, [_cell(value) for value in row]
    except (zipfile.BadZipFile, KeyError, ValueError, IndexError, OSError) as error:
        raise InputError(f"{origin}: is no xlsx that can be read: {error}") from None


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == datetime.min.time():
        return value.date().isoformat()
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
