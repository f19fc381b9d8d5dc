"""Find the encoding of a file that is read as a stream, by the rules of `charsets`, as for pages."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import BinaryIO

from splitter.errors import InputError, Message

from tasks.reading.charsets import (
    ESCAPED,
    find_mark,
    find_reading,
    find_utf16,
    find_words,
    has_escapes,
    has_long_sequence,
)

_HEAD = 1000
_CHUNK = 1 << 18
_SAMPLED_LINES = 100
"""Number of lines, at equal distances, that the encoding is found by."""
_SAMPLED_BYTES = 4096
_PICTURE = Message("a picture")
_ARCHIVE = Message("a packed file")
_NO_TEXT = Message("a file of bytes")
_KINDS = {
    b"%PDF-": Message("a PDF"),
    b"\x89PNG": _PICTURE,
    b"\xff\xd8\xff": _PICTURE,
    b"GIF8": _PICTURE,
    b"\x1f\x8b": _ARCHIVE,
    b"PK\x03\x04": Message("an .xlsx or another packed file"),
    b"\xd0\xcf\x11\xe0": Message("a file of an old Office (xls, doc), or one with a password"),
    b"Rar!": _ARCHIVE,
    b"7z\xbc\xaf": _ARCHIVE,
    b"SQLite format 3": Message("a SQLite database"),
}
"""Kinds of files that are no text, by their first bytes."""
_UNICODE = frozenset({"utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", ESCAPED})


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file is encoded.

    Attributes:
        name: for Python.
        is_broken: some bytes can't be decoded.
        mark: number of bytes at the beginning that are a byte order mark.
    """

    name: str
    is_broken: bool = False
    mark: int = 0

    def find_fault(self, text: str) -> Message | None:
        """Return why a line that was read by `open_text` can't be taken; None if it can."""
        if self.is_broken and "\ufffd" in text:
            return Message("holds bytes that are no {encoding}", encoding=self.name.upper())
        if self.name not in _UNICODE and _is_utf8(text.encode(self.name, "replace")):
            return Message("is in UTF-8, and other lines are in {encoding}", encoding=self.name.upper())
        return None


def _is_utf8(line: bytes) -> bool:
    if not has_long_sequence(line):
        return False
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def head_of(file: BinaryIO) -> bytes:
    """Return the first bytes of a file, which tell what it is."""
    file.seek(0)
    return file.read(_HEAD)


def encoding_of(file: BinaryIO, origin: str) -> Encoding:
    """Read a file to its end, and return the encoding of all of it, else that of most of its lines.

    Raises:
        InputError: it is no text.
    """
    head = head_of(file)
    mark, name = find_mark(head)
    if not mark:
        name = find_utf16(head)
    if not name and (b"\0" in head or _find_kind(head) != _NO_TEXT):
        raise InputError(
            "{origin}: is {what}, and no text; save it as CSV or text in UTF-8",
            origin=origin,
            what=_find_kind(head),
        )
    if name:
        return Encoding(name, not _is_valid(file, name), len(mark))
    if _is_valid(file, "utf-8"):
        return Encoding(_find_ascii(file))
    name = find_reading(_sample(file)).encoding
    return Encoding(name, not _is_valid(file, name))


def _find_kind(head: bytes) -> Message:
    """Return the kind of a file that begins with these bytes."""
    return next((kind for begin, kind in _KINDS.items() if head.startswith(begin)), _NO_TEXT)


def _is_valid(file: BinaryIO, encoding: str) -> bool:
    decoder = codecs.getincrementaldecoder(encoding)()
    file.seek(0)
    try:
        while chunk := file.read(_CHUNK):
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _find_ascii(file: BinaryIO) -> str:
    """Return the encoding of a file that is valid UTF-8, but may be ISO-2022-JP if it is ASCII alone."""
    file.seek(0)
    is_escaped = False
    while chunk := file.read(_CHUNK):
        if not chunk.isascii():
            return "utf-8"
        is_escaped = is_escaped or has_escapes(chunk)
    return ESCAPED if is_escaped else "utf-8"


def _sample(file: BinaryIO) -> bytes:
    """Return the first words outside ASCII of some lines, at equal distances through a file."""
    file.seek(0)
    words: list[bytes] = []
    distance = 1
    number = 0
    while line := file.readline(_SAMPLED_BYTES):
        if line.isascii():
            continue
        if number % distance == 0:
            words.append(b" ".join(find_words(line, 2)))
        number += 1
        if len(words) > 2 * _SAMPLED_LINES:
            del words[1::2]
            distance *= 2
    return b"\n".join(words)
