"""Marks reading on an event loop, where what may take long is left to the reader process."""

from __future__ import annotations

from contextvars import ContextVar

on_event_loop: ContextVar[bool] = ContextVar("on_event_loop", default=False)
"""True while a page is read on an event loop, where other attempts wait for the end of it."""


class NeedsReaderProcess(Exception):
    """Raised on an event loop for an answer that may take long: it is to be read in the reader process."""
