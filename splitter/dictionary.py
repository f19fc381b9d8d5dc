"""jieba's dictionary in the parts that texts need: of its 500,000 words those that begin with a character of theirs.

jieba looks up nothing but pieces of the text itself. All of the dictionary takes a third of a second to read and 80 MB;
a process that was given a folder keeps it there, in a part for each first character.
"""

from __future__ import annotations

import marshal
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_HEAD = struct.Struct("<Q")
"""Before the table of parts, its length."""

Frequencies = dict[str, int]
"""How often each word is met; 0: it only begins words."""


class Dictionary:
    """Frequencies by first character.

    Attributes:
        total: sum of all frequencies.
    """

    def __init__(self, total: int, spans: dict[str, tuple[int, int]], content: bytes) -> None:
        self.total = total
        self._spans = spans
        self._content = content

    def part(self, first: str) -> Frequencies:
        """The words that begin with a character."""
        start, end = self._spans.get(first, (0, 0))
        found: Frequencies = marshal.loads(self._content[start:end]) if end else {}
        return found


def read(path: Path) -> Dictionary | None:
    """Return the dictionary in a file; `None` if there is none, or if another user could have written it."""
    with suppress(OSError, EOFError, ValueError, TypeError, struct.error), path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid == os.geteuid() and not status.st_mode & 0o022:
            content = file.read()
            (length,) = _HEAD.unpack_from(content)
            total, size, spans = marshal.loads(content[_HEAD.size : _HEAD.size + length])
            parts = content[_HEAD.size + length :]
            if len(parts) == size:
                return Dictionary(total, spans, parts)
    return None


def write(path: Path, frequencies: Mapping[str, int], total: int) -> None:
    """Write a dictionary to a file, if possible; no process ever reads half of one."""
    by_first: dict[str, Frequencies] = {}
    for word, frequency in frequencies.items():
        by_first.setdefault(word[:1], {})[word] = frequency
    parts, spans, end = [], {}, 0
    for first, part in by_first.items():
        parts.append(marshal.dumps(part))
        spans[first] = end, end + len(parts[-1])
        end += len(parts[-1])
    head = marshal.dumps((total, end, spans))
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = path.with_name(f"{path.name}.{os.getpid()}")
        written.touch(mode=0o600)
        written.write_bytes(b"".join((_HEAD.pack(len(head)), head, *parts)))
        written.replace(path)
