"""The host a subtask waits for because it can't be asked, and why."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.domain.reasons import Explanation, Reason, because

UNREACHABLE = "unreachable"
"""Cause of a rest: the host does not answer (connection refused, time-outs in a row, no answer for robots.txt)."""

NO_PERMIT = "no_permit"
"""Cause of a wait: the host's permits are reserved too far ahead."""


@dataclass(frozen=True, slots=True, order=True)
class HostWait:
    """A host that can't be asked.

    Attributes:
        cause: `UNREACHABLE`, `NO_PERMIT`, or the error class of a refusal.
    """

    host: str
    cause: str

    @property
    def reason(self) -> Explanation:
        """The same as a reason for people."""
        if self.cause == UNREACHABLE:
            return because(Reason.HOST_SILENT, host=self.host)
        if self.cause == NO_PERMIT:
            return because(Reason.HOST_BUSY, host=self.host)
        return because(Reason.HOST_RESTS, host=self.host, cause=self.cause)
