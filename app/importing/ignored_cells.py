"""Count the cells that were not understood, by column. Such a cell is left empty, and its row is imported."""

from __future__ import annotations

from dataclasses import dataclass, field

from app.files.harmless import one_line
from splitter.errors import Message, list_names

_EXAMPLES = 3
_ROWS_NAMED = 10
_LONGEST = 30


@dataclass(slots=True)
class IgnoredColumn:
    """The cells of one column that were not understood. They count as empty.

    Attributes:
        column: name of the column in the file.
        meaning: message that explains what an empty cell in this column means.
        values: texts of at most three of the cells.
        rows: numbers of the rows with such cells.
    """

    column: str
    meaning: Message
    values: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    @property
    def note(self) -> Message:
        """Return a message about the cells that were not understood."""
        return Message(
            "{column}: not understood (rows: {rows}), for example {values}; {meaning}",
            column=self.column,
            rows=list_names([*map(str, self.rows)], _ROWS_NAMED),
            values=tuple(self.values),
            meaning=self.meaning,
        )


class IgnoredCells:
    """Collects the cells of a file that were not understood."""

    def __init__(self) -> None:
        self._columns: dict[str, IgnoredColumn] = {}

    def add(self, column: str, text: str, line: int, meaning: Message) -> None:
        """Count a cell that was not understood. The same row and column count only once."""
        counted = self._columns.setdefault(column, IgnoredColumn(column, meaning))
        if not counted.rows or counted.rows[-1] != line:
            counted.rows.append(line)
        example = one_line(" ".join(text.split())[:_LONGEST])
        if example not in counted.values and len(counted.values) < _EXAMPLES:
            counted.values.append(example)

    def list_columns(self) -> list[IgnoredColumn]:
        """Return the columns with cells that were not understood.

        The column with the earliest such cell comes first.
        """
        return list(self._columns.values())
