"""Read xlsx files in limited memory and time, whatever a file contains.

The XML (ECMA-376, part 1, 18) is parsed by expat as a stream, without a tree. openpyxl can't keep these limits: it
builds whole rows first, and fills the gap up to any row number that a file claims.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import BinaryIO
from urllib.parse import unquote
from xml.parsers import expat

from app.files.harmless import one_line
from app.files.merged_cells import COLUMNS, MergedAreas, MergedCells, find_merged
from app.files.number_formats import BUILT_IN, LONGEST_FORMAT, sections, show_number
from splitter.errors import InputError, Message, list_names

MOST_UNPACKED = 500_000_000
"""Maximum number of bytes that a workbook may unpack to, and of characters that the rows of a sheet may hold."""
MOST_ROWS = 1_048_576
MOST_COLUMNS = 1_024
MOST_CELLS = 5_000_000
MOST_CHARACTERS = 32_767
MOST_SHEETS = 255
MOST_PLACES = 50_000_000
"""Maximum number of cells in a workbook, including empty ones before and between filled ones."""
MOST_ELEMENTS = 80_000_000
"""Maximum number of starts and ends of XML elements in a workbook. 5,000,000 cells have a quarter of it."""
MOST_STYLES = 65_490
MOST_PARTS = 10_000
MOST_SHARED = 50_000_000
"""Maximum memory of a workbook's shared texts, in bytes."""
MOST_EMPTY_ROWS = 1_000
_MOST_OF_A_PART = 20_000_000
"""Maximum number of bytes in a part other than a sheet or the shared texts."""
_MOST_NAMES, _LONGEST_TAG, _DEEPEST = 10_000, 1 << 17, 100
"""Limits on what expat stores: number of distinct element names, bytes of a tag, depth of nesting."""
_CHUNK = 1 << 16
_BOOK_ELEMENTS = frozenset({"Relationship", "sheet", "workbookPr", "numFmt", "cellXfs", "xf"})
_SHEET_ELEMENTS = frozenset({"sheetData", "row", "c", "f", "v", "t", "si", "rPh"})
_ELEMENTS = _BOOK_ELEMENTS | _SHEET_ELEMENTS
"""XML elements that are read; all others are skipped."""
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_LONGEST_ESCAPE = len("_x000D_")
_MOST_EMPTY_COLUMNS = 16_384
_FORMULAS = "formulas"
_LONGEST_ERROR = 20
_NOTED = 30
"""Maximum number of rows that a note lists."""
_PICTURE = "=DISPIMG("
"""Beginning of a cell's text that WPS shows as a picture."""
_FIRST_DAY, _FIRST_DAY_1904 = datetime(1899, 12, 31), datetime(1904, 1, 1)  # noqa: DTZ001 - a sheet's times have no zone
_DAY_THAT_NEVER_WAS = 60
"""Excel's number for 29 February 1900, a day that did not exist."""
_COSTS = {
    "bytes unpacked": Message("bytes unpacked in the workbook"),
    "characters": Message("characters in the workbook"),
    "cells": Message("cells in the workbook"),
    "cells (with empty ones between)": Message("cells (with empty ones between) in the workbook"),
    "elements": Message("elements in the workbook"),
}
"""Names of the counts that a workbook's limits apply to, for messages."""
_DAMAGE = Message(
    "is no xlsx that can be read: it is damaged or cut off. Copy it again, or open it in Excel and save it as .xlsx or "
    "as CSV (UTF-8)"
)
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
    """A workbook whose sheets can be read row by row, as often as needed.

    Args:
        file: a seekable file, which must stay open while rows are read.
        origin: name of the file in messages.
        most_unpacked: see `MOST_UNPACKED`.

    Raises:
        InputError: the file is not a workbook, or exceeds a limit.
    """

    def __init__(self, file: BinaryIO, origin: str, most_unpacked: int = MOST_UNPACKED) -> None:
        self._origin = origin
        self._place = ("", 0)
        self._most_unpacked = most_unpacked
        self._meter = _Meter(most_unpacked)
        self._texts = bytearray()
        self._ends = array("Q", [0])
        self._formats: dict[str, str] = {}
        self._first_day = _FIRST_DAY
        self._merged: dict[str, MergedAreas] = {}
        self.sheets: list[Sheet] = []
        with self._readable():
            self._archive = zipfile.ZipFile(file)
            parts = self._archive.namelist()
            _check(len(parts), MOST_PARTS, Message("parts"))
            self._parts = {_key(part): part for part in parts}
            self._read_book()

    def _read_book(self) -> None:
        if _key("_rels/.rels") not in self._parts:
            raise InputError("is no Excel workbook, but a file of another program; save it as xlsx or CSV")
        book = next((part for kind, part in self._relations("").values() if kind == "officeDocument"), "")
        if book.endswith(".bin"):
            raise InputError("is a binary workbook (xlsb); save it as xlsx or CSV")
        related = self._relations(book)
        for name, given in self._elements(book):
            if name == "sheet":
                id_ = next((given[key] for key in given if key.endswith(":id")), "")
                self._add_sheet(given, *related.get(id_, ("", "")))
            elif name == "workbookPr" and given.get("date1904") in ("1", "true"):
                self._first_day = _FIRST_DAY_1904
        if not self.sheets:
            raise InputError("has no sheet with cells; is it another kind of document?")
        parts = dict(reversed(related.values()))  # of a kind the first
        styles = parts.get("styles", "")
        if styles and _key(styles) in self._parts:
            self._read_styles(styles)
        shared = parts.get("sharedStrings", "")
        if shared and _key(shared) in self._parts:
            self._read_shared(shared)

    def _add_sheet(self, given: Mapping[str, str], kind: str, path: str) -> None:
        if kind != "worksheet":  # a chart's sheet has no rows
            return
        _check(len(self.sheets) + 1, MOST_SHEETS, Message("sheets"))
        name = one_line(given["name"])
        if any(_key(sheet.path) == _key(path) for sheet in self.sheets):
            raise InputError(
                "has two sheets in one part, {part}; the second is {name}", part=path, name=name[:_NOTED]
            )
        self.sheets.append(Sheet(name, path, given.get("state", "visible") != "visible"))

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Return (kind, path) of each part that a part refers to, by id."""
        folder, name = posixpath.split(part)
        found = {}
        for element, given in self._elements(posixpath.join(folder, "_rels", f"{name}.rels")):
            if element == "Relationship" and given.get("TargetMode") != "External":
                target = given["Target"].replace("\\", "/")
                path = posixpath.normpath(posixpath.join("/", folder, target))[1:]
                found[given["Id"]] = (given["Type"].rpartition("/")[2], path)
        _check(len(found), MOST_PARTS, Message("relationships"))
        return found

    def _read_styles(self, path: str) -> None:
        codes = dict(BUILT_IN)
        styles = 0
        for name, given in self._elements(path):
            if name == "numFmt":
                if given["formatCode"]:
                    codes[int(given["numFmtId"])] = given["formatCode"][:LONGEST_FORMAT]
                _check(len(codes), MOST_STYLES, Message("formats"))
            elif name == "cellXfs":  # the ones before are no styles of cells
                styles = 0
                self._formats.clear()
            elif name == "xf":
                code = codes.get(int(given.get("numFmtId", 0)))
                if code:
                    self._formats[str(styles)] = code
                styles += 1
                _check(styles, MOST_STYLES, Message("styles"))

    def _read_shared(self, path: str) -> None:
        """Read the texts that cells share into one block of memory. Each takes the bytes of its text and 8 more."""
        for name, _, text in self._cells(path):
            if name == "si":
                self._texts += (text or "").encode()
                self._ends.append(len(self._texts))
                _check(len(self._texts) + 8 * len(self._ends), MOST_SHARED, Message("bytes of shared texts"))

    def _elements(self, path: str) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield name and attributes of each XML element in a small part."""
        events = self._events(path, _MOST_OF_A_PART)
        return ((name, given) for name, given, _ in events if given is not None)

    def rows(self, sheet: Sheet, notes: list[Message]) -> Iterator[tuple[int, list[str]]]:
        """Yield (row number, cells) for each row that is not empty.

        Args:
            notes: after the last row, messages about parts that were not read are added to it.

        Raises:
            InputError: a limit is exceeded, or the sheet can't be read.
        """
        notes.clear()
        unread: dict[str, dict[int, None]] = {}
        number = last = column = count = characters = 0
        row: list[str] = []
        with self._readable():
            self._place = (sheet.name, 0)
            merged = self._read_merged(sheet.path)
            for name, given, text in self._cells(sheet.path):
                if name == "row":
                    before = number
                    number = int(given.get("r", number + 1))
                    self._place = (sheet.name, number)
                    _check(number, MOST_ROWS, Message("rows"))
                    if number <= before:
                        raise InputError("comes after row {before:,}", before=before)
                    if number - last > MOST_EMPTY_ROWS:
                        notes.append(
                            Message(
                                "{n:,} rows below row {row:,} are empty: it ends there",
                                n=MOST_EMPTY_ROWS,
                                row=last,
                            )
                        )
                        break
                    row = []
                    column = count = 0
                elif name == "c":
                    count += 1
                    column = COLUMNS[given["r"].rstrip("0123456789")] if "r" in given else column + 1
                    _check(column, MOST_COLUMNS if text else _MOST_EMPTY_COLUMNS, Message("columns"))
                    if text is None:
                        unread.setdefault(_FORMULAS, {})[number] = None
                    elif text and given.get("t") == "e":
                        unread.setdefault(text[:_LONGEST_ERROR], {})[number] = None
                    elif text:
                        row.extend([""] * (column - len(row)))
                        shown = self._value(given.get("t", "n"), given.get("s", ""), text)
                        row[column - 1] = shown
                        characters += len(shown)
                        if characters > _CHUNK:
                            self._meter.spend(sheet.path, {"characters": characters})
                            characters = 0
                else:
                    characters += merged.fill(number, row)
                    costs = {
                        "cells": count,
                        "cells (with empty ones between)": len(row),
                        "characters": characters,
                    }
                    self._meter.spend(sheet.path, costs)
                    characters = 0
                    if any(row):
                        yield number, row
                        last = number
        notes += [_note(what, list(rows)) for what, rows in unread.items()]

    def _read_merged(self, path: str) -> MergedCells:
        if path not in self._merged:
            self._merged[path] = find_merged(self._readable_chunks(path))
        return MergedCells(self._merged[path])

    def _readable_chunks(self, path: str) -> Iterator[bytes]:
        """Yield the bytes of a part.

        End without an error if it can't be read further: reading its rows reports the error.
        """
        with suppress(InputError, *_DAMAGED):
            yield from self._chunks(path, self._most_unpacked)

    def _cells(self, path: str) -> Iterator[tuple[str, Mapping[str, str], str | None]]:
        """Yield (name, attributes, text) for each cell and each shared text, and for each row at its start and its end.

        The text is `None` if a cell has a formula whose value was not stored.
        """
        given: Mapping[str, str] = {}
        values: list[str] = []
        texts: list[str] = []
        part = texts
        length = 0
        is_text = is_phonetic = is_formula = False
        for name, attributes, characters in self._events(path, self._most_unpacked):
            if characters:
                if is_text:
                    length += len(characters)
                    _check(length // _LONGEST_ESCAPE, MOST_CHARACTERS, Message("characters in a cell"))
                    part.append(characters)
                continue
            part = values if name == "v" else texts
            is_text = attributes is not None and name in ("v", "t") and not is_phonetic
            if name == "rPh":
                is_phonetic = attributes is not None
            elif name == "f":
                is_formula = True
            elif name in ("c", "si"):
                if attributes is None:
                    found = texts if given.get("t") == "inlineStr" else values  # some programs store both
                    whole = _unescape("".join(found or values or texts))
                    _check(len(whole), MOST_CHARACTERS, Message("characters in a cell"))
                    is_unknown = is_formula and not whole and given.get("t", "n") == "n"
                    yield name, given, None if is_unknown else whole
                else:
                    given = attributes
                    values = []
                    texts = []
                    length = 0
                    is_formula = False
            elif name == "row":
                yield ("row", attributes, "") if attributes is not None else ("end", {}, "")
            elif name == "sheetData" and attributes is None:
                return

    def _events(self, path: str, most: int) -> Iterator[tuple[str, dict[str, str] | None, str]]:
        """Yield the XML events of a part.

        A start tag gives (name, attributes, ""), an end tag (name, None, ""), and text ("", None, text).

        Args:
            most: maximum number of bytes in the part.
        """
        events: list[tuple[str, dict[str, str] | None, str]] = []
        done = depth = elements = 0

        def add(name: str, given: dict[str, str] | None = None) -> None:
            nonlocal depth, elements
            depth += -1 if given is None else 1
            elements += 1
            name = name[name.find(":") + 1 :]
            if name in _ELEMENTS:
                events.append((name, given, ""))

        def refuse(*_: object) -> None:
            raise InputError("{part} declares a document type (DTD), which no workbook needs", part=path)

        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = parser.EndElementHandler = add
        parser.CharacterDataHandler = lambda text: events.append(("", None, text))
        parser.StartDoctypeDeclHandler = refuse
        for chunk in self._chunks(path, most):
            done += len(chunk)
            parser.Parse(chunk, not chunk)
            self._meter.spend(path, {"elements": elements})
            elements = 0
            _check(done - parser.CurrentByteIndex, _LONGEST_TAG, Message("bytes in a tag or comment"))
            _check(len(parser.intern), _MOST_NAMES, Message("names of elements"))
            _check(depth, _DEEPEST, Message("elements in each other"))
            yield from events
            events.clear()

    def _chunks(self, path: str, most: int) -> Iterator[bytes]:
        """Yield the bytes of a part; the last chunk is empty.

        Raises InputError if the part has more than `most` bytes.
        """
        info = self._archive.getinfo(self._parts[_key(path)])
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError("is packed by another method than deflate; save it again")
        self._meter.begin(path)
        done = 0
        chunk = b"begin"
        with self._archive.open(info) as part:
            while chunk:
                chunk = part.read(_CHUNK)
                done += len(chunk)
                _check(done, most, Message("bytes unpacked in {part}", part=path))
                self._meter.spend(path, {"bytes unpacked": len(chunk)})
                yield chunk

    def _value(self, kind: str, style: str, text: str) -> str:
        """Return the text that Excel shows for a cell with this type, style and value."""
        if kind == "s":
            number = int(text)
            return self._texts[self._ends[number] : self._ends[number + 1]].decode()
        if kind == "b":
            return "TRUE" if text in ("1", "true") else "FALSE"
        if kind == "d":
            return text.removesuffix("Z").removesuffix(".000").replace("T", " ").removesuffix(" 00:00:00")
        if kind != "n":
            return "" if text.startswith(_PICTURE) else text
        code = self._formats.get(style, "")
        if text.isdigit() and not code:
            return text
        value = float(text)
        if not sections(code)[0].is_date:
            return show_number(value, code)
        try:
            return self._date(value, is_duration=sections(code)[0].is_duration)
        except (OverflowError, ValueError):
            return text

    def _date(self, days: float, *, is_duration: bool) -> str:
        if is_duration:
            minutes, seconds = divmod(round(days * 86_400), 60)
            hours, minutes = divmod(minutes, 60)
            return f"{hours}:{minutes:02}:{seconds:02}"
        if self._first_day == _FIRST_DAY and days >= _DAY_THAT_NEVER_WAS:
            days -= 1
        moment = self._first_day + timedelta(seconds=round(days * 86_400))
        return moment.time().isoformat() if 0 <= days < 1 else moment.isoformat(" ").removesuffix(" 00:00:00")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Convert errors in the block to an InputError that names file, sheet and row."""
        try:
            yield
        except (InputError, *_DAMAGED) as error:
            sheet, row = self._place
            why = _DAMAGE
            if isinstance(error, InputError):
                why = error.message
            if row:
                why = Message("sheet {sheet}, row {row:,}: {why}", sheet=sheet, row=row, why=why)
            elif sheet:
                why = Message("sheet {sheet}: {why}", sheet=sheet, why=why)
            raise InputError("{origin}: {why}", origin=self._origin, why=why) from None


def _check(number: int, most: int, what: Message) -> None:
    if number > most:
        raise InputError("has more than {n:,} {what}", n=most, what=what)


class _Meter:
    """Adds up the cost of reading the parts of a workbook. If a part is read twice, its cost counts twice.

    Args:
        most_unpacked: see `MOST_UNPACKED`.
    """

    def __init__(self, most_unpacked: int) -> None:
        self._limits = {
            "bytes unpacked": most_unpacked,
            "characters": most_unpacked,
            "cells": MOST_CELLS,
            "cells (with empty ones between)": MOST_PLACES,
            "elements": MOST_ELEMENTS,
        }
        self._parts: dict[str, Counter[str]] = {}
        self._total: Counter[str] = Counter()

    def begin(self, path: str) -> None:
        """Start to count the costs of a part."""
        self._total -= self._parts.get(path, Counter())
        self._parts[path] = Counter()

    def spend(self, path: str, costs: Mapping[str, int]) -> None:
        """Add costs of reading a part. Raises InputError if a limit is exceeded."""
        part = self._parts[path]
        for what, number in costs.items():
            part[what] += number
            self._total[what] += number
            _check(self._total[what], self._limits[what], _COSTS[what])


def _key(path: str) -> str:
    """Return the normal form of a part's name.

    Programs write the same name with other case, slashes or percent signs.
    """
    return unquote(path).replace("\\", "/").lstrip("/").casefold()


def _unescape(text: str) -> str:
    """Replace escape sequences by the characters that XML can't contain (ECMA-376, part 1, 22.9.2.19)."""
    if "_x" not in text:
        return text
    plain = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _note(what: str, rows: list[int]) -> Message:
    shown = list_names([*map(str, rows)], _NOTED)
    if what == _FORMULAS:
        return Message(
            "formulas without a stored value in rows {rows}: open the file in Excel and save it", rows=shown
        )
    return Message(
        "cells with the error {error} in rows {rows}: they count as empty", error=one_line(what), rows=shown
    )
