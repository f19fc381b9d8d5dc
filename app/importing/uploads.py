"""Read an uploaded file of products in a separate process.

The process is ended if it exceeds a limit or when the visitor leaves.
"""

from __future__ import annotations

import asyncio
import io
import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from app.files.harmless import one_line
from app.importing.columns import ColumnChoice
from app.importing.product_files import Line, open_product_file
from splitter.errors import InputError, Message

MOST_UNPACKED = 50_000_000
_MOST_S = 60
_MOST_MEMORY = 512 << 20
_MOST_LINES = 50_000
_MOST_ANSWER = 20_000_000
"""Maximum number of bytes that the process may return for a file."""
_AT_ONCE = 2
_LONGEST_ORIGIN = 100
_TEMPLATE = "\0template"
"""Key of a message in JSON. Its NUL character does not occur in texts of files."""


Upload = tuple[Sequence[Line], Mapping[str, str], Sequence[Message]]
"""Lines of a file, names of its columns by field, and notes for people."""


class Uploads:
    """Reads at most `_AT_ONCE` files at the same time; others wait."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(_AT_ONCE)

    async def read(
        self,
        data: bytes,
        origin: str,
        leaving: asyncio.Task[None],
        ignored: Sequence[str] = (),
        *,
        as_list: bool = False,
    ) -> Upload:
        """Read a file of products in a separate process. The result is that of `read_upload`.

        Args:
            ignored: columns that must not be read.
            as_list: True to take each line of a text as a name.
            leaving: task that ends when the visitor has left.

        Raises:
            InputError: the whole file is refused, or the visitor has left.
        """
        origin = one_line(origin)[:_LONGEST_ORIGIN]
        async with self._turn:
            options = json.dumps({"ignored": [*ignored], "as_list": as_list})
            command = [sys.executable, "-P", "-m", __name__, origin, options]
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            work = asyncio.ensure_future(asyncio.to_thread(process.communicate, data))
            try:
                await asyncio.wait({work, leaving}, timeout=_MOST_S, return_when=asyncio.FIRST_COMPLETED)
            finally:
                process.kill()
                answer, _ = await work
        if process.returncode:
            raise InputError(
                "{origin}: can't be read within {s} s and {n} MB; split it",
                origin=origin,
                s=_MOST_S,
                n=_MOST_MEMORY >> 20,
            )
        lines, columns, notes, error = json.loads(answer, object_hook=_as_message)
        if error:
            raise InputError(error.template, **error.parameters)
        return lines, columns, notes


def read_upload(data: bytes, origin: str, ignored: Sequence[str] = (), *, as_list: bool = False) -> Upload:
    """Read a file of products. This runs in the separate process that `Uploads.read` starts.

    Args:
        data: content of the file.
        origin: name of the file, for messages.
        ignored: columns that must not be read.
        as_list: True to take each line of a text as a name.

    Returns:
        The lines, the names of the columns by field, and messages about how the file was read.

    Raises:
        InputError: the file can't be read or exceeds a limit.
    """
    found, read = open_product_file(
        io.BytesIO(data),
        origin,
        columns=ColumnChoice(ignored=ignored),
        as_list=as_list,
        most_unpacked=MOST_UNPACKED,
    )
    lines = []
    for line in read:
        lines.append(line)
        if len(lines) > _MOST_LINES:
            raise InputError(
                "{origin}: has more than {n:,} {what}", origin=origin, n=_MOST_LINES, what=Message("products")
            )
    if not found.columns:
        return lines, {}, found.notes
    taken = Message("{where}, columns {columns}", where=found.where, columns=tuple(found.columns.values()))
    return lines, found.columns, [taken, *found.notes]


def _as_document(value: object) -> object:
    """Convert a message to a JSON object; return other values unchanged."""
    if isinstance(value, Message):
        return {_TEMPLATE: value.template, "parameters": value.parameters}
    return str(value)


def _as_message(document: dict[str, Any]) -> object:
    """Convert a JSON object that was made from a message back to the message; return other objects unchanged."""
    if _TEMPLATE in document:
        return Message(document[_TEMPLATE], **document["parameters"])
    return document


def main() -> None:
    """Read a file of products from standard input, and write its lines as JSON to standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_S, _MOST_S))
    data = sys.stdin.buffer.read()
    origin, options = sys.argv[1:]
    try:
        answer = json.dumps((*read_upload(data, origin, **json.loads(options)), None), default=_as_document)
        if len(answer) > _MOST_ANSWER:
            raise InputError("{origin}: holds too much text for one upload; split it", origin=origin)
    except InputError as error:
        answer = json.dumps(((), {}, (), error), default=_as_document)
    except MemoryError:
        sys.exit(1)
    print(answer)


if __name__ == "__main__":
    main()
