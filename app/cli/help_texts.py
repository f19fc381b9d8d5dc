r"""Translate the help of commands, and wrap it to the width of the terminal. A Chinese character has double width.

Each paragraph is one text of the catalog, so wrapping a docstring differently does not lose its translation. In a
block after `\b`, an indented line is code; two or more spaces separate the code from a remark.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from unicodedata import east_asian_width
from weakref import WeakKeyDictionary

import click

from app.cli.program import as_called
from app.views.words import translate

_ENGLISH: WeakKeyDictionary[click.Command | click.Option, str] = WeakKeyDictionary()
_PIECE = re.compile(r"\s+|[（「“]*(?:[^\s\u2e80-\uffef“”]+|[\u2e80-\uffef])[，。、；：？！）」”]*|.")
"""Spaces, a word, or a Chinese character with its marks. Lines may break between two of these."""


class HelpFormatter(click.HelpFormatter):
    """Formats help. Commands in it can be copied to a shell, and lines with Chinese characters fit the width."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line. A space follows its heading unless that ends with a Chinese colon."""
        head = prefix or translate("Usage:")
        super().write_usage(prog, args, head if head.endswith("：") else f"{head} ")

    def write_text(self, text: str) -> None:
        """Write a text as indented paragraphs."""
        indent = " " * self.current_indent
        lines = wrap_paragraphs(text, self.width - self.current_indent)
        self.write("".join(f"{indent}{line}".rstrip() + "\n" for line in lines))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write a list of terms, with the texts that explain them in a second column."""
        rows = list(rows)
        start = min(max(map(measure_width, (first for first, _ in rows))), col_max) + col_spacing
        for first, second in rows:
            lines = wrap_paragraphs(second, max(self.width - start - 2, 10)) or [""]
            term = " " * self.current_indent + first
            gap = start + self.current_indent - measure_width(term)
            if gap < col_spacing and second:
                self.write(f"{term}\n")
                term, gap = "", start + self.current_indent
            self.write(f"{term}{' ' * gap}{lines[0]}".rstrip() + "\n")
            for line in lines[1:]:
                self.write(f"{' ' * (start + self.current_indent)}{line}".rstrip() + "\n")

    def getvalue(self) -> str:
        """Return the help. Commands in it begin with the word that starts this program in a shell."""
        return as_called(super().getvalue())


def measure_width(text: str) -> int:
    """Return the number of columns that a text takes in a terminal."""
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def wrap_paragraphs(text: str, width: int) -> list[str]:
    r"""Return the lines of a text after wrapping. A paragraph that begins with `\b` keeps its line breaks."""
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        if lines:
            lines.append("")
        if paragraph.startswith("\b"):
            lines += paragraph.splitlines()[1:]
        else:
            lines += _wrap(" ".join(paragraph.split()), width)
    return lines


def _wrap(text: str, width: int) -> Iterator[str]:
    line, used = "", 0
    for piece in _PIECE.findall(text):
        size = measure_width(piece)
        if line and used + size > width:
            yield line.rstrip()
            line, used = "", 0
        if line or not piece.isspace():
            line += piece
            used += size
    if line:
        yield line.rstrip()


def translate_help(command: click.Command) -> click.Command:
    """Translate the help of a command, its options and its subcommands into the current language."""
    command.help = change_texts(_get_english(command), translate)
    command.short_help = _shorten(command.help)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            parameter.help = change_texts(_get_english(parameter), translate)
    if isinstance(command, click.Group):
        for below in command.commands.values():
            translate_help(below)
    return command


def change_texts(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to the paragraphs and remarks of a help text, and leave its code unchanged."""
    blocks = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(_change_block(block, change) for block in blocks)


def _change_block(block: str, change: Callable[[str], str]) -> str:
    if not block.startswith("\b"):
        return change(" ".join(block.split()))
    return "\n".join(_change_line(line, change) for line in block.splitlines())


def _change_line(line: str, change: Callable[[str], str]) -> str:
    if line.strip(" ") in ("", "\b"):
        return line
    if not line.startswith(" "):
        return change(line)
    _, gap, rest = line.strip().partition("  ")
    remark = rest.lstrip()
    return line.rstrip().removesuffix(remark) + change(remark) if gap else line


def _shorten(text: str) -> str | None:
    """Return the first sentence of a Chinese help text; `None` for an English one, which click shortens itself."""
    first, mark, _ = text.partition("\n\n")[0].partition("。")
    return first if mark else None


def _get_english(described: click.Command | click.Option) -> str:
    """Return the English help of a command or option, even if it was translated before."""
    return _ENGLISH.setdefault(described, described.help or "")
