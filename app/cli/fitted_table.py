"""A table that fits its terminal: what matters least is left out and named below it, long texts end in an ellipsis.

Widths are counted as a terminal does: a Chinese character takes two columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from app.views.words import translate

_BETWEEN = 3
"""Characters that a column takes beside its cells."""
_SHORTEST = 16
"""A text column is not cut below this."""
_FOLDED = 24
"""Nor a column of folded texts."""


class FittedTable(Table):
    """A table, laid out when it is printed and the width is known.

    Args:
        names: of its columns; one that ends in ">" folds its texts and takes what room is left.
        numbers: which columns are numbers.
        cells: rows of them.
        least: the columns that matter least, the first of them first to be left out; then those on the right. The
            first column stays.
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
        """The table as it fits."""
        kept = self._kept(options.max_width + 1)  # nothing stands behind the last column
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

    def _kept(self, room: int) -> dict[int, int]:
        """The columns that are shown, each with its width."""
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
        """The fewest characters that a column says something with: a number is not cut."""
        if self._numbers[n]:
            return self._wide[n]
        return min(self._wide[n], _FOLDED if self._folded[n] else _SHORTEST)

    def _caption(self, kept: dict[int, int], room: int) -> str | Text | None:
        dropped = [name for n, name in enumerate(self._names) if n not in kept]
        if not dropped:
            return self.caption if isinstance(self.caption, str | Text) else None
        left_out = translate(
            "… no room for: {columns}; a wider terminal or --json has them", columns=", ".join(dropped)
        )
        lines = fill(left_out, room)
        return f"{self.caption}\n{lines}" if self.caption else lines


def _width(text: Text) -> int:
    """Of the widest of its lines."""
    return max(map(cell_len, text.plain.split("\n")))
