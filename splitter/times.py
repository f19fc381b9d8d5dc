"""A range of time as an engine's URL writes it."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from splitter.catalog.model import TimeFilter
from splitter.spans import Span, ceiling, floor

PLACEHOLDERS = ("from_s", "to_s", "from_day", "to_day", "from_hour", "to_hour")
"""What the values of a time filter's parameters may hold."""

_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1)}


def time_params(times: TimeFilter, span: Span) -> dict[str, str]:
    """The query parameters that restrict a search to a range: never to less of it, where units are coarser."""
    filled = {"from_s": str(math.floor(span.start.timestamp())), "to_s": _end_s(times, span.end)}
    for name, unit in _UNITS.items():
        filled[f"from_{name}"] = _written(floor(span.start, unit), name)
        filled[f"to_{name}"] = _written(_end(times, span.end, unit), name)
    return {name: value.format(**filled) for name, value in times.params.items()}


def _end_s(times: TimeFilter, end: datetime) -> str:
    return str(math.ceil(end.timestamp()) - times.inclusive)


def _end(times: TimeFilter, end: datetime, unit: timedelta) -> datetime:
    """The written end: the first full unit outside the range, or the last one with something of it inside."""
    after = ceiling(end, unit)
    return after - unit if times.inclusive else after


def _written(moment: datetime, unit: str) -> str:
    return f"{moment:%Y-%m-%d}" + (f"-{moment.hour}" if unit == "hour" else "")
