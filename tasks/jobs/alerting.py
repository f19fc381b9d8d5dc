"""The sweep `alerts`: finds out which alerts are on, and has people told. It sends outside of every transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from tasks.scheduling.alerting import AlertRules, alerts_on
from tasks.store.queries import alert_facts
from tasks.store.queue import notices
from tasks.store.queue.notices import AlertRow
from tasks.store.sql.database import try_lock
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation

_LOCK_S = 2.0


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The outcome of a message.

    Attributes:
        told: somebody got it.
        trouble: who did not, and why.
    """

    told: bool
    trouble: str = ""


SendAlerts = Callable[[Sequence[AlertRow], datetime], SendOutcome]
"""Sends one message of alerts that came on and that are over; it takes a bounded time."""


class Alerting:
    """The sweep, with the time since which this process looks.

    Args:
        engines: names of the engines, by host.
    """

    def __init__(self, rules: AlertRules, engines: Mapping[str, str], tell: SendAlerts) -> None:
        self._rules = rules
        self._engines = engines
        self._tell = tell
        self._looking_since: datetime | None = None

    def look(self, write: Callable[[Operation[Any]], Any]) -> None:
        """Look once, and tell what is new: each alert once when it comes on, and once when it is over.

        Args:
            write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        """
        rows, now = write(self._claimed)
        if rows:
            write(partial(_note, rows, self._tell(rows, now)))

    def _claimed(self, conn: Transaction, now: datetime) -> tuple[list[AlertRow], datetime]:
        self._looking_since = self._looking_since or now
        if not try_lock(conn, "alerts", _LOCK_S):
            return [], now  # another scheduler looks
        before = notices.open_alerts(notices.list_alerts(conn))
        facts = alert_facts.facts(conn, self._rules, self._looking_since, self._engines)
        notices.keep_alerts(conn, now, alerts_on(self._rules, facts, now, before))
        return notices.claim_alerts(conn, now), now


def _note(rows: Sequence[AlertRow], done: SendOutcome, conn: Transaction, now: datetime) -> None:
    notices.note_sent_alerts(conn, now, rows, told=done.told, trouble=done.trouble)
