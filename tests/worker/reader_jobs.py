"""Jobs for the reader of `test_page_reader`: a module of its own, as the process apart imports it."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.page_jobs import ReadingJob


@dataclass(frozen=True, slots=True)
class Job(ReadingJob[str]):
    """What is done apart."""

    does: str
    body: bytes = field(default=b"body", kw_only=True)
    headers: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    url: str = field(default="http://a.cn/", kw_only=True)
    now: datetime = field(default=datetime(2026, 1, 1, tzinfo=UTC), kw_only=True)

    @property
    def is_quick(self) -> bool:
        return False

    def read(self) -> str:
        match self.does:
            case "never ends":
                while True:
                    pass
            case "timers":
                timers = signal.ITIMER_REAL, signal.ITIMER_PROF
                return " ".join(str(signal.getitimer(timer)[0]) for timer in timers)
            case "waits":
                signal.pause()
            case "is late":
                os.kill(os.getpid(), signal.SIGPROF)
            case "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "eats memory":
                return str(len(bytearray(3 << 30)))
            case "leaves":
                os._exit(0)
            case "fails":
                raise ValueError("of its own")
            case "refuses":
                raise FetchError(ErrorClass.BAD_RULE, "nothing there")
            case "environment":
                return " ".join(os.environ)
        return str(os.getpid())
