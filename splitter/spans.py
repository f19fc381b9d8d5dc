"""Ranges of time a search is restricted to, and how one that holds too much is cut in two."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

from splitter.errors import WrongValue

CHINA = timezone(timedelta(hours=8))
"""The time engines and sites of the catalog count their days in; without summer time since 1991."""
CHINA_NAME = "Asia/Shanghai"

Unit = Literal["day", "hour"]
"""The shortest range a search can be restricted to."""

_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of time, ``[start, end)``.

    Attributes:
        start, end: aware; ``start`` is part of the span, ``end`` is not.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        """Raises ValueError for a naive time and for an end that is not after its start."""
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError(f"{self.start} to {self.end}: a span needs aware times")
        if self.end <= self.start:
            raise ValueError(f"{self.start} to {self.end}: a span ends after its start")

    def halves(self, least: Unit) -> tuple[Span, Span] | None:
        """Cut the span in two parts that share no moment and omit none; return `None` if it can't be cut further.

        It is cut at the midnight (China time) nearest to its middle; if there is none within, at the nearest
        full hour.

        Args:
            least: the shortest range the engine can be restricted to; with ``day`` there is no cut within a day.
        """
        cut = _nearest(self, timedelta(days=1))
        if cut is None and least == "hour":
            cut = _nearest(self, _HOUR)
        return (Span(self.start, cut), Span(cut, self.end)) if cut is not None else None


def floor(moment: datetime, unit: timedelta) -> datetime:
    """The last full day or hour (China time) that is not after a moment."""
    local = moment.astimezone(CHINA)
    hour = 0 if unit > _HOUR else local.hour
    return local.replace(hour=hour, minute=0, second=0, microsecond=0)


def ceiling(moment: datetime, unit: timedelta) -> datetime:
    """The first full day or hour (China time) that is not before a moment."""
    below = floor(moment, unit)
    return below if below == moment else below + unit


def _nearest(span: Span, unit: timedelta) -> datetime | None:
    """The full unit strictly inside a span that is nearest to its middle; the earlier one of two."""
    middle = span.start + (span.end - span.start) / 2
    below = floor(middle, unit)
    cuts = [cut for cut in (below, below + unit) if span.start < cut < span.end]
    return min(cuts, key=lambda cut: abs(cut - middle), default=None)


def get_zone(name: str) -> tzinfo:
    """Return the time zone of a name: Asia/Shanghai, Europe/Berlin, UTC. Raises WrongValue if there is none."""
    if name == CHINA_NAME:
        return CHINA
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise WrongValue(
            "there is no time zone {name!r}; write Asia/Shanghai, Europe/Berlin, UTC ...", name=name
        ) from None
