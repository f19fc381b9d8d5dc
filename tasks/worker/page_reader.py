"""Reads answers: small ones with rules in a thread, others in a process that is killed if one takes too long."""

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
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import urlsplit

from splitter.errors import Message

from tasks.domain.failures import FetchError
from tasks.reading import reader_process
from tasks.reading.judge.theme_file import IN_FORCE
from tasks.reading.judge.voice import network as voice_network
from tasks.reading.page_jobs import ReadingJob, run_together, unreadable

PATIENCE_S = 4.5
"""CPU seconds for one page. With sending it and replacing the process, a page takes at most 5 s of a free core."""
LONGEST_S = 60.0
"""Seconds after which a page is given up, however little CPU time the machine gave its reader."""
_TOGETHER = 8
"""Quick answers that are read together, at most: some 5 ms."""
_START_S = 60.0
_END_S = 2.0

log = logging.getLogger("reviewloop.reading")

Read = TypeVar("Read")


class Turns:
    """Jobs that wait for the process. Hosts take turns, so that pages of one host don't hold up those of others."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_host: dict[str, deque[tuple[ReadingJob[Any], Future[Any]]]] = {}
        self._last = ""

    def add(self, job: ReadingJob[Any]) -> Future[Any]:
        """Let a job wait for the turn of its host; the result comes as a future."""
        future: Future[Any] = Future()
        with self._lock:
            self._by_host.setdefault(urlsplit(job.url).netloc, deque()).append((job, future))
        return future

    def take(self) -> tuple[ReadingJob[Any], Future[Any]] | None:
        """Return the first job of the host whose turn it is; `None` if no job waits."""
        with self._lock:
            if not self._by_host:
                return None
            others = (host for host in self._by_host if host != self._last)
            self._last = host = next(others, self._last)
            jobs = self._by_host.pop(host)
            first = jobs.popleft()
            if jobs:
                self._by_host[host] = jobs
            return first


class PageReader:
    """Reads for all nodes of a process; close it at the end.

    One process reads what may take long. The first such answer starts it, which takes half a second of CPU time. It
    ends when it is idle, and the next such answer starts another.

    Args:
        patience_s: CPU seconds after which a page is given up.
    """

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._turns = Turns()
        self._apart: _Apart | None = None
        # One thread waits for the process.
        self._asking = ThreadPoolExecutor(1, thread_name_prefix="reader")
        # One more reads what is quick. Several would read no more, and each would have memory of its own.
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="reader-quick")
        self._quick: deque[tuple[ReadingJob[Any], Future[Any]]] = deque()

    def start(self) -> None:
        """Begin to load the network of voices, so that the first page does not wait for it; returns at once."""
        self._asking.submit(voice_network)

    async def read(self, job: ReadingJob[Read]) -> Read:
        """Read the answer of a job.

        Raises:
            FetchError: as the job; UNREADABLE if it took too long, or ended the process that read it.
        """
        answer: Future[Read]
        if job.is_quick:
            answer = Future()
            self._quick.append((job, answer))
            self._reading.submit(self._read_quick)
        else:
            answer = self._turns.add(job)
            self._asking.submit(self._serve)
        return await asyncio.wrap_future(answer)

    def _read_quick(self) -> None:
        """Read some of the waiting quick jobs. Only one thread does this; each job brings one call."""
        waiting: list[tuple[ReadingJob[Any], Future[Any]]] = []
        with contextlib.suppress(IndexError):  # `close` may take some at the same time
            while len(waiting) < _TOGETHER:
                waiting.append(self._quick.popleft())
        turns = [turn for turn in waiting if turn[1].set_running_or_notify_cancel()]
        outcomes = run_together([job for job, _ in turns])
        for (_, future), outcome in zip(turns, outcomes, strict=True):
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

    def _serve(self) -> None:
        """Run the next job. Only one thread does this."""
        turn = self._turns.take()
        if turn is None or not turn[1].set_running_or_notify_cancel():
            return
        job, future = turn
        try:
            future.set_result(self._ask(job))
        except BaseException as error:
            future.set_exception(error)

    def _ask(self, job: ReadingJob[Any]) -> Any:
        message = pickle.dumps((self._patience_s, job), pickle.HIGHEST_PROTOCOL)
        for _ in range(2):
            if (
                self._apart is not None and self._apart.ended
            ):  # idle, or killed from outside: no page is to blame
                self._end()
            if self._apart is None:
                self._apart = _Apart()
            try:
                answer = self._apart.answer(message)
            except TimeoutError:
                self._apart.kill()
                self._end()
                raise unreadable(
                    Message(
                        "reading {n} bytes took longer than {most_s:g} s", n=len(job.body), most_s=LONGEST_S
                    )
                ) from None
            if answer is not None:
                fine, read = pickle.loads(answer)
                if not fine:
                    raise FetchError(*read)
                return read
            status = self._end()
            if status == -signal.SIGPROF:
                raise unreadable(
                    Message(
                        "reading {n} bytes took more than {most_s:g} s of CPU",
                        n=len(job.body),
                        most_s=self._patience_s,
                    )
                )
            if status:  # not by itself: idle, or after its last job
                raise unreadable(
                    Message(
                        "reading {n} bytes ended the reader with {status}",
                        n=len(job.body),
                        status=_exit_text(status),
                    )
                )
        raise unreadable(Message("the reader ended twice before it had read the page"))

    def _end(self) -> int:
        """End the process, and return its status as `_Apart.end` does."""
        apart, self._apart = self._apart, None
        return apart.end() if apart is not None else 0

    def close(self) -> None:
        """End the process. The job it is reading and those that wait are given up."""
        if self._apart is not None:
            self._apart.kill()
        while (turn := self._turns.take()) is not None:
            turn[1].cancel()
        while self._quick:
            self._quick.popleft()[1].cancel()
        self._asking.shutdown()
        self._reading.shutdown()
        self._end()


class _Apart:
    """The process, as its parent sees it. Raises OSError if it can't be started."""

    def __init__(self) -> None:
        began = time.monotonic()
        self._connection, theirs = socket.socketpair()
        themes = None if IN_FORCE.path is None else str(IN_FORCE.path.resolve())
        paths = f"import sys; sys.path[:] = {sys.path!r}; "
        with theirs, contextlib.ExitStack() as stack:
            stack.callback(self._connection.close)
            # It has its own session, so that signals which a terminal sends to the whole group don't reach it.
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"{paths}from {reader_process.__name__} import main; main({themes!r})",
                ],
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

    def answer(self, message: bytes) -> bytes | None:
        """Return the answer to a message; `None` if the process has ended. Raises TimeoutError."""
        self._connection.settimeout(LONGEST_S)
        try:
            reader_process.send(self._connection, message)
            return reader_process.receive(self._connection)
        except TimeoutError:
            raise
        except OSError:  # broken off in the middle
            return None

    @property
    def ended(self) -> bool:
        """Return True if the process has ended by itself."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process, from any thread."""
        self._process.kill()

    def end(self) -> int:
        """Close the connection and wait for the process. Return its status; 0 if it had to be killed."""
        self._connection.close()
        status: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self._process.wait(_END_S)
        if status is None:
            self._process.kill()
            self._process.wait()
        return status or 0


def _exit_text(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"status {status}"
