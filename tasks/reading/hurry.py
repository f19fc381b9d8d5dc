"""A hurried reader: on an event loop, what takes long is left to a process apart."""

from __future__ import annotations

from contextvars import ContextVar

hurried: ContextVar[bool] = ContextVar("hurried", default=False)
"""True while a page is read where others wait."""


class NotHere(Exception):
    """An answer that is to be read in a process apart: it may take long."""
