"""How an attempt ended, as a pure decision over what it met (DESIGN.md, 3).

It succeeded if it ended by itself with a page stored, with nothing left to store, or with a proven empty answer; else
it failed with the reason of what stood in its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tasks.domain.failures import ErrorClass, FailureReason


@dataclass(frozen=True, slots=True)
class Ending:
    """What an attempt looks back on.

    Attributes:
        collected: pages stored.
        left: targets that are still to do.
        result_error: why the last unreadable result page could not be read; None = all were read.
        hit_errors: errors of hits, by class.
    """

    collected: int
    left: int
    result_error: ErrorClass | None
    hit_errors: Mapping[ErrorClass, int]


_OF_RESULT: Mapping[ErrorClass, FailureReason] = {
    ErrorClass.CONNECT: FailureReason.HOST_UNREACHABLE,
    ErrorClass.BAD_RULE: FailureReason.BAD_RULE,
    ErrorClass.ROBOTS: FailureReason.ROBOTS,
    ErrorClass.NOT_FOUND: FailureReason.BAD_URL,
    ErrorClass.OTHER_STATUS: FailureReason.BAD_URL,
    ErrorClass.SCHEME_REFUSED: FailureReason.BAD_URL,
    ErrorClass.ADDRESS_REFUSED: FailureReason.BAD_URL,
    ErrorClass.REDIRECTS: FailureReason.BAD_URL,
}


def failure(ending: Ending) -> FailureReason | None:
    """The reason an attempt failed, or None where it succeeded."""
    if ending.collected or not ending.left:
        return None
    if ending.result_error is not None:
        if ending.result_error.blocks:
            return FailureReason.BLOCKED
        return _OF_RESULT.get(ending.result_error, FailureReason.RESULT_PAGE_BROKEN)
    errors = {error: n for error, n in ending.hit_errors.items() if n}
    if any(error.blocks for error in errors):
        return FailureReason.BLOCKED
    if ErrorClass.CONNECT in errors:
        return FailureReason.HOST_UNREACHABLE
    if errors and set(errors) <= {ErrorClass.BAD_RULE}:
        return FailureReason.BAD_RULE
    return FailureReason.NOTHING_STORED
