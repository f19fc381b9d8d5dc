"""Reviews written to a file: CSV or JSON lines, UTF-8, streamed; the file is there whole or not at all."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from splitter.errors import InputError
from tasks.store.review_rows import ReviewRow
from tasks.worker.pseudonyms import Pseudonyms

FORMATS = ("csv", "jsonl")
COLUMNS = tuple(field.name for field in fields(ReviewRow))

# What makes a spreadsheet read a cell as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def pseudonymised(rows: Iterable[ReviewRow], pseudonyms: Pseudonyms | None) -> Iterable[ReviewRow]:
    """Rows with pseudonyms of their authors; as they are where there is nothing to make them with."""
    if pseudonyms is None:
        return rows
    return (replace(row, author=pseudonyms.of(row.site, row.author or "")) for row in rows)


def write_csv(rows: Iterable[ReviewRow], out: IO[str], *, spreadsheet: bool = False) -> int:
    """Write CSV with a header; returns the number of rows.

    Args:
        spreadsheet: begin with a byte order mark, without which Excel does not read UTF-8, and put a ' before
            texts that it would take for formulas.
    """
    if spreadsheet:
        out.write("\ufeff")
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    n = 0
    for row in rows:
        n += 1
        cells = [_cell(getattr(row, name)) for name in COLUMNS]
        writer.writerow([_no_formula(cell) for cell in cells] if spreadsheet else cells)
    return n


def write_jsonl(rows: Iterable[ReviewRow], out: IO[str]) -> int:
    """Write one JSON object a line; returns the number of rows."""
    n = 0
    for row in rows:
        n += 1
        out.write(json.dumps(asdict(row), ensure_ascii=False, default=datetime.isoformat) + "\n")
    return n


@contextmanager
def whole_file(path: Path) -> Iterator[IO[str]]:
    """A file to write that takes its name only when the block has ended well.

    Raises:
        InputError: it cannot be written there.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        file = draft.open("w", encoding="utf-8", errors="backslashreplace", newline="")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with file:
            yield file
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def writer_of(form: str, *, spreadsheet: bool) -> Callable[[Iterable[ReviewRow], IO[str]], int]:
    """What writes a format of `FORMATS`."""
    if form == "jsonl":
        return write_jsonl
    return lambda rows, out: write_csv(rows, out, spreadsheet=spreadsheet)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
