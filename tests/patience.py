"""How long a test waits for what must come: a machine under load may be many times slower, and is not wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 600.0
"""Only what hangs reaches it."""

T = TypeVar("T")


def until(condition: Callable[[], T], what: str = "") -> T:
    """Wait until a condition holds, and give its value; fail where it never does."""
    end = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < end, f"not within {PATIENCE_S:g} s: {what or condition}"
        time.sleep(0.02)
    return value
