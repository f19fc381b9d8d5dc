"""Read the period of a page or a command: the last days up to today, or the days from one date to another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from splitter.errors import InputError

if TYPE_CHECKING:
    from tasks.store.queries.themes import Period

ALL = "all"
USUAL = "90"
_MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class PeriodChoice:
    """A period as a person enters it.

    Attributes:
        days: number of days up to today, or `ALL`; empty if `first` or `last` is given.
        first, last: first and last day; `None` leaves that end open.
        is_given: False for the default period of a page or command.
    """

    days: str
    first: date | None = None
    last: date | None = None
    is_given: bool = True

    @property
    def values(self) -> dict[str, str]:
        """The period as parameters of a URL."""
        if self.days:
            return {"days": self.days}
        given = {"from": self.first, "to": self.last}
        return {name: day.isoformat() for name, day in given.items() if day is not None}

    @property
    def query(self) -> str:
        """The period as the query string of a URL."""
        return urlencode(self.values)

    @property
    def carried(self) -> str:
        """The query string for links to other pages; empty for a default period, as each page has its own default."""
        return self.query if self.is_given else ""

    def find(self, today: date) -> Period:
        """Return the first and last day of the period if `today` is the current day."""
        from tasks.store.queries.themes import Period  # loads the database, which options don't need

        if not self.days:
            return Period(self.first, self.last)
        return Period() if self.days == ALL else Period(today - timedelta(days=int(self.days) - 1), today)


def read_period(days: str | None, first: date | None, last: date | None, usual: str = USUAL) -> PeriodChoice:
    """Return the period that a person entered, or the default period of `usual` days if nothing was entered.

    Raises:
        InputError: `days` is not a number of days, both `days` and a date are given, or `first` is after `last`.
    """
    if first is not None or last is not None:
        if days:
            raise InputError("Give the number of days, or the first and the last day; not both.")
        if first is not None and last is not None and last < first:
            raise InputError("The last day, {last}, is before the first, {first}.", first=first, last=last)
        return PeriodChoice("", first, last)
    if not days:
        return PeriodChoice(usual, is_given=False)
    if days != ALL and not (days.isascii() and days.isdecimal() and 0 < int(days[:9]) <= _MOST_DAYS):
        raise InputError(
            "{days!r} is no number of days; write one from 1 to {most}, or all",
            days=days[:20],
            most=_MOST_DAYS,
        )
    return PeriodChoice(days)


def find_period_before(period: Period) -> Period | None:
    """Return the period of equal length that ends the day before a period begins.

    `None` if the period has an open end, or if the calendar has no such days.
    """
    if period.since is None or period.until is None:
        return None
    length = period.until - period.since + timedelta(days=1)
    if period.since - date.min < length:
        return None
    return type(period)(period.since - length, period.since - timedelta(days=1))


def last_whole_week(today: date) -> int:
    """Return the number of the last week that ended before `today`."""
    from tasks.store.queries.themes import week_of

    return week_of(today) - 1
