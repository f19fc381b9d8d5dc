"""Reads answers: usual ones where they came in, others in a process apart, which is ended where one takes too long."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pickle
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from tasks.domain.failures import FetchError
from tasks.reading import reader_process
from tasks.reading.event_loop import NeedsReaderProcess
from tasks.reading.page_jobs import ReadingJob, done, unreadable
from tasks.reading.voice import network as voice_network

PATIENCE_S = 4.5
"""For one page, read apart: with sending it there and ending the process, no page takes longer than 5 s."""
_START_S = 60.0
_END_S = 2.0

log = logging.getLogger("reviewloop.reading")

Read = TypeVar("Read")


class PageReader:
    """Reads for all nodes of a process; close it at the end.

    The process apart is one: its answers are read in their turn. The first answer that needs it starts it, which takes
    half a second of CPU time that a crawl of usual pages does without; so does the next one where it has ended, being
    idle.

    Args:
        patience_s: seconds after which a page is given up.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._apart: _Apart | None = None
        # One thread waits for the process; it makes the turns, too.
        self._turns: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Begin to load the network of voices, so that the first page does not wait for them; returns at once."""
        self._pool().submit(voice_network)

    async def read(self, job: ReadingJob[Read]) -> Read:
        """Reads by a job.

        Raises:
            FetchError: as the job; UNREADABLE where it took too long, or ended the process that read it.
        """
        try:
            if job.in_thread:
                return await asyncio.to_thread(done, job, apart=False)
            return done(job, apart=False)
        except NeedsReaderProcess:
            return await self._read_apart(job)

    async def _read_apart(self, job: ReadingJob[Read]) -> Read:
        read: Read = await asyncio.get_running_loop().run_in_executor(self._pool(), self._ask, job)
        return read

    def _pool(self) -> ThreadPoolExecutor:
        if self._turns is None:
            self._turns = ThreadPoolExecutor(1, thread_name_prefix="reader")
        return self._turns

    def _ask(self, job: ReadingJob[Any]) -> Any:
        """Have a job done apart; in the one thread that does this."""
        message = pickle.dumps((self._patience_s, job), pickle.HIGHEST_PROTOCOL)
        for _ in range(2):
            if (
                self._apart is not None and self._apart.ended
            ):  # idle, or somebody ended it: no page is to blame
                self._end()
            if self._apart is None:
                self._apart = _Apart()
            try:
                answer = self._apart.answer(message, self._patience_s)
            except TimeoutError:
                self._apart.kill()
                self._end()
                raise self._too_long(job) from None
            if answer is not None:
                fine, read = pickle.loads(answer)
                if not fine:
                    raise FetchError(*read)
                return read
            status = self._end()
            if status == -signal.SIGALRM:  # its own limit, before ours was looked at
                raise self._too_long(job)
            if status:  # not by itself: idle, or after its last job
                raise unreadable(f"reading {len(job.body)} bytes ended the reader with {_said(status)}")
        raise unreadable("the reader ended twice before it had read the page")

    def _too_long(self, job: ReadingJob[Any]) -> FetchError:
        return unreadable(f"reading {len(job.body)} bytes took longer than {self._patience_s:g} s")

    def _end(self) -> int:
        """End the process apart; the status it had ended with before, 0 where it ended by itself."""
        apart, self._apart = self._apart, None
        return apart.end() if apart is not None else 0

    def close(self) -> None:
        """End the process apart. What it is reading is given up."""
        if self._apart is not None:
            self._apart.kill()
        if self._turns is not None:
            self._turns.shutdown(cancel_futures=True)
        self._end()


class _Apart:
    """The process, as its parent sees it. Raises OSError where it can't be started."""

    def __init__(self) -> None:
        began = time.monotonic()
        self._connection, theirs = socket.socketpair()
        paths = f"import sys; sys.path[:] = {sys.path!r}; "
        with theirs, contextlib.ExitStack() as stack:
            stack.callback(self._connection.close)
            # A session of its own: what a terminal sends to the whole group is not for it.
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{paths}from {reader_process.__name__} import main; main()"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # numpy makes no threads of its own: each takes memory, of which the process may have little.
                env={"LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )
            stack.pop_all()
        try:
            self._connection.settimeout(_START_S)
            if self._connection.recv(1) != reader_process.READY:
                raise OSError("the reader of large pages did not start; its error is on standard error")
        except BaseException:
            self.end()
            raise
        log.debug("the reader %d started in %.1f s", self._process.pid, time.monotonic() - began)

    def answer(self, message: bytes, patience_s: float) -> bytes | None:
        """The answer to a message; None where the process has ended. Raises TimeoutError."""
        self._connection.settimeout(patience_s)
        try:
            reader_process.send(self._connection, message)
            return reader_process.received(self._connection)
        except TimeoutError:
            raise
        except OSError:  # broken off in the middle
            return None

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it now, from any thread."""
        self._process.kill()

    def end(self) -> int:
        """End it and take its leave; the status it had ended with by itself, 0 where it had not."""
        self._connection.close()
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_END_S)
        if status is None:
            self._process.kill()
            self._process.wait()
        return status or 0


def _said(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"status {status}"
