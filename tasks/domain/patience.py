"""How long an answer asks to wait: Retry-After, and the headers of rate limits.

| header | value |
|---|---|
| Retry-After | seconds, or a date in one of three forms (RFC 9110, 10.2.3 and 5.6.7) |
| Retry-After-Ms, X-Ms-Retry-After-Ms | milliseconds |
| RateLimit | `"name";r=0;t=30` (draft-ietf-httpapi-ratelimit-headers, 10), or `remaining=0, reset=30` (draft 7) |
| RateLimit-Reset, X-RateLimit-Reset, X-Rate-Limit-Reset | seconds, the time since 1970 in s or ms, or a date |
| X-RateLimit-Reset-After | seconds |

A limit asks for a wait if nothing of it remains (`...-Remaining: 0`). If the answer does not say what remains, it asks
for one with status 429 or 503.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from tasks.domain.breaker import LONGEST_ASKED_S

_SECONDS = ("retry-after", "x-retry-after")
_MILLISECONDS = ("retry-after-ms", "x-ms-retry-after-ms")
_LIMITS = ("ratelimit", "x-ratelimit", "x-rate-limit")
_LIMIT_STATUSES = (429, 503)
_NUMBER = re.compile(r"[0-9]++(?:\.[0-9]++)?")
_PARAMETER_ENDS = re.compile(r"[\s,;]")
_EPOCH_FROM_S = 1e9
"""Numbers from this on are a time since 1970: as a duration they would be 31 years."""

_EPOCH_FROM_MS = 1e12
_MOST_DATE_CHARS = 64


def retry_wait_s(headers: Mapping[str, str], status: int, now: datetime) -> float | None:
    """Return the seconds an answer asks to wait, from 0 to `LONGEST_ASKED_S`; `None` if it asks for nothing.

    If several headers ask, the longest wait counts.

    Args:
        headers: lower-case names; repeated ones joined by commas.
        now: aware time, for dates.
    """
    waits = [_duration_s(headers.get(name, ""), now) for name in _SECONDS]
    for name in _MILLISECONDS:
        if _NUMBER.fullmatch(headers.get(name, "")):
            waits.append(float(headers[name]) / 1000)
    waits += [_limit_wait_s(headers, prefix, status, now) for prefix in _LIMITS]
    asked = [wait for wait in waits if wait is not None]
    if not asked:
        return None
    return min(max(0.0, *asked), LONGEST_ASKED_S)


def _limit_wait_s(headers: Mapping[str, str], prefix: str, status: int, now: datetime) -> float | None:
    """Return the wait until a limit is reset, if it asks for that."""
    waits = [
        float(reset)
        for remaining, reset in _limit_states(headers.get(prefix, ""))
        if _is_used_up(remaining, status)
    ]
    if _is_used_up(headers.get(f"{prefix}-remaining", ""), status):
        for name in (f"{prefix}-reset", f"{prefix}-reset-after"):
            wait = _duration_s(headers.get(name, ""), now)
            if wait is not None:
                waits.append(wait)
    return max(waits, default=None)


def _limit_states(value: str) -> list[tuple[str, str]]:
    """Return what remains of each limit in a `RateLimit` header (empty: it does not say), and when it is reset."""
    items = value.lower().split(",") if '"' in value else [value.lower()]
    states = []
    for item in items:
        given = dict(part.split("=", 1) for part in _PARAMETER_ENDS.split(item) if "=" in part)
        reset = given.get("t", given.get("reset", ""))
        if _NUMBER.fullmatch(reset):
            states.append((given.get("r", given.get("remaining", "")), reset))
    return states


def _is_used_up(remaining: str, status: int) -> bool:
    """Return True if nothing remains of a limit."""
    numbers = [part.strip() for part in remaining.split(",") if part.strip()]
    if not numbers:
        return status in _LIMIT_STATUSES
    return any(not number.strip("0") for number in numbers)


def _duration_s(value: str, now: datetime) -> float | None:
    """Return the seconds from now that a value means; `None` if it means nothing."""
    parts = [part.strip() for part in value.split(",")]
    if all(_NUMBER.fullmatch(part) for part in parts):
        return max(_number_s(part, now) for part in parts)
    moment = _moment(value.strip())
    if moment is None:
        return None
    return (moment - now).total_seconds()


def _number_s(digits: str, now: datetime) -> float:
    seconds = float(digits)
    if seconds >= _EPOCH_FROM_MS:
        return seconds / 1000 - now.timestamp()
    if seconds >= _EPOCH_FROM_S:
        return seconds - now.timestamp()
    return seconds


def _moment(text: str) -> datetime | None:
    """Return the time that a date means; without a zone it is UTC, as the form of C's asctime is."""
    if len(text) > _MOST_DATE_CHARS:
        return None
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(text)
        except (TypeError, ValueError, OverflowError, IndexError):
            continue
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment
    return None
