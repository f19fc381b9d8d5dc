"""Steps of `product import` and `review import` that both take."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from shutil import copyfileobj
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from app.cli.options import store_there, store_to_fill
from app.cli.output import say
from app.importing.columns import ColumnChoice, parse_mapping, unused_note
from app.importing.ignored_cells import IgnoredColumn
from app.importing.sheets import FoundTable, TableChoice
from app.run.setting_values import sqlite_file
from app.views.words import describe

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from tasks.store.sql.database import Store


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose a table of a file; the command gets them as `choice`."""

    @click.option(
        "--sheet", metavar="NAME", help="Name or number of the sheet. Default: the one with the columns."
    )
    @click.option(
        "--header-row", type=click.IntRange(0), metavar="N",
        help="Row of the column names; 0 if there is none. Default: found by the names.",
    )  # fmt: skip
    @wraps(command)
    def chosen(sheet: str | None, header_row: int | None, **options: Any) -> None:
        command(choice=TableChoice(sheet, header_row), **options)

    return chosen


def column_options(fields: Sequence[str]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that say what columns of a file hold; the command gets them as `columns`."""

    def add_options(command: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--map",
            "maps",
            metavar="FIELD=COLUMN",
            multiple=True,
            help="The column of a field; FIELD= leaves the field out. Repeatable.",
        )
        @click.option(
            "--ignore", "ignored", metavar="COLUMN", multiple=True,
            help="A column to skip, by its header or its letter. Repeatable.",
        )  # fmt: skip
        @wraps(command)
        def chosen(maps: tuple[str, ...], ignored: tuple[str, ...], **options: Any) -> None:
            command(columns=ColumnChoice(parse_mapping(maps, fields), ignored), **options)

        return chosen

    return add_options


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
    where = f"{describe(found.where)}: " if found is not None else ""
    say(f"{origin}: {where}{', '.join(f'{field} from {column}' for field, column in columns.items())}", "dim")


def print_ignored(ignored: Sequence[IgnoredColumn]) -> list[dict[str, object]]:
    """Print a line for each column with cells that were not understood, and return the columns as JSON."""
    for one in ignored:
        say(describe(one.note), "yellow")
    return [{"column": one.column, "values": one.values, "rows": one.rows} for one in ignored]


def table_document(found: FoundTable | None, unused: Sequence[str]) -> dict[str, object]:
    """Print the notes on what is not read of a file, and return them with the place of its table as JSON.

    Args:
        found: `None` for a file of JSON objects.
        unused: columns that nothing is read from.
    """
    if found is None:
        if unused:
            say(describe(unused_note(unused)), "yellow")
        return {"unused": unused}
    notes = replace(found, unused=unused).notes
    for note in notes:
        say(describe(note), "yellow")
    return {
        "sheet": found.table.sheet,
        "header_row": found.header_row,
        "notes": list(map(str, notes)),
        "unused": unused,
    }
