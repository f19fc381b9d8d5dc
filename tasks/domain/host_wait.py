"""The host a subtask waits for because it can't be asked, and why; in plain words as `subtasks.waits_for` keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

UNREACHABLE = "unreachable"
"""Cause of a rest: the host does not answer (connection refused, time-outs in a row, no answer for robots.txt)."""

NO_PERMIT = "no_permit"
"""Cause of a wait: the host's permits are reserved too far ahead."""

_WORDS = {UNREACHABLE: "does not answer", NO_PERMIT: "is asked as often as it may be"}
_CAUSES = {words: cause for cause, words in _WORDS.items()}


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

    @classmethod
    def read(cls, text: str) -> Self:
        """From the words of `__str__`."""
        host, _, words = text.partition(" ")
        return cls(host, _CAUSES.get(words) or words.removeprefix("rests (").removesuffix(")"))
