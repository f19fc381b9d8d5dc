"""A table that fits the width of the terminal.

If it is too wide, the least important columns are left out, and a line below the table names them. Long texts are cut.
A Chinese character is two columns wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from app.views.words import join_words, translate

_BETWEEN = 3
"""Number of characters between two columns."""
_SHORTEST = 16
"""Minimum width of a cut text column."""
_FOLDED = 24
"""Minimum width of a column of folded texts."""


class FittedTable(Table):
    """A table that chooses its columns when it is printed, because the width of the terminal is known only then.

    Args:
        names: names of the columns. ">" at the end of a name marks a column whose texts may take several lines; it gets
            the rest of the width.
        numbers: True for each column with numbers.
        cells: rows of cells.
        least: the least important columns; the first one is left out first. If this is not enough, columns are
            left out from the right. The first column stays.
    """

    def __init__(
        self,
        names: Sequence[str],
        numbers: Sequence[bool],
        cells: Sequence[Sequence[Text]],
        least: Sequence[str],
    ) -> None:
        super().__init__()
        self._names = [name.rstrip(">") for name in names]
        self._folded = [name.endswith(">") for name in names]
        self._numbers = numbers
        self._rows = cells
        right = [name for name in reversed(self._names[1:]) if name not in least]
        self._to_drop = [self._names.index(name) for name in (*least, *right) if name in self._names[1:]]
        self._wide = [
            max(map(_width, [Text(name), *(row[n] for row in cells)])) for n, name in enumerate(self._names)
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table in a form that fits the terminal."""
        kept = self._fit(options.max_width + 1)  # the last column needs no space after it
        made = Table(title=self.title, box=box.SIMPLE_HEAD, title_justify="left", caption_justify="left")
        made.show_edge = False
        made.title_style = "bold"
        made.caption = self._caption(kept, options.max_width)
        for n, width in kept.items():
            made.add_column(
                self._names[n],
                justify="right" if self._numbers[n] else "left",
                overflow="fold" if self._folded[n] else "ellipsis",
                no_wrap=not self._folded[n],
                width=width,
            )
        for row in self._rows:
            made.add_row(*(row[n] for n in kept))
        yield Text("")
        yield from console.render(made, options)
        yield Text("")

    def _fit(self, room: int) -> dict[int, int]:
        """Return the widths of the columns to show, by number of the column.

        Args:
            room: number of characters in a line.
        """
        kept = list(range(len(self._names)))
        for n in self._to_drop:
            if sum(self._least(k) + _BETWEEN for k in kept) <= room or len(kept) == 1:
                break
            kept.remove(n)
        widths = {n: self._least(n) for n in kept}
        left = room - sum(width + _BETWEEN for width in widths.values())
        if left < 0:
            widths[kept[0]] = max(1, widths[kept[0]] + left)
        for n in sorted(kept, key=lambda n: self._folded[n]):
            more = min(max(left, 0), self._wide[n] - widths[n])
            widths[n] += max(more, 0)
            left -= max(more, 0)
        return widths

    def _least(self, n: int) -> int:
        """Return the minimum width of a column. Numbers are not cut."""
        if self._numbers[n]:
            return self._wide[n]
        return min(self._wide[n], _FOLDED if self._folded[n] else _SHORTEST)

    def _caption(self, kept: dict[int, int], room: int) -> str | Text | None:
        dropped = [name for n, name in enumerate(self._names) if n not in kept]
        if not dropped:
            return self.caption if isinstance(self.caption, str | Text) else None
        left_out = translate(
            "… no room for: {columns}; a wider terminal or --json has them", columns=join_words(dropped)
        )
        lines = fill(left_out, room)
        return f"{self.caption}\n{lines}" if self.caption else lines


def _width(text: Text) -> int:
    """Return the width of the widest line of a text."""
    return max(map(cell_len, text.plain.split("\n")))
