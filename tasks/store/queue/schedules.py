"""Schedules: new rounds of products, and reports and exports that are made and handed over, by the clock.

One table for every runner. A row is due when its `next_at` has come; however many times were missed meanwhile, it is
run once, and the next time counts from then on. Whoever runs it claims it first and ends its run after that: in one
transaction if it is a new round. A paused row has no next time, unless a person runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from tasks.domain.errors import UnknownSchedule
from tasks.domain.recurrence import Recurrence
from tasks.store.sql.transaction import Transaction

HELD = timedelta(minutes=10)
"""A run that was claimed and not ended in this time was cut off: it is claimed again."""
MOST_TRIES = 5
_FIRST_DELAY = timedelta(minutes=1)
_PROBLEM = 500
_ALL = 1_000_000


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


_COLUMNS = """
    id, what AS kind, (SELECT name FROM products WHERE products.id = product_id) AS product, cron, zone, every_s,
    options, paused, next_at, last_at, taken_until, tries, problem
"""
_SCHEDULES = f"SELECT {_COLUMNS} FROM schedules"


def list_schedules(tx: Transaction) -> list[Schedule]:
    """Return every schedule, the next one first, paused ones last."""
    return tx.records(Schedule, f"{_SCHEDULES} ORDER BY next_at IS NULL, next_at, id")


def find(tx: Transaction, which: str) -> Schedule:
    """Return a schedule by its number, or by the name of the product it crawls. Raises UnknownSchedule."""
    number = int(which) if which.isascii() and which.isdigit() and len(which) < 10 else None
    found = tx.record(Schedule, _FIND, number=number, name=which if number is None else None)
    if found is None:
        raise UnknownSchedule(
            "there is no schedule {which!r}: `reviewloop schedule list` has their numbers", which=which
        )
    return found


_FIND = f"{_SCHEDULES} WHERE id = :number OR product_id = (SELECT id FROM products WHERE name = :name)"


def add(tx: Transaction, kind: ScheduleKind, rule: Recurrence, options: Mapping[str, Any]) -> Schedule:
    """Add a schedule of a report or an export, or of all products."""
    values = {**_columns(rule), "next_at": rule.next_time(tx.now), "what": kind, "options": options}
    return find(tx, str(tx.value(_ADD, product_id=None, **values)))


def change(tx: Transaction, schedule: Schedule, rule: Recurrence) -> None:
    """Give a schedule another rule, which counts from now on; a paused one stays paused."""
    tx.later(_CHANGE, id=schedule.id, next_at=rule.next_time(tx.now), **_columns(rule))


def recrawl(tx: Transaction, product_id: int, rule: Recurrence | None, next_at: datetime) -> None:
    """Set when a product is crawled again; `None` stops this."""
    if rule is None:
        tx.run("DELETE FROM schedules WHERE product_id = :product_id", product_id=product_id)
        return
    values = {**_columns(rule), "next_at": next_at, "what": ScheduleKind.RECRAWL, "options": {}}
    tx.run(_ADD, product_id=product_id, **values)


def _columns(rule: Recurrence) -> dict[str, Any]:
    if rule.cron:
        return {"cron": rule.cron, "zone": rule.zone, "every_s": None}
    return {"cron": None, "zone": None, "every_s": rule.every.total_seconds()}


_CHANGED = """
    SET cron = :cron, zone = :zone, every_s = :every_s, tries = 0, problem = NULL,
        next_at = CASE WHEN schedules.paused THEN NULL ELSE coalesce(:next_at, schedules.next_at) END
"""
_CHANGE = f"UPDATE schedules {_CHANGED} WHERE id = :id"
_ADD = f"""
    INSERT INTO schedules (what, product_id, cron, zone, every_s, options, next_at)
    VALUES (:what, :product_id, :cron, :zone, :every_s, :options, :next_at)
    ON CONFLICT (product_id) DO UPDATE {_CHANGED} RETURNING id
"""


def restart_interval(tx: Transaction, product_id: int) -> None:
    """Count a product's interval from now on, after a person began its round."""
    if (found := tx.record(Schedule, _OF_PRODUCT, product_id=product_id)) is not None:
        change(tx, found, found.rule)


_OF_PRODUCT = f"{_SCHEDULES} WHERE product_id = :product_id"


def remove(tx: Transaction, schedule: Schedule) -> None:
    """Remove a schedule."""
    tx.later("DELETE FROM schedules WHERE id = :id", id=schedule.id)


def pause(tx: Transaction, schedule: Schedule) -> None:
    """Let a schedule rest until it is resumed."""
    tx.later("UPDATE schedules SET paused = true, next_at = NULL WHERE id = :id", id=schedule.id)


def resume(tx: Transaction, schedule: Schedule) -> None:
    """Let a paused schedule go on; what fell into the pause is not caught up."""
    if schedule.paused:
        tx.later("UPDATE schedules SET paused = false WHERE id = :id", id=schedule.id)
        change(tx, schedule, schedule.rule)


def run(tx: Transaction, schedule: Schedule) -> int:
    """Make a schedule due now, also a paused one. Begin the rounds of a recrawl, and return their number."""
    tx.later("UPDATE schedules SET next_at = :now, tries = 0 WHERE id = :id", id=schedule.id, now=tx.now)
    return recrawl_due(tx, schedule.id) if schedule.kind == ScheduleKind.RECRAWL else 0


def recrawl_due(tx: Transaction, only: int | None = None) -> int:
    """Begin a new round of every product whose time has come, or by one schedule; return the number of rounds."""
    claimed = _claim(tx, only, rounds=True, most=_ALL)
    begun = tx.run(_ROUNDS, claimed=[one.id for one in claimed], now=tx.now) if claimed else 0
    for one in claimed:
        end_run(tx, one)
    return begun


_ROUNDS = """
    INSERT INTO virtual_tasks (product_id, keywords, aliases, round, created_at)
    SELECT v.product_id, v.keywords, v.aliases, v.round + 1,
        CASE WHEN v.created_at > :now THEN v.created_at ELSE :now END
    FROM (SELECT product_id, max(round) AS round FROM virtual_tasks GROUP BY product_id) latest
    JOIN virtual_tasks v ON v.product_id = latest.product_id AND v.round = latest.round
    JOIN products p ON p.id = v.product_id
    WHERE p.id IN (SELECT product_id FROM schedules WHERE id IN :claimed)
        OR (
            EXISTS (SELECT 1 FROM schedules WHERE id IN :claimed AND product_id IS NULL)
            AND (p.sites IS NULL OR CAST(p.sites AS text) <> '[]')
            AND p.id NOT IN (SELECT product_id FROM schedules WHERE product_id IS NOT NULL)
        )
    ORDER BY v.product_id
"""


def claim_due(tx: Transaction, only: int | None = None) -> Schedule | None:
    """Claim the next report or export that is due, to make it and hand it over.

    Args:
        only: this one alone.

    Returns:
        `None` if there is none, or others have it.
    """
    claimed = _claim(tx, only, rounds=False, most=1)
    return claimed[0] if claimed else None


def _claim(tx: Transaction, only: int | None, *, rounds: bool, most: int) -> list[Schedule]:
    return tx.records(Schedule, _CLAIM, now=tx.now, until=tx.now + HELD, only=only, rounds=rounds, most=most)


# MATERIALIZED: PostgreSQL may run a subquery that locks rows once for each row, and then it finds others each time.
_CLAIM = f"""
    WITH due AS MATERIALIZED (
        SELECT id FROM schedules
        WHERE next_at <= :now AND (taken_until IS NULL OR taken_until <= :now)
            AND (what = '{ScheduleKind.RECRAWL}') = :rounds AND (:only IS NULL OR id = :only)
        ORDER BY next_at, id LIMIT :most FOR UPDATE SKIP LOCKED
    )
    UPDATE schedules SET taken_until = :until, last_at = CASE WHEN last_at > :now THEN last_at ELSE :now END
    WHERE id IN (SELECT id FROM due) RETURNING {_COLUMNS}
"""


def end_run(tx: Transaction, claimed: Schedule, problem: str = "") -> None:
    """Note that a run of a schedule has ended; if it failed, it is tried again soon, `MOST_TRIES` times in all.

    Changes that a person has made to it meanwhile stay.

    Args:
        problem: why it failed; empty: it did not.
    """
    tries = claimed.tries + 1
    again = bool(problem) and tries < MOST_TRIES
    next_at = tx.now + _FIRST_DELAY * 4 ** (tries - 1) if again else claimed.rule.next_time(tx.now)
    was = {"id": claimed.id, "taken_until": claimed.taken_until, "taken_at": claimed.next_at}
    now = {"next_at": next_at, "tries": tries if again else 0, "problem": problem[:_PROBLEM] or None}
    tx.later(_END_RUN, again=again, **was, **now)


_END_RUN = """
    UPDATE schedules SET taken_until = NULL, tries = :tries, problem = :problem, next_at = CASE
        WHEN next_at <> :taken_at OR next_at IS NULL THEN next_at
        WHEN paused AND NOT :again THEN NULL
        ELSE :next_at END
    WHERE id = :id AND taken_until = :taken_until
"""
