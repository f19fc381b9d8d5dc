"""Printing: JSON, tables and messages. Whatever comes from the web is made harmless for a terminal first."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text

from app.cli.fitted_table import FittedTable
from app.cli.program import as_called
from app.files.harmless import HarmlessFormatter, shown
from app.run.process import JsonFormatter
from app.views.durations import seconds
from app.views.moments import clock_text
from splitter.errors import Message

_WIDTH_OF_FILES = 160
"""Columns of a table that goes to a file or a pipe, where COLUMNS does not say otherwise."""

T = TypeVar("T")
Cell = str | int | float | Text | None

WHOLE = re.compile(r"(?:^|[^`])\breviewloop [a-z]|https?://")
"""Lines that are not broken, so that their commands and addresses can be copied."""


class Output(Console):
    """On a terminal sentences break between words; a line with a command or an address stays whole (`WHOLE`).

    In a file or a pipe they break only where COLUMNS says how wide it is.
    """

    width_is_given = False

    def render_str(self, text: str, **options: Any) -> Text:
        """Return a text ready to print, with its commands as a shell finds them."""
        return super().render_str(as_called(text), **options)

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """As `Console.print`."""
        whole = any(not isinstance(one, str | Text) or WHOLE.search(str(one)) for one in objects)
        soft = (whole or not (self.is_terminal or self.width_is_given)) if soft_wrap is None else soft_wrap
        super().print(*objects, soft_wrap=soft, **options)


messages = Output(stderr=True, markup=False, emoji=False, highlight=False)
"""Standard error: messages, logs and live progress, which must share one console."""


def printed() -> Console:
    """Standard output, for people."""
    console = Output(markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = get_terminal_size((_WIDTH_OF_FILES, 0)).columns
        console.width_is_given = console.width != _WIDTH_OF_FILES
    return console


def print_json(document: Any, *, indent: int | None = 2) -> None:
    """Print a document: dataclasses as objects, times as ISO 8601. Without an indent it is one line."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=indent, default=plain))


def plain(value: Any) -> Any:
    """A value JSON has no type for, as one it has. Raises TypeError."""
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
    """A message, on standard error."""
    messages.print(shown(text), style=style)


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    title: str = "",
    caption: str = "",
    least: Sequence[str] = (),
) -> Table:
    """A table that fits its terminal (`app.cli.fitted_table`); columns whose cells are numbers are aligned right.

    Args:
        columns: their names; one that ends in ">" folds its texts and takes what room is left.
        least: the columns that matter least, the first of them first to be left out; then those on the right.
    """
    cells = [list(row) for row in rows]
    numbers = [any(isinstance(row[n], int | float) for row in cells) for n in range(len(columns))]
    made = FittedTable(columns, numbers, [[cell(value) for value in row] for row in cells], least)
    made.title, made.caption = title or None, caption or None
    return made


def table_of(
    rows: Sequence[T],
    columns: Mapping[str, Callable[[T], Cell]],
    title: str = "",
    least: Sequence[str] = (),
) -> Table:
    """A table of rows, each column with what it shows of a row; `least` as in `table`."""
    cells = ([show(row) for show in columns.values()] for row in rows)
    return table(tuple(columns), cells, title, least=least)


def cell(value: Cell) -> Text:
    """A value as it stands in a table; None is a dash."""
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, float):
        return Text(f"{value:,.2f}")
    return Text(f"{value:,}" if isinstance(value, int) else shown(value))


def short(text: str, most: int) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def percent(share: float | None) -> str | None:
    """A share in [0, 1] as a whole percentage."""
    return None if share is None else f"{share:.0%}"


def ago(then: datetime | None, now: datetime) -> str | None:
    """How long ago something was."""
    return None if then is None else f"{seconds(max(0.0, (now - then).total_seconds()))} ago"


def clock(moment: datetime | None) -> str | None:
    """Return the clock time of a moment, to the second; `None` if there is none."""
    return None if moment is None else clock_text(moment)


def set_up_logging(verbose: bool, *, as_json: bool = False) -> None:
    """Warnings (with `verbose`: information too) to standard error, in step with live progress."""
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
    # They log every sweep that came late by a moment.
    for chatty in ("apscheduler", "alembic"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
