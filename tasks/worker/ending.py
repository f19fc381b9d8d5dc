"""How an attempt ended, as a pure decision over what it met (DESIGN.md, 3).

It succeeded if it ended by itself with a page stored, with nothing left to store, or with a proven empty answer; else
it failed with the reason of what stood in its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tasks.domain.crawl import ErrorClass
from tasks.domain.model import Reason


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


_OF_RESULT: Mapping[ErrorClass, Reason] = {
    ErrorClass.CONNECT: Reason.HOST_UNREACHABLE,
    ErrorClass.BAD_RULE: Reason.BAD_RULE,
    ErrorClass.ROBOTS: Reason.ROBOTS,
    ErrorClass.NOT_FOUND: Reason.BAD_URL,
    ErrorClass.OTHER_STATUS: Reason.BAD_URL,
    ErrorClass.SCHEME_REFUSED: Reason.BAD_URL,
    ErrorClass.ADDRESS_REFUSED: Reason.BAD_URL,
    ErrorClass.REDIRECTS: Reason.BAD_URL,
}


def failure(ending: Ending) -> Reason | None:
    """The reason an attempt failed, or None where it succeeded."""
    if ending.collected or not ending.left:
        return None
    if ending.result_error is not None:
        if ending.result_error.blocks:
            return Reason.BLOCKED
        return _OF_RESULT.get(ending.result_error, Reason.RESULT_PAGE_BROKEN)
    errors = {error: n for error, n in ending.hit_errors.items() if n}
    if any(error.blocks for error in errors):
        return Reason.BLOCKED
    if ErrorClass.CONNECT in errors:
        return Reason.HOST_UNREACHABLE
    if errors and set(errors) <= {ErrorClass.BAD_RULE}:
        return Reason.BAD_RULE
    return Reason.NOTHING_STORED
