"""Compares times that different transactions wrote: clocks differ a little, and a clock may be set.

If the database's clock was set back, the times between the two settings occur twice: order can't be judged there.
Schedulers note such periods as they look (`tasks.store.queue.upkeep`). The log shows them, too: its rows are numbered
as time goes on. The log is read for it only if times went back, as that costs a tenth of the whole proof. Only rows
count whose times another invariant compares with a copy, so that one changed time is no set clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from tasks.store.queue.upkeep import SetClock, list_set_clocks
from tasks.store.sql.rows import read_time
from tasks.store.sql.transaction import Transaction

CLOCKS: Final = timedelta(minutes=5)
"""How far back time may go between two steps that follow each other: transactions wait for locks, clocks are set."""

_SET_BACK = """
    SELECT min(at) AS since, latest AS until
    FROM (SELECT {time} AS at, max({time}) OVER (ORDER BY id) AS latest FROM {rows}) numbered
    WHERE at < latest GROUP BY latest
"""
_LOG = (
    _SET_BACK.format(
        time="at", rows="events WHERE transition = 'create' OR 'CRAWL' IN (from_state, to_state)"
    ),
    _SET_BACK.format(time="fetched_at", rows="pages"),
)


class Clock:
    """The database's clock, as far as the store shows how it went.

    Args:
        tx: reads the store.
    """

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self._periods = _merge(list_set_clocks(tx))
        self._has_read_log = False

    @property
    def set_back(self) -> tuple[SetClock, ...]:
        """The periods in which the clock was set back by more than `CLOCKS`, as far as they have been looked for."""
        return tuple(one for one in self._periods if one.until - one.since > CLOCKS)

    def went_back(self, times: Sequence[datetime]) -> tuple[datetime, datetime] | None:
        """Return the first two neighbours of which the second is earlier, by more than `CLOCKS` and no set clock."""
        for earlier, later in pairwise(times):
            if later < earlier - CLOCKS and not self._is_set_between(earlier, later):
                return earlier, later
        return None

    def _is_set_between(self, earlier: datetime, later: datetime) -> bool:
        """Return True if the earlier step may have been before the clock was set back, and the later one after it."""
        periods = self._read_log()
        return any(one.since - CLOCKS <= later and earlier <= one.until + CLOCKS for one in periods)

    def steady_since(self, begin: datetime, end: datetime) -> datetime:
        """Return the end of the last period between two times in which the clock was set back; `begin` if none is."""
        if end - begin <= CLOCKS:
            return begin
        return max(
            [begin, *(one.until for one in self._read_log() if one.since <= end and begin <= one.until)]
        )

    def latest(self, time: datetime) -> datetime:
        """Return the latest time that the clock may have had before it was set back to this time."""
        return max([time, *(one.until for one in self._periods if one.since <= time)])

    def _read_log(self) -> list[SetClock]:
        """Return all periods, with those that only the log shows."""
        if not self._has_read_log:
            self._has_read_log = True
            found = [one for query in _LOG for one in self._tx.records(SetClock, query)]
            self._periods = _merge([*self._periods, *found])
        return self._periods


def _merge(periods: Iterable[SetClock]) -> list[SetClock]:
    """Return periods in order, those that meet as one."""
    merged: list[SetClock] = []
    for one in sorted(periods):
        if merged and one.since <= merged[-1].until:
            merged[-1] = SetClock(merged[-1].since, max(merged[-1].until, one.until))
        else:
            merged.append(one)
    return merged


def as_time(value: Any) -> Any:
    """Return a time, as either database's driver gives it, as an aware one; None stays."""
    return read_time(value) if isinstance(value, str) else value
