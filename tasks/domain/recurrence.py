"""Times of a repeated event: by a cron expression in a time zone, or at an interval after the last time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from splitter.errors import InputError, Message, WrongValue

if TYPE_CHECKING:
    from apscheduler.triggers.cron import CronTrigger

_FIELDS = {
    "minute": "0-59",
    "hour": "0-23",
    "day": "1-31",
    "month": Message("1-12 or jan-dec"),
    "day_of_week": Message("0-7 (0 and 7 are Sunday) or sun-sat"),
}
"""The fields of a cron expression in their order, as APScheduler names them, with their values."""
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_INSTANT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule of recurrence.

    Attributes:
        cron: five fields: minute, hour, day of the month, month, weekday; empty: by `every`. If both day fields
            are given, either of them is enough, as in crontab(5).
        zone: name of the time zone that `cron` is read in.
        every: the time from one run to the next; zero with `cron`.
    """

    cron: str = ""
    zone: str = "UTC"
    every: timedelta = timedelta()

    def next_time(self, moment: datetime) -> datetime:
        """Return the next time after a moment; an interval counts from that moment.

        If clocks go forward, a time that is left out comes by the distance later. If they go back, an hour that
        comes twice counts once, unless the rule is for every hour.
        """
        if not self.cron:
            return moment + self.every
        hourly = self.cron.split()[1].startswith("*")
        return min(
            at for one in _triggers(self.cron, self.zone) if (at := _next(one, moment, hourly)) is not None
        )

    def __str__(self) -> str:
        return f"{self.cron} {self.zone}" if self.cron else f"every {self.every}"


def cron_rule(expression: str, zone: str = "UTC", now: datetime | None = None) -> Recurrence:
    """Read a cron expression.

    Args:
        now: also check that the rule comes again after this moment.

    Raises:
        InputError: it is wrong, or never comes. The message names the field and a right form.
    """
    text = " ".join(expression.lower().split())
    found = _triggers(text, zone)
    if now is not None and all(_next(one, now, True) is None for one in found):
        raise InputError("cron {text!r} never comes: there is no such day in that month", text=text)
    return Recurrence(text, zone)


@lru_cache(maxsize=512)
def _triggers(expression: str, zone: str) -> tuple[CronTrigger, ...]:
    """The trigger of an expression; two if either day field is enough. Raises InputError."""
    from apscheduler.triggers.cron import CronTrigger  # takes a while to import

    try:
        where = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            "there is no time zone {zone!r}: write UTC, Asia/Shanghai, Europe/Berlin ...", zone=zone
        ) from None
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        raise InputError(
            "cron {expression!r} has {n} fields instead of 5: minute, hour, day of the month, month, "
            "weekday: '0 8 * * 1' is Monday at 8:00",
            expression=expression,
            n=len(parts),
        )
    values = dict(zip(_FIELDS, parts, strict=True))
    for name, text in values.items():
        try:
            if name == "day_of_week":
                values[name] = _weekdays(text)
            CronTrigger(timezone=where, **{name: values[name]})
        except ValueError:
            raise InputError(
                "cron {expression!r}: its {name} {text!r} is wrong; write {fields}, *, a range a-b, a "
                "step */n, or several with commas",
                expression=expression,
                name=Message(name.replace("_", " ")),
                text=text,
                fields=_FIELDS[name],
            ) from None
    either = not values["day"].startswith("*") and not values["day_of_week"].startswith("*")
    ways = [values | {"day_of_week": "*"}, values | {"day": "*"}] if either else [values]
    return tuple(CronTrigger(timezone=where, **way) for way in ways)


def _weekdays(field: str) -> str:
    """A weekday field by names: crontab's numbers begin with Sunday, APScheduler's with Monday. Raises WrongValue."""
    if field == "*":
        return field
    days: set[int] = set()
    for part in field.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = ("0", "-", "6") if span == "*" else span.partition("-")
        begin = _weekday(first)
        end = _weekday(last) if dash else begin
        if slash and not (dash and step.isdigit() and int(step)):
            raise WrongValue("a step stands behind * or a range: */2, 1-5/2")
        if end < begin and last == "sun":
            end += len(_WEEKDAYS)
        if end < begin:
            raise WrongValue("a range goes up")
        days |= {day % len(_WEEKDAYS) for day in range(begin, end + 1, int(step) if slash else 1)}
    return ",".join(_WEEKDAYS[day] for day in sorted(days))


def _weekday(text: str) -> int:
    if text in _WEEKDAYS:
        return _WEEKDAYS.index(text)
    if text.isascii() and text.isdigit() and int(text) <= len(_WEEKDAYS):
        return int(text)
    raise WrongValue("{text!r} is no weekday", text=text)


def _next(trigger: CronTrigger, moment: datetime, hourly: bool) -> datetime | None:
    """The next time after a moment, in UTC; None: there is none."""
    while True:
        found: datetime | None = trigger.get_next_fire_time(None, moment + _INSTANT)
        if found is None:
            return None
        moment = found.astimezone(UTC)
        if hourly or not found.fold:
            return moment
