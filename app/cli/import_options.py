"""Steps of `product import` and `review import` that both take."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from app.cli.options import store_there, store_to_fill
from app.cli.output import say
from app.importing.sheets import FoundTable, TableChoice
from app.run.setting_values import sqlite_file

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from tasks.store.sql.database import Store


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose a table of a file; the command gets them as `choice`."""

    @click.option(
        "--sheet", metavar="NAME", help="Name or number of the sheet. Default: found by its columns."
    )
    @click.option(
        "--header-row", type=click.IntRange(0), metavar="N",
        help="Row of the names of columns; 0 if there is none. Default: found by its words.",
    )  # fmt: skip
    @wraps(command)
    def chosen(sheet: str | None, header_row: int | None, **options: Any) -> None:
        command(choice=TableChoice(sheet, header_row), **options)

    return chosen


@contextmanager
def rereadable(file: BinaryIO) -> Iterator[BinaryIO]:
    """Give the file, or a copy of a pipe, which can be read more than once."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        copyfileobj(file, copy)
        yield copy


@contextmanager
def store_or_none(settings: Settings, *, dry_run: bool) -> Iterator[Store | None]:
    """Open the store; a dry run makes none if there is none yet."""
    path = sqlite_file(settings.database_url)
    if dry_run and path is not None and not path.is_file():
        yield None
        return
    with store_there(settings) if dry_run else store_to_fill(settings) as store:
        yield store


def say_columns(origin: str, found: FoundTable | None, columns: Mapping[str, str]) -> None:
    """Print the table of a file that is read, and its columns."""
    where = f"{found.where}: " if found is not None else ""
    say(f"{origin}: {where}{', '.join(f'{field} from {column}' for field, column in columns.items())}", "dim")


def table_document(found: FoundTable | None) -> dict[str, object]:
    """Print the notes on a table, and return them with its place as JSON."""
    if found is None:
        return {}
    for note in found.notes:
        say(note, "yellow")
    return {"sheet": found.table.sheet, "header_row": found.header_row, "notes": found.notes}
