"""Write rows of a dataclass as CSV, JSON lines, JSON, XLSX or Parquet. Memory does not grow with the number of rows."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from datetime import UTC, date, datetime
from itertools import islice
from operator import attrgetter, methodcaller
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import IO, Any, get_args, get_origin, get_type_hints

from app.files.xlsx import SheetColumn, write_workbook
from app.views.fields import label
from app.views.moments import local_time
from app.views.theme_names import name_theme
from app.views.words import language
from splitter.errors import InputError, system_reason
from tasks.store.queries.reviews import ReviewRow
from tasks.worker.pseudonyms import Pseudonyms

_OWNER_ONLY = 0o600
LIST_MARK = " | "
"""Separator of the values of a list in a cell. The values themselves may contain commas and semicolons."""
_ROWS_AT_ONCE = 1_000
_ROWS_A_GROUP = 20_000
"""Number of rows in a group of a Parquet file, which is held in memory until it is written."""

# Characters that make a spreadsheet read a cell as a formula, full-width ones too, also behind blanks.
_FORMULA = frozenset("=+-@＝＋－＠\t\r\n")

_READ_FIRST = ("body", "day")
"""Names of the first columns of a sheet."""
_WRAPPED = frozenset({"body", "why", "suggestion", "errors", "last_head", "theme_quotes"})
_WIDTH, _WIDTH_OF = 14, {datetime: 20, date: 12, int: 10, float: 10, bool: 10}
_WIDTHS = {"body": 60, "page_title": 30, "title": 30, "url": 40, "last_url": 40, "why": 40, "suggestion": 40}
_WIDTHS |= {"errors": 30, "last_head": 60, "themes": 24, "theme_quotes": 40}
"""Widths of columns of a sheet, in characters."""

ENDINGS: Mapping[str, str] = MappingProxyType(
    {
        ".csv": "csv",
        ".jsonl": "jsonl",
        ".ndjson": "jsonl",
        ".json": "json",
        ".xlsx": "xlsx",
        ".parquet": "parquet",
    }
)
"""Formats by the ending of a file name."""

FORMATS = tuple(dict.fromkeys(ENDINGS.values()))
BINARY = ("xlsx", "parquet")
SPREADSHEETS = ("csv", "xlsx")
"""Formats whose columns and themes are named in the current language."""
MEDIA_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "csv": "text/csv; charset=utf-8",
        "jsonl": "application/x-ndjson",
        "json": "application/json",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "parquet": "application/vnd.apache.parquet",
    }
)
"""Content types by format."""


def format_of(name: str, endings: Mapping[str, str] = ENDINGS) -> str:
    """Return the format that belongs to the ending of a file name. Raises InputError if the ending is unknown."""
    ending = Path(name).suffix.lower()
    if ending not in endings:
        known = ", ".join(endings)
        if not ending:
            raise InputError(
                "{name} has no ending of {known}: name it so, or give --format", name=name, known=known
            )
        raise InputError(
            "{name}: its ending {ending} is none of {known}: name it so, or give --format",
            name=name,
            ending=ending,
            known=known,
        )
    return endings[ending]


def write_rows(rows: Iterable[object], record: type, form: str, out: IO[bytes]) -> int:
    """Write rows in the given order, and return their number.

    CSV and XLSX are for spreadsheets: their columns are named in the current language.

    Args:
        rows: instances of `record`.
        record: a dataclass whose fields become the columns. Fields may be texts, numbers, days, aware times, tuples of
            texts, or `None`.
        form: one of `FORMATS`.
        out: stream to write to; it need not be seekable.

    Raises:
        InputError: the format is Parquet, and the library for it is not installed.
    """
    writers: Mapping[str, Callable[[Iterable[object], type, IO[bytes]], int]] = {
        "csv": _write_csv,
        "jsonl": _write_jsonl,
        "json": _write_json,
        "xlsx": _write_xlsx,
        "parquet": _write_parquet,
    }
    return writers[form](rows, record, out)


def pseudonymise_rows(rows: Iterable[ReviewRow], pseudonyms: Pseudonyms | None) -> Iterable[ReviewRow]:
    """Return the rows with pseudonyms instead of authors' names.

    If `pseudonyms` is `None`, return the rows unchanged.
    """
    if pseudonyms is None:
        return rows
    return (replace(row, author=pseudonyms.pseudonym(row.site, row.author or "")) for row in rows)


def check_format(form: str) -> None:
    """Raise InputError if the library that a format needs is not installed."""
    if form == "parquet":
        _arrow()


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing. It gets its name only if the block ends without error, so no incomplete file remains.

    A device or pipe is written to directly.

    Raises:
        InputError: the file can't be written.
    """
    try:
        if path.exists() and not stat.S_ISREG(path.stat().st_mode):
            with path.open("wb") as file:
                yield file
            return
        draft = path.with_name(f".{path.name}.{os.getpid()}.new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
    except OSError as error:
        raise InputError(
            "{path} cannot be written: {reason}", path=path, reason=system_reason(error)
        ) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def columns(record: type) -> dict[str, type]:
    """Return the type of each column of a dataclass by name: str, bool, int, float, date, datetime, or tuple of str."""
    hints = get_type_hints(record)
    return {
        field.name: next(
            (one for one in get_args(hints[field.name]) if one is not NoneType), hints[field.name]
        )
        for field in fields(record)
    }


def _is_list(kind: object) -> bool:
    return get_origin(kind) is tuple


def _list_cell(name: str, values: Sequence[str] | None) -> str | None:
    """Return a list as the text of one cell. For themes, their names are shown."""
    if values is None:
        return None
    return LIST_MARK.join(map(name_theme, values) if name == "themes" else values)


def _values(record: type) -> Callable[[object], tuple[Any, ...]]:
    """Return a function that takes a row and returns its values in the order of the columns."""
    names = [field.name for field in fields(record)]
    return attrgetter(*names) if len(names) > 1 else lambda row: (getattr(row, names[0]),)


def _list_blocks(rows: Iterable[object], record: type, size: int) -> Iterator[list[tuple[Any, ...]]]:
    values, left = _values(record), iter(rows)
    while some := [values(row) for row in islice(left, size)]:
        yield some


def _heading(name: str) -> str:
    """Return the heading of a column: in English the field's name, in other languages its translation."""
    return name if language() == "en" else label(name)


def _write_csv(rows: Iterable[object], record: type, out: IO[bytes]) -> int:
    n = 0
    out.write("\ufeff".encode())  # without it Excel does not read UTF-8
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    of = columns(record)
    writer.writerow(map(_heading, of))
    out.write(text.getvalue().encode())
    for some in _list_blocks(rows, record, _ROWS_AT_ONCE):
        text.seek(0)
        text.truncate()
        by_column = zip(of.items(), zip(*some, strict=True), strict=True)
        cells = [_csv_column(name, kind, values) for (name, kind), values in by_column]
        writer.writerows(zip(*cells, strict=True))
        out.write(text.getvalue().encode(errors="backslashreplace"))
        n += len(some)
    return n


def _csv_column(name: str, kind: type, values: Sequence[Any]) -> Sequence[Any]:
    if kind in (bool, int, float):
        return values
    if _is_list(kind):
        values = [_list_cell(name, value) for value in values]
    # Most texts begin with a letter or digit, so that they need no closer look.
    return [
        value if not value or (type(value) is str and value[0].isalnum()) else _csv_cell(value)
        for value in values
    ]


def _csv_cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value.isoformat() if isinstance(value, date) else value
    first = value[:1]
    harmful = first in _FORMULA or (first.isspace() and value.lstrip()[:1] in _FORMULA)
    return f"'{value}" if harmful else value


def _json_objects(rows: Iterable[object], record: type) -> Iterator[list[str]]:
    names = [field.name for field in fields(record)]
    encode = json.JSONEncoder(ensure_ascii=False, default=methodcaller("isoformat")).encode
    for some in _list_blocks(rows, record, _ROWS_AT_ONCE):
        yield [encode(dict(zip(names, row, strict=True))) for row in some]


def _write_jsonl(rows: Iterable[object], record: type, out: IO[bytes]) -> int:
    n = 0
    for some in _json_objects(rows, record):
        out.write(("\n".join(some) + "\n").encode(errors="backslashreplace"))
        n += len(some)
    return n


def _write_json(rows: Iterable[object], record: type, out: IO[bytes]) -> int:
    """Write one JSON document: an array of objects."""
    n = 0
    out.write(b"[")
    for some in _json_objects(rows, record):
        out.write(((",\n" if n else "\n") + ",\n".join(some)).encode(errors="backslashreplace"))
        n += len(some)
    out.write(b"\n]\n")
    return n


def _write_xlsx(rows: Iterable[object], record: type, out: IO[bytes]) -> int:
    of = columns(record)
    names = sorted(of, key=lambda name: _READ_FIRST.index(name) if name in _READ_FIRST else len(_READ_FIRST))
    sheet = [
        SheetColumn(
            _heading(name),
            _WIDTHS.get(name) or _WIDTH_OF.get(of[name], _WIDTH),
            is_wrapped=name in _WRAPPED,
            is_link=name.endswith("url"),
        )
        for name in names
    ]
    return write_workbook(out, "rows", sheet, ([_sheet_cell(row, name) for name in names] for row in rows))


def _sheet_cell(row: object, name: str) -> Any:
    """Return the value of a cell.

    Times are in the zone of clock times; if only the day is known, no clock time is shown.
    """
    value = getattr(row, name)
    if isinstance(value, tuple):
        return _list_cell(name, value)
    if not isinstance(value, datetime):
        return value
    if name == "published_at" and isinstance(row, ReviewRow) and not row.has_clock:
        return None
    return local_time(value)


def _write_parquet(rows: Iterable[object], record: type, out: IO[bytes]) -> int:
    arrow, parquet = _arrow()
    kinds = {
        str: arrow.string(),
        bool: arrow.bool_(),
        int: arrow.int64(),
        float: arrow.float64(),
        date: arrow.date32(),
        datetime: arrow.timestamp("us", tz="UTC"),
    }
    of = columns(record)
    stored = {name: arrow.list_(kinds[str]) if _is_list(kind) else kinds[kind] for name, kind in of.items()}
    schema = arrow.schema(stored.items())
    n = 0
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        for some in _list_blocks(rows, record, _ROWS_A_GROUP):
            by_column = zip(*some, strict=True)
            arrays = [
                arrow.array(_storable(column, kind), stored[name])
                for column, (name, kind) in zip(by_column, of.items(), strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            n += len(some)
    return n


def _storable(column: Sequence[Any], kind: type) -> Sequence[Any]:
    """Return the values of a column in a form that Parquet can store: texts without lone surrogates, times in UTC."""
    if kind is str:
        return [one and one.encode(errors="replace").decode() for one in column]
    if _is_list(kind):
        return [one and _storable(one, str) for one in column]
    if kind is datetime:
        return [one and one.astimezone(UTC) for one in column]
    return column


def _arrow() -> tuple[Any, Any]:
    """Return the modules that write Parquet. Raises InputError if they are not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow, which is not installed: `pip install 'reviewloop[parquet]'`, or choose csv, "
            "jsonl, json or xlsx"
        ) from None
    return pyarrow, pyarrow.parquet
