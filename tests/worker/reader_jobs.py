"""Jobs for the reader of `test_page_reader`: a module of its own, as the process apart imports it."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass

from tasks.domain.failures import ErrorClass, FetchError


@dataclass(frozen=True)
class Job:
    """What is done apart."""

    does: str
    body: bytes = b"body"
    url: str = "http://a.cn/"

    is_quick = False

    def read(self) -> str:
        match self.does:
            case "never ends":
                while True:
                    pass
            case "timers":
                timers = signal.ITIMER_REAL, signal.ITIMER_PROF
                return " ".join(str(signal.getitimer(timer)[0]) for timer in timers)
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
