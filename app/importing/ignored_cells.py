"""Counts cells that are not understood, by column. They are left empty; their rows are taken."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.files.harmless import one_line
from splitter.errors import Message, list_names

_EXAMPLES = 3
_ROWS_NAMED = 10
_LONGEST = 30


@dataclass(slots=True)
class IgnoredColumn:
    """Cells of one column that are left empty.

    Attributes:
        column: as the file names it.
        meaning: what an empty cell means there; for people.
        values: at most three examples.
        rows: numbers of their rows.
    """

    column: str
    meaning: Message
    values: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def note(self) -> Message:
        """A sentence on them."""
        return Message(
            "{column}: not understood (rows: {rows}), for example {values}; {meaning}",
            column=self.column,
            rows=list_names([*map(str, self.rows)], _ROWS_NAMED),
            values=", ".join(self.values),
            meaning=self.meaning,
        )


class IgnoredCells:
    """The columns of a file with cells that are not understood."""

    def __init__(self) -> None:
        self._columns: dict[str, IgnoredColumn] = {}

    def add(self, column: str, text: str, line: int, meaning: Message) -> None:
        """Count a cell; of one row and column only once."""
        counted = self._columns.setdefault(column, IgnoredColumn(column, meaning))
        if not counted.rows or counted.rows[-1] != line:
            counted.rows.append(line)
        example = one_line(" ".join(text.split())[:_LONGEST])
        if example not in counted.values and len(counted.values) < _EXAMPLES:
            counted.values.append(example)

    def list_columns(self) -> list[IgnoredColumn]:
        """Return the columns in the order of their first such cell."""
        return list(self._columns.values())
