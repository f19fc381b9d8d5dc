"""A reader of xlsx files that takes bounded memory and time, whatever the file holds.

The XML (ECMA-376, part 1, 18) goes through expat as a stream and is never built as a tree. openpyxl builds a whole row
before anyone can look at it and fills the gap to a row number that a file makes up, so it can't hold these limits.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, product
from string import ascii_uppercase
from typing import BinaryIO
from xml.parsers import expat

from app.files.harmless import one_line
from splitter.errors import InputError

MOST_UNPACKED = 500_000_000
"""Maximum number of bytes that a workbook may unpack to, and of characters that the rows of a sheet may hold."""
MOST_ROWS, MOST_COLUMNS, MOST_CELLS, MOST_CHARACTERS = 1_048_576, 1_024, 5_000_000, 32_767
MOST_SHARED = 50_000_000
"""Maximum number of bytes that the shared texts of a workbook may take in memory."""
MOST_EMPTY_ROWS = 1_000
COLUMNS = {
    "".join(letters): number
    for number, letters in enumerate(chain(*(product(ascii_uppercase, repeat=n) for n in (1, 2, 3))), 1)
}
"""The numbers of columns, from 1, by their letters."""
_MOST_OF_A_PART = 20_000_000
"""Maximum number of bytes of a part that is no sheet and has no shared texts."""
_MOST_NAMES, _LONGEST_TAG, _DEEPEST = 10_000, 1 << 17, 100
"""Limits on what expat stores: different names of elements, bytes of a tag, elements within elements."""
_CHUNK = 1 << 16
_LONGEST_FORMAT = 255
_FIRST_DAY, _FIRST_DAY_1904 = datetime(1899, 12, 31), datetime(1904, 1, 1)  # noqa: DTZ001 - a sheet's times have no zone
_DAY_THAT_NEVER_WAS = 60
"""Excel counts a 29 February 1900."""
_DATE_FORMATS = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
"""Numbers of the built-in formats of dates and times, with those of Chinese Excel (18.8.30)."""
_LITERAL = re.compile(r'"[^"]*"|\[[^\[\]]*\]|[\\_*].')
_DATE_LETTERS = frozenset("ymdhsYMDHS")
_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, expat.ExpatError),
    *(ArithmeticError, EOFError, LookupError, OSError, RuntimeError, ValueError),
)


@dataclass(frozen=True, slots=True)
class Sheet:
    """A worksheet of a workbook."""

    name: str
    path: str
    is_hidden: bool


class Workbook:
    """A workbook whose sheets can be read as streams, again and again.

    Args:
        file: stays open as long as rows are read.
        origin: names the file in messages.
        most_unpacked: see `MOST_UNPACKED`.

    Raises:
        InputError: it is no workbook, or exceeds a limit.
    """

    def __init__(self, file: BinaryIO, origin: str, most_unpacked: int = MOST_UNPACKED) -> None:
        self._origin, self._place = origin, ("", 0)
        self._most_unpacked = most_unpacked
        self._unpacked: dict[str, int] = {}
        self._texts, self._ends = bytearray(), array("Q", [0])
        self._dates: set[str] = set()
        self._first_day = _FIRST_DAY
        self.sheets: list[Sheet] = []
        with self._readable():
            self._archive = zipfile.ZipFile(file)
            [book] = self._find_parts("", "officeDocument").values()
            worksheets = self._find_parts(book, "worksheet")
            for name, given in self._elements(book):
                if name == "sheet":
                    path = worksheets.get(next((given[key] for key in given if key.endswith(":id")), ""))
                    if path is not None:  # a chart's sheet has no rows
                        is_hidden = given.get("state", "visible") != "visible"
                        self.sheets.append(Sheet(one_line(given["name"]), path, is_hidden))
                elif name == "workbookPr" and given.get("date1904") in ("1", "true"):
                    self._first_day = _FIRST_DAY_1904
            for path in self._find_parts(book, "styles").values():
                self._read_styles(path)
            for path in self._find_parts(book, "sharedStrings").values():
                self._read_shared(path)

    def _find_parts(self, part: str, kind: str) -> dict[str, str]:
        """Return the paths of the parts of a kind that a part refers to, by their ids."""
        folder, name = posixpath.split(part)
        elements = self._elements(posixpath.join(folder, "_rels", f"{name}.rels"))
        return {
            given["Id"]: posixpath.normpath(posixpath.join("/", folder, given["Target"]))[1:]
            for name, given in elements
            if name == "Relationship" and given["Type"].endswith(f"/{kind}")
        }

    def _read_styles(self, path: str) -> None:
        dates, styles = set(_DATE_FORMATS), 0
        for name, given in self._elements(path):
            if name == "numFmt":
                code = _LITERAL.sub("", given["formatCode"][:_LONGEST_FORMAT])
                if not _DATE_LETTERS.isdisjoint(code):
                    dates.add(int(given["numFmtId"]))
            elif name == "cellXfs":  # the ones before are no styles of cells
                styles = 0
                self._dates.clear()
            elif name == "xf":
                if int(given.get("numFmtId", 0)) in dates:
                    self._dates.add(str(styles))
                styles += 1

    def _read_shared(self, path: str) -> None:
        """Store the shared texts in one piece: each takes its bytes and 8 more."""
        for name, _, text in self._cells(path):
            if name == "si":
                self._texts += text.encode()
                self._ends.append(len(self._texts))
                _check(len(self._texts) + 8 * len(self._ends), MOST_SHARED, "bytes of shared texts")

    def _elements(self, path: str) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield the elements of a small part at their beginning."""
        events = self._events(path, _MOST_OF_A_PART)
        return ((name, given) for name, given, _ in events if given is not None)

    def rows(self, sheet: Sheet, notes: list[str]) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of each row that is not empty.

        Args:
            notes: gets a sentence if the sheet was not read to its end.

        Raises:
            InputError: a limit is exceeded, or the sheet can't be read.
        """
        number = last = column = count = characters = 0
        row: list[str] = []
        with self._readable():
            self._place = sheet.name, 0
            for name, given, text in self._cells(sheet.path):
                if name == "row":
                    before, number = number, int(given.get("r", number + 1))
                    self._place = sheet.name, number
                    column, row = 0, []
                    _check(number, MOST_ROWS, "rows")
                    if number <= before:
                        raise InputError(f"comes after row {before:,}")
                    if number - last > MOST_EMPTY_ROWS:
                        notes[:] = [f"{MOST_EMPTY_ROWS:,} rows below row {last:,} are empty: it ends there"]
                        return
                elif name == "c":
                    count += 1
                    _check(count, MOST_CELLS, "cells in the sheet")
                    column = COLUMNS[given["r"].rstrip("0123456789")] if "r" in given else column + 1
                    if text:
                        _check(column, MOST_COLUMNS, "columns")
                        row.extend([""] * (column - len(row)))
                        row[column - 1] = text = self._value(given.get("t", "n"), given.get("s", ""), text)
                        characters += len(text)
                        _check(characters, self._most_unpacked, "characters in the sheet")
                elif row:
                    yield number, row
                    last = number

    def _cells(self, path: str) -> Iterator[tuple[str, Mapping[str, str], str]]:
        """Yield each cell and shared text with its attributes and text, and each row at its start and its end."""
        given: Mapping[str, str] = {}
        text: list[str] = []
        length, is_text, is_phonetic = 0, False, False
        for name, attributes, characters in self._events(path, self._most_unpacked):
            if characters:
                if is_text:
                    length += len(characters)
                    _check(length, MOST_CHARACTERS, "characters in a cell")
                    text.append(characters)
                continue
            is_text = attributes is not None and name in ("v", "t") and not is_phonetic
            if name == "rPh":
                is_phonetic = attributes is not None
            elif name in ("c", "si"):
                if attributes is None:
                    yield name, given, "".join(text)
                else:
                    given, text, length = attributes, [], 0
            elif name == "row":
                yield ("row", attributes, "") if attributes is not None else ("end", {}, "")
            elif name == "sheetData" and attributes is None:
                return

    def _events(self, path: str, most: int) -> Iterator[tuple[str, dict[str, str] | None, str]]:
        """Yield the events of a part's XML: name and attributes; at an element's end None; or characters.

        Args:
            most: bytes of the part.
        """
        if self._archive.getinfo(path).compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError("is packed by another method than deflate; save it again")
        events: list[tuple[str, dict[str, str] | None, str]] = []
        done = depth = 0

        def add(name: str, given: dict[str, str] | None = None) -> None:
            nonlocal depth
            depth += -1 if given is None else 1
            events.append((name[name.find(":") + 1 :], given, ""))

        def refuse(*_: object) -> None:
            raise InputError(f"{path} declares a document type (DTD), which no workbook needs")

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = parser.EndElementHandler = add
        parser.CharacterDataHandler = lambda text: events.append(("", None, text))
        parser.StartDoctypeDeclHandler = refuse
        with self._archive.open(path) as part:
            chunk = b"begin"
            while chunk:
                chunk = part.read(_CHUNK)
                done += len(chunk)
                self._unpacked[path] = max(done, self._unpacked.get(path, 0))
                _check(done, most, f"bytes unpacked in {path}")
                _check(sum(self._unpacked.values()), self._most_unpacked, "bytes unpacked")
                parser.Parse(chunk, not chunk)
                _check(done - parser.CurrentByteIndex, _LONGEST_TAG, "bytes in a tag or comment")
                _check(len(parser.intern), _MOST_NAMES, "names of elements")
                _check(depth, _DEEPEST, "elements in each other")
                yield from events
                events.clear()

    def _value(self, kind: str, style: str, text: str) -> str:
        """Return the text of a cell that is shown, given its type, style and value."""
        if kind == "s":
            number = int(text)
            return self._texts[self._ends[number] : self._ends[number + 1]].decode()
        if kind == "n" and (style in self._dates or not text.isdigit()):
            value = float(text)
            with suppress(OverflowError):
                if style in self._dates:
                    return self._date(value)
                if value.is_integer():
                    return str(int(value))
        return "" if kind == "e" else text

    def _date(self, days: float) -> str:
        if self._first_day == _FIRST_DAY and days >= _DAY_THAT_NEVER_WAS:
            days -= 1
        moment = self._first_day + timedelta(seconds=round(days * 86_400))
        return moment.time().isoformat() if 0 <= days < 1 else moment.isoformat(" ").removesuffix(" 00:00:00")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Raise what goes wrong within as InputError that names file, sheet and row."""
        try:
            yield
        except (InputError, *_DAMAGED) as error:
            sheet, row = self._place
            where = f"sheet {sheet}, row {row:,}: " if row else f"sheet {sheet}: " if sheet else ""
            why = str(error) if isinstance(error, InputError) else f"is no xlsx that can be read: {error}"
            raise InputError(f"{self._origin}: {where}{one_line(why[:300])}") from None


def _check(number: int, most: int, what: str) -> None:
    if number > most:
        raise InputError(f"has more than {most:,} {what}")
