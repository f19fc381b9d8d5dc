"""Read the date texts of stored records again, for a store filled by an older version.

A stored day is the one that was read when its page was fetched. If this version reads a date differently, the record
gets another day, or none. Imported pages keep the days that a person gave them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

from splitter.catalog.model import Catalog

from tasks.reading.dates import read_date
from tasks.reading.days import list_readings
from tasks.store.content.links import JudgedPage, StoredPage, StoredRecord
from tasks.store.content.reviews import date_columns

MOST_CHANGES = 1000
"""Maximum number of listed changes; all are counted."""
_NEAR = timedelta(hours=1)
"""Maximum time between fetching and storing a page. Relative dates are counted from the fetch."""
_LATER = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class DayChange:
    """A changed date of a record; `None` for no date.

    Attributes:
        before, after: the old and the new moment.
        day_before, day_after: their days in the zone of the site, or in the zone that the page names.
    """

    page: int
    url: str
    date_text: str
    before: datetime | None
    after: datetime | None
    day_before: date | None
    day_after: date | None


@dataclass(slots=True, kw_only=True)
class DatesRead:
    """The outcome of reading stored dates again.

    Attributes:
        to_do: number of pages at the beginning.
        pages: number of pages read.
        dates: number of their records with a date text.
        imported: number of imported pages, whose days stay.
        moved, found, lost: number of records with another day, with a day for the first time, and without a day now.
        changes: the first `MOST_CHANGES` changes.
    """

    to_do: int = 0
    pages: int = 0
    dates: int = 0
    imported: int = 0
    moved: int = 0
    found: int = 0
    lost: int = 0
    changes: list[DayChange] = field(default_factory=list)

    @property
    def changed(self) -> int:
        """Number of records whose day changes."""
        return self.moved + self.found + self.lost

    def add(self, one: JudgedPage) -> None:
        """Count a page."""
        row = one.page.row
        self.pages += 1
        if row.source is not None:
            self.imported += 1
            return
        self.dates += sum(bool(record.date_text) for record in one.page.records)
        records = {record.id: record for record in one.page.records}
        for number, after in one.days:
            record = records[number]
            before = record.published_at
            self.moved += before is not None and after is not None
            self.found += before is None
            self.lost += after is None
            if len(self.changes) < MOST_CHANGES:
                change = DayChange(
                    page=row.id,
                    url=row.url,
                    date_text=record.date_text,
                    before=before,
                    after=after,
                    day_before=record.day,
                    day_after=None if after is None else after.date(),
                )
                self.changes.append(change)


def read_again(catalog: Catalog, page: StoredPage) -> JudgedPage:
    """Read the dates of a page's records again, in the zone of its site.

    Relative dates count from when the page was fetched.
    """
    if page.row.source is not None:
        return JudgedPage(page=page)
    now = page.row.fetched_at.astimezone(catalog.zone_of(page.row.site))
    dated = [record for record in page.records if record.date_text]
    texts = "\n".join(record.date_text for record in dated)
    days = [(record, _day(record, texts, now)) for record in dated]
    return JudgedPage(
        page=page, days=[(record.id, day) for record, day in days if date_columns(day) != record.dating]
    )


def _day(record: StoredRecord, texts: str, now: datetime) -> datetime | None:
    """Return the day of a record: the stored day if the text can mean it, else the likeliest day.

    Args:
        texts: all date texts of the page. They may show if days come before months.
    """
    text, stored = record.date_text, record.published_at
    readings = list_readings(text, texts, now)
    if stored is None or readings[0] is None:
        return readings[0]
    for reading in readings:
        if reading == stored:
            return reading
    if read_date(text, now + _LATER) == read_date(text, now):
        return readings[0]
    for reading in (readings[0], read_date(text, now - _NEAR)):
        if reading is None:
            continue
        if reading.time() != time.min and abs(reading - stored) <= _NEAR:
            return stored.astimezone(reading.tzinfo)
        if reading.time() == time.min and reading.date() == record.day:
            return reading
    return readings[0]
