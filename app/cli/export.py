"""`reviewloop export`: reviews as CSV or JSON lines, streamed; a file is there whole or not at all."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import click

from app.cli.options import db_option, json_option, pseudonymise_option, settings_of, store_there
from app.cli.output import print_json, say
from splitter.errors import InputError
from tasks.store.reviews import ReviewRow, review_rows
from tasks.worker.pseudonyms import Pseudonyms

FORMATS = ("csv", "jsonl")
COLUMNS = tuple(field.name for field in fields(ReviewRow))

# What makes a spreadsheet read a cell as a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@click.group()
def export() -> None:
    """Write what was collected to a file.

    \b
    Example:
      reviewloop export reviews --format csv -o reviews.csv
    """


@export.command()
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by the file's name, else csv.")
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="Default: - (standard output).",
)
@click.option("--product", metavar="NAME", help="Only this product's.")
@click.option("--site", metavar="NAME", help="Only this site's.")
@click.option(
    "--since", metavar="DATE", help="Only those collected then or later (UTC): 2026-05-01, 2026-05-01T12:00."
)
@click.option(
    "--spreadsheet",
    is_flag=True,
    help="csv for Excel: with a byte order mark, and no text read as a formula.",
)
@pseudonymise_option
@db_option
@json_option
def reviews(
    form: str | None,
    target: str,
    product: str | None,
    site: str | None,
    since: str | None,
    spreadsheet: bool,
    pseudonymise: bool | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Export reviews, one row for each (review, product): product, site, url, title, body, author, dates, rating.

    UTF-8. same_as is the number (column review) of an earlier review with an equal text, near_of of one with nearly
    the same text (a repost; similarity says how near). With --json, standard output holds how many were written;
    towards - it holds the reviews as JSON lines.

    \b
    Examples:
      reviewloop export reviews --format csv -o reviews.csv
      reviewloop export reviews --product 特仑苏 --since 2026-05-01 -o - --format jsonl
      reviewloop export reviews --spreadsheet -o for-excel.csv
    """
    to_stdout = target == "-"
    from app.wiring import pseudonyms  # brings the crawl

    if as_json and to_stdout and form == "csv":
        raise InputError("--json and --format csv can't share standard output: name a file with -o")
    kind = form or ("jsonl" if target.endswith((".jsonl", ".ndjson")) or (as_json and to_stdout) else "csv")
    if spreadsheet and kind != "csv":
        raise InputError("--spreadsheet is for --format csv")
    write = write_jsonl if kind == "jsonl" else partial(write_csv, spreadsheet=spreadsheet)
    begin = _date(since) if since else None
    settings = settings_of(db, pseudonymise=pseudonymise)
    with store_there(settings) as store, store.read() as conn:
        rows = pseudonymised(review_rows(conn, product=product, site=site, since=begin), pseudonyms(settings))
        if to_stdout:
            n = write(rows, sys.stdout)
            sys.stdout.flush()
        else:
            with whole_file(Path(target)) as out:
                n = write(rows, out)
    if as_json and not to_stdout:
        print_json({"file": target, "format": kind, "rows": n})
    else:
        say(f"{n:,} rows" + ("" if to_stdout else f" written to {target}"))


def _date(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"--since {text!r} is no date; write 2026-05-01 or 2026-05-01T12:00") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


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
        cells = (getattr(row, name) for name in COLUMNS)
        writer.writerow([_cell(value, spreadsheet) for value in cells])
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


def _cell(value: Any, spreadsheet: bool) -> Any:
    text = value.isoformat() if isinstance(value, datetime) else value
    return f"'{text}" if spreadsheet and str(text).startswith(_FORMULA) else text
