"""Schedules: new rounds of products, and reports and exports that are made and handed over, by the clock.

One table for every runner. A row is due when its `next_at` has come; however many times were missed meanwhile, it is
run once, and the next time counts from then on. A paused row has no next time, unless a person runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from tasks.domain.errors import UnknownSchedule
from tasks.domain.recurrence import Recurrence
from tasks.store.sql.transaction import Transaction

HELD = timedelta(minutes=10)
"""A run that was taken and not ended in this time was cut off: it is taken again."""
MOST_TRIES = 5
_FIRST_DELAY = timedelta(minutes=1)
_PROBLEM = 500


class ScheduleKind(StrEnum):
    """Kinds of schedules."""

    RECRAWL = "recrawl"
    REPORT = "report"
    FAILED_REPORT = "failed-report"
    EXPORT = "export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A row of the table.

    Attributes:
        product: the one that is crawled again; None: all that have no schedule of their own, or nothing is crawled.
        cron, zone, every_s: the rule, either a cron expression in a time zone or seconds.
        options: of reports and exports: `to`, `format`, `products`, `private` (`app.sending.delivery`).
        next_at: None: never, as it is paused.
        last_at: when it was begun last.
        taken_until: a process makes and sends its file now, until then at most.
        tries: failed ones in a row.
        problem: why the last one failed.
    """

    id: int
    kind: ScheduleKind
    product: str | None
    cron: str | None
    zone: str | None
    every_s: float | None
    options: Mapping[str, Any]
    paused: bool
    next_at: datetime | None
    last_at: datetime | None
    taken_until: datetime | None
    tries: int
    problem: str | None

    @property
    def rule(self) -> Recurrence:
        """When it comes again."""
        if self.cron is not None:
            return Recurrence(self.cron, self.zone or "UTC")
        return Recurrence(every=timedelta(seconds=self.every_s or 0.0))


def list_schedules(tx: Transaction) -> list[Schedule]:
    """Return every schedule, the next one first, paused ones last."""
    return tx.records(Schedule, f"{_SCHEDULES} {_IN_ORDER}")


def find(tx: Transaction, which: str) -> Schedule:
    """Return a schedule by its number, or by the name of the product it crawls. Raises UnknownSchedule."""
    by_number = which.isascii() and which.isdigit() and len(which) < 10
    found = _get(tx, int(which)) if by_number else tx.record(Schedule, _OF_PRODUCT, name=which)
    if found is None:
        raise UnknownSchedule(f"there is no schedule {which!r}: `reviewloop schedule list` has their numbers")
    return found


def _get(tx: Transaction, schedule_id: int) -> Schedule | None:
    return tx.record(Schedule, _BY_NUMBER, id=schedule_id)


_SCHEDULES = """
    SELECT s.id, s.what AS kind, p.name AS product, s.cron, s.zone, s.every_s, s.options, s.paused, s.next_at,
        s.last_at, s.taken_until, s.tries, s.problem
    FROM schedules s LEFT JOIN products p ON p.id = s.product_id
"""
_IN_ORDER = "ORDER BY s.next_at IS NULL, s.next_at, s.id"
_BY_NUMBER = f"{_SCHEDULES} WHERE s.id = :id"
_OF_PRODUCT = f"{_SCHEDULES} WHERE p.name = :name"


def add(tx: Transaction, kind: ScheduleKind, rule: Recurrence, options: Mapping[str, Any]) -> Schedule:
    """Add a schedule of a report or an export, or of all products."""
    values = {**_columns(rule), "next_at": rule.after(tx.now), "what": kind, "options": options}
    return find(tx, str(tx.value(f"{_INSERT} RETURNING id", product_id=None, **values)))


def change(tx: Transaction, schedule_id: int, rule: Recurrence, next_at: datetime) -> None:
    """Give a schedule another rule; a paused one stays paused."""
    tx.run(_CHANGE, id=schedule_id, next_at=next_at, **_columns(rule))


def recrawl(tx: Transaction, product_id: int, rule: Recurrence | None, next_at: datetime) -> None:
    """Set when a product is crawled again; `None` stops this."""
    if rule is None:
        tx.run("DELETE FROM schedules WHERE product_id = :product_id", product_id=product_id)
        return
    values = {**_columns(rule), "next_at": next_at, "what": ScheduleKind.RECRAWL, "options": {}}
    tx.run(_RECRAWL, product_id=product_id, **values)


def _columns(rule: Recurrence) -> dict[str, Any]:
    return {
        "cron": rule.cron or None,
        "zone": rule.zone if rule.cron else None,
        "every_s": None if rule.cron else rule.every.total_seconds(),
    }


_INSERT = """
    INSERT INTO schedules (what, product_id, cron, zone, every_s, options, next_at)
    VALUES (:what, :product_id, :cron, :zone, :every_s, :options, :next_at)
"""
_CHANGED = """
    SET cron = :cron, zone = :zone, every_s = :every_s, tries = 0, problem = NULL,
        next_at = CASE WHEN schedules.paused THEN NULL ELSE coalesce(:next_at, schedules.next_at) END
"""
_CHANGE = f"UPDATE schedules {_CHANGED} WHERE id = :id"
_RECRAWL = f"{_INSERT} ON CONFLICT (product_id) DO UPDATE {_CHANGED}"


def restart_interval(tx: Transaction, product_id: int) -> None:
    """Count a product's interval from now on, after a person began its round."""
    found = tx.record(Schedule, f"{_SCHEDULES} WHERE s.product_id = :product_id", product_id=product_id)
    if found is not None and found.next_at is not None and not found.cron:
        tx.run(_SET_NEXT, id=found.id, next_at=found.rule.after(tx.now))


_SET_NEXT = "UPDATE schedules SET next_at = :next_at WHERE id = :id"


def remove(tx: Transaction, schedule_id: int) -> None:
    """Remove a schedule."""
    tx.run("DELETE FROM schedules WHERE id = :id", id=schedule_id)


def pause(tx: Transaction, schedule_id: int) -> None:
    """Let a schedule rest until it is resumed."""
    tx.run("UPDATE schedules SET paused = true, next_at = NULL WHERE id = :id", id=schedule_id)


def resume(tx: Transaction, schedule: Schedule) -> None:
    """Let a paused schedule go on; what fell into the pause is not caught up."""
    tx.run(_RESUME, id=schedule.id, next_at=schedule.rule.after(tx.now))


_RESUME = """
    UPDATE schedules SET paused = false, next_at = :next_at, tries = 0, problem = NULL WHERE id = :id AND paused
"""


def run(tx: Transaction, schedule: Schedule) -> int:
    """Run a schedule now: begins its rounds and returns how many; a report or an export becomes due."""
    if schedule.kind != ScheduleKind.RECRAWL:
        tx.run("UPDATE schedules SET next_at = :now, tries = 0 WHERE id = :id", id=schedule.id, now=tx.now)
        return 0
    found = _get(tx, schedule.id)
    return _begin(tx, [found] if found is not None else [])


def recrawl_due(tx: Transaction) -> int:
    """Begin a new round of every product whose time has come; returns how many."""
    return _begin(tx, tx.records(Schedule, _DUE_RECRAWLS, now=tx.now))


_DUE_RECRAWLS = f"{_SCHEDULES} WHERE s.next_at <= :now AND s.what = '{ScheduleKind.RECRAWL}' {_IN_ORDER}"


def _begin(tx: Transaction, due: Sequence[Schedule]) -> int:
    """Begin the rounds of these schedules, without those that another process has changed or begun meanwhile."""
    begun = [
        one.id
        for one in due
        if tx.run(
            _BEGIN,
            id=one.id,
            now=tx.now,
            seen=one.next_at,
            next_at=None if one.paused else one.rule.after(tx.now),
        )
    ]
    return tx.run(_ROUNDS, begun=begun, now=tx.now) if begun else 0


_LAST_AT = "last_at = CASE WHEN last_at > :now THEN last_at ELSE :now END"
_BEGIN = f"UPDATE schedules SET next_at = :next_at, {_LAST_AT} WHERE id = :id AND next_at IS NOT DISTINCT FROM :seen"
_ROUNDS = """
    INSERT INTO virtual_tasks (product_id, keywords, aliases, round, created_at)
    SELECT v.product_id, v.keywords, v.aliases, v.round + 1,
        CASE WHEN v.created_at > :now THEN v.created_at ELSE :now END
    FROM (SELECT product_id, max(round) AS round FROM virtual_tasks GROUP BY product_id) latest
    JOIN virtual_tasks v ON v.product_id = latest.product_id AND v.round = latest.round
    JOIN products p ON p.id = v.product_id
    WHERE p.id IN (SELECT product_id FROM schedules WHERE id IN :begun)
        OR (
            EXISTS (SELECT 1 FROM schedules WHERE id IN :begun AND product_id IS NULL)
            AND (p.sites IS NULL OR CAST(p.sites AS text) <> '[]')
            AND p.id NOT IN (SELECT product_id FROM schedules WHERE product_id IS NOT NULL)
        )
    ORDER BY v.product_id
"""


def claim_due(tx: Transaction, only: int | None = None) -> Schedule | None:
    """Take the next report or export that is due, to make and hand over.

    Args:
        only: this one alone.

    Returns:
        `None` if there is none, or others have it.
    """
    for one in tx.records(Schedule, _DUE_FILES, now=tx.now, only=only):
        if tx.run(_CLAIM, id=one.id, now=tx.now, until=tx.now + HELD):
            return _get(tx, one.id)
    return None


_DUE = (
    f"next_at <= :now AND what <> '{ScheduleKind.RECRAWL}' AND (taken_until IS NULL OR taken_until <= :now)"
)
_DUE_FILES = f"{_SCHEDULES} WHERE {_DUE} AND (:only IS NULL OR s.id = :only) {_IN_ORDER}"
_CLAIM = f"UPDATE schedules SET taken_until = :until, {_LAST_AT} WHERE id = :id AND {_DUE}"


def end_run(tx: Transaction, taken: Schedule, problem: str = "") -> None:
    """Note that a run of a schedule has ended; if it failed, it is tried again soon, `MOST_TRIES` times in all.

    Changes that a person has made to it meanwhile stay.

    Args:
        problem: why it failed; empty: it did not.
    """
    tries = taken.tries + 1
    again = bool(problem) and tries < MOST_TRIES
    tx.run(
        _HAND_OVER,
        id=taken.id,
        taken_until=taken.taken_until,
        taken_at=taken.next_at,
        next_at=tx.now + _FIRST_DELAY * 4 ** (tries - 1) if again else taken.rule.after(tx.now),
        again=again,
        tries=tries if again else 0,
        problem=problem[:_PROBLEM] or None,
    )


_HAND_OVER = """
    UPDATE schedules SET taken_until = NULL, tries = :tries, problem = :problem, next_at = CASE
        WHEN next_at <> :taken_at OR next_at IS NULL THEN next_at
        WHEN paused AND NOT :again THEN NULL
        ELSE :next_at END
    WHERE id = :id AND taken_until = :taken_until
"""
