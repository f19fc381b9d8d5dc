"""Compares what a chaos run has stored with what a calm run of the same world stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from research.chaos.movement import Contents

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Difference:
    """How two stores of the same world differ.

    Attributes:
        missing: pages, links and reviews that only the calm run has.
        doubled: those that the chaos run has more often than the calm one.
        examples: some of them, as text.
        miscounted: partitions of which other numbers of pages and hits are kept than in the calm run, as text.
    """

    missing: int
    doubled: int
    examples: tuple[str, ...]
    miscounted: tuple[str, ...]


_STORED = ("pages", "links", "reviews")


def difference(found: Contents, calm: Contents) -> Difference:
    """How what was found differs from what a calm run stores."""
    missing, doubled = 0, 0
    examples: list[str] = []
    for what in _STORED:
        here, there = getattr(found, what), getattr(calm, what)
        missing += (there - here).total()
        doubled += (here - there).total()
        examples += [
            *_difference_lines(f"{what}: missing", there - here),
            *_difference_lines(f"{what}: too many", here - there),
        ]
    miscounted = _difference_lines("counted: pages read, hits listed:", found.partitions - calm.partitions)
    return Difference(missing, doubled, tuple(examples[:_SHOWN]), tuple(miscounted))


def _difference_lines(head: str, rows: Counter[tuple[str, ...]]) -> Iterator[str]:
    for row, n in sorted(rows.items())[:_SHOWN]:
        times = f" ({n} times)" if n > 1 else ""
        yield f"{head} {' '.join(part[:80] for part in row)}{times}"
