"""The states of alerts with their messages to people, and the audit log of people's actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, or_, select, update

from tasks.scheduling.alerting import Alert, OpenAlert
from tasks.store.sql.database import columns_of
from tasks.store.sql.tables import alerts, audit_log
from tasks.store.sql.transaction import Transaction

QUIET = timedelta(minutes=15)
"""Minimum time between two messages about one alert. Otherwise an alert that comes and goes would send without end."""

CLAIMED = timedelta(minutes=2)
"""How long whoever sends a message may take; after that it counts as not sent, and another try begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRow:
    """An alert that is on, or was lately.

    Attributes:
        since: when it came on last.
        firing: it is on.
        told: True if the message that it is on was sent, and the message that it is over was not.
        told_at: time of the last message.
        claimed_at: time at which a process began to send a message; `None` if none is sending.
        trouble: receivers that the last message did not reach, and why.
    """

    rule: str
    subject: str
    text: str
    level: float | None
    since: datetime
    firing: bool
    told: bool
    told_at: datetime | None
    claimed_at: datetime | None
    trouble: str


def list_alerts(conn: Transaction) -> list[AlertRow]:
    """List all alerts, the oldest first."""
    rows = conn.execute(select(*columns_of(AlertRow, alerts)).order_by(alerts.c.since, *alerts.primary_key))
    return [AlertRow(**row._mapping) for row in rows]


def open_alerts(rows: Sequence[AlertRow]) -> dict[tuple[str, str], OpenAlert]:
    """Return the alerts that are on, by key."""
    found = [OpenAlert(Alert(r.rule, r.subject, r.text, r.level), r.since) for r in rows if r.firing]
    return {one.alert.key: one for one in found}


def keep_alerts(conn: Transaction, now: datetime, on: Sequence[Alert]) -> None:
    """Note which alerts are on now; all others are over."""
    known = {(row.rule, row.subject): row for row in list_alerts(conn)}
    for one in on:
        row = known.pop(one.key, None)
        values = {"text": one.text, "level": one.level}
        if row is None:
            new = {"rule": one.rule, "subject": one.subject, "since": now, "firing": True}
            conn.execute(insert(alerts).values(**new, **values))
        elif not row.firing:
            conn.execute(update(alerts).where(_is(*one.key)).values(**values, since=now, firing=True))
        elif row.text != one.text:
            conn.execute(update(alerts).where(_is(*one.key)).values(**values))
    for key, row in known.items():
        if row.firing:
            conn.execute(update(alerts).where(_is(*key)).values(firing=False))
    conn.execute(
        delete(alerts).where(
            ~alerts.c.firing,
            ~alerts.c.told,
            or_(alerts.c.told_at.is_(None), alerts.c.told_at < now - QUIET),
            or_(alerts.c.claimed_at.is_(None), alerts.c.claimed_at < now - CLAIMED),
        )
    )


def claim_alerts(conn: Transaction, now: datetime) -> list[AlertRow]:
    """Claim the alerts with a message to send now, so that no other process sends it."""
    a = alerts.c
    due = and_(
        a.firing != a.told,
        or_(a.claimed_at.is_(None), a.claimed_at < now - CLAIMED),
        or_(a.told, a.told_at.is_(None), a.told_at <= now - QUIET),
    )
    rows = [
        AlertRow(**row._mapping) for row in conn.execute(select(*columns_of(AlertRow, alerts)).where(due))
    ]
    for row in rows:
        conn.execute(update(alerts).where(_is(row.rule, row.subject)).values(claimed_at=now))
    return sorted(rows, key=lambda row: (not row.firing, row.since, row.rule, row.subject))


def note_sent_alerts(
    conn: Transaction, now: datetime, rows: Sequence[AlertRow], *, told: bool, trouble: str
) -> None:
    """Note what became of a message.

    Args:
        rows: alerts that were claimed for it.
        told: False if no receiver was reached; the message is sent again when the claim has expired.
        trouble: receivers that were not reached, and why.
    """
    done = {"told_at": now, "claimed_at": None} if told else {}
    for row in rows:
        values = {**done, **({"told": row.firing} if told else {}), "trouble": trouble}
        conn.execute(update(alerts).where(_is(row.rule, row.subject)).values(**values))


def _is(rule: str, subject: str) -> ColumnElement[bool]:
    return and_(alerts.c.rule == rule, alerts.c.subject == subject)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An entry of the audit log: one action of a person.

    Attributes:
        who: as the dashboard knows them, or the user of the command line.
        action: one word: retry, assign, abandon, drain ...
        subject: the object of the action, as people read it.
        detail: further facts, such as numbers of subtasks and the answer given.
    """

    who: str
    action: str
    subject: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the log."""

    id: int
    at: datetime
    who: str
    action: str
    subject: str
    detail: Mapping[str, Any]


def record_action(conn: Transaction, now: datetime, entry: AuditEntry) -> None:
    """Add a row in the transaction of the action."""
    conn.execute(
        insert(audit_log).values(
            at=now,
            who=entry.who[:200],
            action=entry.action,
            subject=entry.subject[:500],
            detail=dict(entry.detail),
        )
    )


def list_audit_rows(conn: Transaction, *, before: int | None = None, most: int) -> Sequence[AuditRow]:
    """The newest rows first.

    Args:
        before: only older than this row; None: from the newest on.
    """
    statement = select(audit_log).order_by(audit_log.c.id.desc()).limit(most)
    if before is not None:
        statement = statement.where(audit_log.c.id < before)
    return [AuditRow(**row._mapping) for row in conn.execute(statement)]
