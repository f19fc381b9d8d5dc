"""Ticks of a chart's axes: round numbers, round times, and their labels."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10

from app.views.moments import local_time


def round_ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers, at least two. The first is <= `low`, the last >= `high`."""
    if high <= low:
        high = low + 1.0
    rough = (high - low) / 5
    size: float = 10.0 ** floor(log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * (1 - 1e-9))
    first, last = floor(low / step + 1e-9), ceil(high / step - 1e-9)
    return [n * step for n in range(first, last + 1)]


_TIME_STEPS = [
    *(timedelta(seconds=n) for n in (1, 5, 15, 30)),
    *(timedelta(minutes=n) for n in (1, 5, 15, 30)),
    *(timedelta(hours=n) for n in (1, 3, 6, 12)),
    *(timedelta(days=n) for n in (1, 2, 7, 30, 91, 182, 365, 730, 1826, 3652)),
]


def time_ticks(first: float, last: float) -> list[tuple[float, str]]:
    """Return at most six round clock times between two times, with their labels. Times are Unix timestamps."""
    step = next((one for one in _TIME_STEPS if (last - first) / one.total_seconds() <= 6), _TIME_STEPS[-1])
    step_s = step.total_seconds()
    form = "%Y-%m-%d" if step_s >= 86_400 else "%H:%M" if step_s >= 60 else "%H:%M:%S"
    offset_s = (local_time(datetime.fromtimestamp(first, UTC)).utcoffset() or timedelta()).total_seconds()
    steps = range(ceil((first + offset_s) / step_s), floor((last + offset_s) / step_s) + 1)
    marks = [n * step_s - offset_s for n in steps] or [first]
    return [(mark, f"{local_time(datetime.fromtimestamp(mark, UTC)):{form}}") for mark in marks]


def number_text(value: float) -> str:
    """Return a number as a label with few digits and separated thousands."""
    if value == round(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
