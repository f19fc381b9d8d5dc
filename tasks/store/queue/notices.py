"""The states of alerts with their messages to people, and the audit log of people's actions."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Annotated, Any

from tasks.domain.reasons import Explanation, as_document, from_document
from tasks.scheduling.alerting import Alert, OpenAlert
from tasks.store.sql.transaction import Transaction

QUIET = timedelta(minutes=15)
"""Minimum time between two messages about one alert. Otherwise an alert that comes and goes would send without end."""

CLAIMED = timedelta(minutes=2)
"""How long whoever sends a message may take; after that it counts as not sent, and another try begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRow:
    """An alert that is on, or was lately.

    Attributes:
        because: the reason for people; `text` is its sentence.
        since: when it came on last.
        firing: it is on.
        told: True between the message that it is on and the message that it is over.
        told_at: time of the last message.
        trouble: receivers that the last message did not reach, and why.
    """

    rule: str
    subject: str
    because: Annotated[Explanation, from_document]
    level: float | None
    since: datetime
    firing: bool
    told: bool
    told_at: datetime | None
    trouble: str
    text: str = field(init=False)

    def __post_init__(self) -> None:
        """Set `text`."""
        object.__setattr__(self, "text", str(self.because))


def list_alerts(tx: Transaction) -> list[AlertRow]:
    """Return all alerts, the oldest first."""
    return tx.records(AlertRow, f"SELECT {_COLUMNS} FROM alerts ORDER BY since, rule, subject")


_COLUMNS = ", ".join(one.name for one in fields(AlertRow) if one.init)


def list_open_alerts(tx: Transaction) -> list[OpenAlert]:
    """Return the alerts that are on."""
    return tx.records(OpenAlert, "SELECT rule, subject, because, level, since FROM alerts WHERE firing")


def keep_alerts(tx: Transaction, on: Sequence[Alert]) -> None:
    """Note which alerts are on now; all others are over."""
    for one in on:
        tx.later(
            _IS_ON,
            rule=one.rule,
            subject=one.subject,
            because=as_document(one.because),
            level=one.level,
            now=tx.now,
        )
    tx.later(_ARE_OVER, on=[f"{one.rule}:{one.subject}" for one in on])
    tx.later(_DROP_TOLD, quiet=tx.now - QUIET, claimed=tx.now - CLAIMED)


_IS_ON = """
    INSERT INTO alerts (rule, subject, because, level, since, firing)
    VALUES (:rule, :subject, :because, :level, :now, true)
    ON CONFLICT (rule, subject) DO UPDATE SET because = excluded.because, level = excluded.level, firing = true,
        since = CASE WHEN alerts.firing THEN alerts.since ELSE excluded.since END
    WHERE NOT alerts.firing OR alerts.because <> excluded.because
"""
_ARE_OVER = "UPDATE alerts SET firing = false WHERE firing AND rule || ':' || subject NOT IN :on"
_DROP_TOLD = """
    DELETE FROM alerts WHERE NOT firing AND NOT told
        AND (told_at IS NULL OR told_at < :quiet) AND (claimed_at IS NULL OR claimed_at < :claimed)
"""


def claim_alerts(tx: Transaction) -> list[AlertRow]:
    """Claim the alerts with a message to send now, so that no other process sends it."""
    rows = tx.records(AlertRow, _CLAIM, now=tx.now, quiet=tx.now - QUIET, claimed=tx.now - CLAIMED)
    return sorted(rows, key=lambda row: (not row.firing, row.since, row.rule, row.subject))


_CLAIM = f"""
    UPDATE alerts SET claimed_at = :now
    WHERE firing <> told AND (claimed_at IS NULL OR claimed_at < :claimed)
        AND (told OR told_at IS NULL OR told_at <= :quiet)
    RETURNING {_COLUMNS}
"""


def note_sent_alerts(tx: Transaction, rows: Sequence[AlertRow], *, told: bool, trouble: str) -> None:
    """Note what became of a message.

    Args:
        rows: alerts that were claimed for it.
        told: False if no receiver was reached: the message is sent again when the claim has expired.
        trouble: receivers that were not reached, and why.
    """
    shared: dict[str, Any] = {"trouble": trouble}
    changes: list[dict[str, Any]] = [{"rule": row.rule, "subject": row.subject} for row in rows]
    if told:
        shared |= {"told_at": tx.now, "claimed_at": None}
        changes = [one | {"told": row.firing} for one, row in zip(changes, rows, strict=True)]
    tx.update("alerts", ("rule", "subject"), changes, shared=shared)


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An entry of the audit log: one action of a person.

    Attributes:
        who: as the dashboard knows them, or the user of the command line.
        action: one word: retry, assign, abandon, drain ...
        subject: the object of the action, as people read it.
        detail: further facts, such as numbers of subtasks and the answer given.
    """

    id: int
    at: datetime
    who: str
    action: str
    subject: str
    detail: Mapping[str, Any]


def record_action(tx: Transaction, who: str, action: str, subject: str, **detail: Any) -> None:
    """Add an entry to the audit log, in the transaction of the action."""
    tx.later(_RECORD, at=tx.now, who=who[:200], action=action, subject=subject[:500], detail=detail)


_RECORD = """
    INSERT INTO audit_log (at, who, action, subject, detail) VALUES (:at, :who, :action, :subject, :detail)
"""


def list_audit_rows(tx: Transaction, *, before: int | None = None, most: int) -> list[AuditRow]:
    """Return the newest rows first.

    Args:
        before: only older than this row; None: from the newest on.
    """
    return tx.records(AuditRow, _AUDIT_ROWS, before=sys.maxsize if before is None else before, most=most)


_AUDIT_ROWS = """
    SELECT id, at, who, action, subject, detail FROM audit_log WHERE id < :before ORDER BY id DESC LIMIT :most
"""
