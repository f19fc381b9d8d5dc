"""Cells of a sheet that are merged over several rows. Excel stores the text of such a cell in its first row only."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, product
from string import ascii_uppercase

from splitter.errors import InputError, Message

MOST_MERGED = 500_000
"""Maximum number of cells in a sheet that are merged over several rows."""
COLUMNS = {
    "".join(letters): number
    for number, letters in enumerate(chain(*(product(ascii_uppercase, repeat=n) for n in (1, 2, 3))), 1)
}
"""Numbers of columns, from 1, by their letters."""
_MERGED = re.compile(rb"""mergeCell\s+ref=["']([A-Z]{1,3})(\d{1,7}):[A-Z]{1,3}(\d{1,7})["']""")
_LONGEST = 64

MergedAreas = Mapping[int, Mapping[int, int]]
"""Last row of merged cells, by their first row and column."""


def find_merged(chunks: Iterable[bytes]) -> MergedAreas:
    """Return the cells that the XML of a sheet merges over several rows. Raises InputError if there are too many.

    The XML lists them below the rows, so it is searched before the rows are read.
    """
    found: dict[int, dict[int, int]] = defaultdict(dict)
    number = 0
    before = b""
    for chunk in chunks:
        for match in _MERGED.finditer(before[-_LONGEST:] + chunk):
            first, last = int(match[2]), int(match[3])
            if first < last:
                number += 1
                if number > MOST_MERGED:
                    raise InputError(
                        "has more than {n:,} {what}", n=MOST_MERGED, what=Message("merged cells")
                    )
                found[first][COLUMNS[match[1].decode()]] = last
        before = chunk
    return found


class MergedCells:
    """Fills merged cells while the rows of a sheet are read from the first to the last."""

    def __init__(self, areas: MergedAreas) -> None:
        self._areas = areas
        self._above: dict[int, tuple[int, str]] = {}

    def fill(self, number: int, row: list[str]) -> int:
        """Fill the cells of a row that are merged with a cell above. Return the number of characters that this adds.

        A cell that is merged over several columns as well is filled in its first column. An empty row stays empty.
        """
        if not self._areas or not any(row):
            return 0
        added = 0
        for column, (last, text) in list(self._above.items()):
            if number > last:
                del self._above[column]
                continue
            row.extend([""] * (column - len(row)))
            if not row[column - 1]:
                row[column - 1] = text
                added += len(text)
        for column, last in self._areas.get(number, {}).items():
            if column <= len(row) and row[column - 1]:
                self._above[column] = last, row[column - 1]
        return added
