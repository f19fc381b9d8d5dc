"""Printing: JSON, tables and messages. Whatever comes from the web is made harmless for a terminal first."""

from __future__ import annotations

import json
import logging
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click
from rich import box
from rich.console import Console
from rich.logging import RichHandler
from rich.table import Table
from rich.text import Text

_WIDTH_OF_FILES = 160
"""Columns of a table that goes to a file or a pipe."""

T = TypeVar("T")
Cell = str | int | float | Text | None

messages = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)
"""Standard error: messages, logs and live progress, which must share one console."""


def printed() -> Console:
    """Standard output, for people."""
    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = _WIDTH_OF_FILES
    return console


def print_json(document: Any) -> None:
    """Print a document: dataclasses as objects, times as ISO 8601."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2, default=plain))


def answer(document: Any, text: str, as_json: bool) -> None:
    """Print what a command came to: the document, or for people the text."""
    if as_json:
        print_json(document)
    else:
        printed().print(text)


def plain(value: Any) -> Any:
    """A value JSON has no type for, as one it has. Raises TypeError."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterable):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def labelled(out: Console, name: str, what: Text | str) -> None:
    """One of several lines below each other, each with its name before it."""
    out.print(Text(f"{name:9}", style="bold") + what)


def say(text: str, style: str = "") -> None:
    """A message, on standard error."""
    messages.print(shown(text), style=style)


def table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell]], title: str = "", caption: str = ""
) -> Table:
    """A table; columns whose cells are numbers are aligned right. A column "text>" takes what room is left."""
    made = Table(title=title or None, caption=caption or None, box=box.SIMPLE_HEAD, title_justify="left")
    made.title_style = "bold"
    made.caption_justify = "left"
    rows = [list(row) for row in rows]
    for place, name in enumerate(columns):
        numbers = any(isinstance(row[place], int | float) for row in rows)
        wide = name.endswith(">")
        made.add_column(
            name.rstrip(">"),
            justify="right" if numbers else "left",
            overflow="fold",
            no_wrap=not wide,
            ratio=1 if wide else None,
        )
    for row in rows:
        made.add_row(*(cell(value) for value in row))
    return made


def table_of(rows: Sequence[T], columns: Mapping[str, Callable[[T], Cell]], title: str = "") -> Table:
    """A table of rows, each column with what it shows of a row."""
    return table(tuple(columns), ([show(row) for show in columns.values()] for row in rows), title)


def cell(value: Cell) -> Text:
    """A value as it stands in a table; None is a dash."""
    if isinstance(value, Text):
        return value
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, float):
        return Text(f"{value:,.2f}")
    return Text(f"{value:,}" if isinstance(value, int) else shown(value))


def shown(text: str) -> str:
    """Text without control characters (an escape sequence in a page could steer the terminal)."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs")
        else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def short(text: str, most: int) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def percent(share: float | None) -> str | None:
    """A share in [0, 1] as a whole percentage."""
    return None if share is None else f"{share:.0%}"


def seconds(value: float | None) -> str | None:
    """A length of time, as people say it."""
    if value is None:
        return None
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.0f} s" if value == round(value) else f"{value:.1f} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h" if value < 172_800 else f"{value / 86_400:.3g} d"


def ago(then: datetime | None, now: datetime) -> str | None:
    """How long ago something was."""
    return None if then is None else f"{seconds(max(0.0, (now - then).total_seconds()))} ago"


def clock(moment: datetime | None) -> str | None:
    """A moment in UTC, to the second."""
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def set_up_logging(verbose: bool) -> None:
    """Warnings (with `verbose`: information too) to standard error, in step with live progress."""
    handler = RichHandler(
        console=messages, show_path=False, show_time=verbose, markup=False, highlighter=None
    )
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(message)s",
        handlers=[handler],
        force=True,
    )
    # They log every sweep that came late by a moment.
    for chatty in ("apscheduler", "alembic"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
