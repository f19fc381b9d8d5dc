"""The host a subtask waits for because it can't be asked, and why."""

from __future__ import annotations

from dataclasses import dataclass

UNREACHABLE = "unreachable"
"""Cause of a rest: the host does not answer (connection refused, time-outs in a row, no answer for robots.txt)."""

NO_PERMIT = "no_permit"
"""Cause of a wait: the host's permits are reserved too far ahead."""

_WORDS = {UNREACHABLE: "does not answer", NO_PERMIT: "is asked as often as it may be"}


@dataclass(frozen=True, slots=True, order=True)
class HostWait:
    """A host that can't be asked.

    Attributes:
        cause: `UNREACHABLE`, `NO_PERMIT`, or the error class of a refusal.
    """

    host: str
    cause: str

    def __str__(self) -> str:
        """In plain words: ``12315.com rests (forbidden)``."""
        return f"{self.host} {_WORDS.get(self.cause) or f'rests ({self.cause})'}"
