"""Moments as people read them: clock times in the zone of REVIEWLOOP_TIMEZONE, the day of a review as it is stored.

The zone belongs to the process, all of whose threads show times: whatever reads the settings sets it.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from types import SimpleNamespace
from typing import TYPE_CHECKING

from splitter.spans import CHINA, CHINA_NAME, get_zone

if TYPE_CHECKING:
    from tasks.store.queries.reviews import ReviewRow

_current = SimpleNamespace(zone=CHINA, name=CHINA_NAME)


def use_zone(name: str) -> None:
    """Show clock times in this zone from now on. Raises ValueError if there is none of this name."""
    _current.zone, _current.name = get_zone(name), name


def zone_name() -> str:
    """Return the name of the zone that clock times are shown in."""
    return str(_current.name)


def local_time(moment: datetime) -> datetime:
    """Return an aware moment in the zone that clock times are shown in."""
    zone: tzinfo = _current.zone
    return moment.astimezone(zone)


def read_local(moment: datetime) -> datetime:
    """Return a moment as a person gave it, in the zone that clock times are shown in unless it has its own."""
    zone: tzinfo = _current.zone
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def clock_text(moment: datetime) -> str:
    """Return the date and clock time of a moment, to the second."""
    return f"{local_time(moment):%Y-%m-%d %H:%M:%S}"


def clock_text_with_zone(moment: datetime) -> str:
    """Return the date and clock time of a moment, to the minute, with the zone: for files that leave this machine."""
    return f"{local_time(moment):%Y-%m-%d %H:%M} {zone_name()}"


def written_text(row: ReviewRow) -> str:
    """Return the day of a review, with the clock time if one was written; its date as written if it can't be read.

    The day never moves with the zone of clock times. A moment that is on another day there is in brackets.
    """
    if row.day is None or row.published_at is None:
        return row.date_text
    if not row.has_clock:
        return row.day.isoformat()
    at = local_time(row.published_at)
    if at.date() == row.day:
        return f"{at:%Y-%m-%d %H:%M}"
    return f"{row.day.isoformat()} ({at:%m-%d %H:%M} {zone_name()})"
