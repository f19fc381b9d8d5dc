"""The data files of the splitter: lines of cells between tabs; ``#`` opens a comment."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files


def data(name: str) -> str:
    """Return the text of a data file."""
    return files("splitter").joinpath("data", name).read_text("utf-8")


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line of a table."""
    return (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
