"""Cutting a task's list of search URLs into parts: each becomes a subtask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_Item = TypeVar("_Item")


def chunks(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    """Parts of at most ``size`` items, in order; only the last may be smaller, none is empty.

    Raises:
        ValueError: size is below 1.
    """
    if size < 1:
        raise ValueError(f"chunk of {size}: at least 1 is needed")
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
