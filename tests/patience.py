"""How long a test waits for what must come: a machine under load may be many times slower, and is not wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import TypeVar

import pytest

from tasks.fetching import browser, chromium

PATIENCE_S = 600.0
"""Only what hangs reaches it."""

T = TypeVar("T")


def patient_with_chromium(patch: pytest.MonkeyPatch) -> None:
    """No page is given up, and no Chromium is killed, because it is slow here."""
    for name in ("PATIENCE_S", "LONGEST_S", "CLOSE_S"):
        patch.setattr(browser, name, PATIENCE_S)
    for name in ("START_S", "_CLOSE_S"):
        patch.setattr(chromium, name, PATIENCE_S)


def in_pieces(cpu_s: float) -> float:
    """CPU seconds of one thread as so many pieces of work: 0.1 s each on a usual machine, more on a slow one."""
    return cpu_s / _piece_s()


@cache
def _piece_s() -> float:
    began = time.thread_time()
    for number in range(700_000):
        str(number).encode()
    return time.thread_time() - began


def until(condition: Callable[[], T], what: str = "") -> T:
    """Wait until a condition holds, and give its value; fail where it never does."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {PATIENCE_S:g} s: {what or condition}"
        time.sleep(0.02)
    return value
