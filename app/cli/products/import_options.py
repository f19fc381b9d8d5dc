"""Options, files and messages that `product import` and `review import` share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from app.cli.command import App, command
from app.cli.options import ReadableFile, database_hint, store_there, store_to_fill
from app.cli.output import say
from app.cli.products.import_undo import undo_import
from app.files.text_files import rereadable
from app.importing.columns import ColumnChoice, describe_unused, parse_mapping
from app.importing.ignored_cells import IgnoredColumn
from app.importing.sheets import FoundTable, TableChoice
from app.run.setting_values import sqlite_file
from app.views.fields import label
from app.views.words import describe, join_words, name_text, translate
from splitter.errors import InputError, Message, ReviewloopError
from tasks.store.content import numbered_imports
from tasks.store.content.numbered_imports import ImportKind

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from tasks.store.sql.database import Store

_MOST_NUMBER = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFile:
    """A seekable file to import, with the table and columns that a person chose."""

    data: BinaryIO
    origin: str
    choice: TableChoice
    columns: ColumnChoice
    dry_run: bool


@dataclass(kw_only=True)
class FileNotes:
    """How a file was read.

    Attributes:
        sheet, header_row: sheet and header of the table; `None` for a file of JSON objects.
        columns: name of the column that each field was read from.
        unused: columns that no field was read from.
        ignored: columns with cells that were not understood.
    """

    columns: Mapping[str, str]
    ignored: Sequence[IgnoredColumn]
    unused: Sequence[str]
    sheet: str | None = None
    header_row: int | None = None
    notes: Sequence[Message] = ()


_OPTIONS = (
    click.argument("file", type=ReadableFile(), required=False),
    click.option(
        "--map",
        "maps",
        metavar="FIELD=COLUMN",
        multiple=True,
        help="The column of a field; FIELD= leaves the field out. Repeatable.",
    ),
    click.option(
        "--ignore",
        "skipped",
        metavar="COLUMN",
        multiple=True,
        help="A column to skip, by its header or its letter. Repeatable.",
    ),
    click.option(
        "--sheet", metavar="NAME", help="Name or number of the sheet. Default: the one with the columns."
    ),
    click.option(
        "--header-row",
        type=click.IntRange(0),
        metavar="N",
        help="Row of the column names; 0 if there is none. Default: found by the names.",
    ),
    click.option(
        "--undo",
        type=click.IntRange(1, _MOST_NUMBER),
        metavar="N",
        help="Remove what import N added instead, and name what stays because something needs it.",
    ),
    click.option("--dry-run", is_flag=True, help="Only say what would be done; change nothing."),
)


def import_command(
    group: click.Group, kind: ImportKind, fields: Sequence[str], *, sites: bool = False
) -> Callable[[Callable[..., object]], click.Command]:
    """Return a decorator that makes a command `import` from a function. The function gets an `App` and an `ImportFile`.

    With `--undo`, the command undoes an import instead of calling the function.
    """

    def decorate(function: Callable[..., object]) -> click.Command:
        @wraps(function)
        def run(
            app: App,
            file: BinaryIO | None,
            undo: int | None,
            maps: tuple[str, ...],
            skipped: tuple[str, ...],
            sheet: str | None,
            header_row: int | None,
            dry_run: bool,
            **options: Any,
        ) -> object:
            if undo is not None:
                return undo_import(app, undo, kind, dry_run=dry_run)
            if file is None:
                raise InputError("give a FILE, or --undo N")
            with rereadable(file) as data:
                given = ImportFile(
                    data=data,
                    origin=str(getattr(file, "name", "standard input")),
                    choice=TableChoice(sheet, header_row),
                    columns=ColumnChoice(parse_mapping(maps, fields), skipped),
                    dry_run=dry_run,
                )
                try:
                    return function(app, given, **options)
                except KeyboardInterrupt:
                    say(_describe_stop(app, kind, given), "yellow")
                    raise

        made: Callable[..., object] = run
        for option in reversed(_OPTIONS):
            made = option(made)
        return command(group, "import", sites=sites)(made)

    return decorate


def _describe_stop(app: App, kind: ImportKind, file: ImportFile) -> str:
    """Return a sentence about what an import had stored when a person stopped it with Ctrl-C."""
    stored = None
    if not file.dry_run and app.has_store():
        with suppress(ReviewloopError), app.store.read() as tx:
            stored = next(iter(numbered_imports.list_imports(tx, most=1)), None)
    is_this = stored is not None and (stored.kind, stored.file, stored.ended_at) == (kind, file.origin, None)
    if stored is None or not is_this:
        return translate("Stopped. Nothing was stored, nothing is lost: the same command begins again.")
    return translate(
        "Stopped. Import {n} has stored {added:,} new rows so far, and they stay: the same command goes on, "
        "{undo} takes them back.",
        n=stored.id,
        added=stored.added,
        undo=f"`reviewloop {app.context.command_path.partition(' ')[2]} --undo {stored.id}{database_hint()}`",
    )


@contextmanager
def store_or_none(settings: Settings, *, dry_run: bool) -> Iterator[Store | None]:
    """Open the store. In a dry run, a missing store is not created, and `None` is yielded."""
    path = sqlite_file(settings.database_url)
    if dry_run and path is not None and not path.is_file():
        yield None
        return
    with store_there(settings) if dry_run else store_to_fill(settings) as store:
        yield store


def say_columns(origin: str, found: FoundTable | None, columns: Mapping[str, str]) -> None:
    """Print which table and columns of a file are read."""
    if found is not None:
        origin = name_text(origin, describe(found.where))
    read = join_words(
        translate("{field} from {column}", field=label(field), column=column)
        for field, column in columns.items()
    )
    say(name_text(origin, read), "dim")


def note_file(
    found: FoundTable | None,
    columns: Mapping[str, str],
    unused: Sequence[str],
    ignored: Sequence[IgnoredColumn],
) -> FileNotes:
    """Return how a file was read, and print which parts of it are not read.

    Args:
        found: the table in the file; `None` for a file of JSON objects.
        unused: columns that no field is read from.
    """
    read = FileNotes(columns=columns, ignored=ignored, unused=unused)
    notes = [describe_unused(unused)] if unused else []
    if found is not None:
        notes = list(replace(found, unused=unused).notes)
        read = replace(read, sheet=found.table.sheet, header_row=found.header_row, notes=notes)
    for note in (*notes, *(one.note for one in ignored)):
        say(describe(note), "yellow")
    return read
