"""Show times: clock times in the zone of REVIEWLOOP_TIMEZONE, the day of a review as it is stored.

All threads of a process share the zone. The code that reads the settings sets it.
"""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from types import SimpleNamespace
from typing import TYPE_CHECKING

from splitter.spans import CHINA, CHINA_NAME, get_zone

if TYPE_CHECKING:
    from tasks.store.queries.reviews import ReviewRow

_current = SimpleNamespace(zone=CHINA, name=CHINA_NAME)


def use_zone(name: str) -> None:
    """Set the zone of all clock times that are shown. Raises ValueError if the zone is unknown."""
    _current.zone, _current.name = get_zone(name), name


def zone_name() -> str:
    """Return the name of the zone of clock times."""
    return str(_current.name)


def local_time(moment: datetime) -> datetime:
    """Convert an aware time to the zone of clock times."""
    zone: tzinfo = _current.zone
    return moment.astimezone(zone)


def get_utc_offset(moment: datetime) -> timedelta:
    """Return the difference from UTC that the zone of clock times has at a given time."""
    return local_time(moment).utcoffset() or timedelta()


def read_local(moment: datetime) -> datetime:
    """Return a time as an aware one. A time without a zone is taken to be in the zone of clock times."""
    zone: tzinfo = _current.zone
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)


def clock_text(moment: datetime) -> str:
    """Return date and clock time, to the second."""
    return f"{local_time(moment):%Y-%m-%d %H:%M:%S}"


def clock_text_with_zone(moment: datetime) -> str:
    """Return date and clock time to the minute with the zone, for files that are used elsewhere."""
    return f"{local_time(moment):%Y-%m-%d %H:%M} {zone_name()}"


def written_text(row: ReviewRow) -> str:
    """Return the day of a review, with the clock time if the page showed one.

    An unreadable date is returned as written.

    The day does not depend on the zone of clock times. If it is another day in that zone, that day follows in brackets.
    """
    if row.day is None or row.published_at is None:
        return row.date_text
    if not row.has_clock:
        return row.day.isoformat()
    at = local_time(row.published_at)
    if at.date() == row.day:
        return f"{at:%Y-%m-%d %H:%M}"
    return f"{row.day.isoformat()} ({at:%m-%d %H:%M} {zone_name()})"
