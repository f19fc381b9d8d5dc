"""Print JSON, tables and messages. Control characters in texts from the web are removed first."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text

from app.cli.fitted_table import FittedTable
from app.cli.program import as_called
from app.files.harmless import HarmlessFormatter, shown
from app.run.process import JsonFormatter
from splitter.errors import Message

_WIDTH_OF_FILES = 160
"""Width of a table in a file or a pipe if COLUMNS is not set."""

Cell = str | int | float | Text | None

WHOLE = re.compile(r"(?:^|[^`])\breviewloop [a-z]|https?://")
"""Pattern of lines that are not broken, so that their commands and addresses can be copied."""


class Output(Console):
    """A console that breaks lines between words, except lines that contain a command or an address (`WHOLE`).

    If the output is a file or a pipe, lines are broken only if COLUMNS is set.
    """

    width_is_given = False

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text for the terminal. Commands in it begin with the word that starts this program in a shell."""
        return super().render_str(as_called(text), **options)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print objects as `Console.print` does, with the line breaks that this class describes."""
        whole = any(not isinstance(one, str | Text) or WHOLE.search(str(one)) for one in objects)
        soft = (whole or not (self.is_terminal or self.width_is_given)) if soft_wrap is None else soft_wrap
        super().print(*objects, soft_wrap=soft, **options)


messages = Output(stderr=True, markup=False, emoji=False, highlight=False)
"""Console on standard error, shared by messages, logs and live progress."""


def make_console() -> Console:
    """Return a console that prints texts for people on standard output."""
    console = Output(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = get_terminal_size((_WIDTH_OF_FILES, 0)).columns
        console.width_is_given = console.width != _WIDTH_OF_FILES
    return console


def print_json(document: Any, *, indent: int | None = 2) -> None:
    """Print a document as JSON: dataclasses as objects, times in ISO 8601. If `indent` is `None`, it takes one line."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=indent, default=plain))


def plain(value: Any) -> Any:
    """Convert a value of a type that JSON lacks to one of a type that JSON has.

    Raises TypeError if that is not possible.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Message):
        return str(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def say(text: str, style: str = "") -> None:
    """Print a message on standard error."""
    messages.print(shown(text), style=style)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    title: str = "",
    caption: str = "",
    least: Sequence[str] = (),
) -> Table:
    """Return a table that fits the terminal (`app.cli.fitted_table`). Columns of numbers are aligned right.

    Args:
        columns, least: see `names` and `least` of `FittedTable`.
    """
    cells = [list(row) for row in rows]
    numbers = [any(isinstance(row[n], int | float) for row in cells) for n in range(len(columns))]
    made = FittedTable(columns, numbers, [[cell(value) for value in row] for row in cells], least)
    made.title, made.caption = title or None, caption or None
    return made


def cell(value: Cell) -> Text:
    """Return a value as text for a cell of a table; a dash for `None`."""
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, float):
        return Text(f"{value:,.2f}")
    return Text(f"{value:,}" if isinstance(value, int) else shown(value))


def short(text: str, most: int) -> str:
    """Return a text on one line, cut if it has more than `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def set_up_logging(verbose: bool, *, as_json: bool = False) -> None:
    """Log warnings on standard error without disturbing live progress. If `verbose`, also log information."""
    handler: logging.Handler
    if as_json:
        handler = logging.StreamHandler(messages.file)
        handler.setFormatter(JsonFormatter())
    else:
        handler = RichHandler(
            console=messages, show_path=False, show_time=verbose, markup=False, highlighter=None
        )
        handler.setFormatter(HarmlessFormatter("%(message)s"))
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        handlers=[handler],
        force=True,
    )
    # It logs every sweep that is a moment late.
    for chatty in ("apscheduler", "alembic"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
