"""The conditions that end a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Until:
    """When to end: when all is settled, or after so many seconds; neither: on a signal only."""

    done: bool = False
    seconds: float | None = None
