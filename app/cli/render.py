"""Print a view: its fields as JSON, or a text for people. Each type of view registers its text with `text`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import singledispatch
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from app.cli.fitted_table import FittedTable
from app.cli.help_texts import wrap_paragraphs
from app.cli.output import WHOLE, cell, make_console, messages, print_json
from app.cli.program import as_called
from app.files.harmless import shown
from app.views.fields import STYLE_OF, label, list_columns


@dataclass(frozen=True, slots=True)
class Fact:
    """A line that consists of a name and a text.

    Attributes:
        style: style of the name.
        rest: style of the text.
        width: width of the name's column in characters.
    """

    name: str
    text: str | Text
    style: str = "bold"
    rest: str = ""
    width: int = 10


@dataclass(frozen=True, slots=True)
class Done:
    """The view of a change that was made: a document for JSON, and one sentence for people."""

    document: Mapping[str, Any]
    message: str


class LinesView:
    """A view that is printed as several JSON objects, one per line: the items of `lines`."""

    lines: Iterable[object]


class AsideView:
    """A view whose text goes to standard error, because the result of the command is a file or follows later."""


Part = str | Text | Table | Padding | Fact


@singledispatch
def text(view: object) -> Iterator[Part]:
    """Yield the lines and tables that show a view to people, from top to bottom."""
    raise TypeError(f"{type(view).__name__} has no text")


@text.register
def _(view: Done) -> Iterator[Part]:
    yield view.message


def show(view: object, *, as_json: bool, is_line: bool = False) -> None:
    """Print a view on standard output.

    Args:
        is_line: True to print the JSON on one line.
    """
    if not as_json:
        print_parts(messages if isinstance(view, AsideView) else make_console(), text(view))
        return
    for one in view.lines if isinstance(view, LinesView) else (view,):
        print_json(one.document if isinstance(one, Done) else one, indent=None if is_line else 2)


def print_parts(out: Console, parts: Iterable[Part]) -> None:
    """Print lines and tables from top to bottom. Commands begin with the word that starts this program in a shell."""
    for part in parts:
        if isinstance(part, Fact):
            _print_fact(out, part)
        elif isinstance(part, Text) and not part.spans:
            out.print(as_called(part.plain), style=part.style)
        elif isinstance(part, Padding):
            out.print(part, soft_wrap=False)
        else:
            out.print(part)


def _print_fact(out: Console, fact: Fact) -> None:
    """Print a name with its text. Further lines of a long text are indented by the width of the name."""
    what = fact.text
    if isinstance(what, str):
        what = Text(as_called(what), style=fact.rest)
    line = Text(set_cell_size(fact.name, max(fact.width, cell_len(fact.name) + 1)), style=fact.style) + what
    if not out.is_terminal or line.cell_len <= out.width or WHOLE.search(line.plain):
        out.print(line)
        return
    if not what.spans:  # Chinese breaks between characters, which rich does not do
        room = out.width - fact.width
        lines = [line for one in what.plain.split("\n") for line in wrap_paragraphs(one, room) or [""]]
        what = Text("\n".join(lines), style=what.style)
    out.print(_lay_out_fact(fact, what), soft_wrap=False)


def lay_out(part: Part) -> RenderableType:
    """Return a line or table in a form that a live display can show."""
    if isinstance(part, Fact):
        return _lay_out_fact(part, part.text if isinstance(part.text, Text) else Text(as_called(part.text)))
    return Text(as_called(part)) if isinstance(part, str) else part


def _lay_out_fact(fact: Fact, what: Text) -> Table:
    both = Table.grid()
    both.add_column(width=fact.width)
    both.add_column(overflow="fold")
    both.add_row(Text(fact.name, style=fact.style), what)
    return both


def table(
    rows: Iterable[object],
    fields: str,
    *,
    title: str = "",
    caption: str = "",
    least: str = "",
    now: datetime | None = None,
) -> FittedTable:
    """Return a table of rows. Fields without a value in any row get no column.

    Args:
        fields: names of fields in order, separated by spaces; ">" as in `names` of `FittedTable`.
        least: the least important fields, separated by spaces; see `FittedTable`.
        now: if given, times near it are shown relative to it.
    """
    columns = list_columns(list(rows), fields, now)
    cells = [map(_style, column.texts, column.values) for column in columns]
    made = FittedTable(
        [column.label + (">" if column.is_long else "") for column in columns],
        [column.is_number for column in columns],
        list(zip(*cells, strict=True)),
        [label(name) for name in least.split()],
    )
    made.title = title or None
    made.caption = caption or None
    return made


def _style(text: str | None, value: object) -> Text:
    if text is None:
        return cell(None)
    style = STYLE_OF.get(value, "") if isinstance(value, str) else ""
    return Text(shown(text), style=style)
