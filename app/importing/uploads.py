"""Reads an uploaded file of products in a process of its own, which ends at a limit or when its visitor leaves."""

from __future__ import annotations

import asyncio
import io
import json
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence

from app.files.harmless import one_line
from app.importing.columns import ColumnChoice
from app.importing.product_files import Line, open_product_file
from splitter.errors import InputError

MOST_UNPACKED = 50_000_000
_MOST_S = 60
_MOST_MEMORY = 512 << 20
_MOST_LINES = 50_000
_MOST_ANSWER = 20_000_000
"""Maximum number of bytes of the lines of a file."""
_AT_ONCE = 2
_LONGEST_ORIGIN = 100


Upload = tuple[Sequence[Line], Mapping[str, str], Sequence[str]]
"""The lines of a file, its columns by field, and notes on how it was read."""


class Uploads:
    """Reads at most `_AT_ONCE` files at a time; the others wait their turn."""

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
        """Read a file.

        Args:
            ignored: columns that are not read.
            as_list: each line of a text is a name.
            leaving: is done when the visitor has left.

        Raises:
            InputError: the file is refused as a whole, or its visitor has left.
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
                f"{origin}: can't be read within {_MOST_S} s and {_MOST_MEMORY >> 20} MB; split it"
            )
        lines, columns, notes, error = json.loads(answer)
        if error:
            raise InputError(error)
        return lines, columns, notes


def read_upload(data: bytes, origin: str, ignored: Sequence[str] = (), *, as_list: bool = False) -> Upload:
    """Read a file in this process. Raises InputError."""
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
            raise InputError(f"{origin}: has more than {_MOST_LINES:,} products")
    taken = [f"{found.where}, columns {', '.join(found.columns.values())}"] if found.columns else []
    return lines, found.columns, [*taken, *found.notes]


def main() -> None:
    """Read a file from standard input, and write it as JSON to standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_S, _MOST_S))
    data = sys.stdin.buffer.read()
    origin, options = sys.argv[1:]
    try:
        answer = json.dumps((*read_upload(data, origin, **json.loads(options)), ""))
        if len(answer) > _MOST_ANSWER:
            raise InputError(f"{origin}: holds too much text for one upload; split it")
    except InputError as error:
        answer = json.dumps(((), {}, (), str(error)))
    except MemoryError:
        sys.exit(1)
    print(answer)


if __name__ == "__main__":
    main()
