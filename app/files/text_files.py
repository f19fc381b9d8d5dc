"""Read text files line by line. Lines that are too long are reported instead of read."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from shutil import copyfileobj
from typing import BinaryIO, TextIO

from splitter.errors import Message
from tasks.reading.file_encoding import Encoding

LONGEST_LINE = 10_000_000
"""Maximum number of characters in a line."""


@contextmanager
def rereadable(file: BinaryIO) -> Iterator[BinaryIO]:
    """Yield the file if it is seekable, else a temporary copy of it that is seekable."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as copy:
        copyfileobj(file, copy)
        yield copy


@contextmanager
def open_text(file: BinaryIO, encoding: Encoding) -> Iterator[TextIO]:
    """Yield a file as text from its beginning. Bytes that can't be decoded become U+FFFD. The file is not closed."""
    file.seek(encoding.mark)
    text = io.TextIOWrapper(file, encoding.name, "replace", newline="")
    try:
        yield text
    finally:
        with suppress(ValueError):  # its owner may have closed the file before the last row was read
            text.detach()


def read_lines(text: TextIO) -> Iterator[tuple[int, str, Message | None]]:
    """Yield (number from 1, text, fault) for each line.

    If a line has a fault, its text is empty; else the fault is `None`.
    """
    number = 0
    while line := text.readline(LONGEST_LINE):
        number += 1
        if len(line) < LONGEST_LINE or line.endswith(("\n", "\r")):
            yield number, line, None
            continue
        while line and not line.endswith(("\n", "\r")):
            line = text.readline(LONGEST_LINE)
        yield number, "", Message("is longer than {n:,} characters", n=LONGEST_LINE)
