"""Record which modules of the product a step enters, and which records cross a package on the way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, is_dataclass
from types import FrameType
from typing import Any

LAYERS = ("app.", "tasks.", "splitter.")


@dataclass
class DecisionPath:
    """What a step entered."""

    modules: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)
    """Names of the product's dataclasses that were passed to, or returned from, a function of another package."""


class _Recorder:
    """A profile function that records calls, from the first call of `begins_with` on."""

    def __init__(self, path: DecisionPath, begins_with: str) -> None:
        self._path = path
        self._begins_with = begins_with
        self._is_recording = not begins_with

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        if event not in ("call", "return"):
            return
        module = _module_of(frame)
        if not module.startswith(LAYERS):
            return
        if frame.f_code.co_qualname == self._begins_with:
            self._is_recording = True
        if not self._is_recording:
            return
        self._path.modules.add(module)
        caller = _module_of(frame.f_back)
        if not caller.startswith(LAYERS) or _package_of(caller) == _package_of(module):
            return
        passed = frame.f_locals.values() if event == "call" else (result,)
        self._path.records.update(
            type(value).__name__
            for value in passed
            if is_dataclass(value) and type(value).__module__.startswith(LAYERS)
        )


def _module_of(frame: FrameType | None) -> str:
    return frame.f_globals.get("__name__", "") if frame is not None else ""


def _package_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


@contextmanager
def record_path(begins_with: str = "") -> Iterator[DecisionPath]:
    """Yield the path of what runs inside, also on threads that start inside.

    `begins_with` is the qualified name of the function whose first call starts the recording. If it is empty, the
    recording starts at once.
    """
    path = DecisionPath()
    recorder = _Recorder(path, begins_with)
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        yield path
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
