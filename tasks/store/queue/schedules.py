"""Schedules: new rounds of products, and reports and exports that are made and handed over, by the clock.

One table for every runner. A row is due when its `next_at` has come; however many times were missed meanwhile, it is
run once, and the next time is reckoned from then on. A paused row has no next time, unless a person runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Text,
    case,
    cast,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from tasks.domain.errors import UnknownSchedule
from tasks.domain.recurrence import Recurrence
from tasks.store.sql.database import later_of
from tasks.store.sql.tables import UtcDateTime, products, schedules, virtual_tasks
from tasks.store.sql.transaction import Transaction

HELD = timedelta(minutes=10)
"""A run that was taken and not ended in this time was cut off: it is taken again."""
MOST_TRIES = 5
_FIRST_DELAY = timedelta(minutes=1)
_PROBLEM = 500
_s = schedules.c


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
        options: of reports and exports: `to`, `format`, `products`, `private` (`app.sending.delivery`).
        next_at: None: never, as it is paused.
        last_at: when it was begun last.
        taken_until: somebody makes and hands over its file now, until then at most.
        tries: failed ones in a row.
        problem: why the last one failed.
    """

    id: int
    kind: ScheduleKind
    product: str | None
    rule: Recurrence
    options: Mapping[str, Any]
    paused: bool
    next_at: datetime | None
    last_at: datetime | None
    taken_until: datetime | None
    tries: int
    problem: str | None


def listed(conn: Transaction, where: ColumnElement[bool] | None = None) -> list[Schedule]:
    """Every schedule, the next one first, paused ones last."""
    statement = (
        select(schedules, products.c.name)
        .outerjoin(products, products.c.id == _s.product_id)
        .order_by(_s.next_at.is_(None), _s.next_at, _s.id)
    )
    rows = conn.execute(statement if where is None else statement.where(where))
    return [
        Schedule(
            id=row.id,
            kind=ScheduleKind(row.what),
            product=row.name,
            rule=_rule(row),
            options=row.options,
            paused=row.paused,
            next_at=row.next_at,
            last_at=row.last_at,
            taken_until=row.taken_until,
            tries=row.tries,
            problem=row.problem,
        )
        for row in rows
    ]


def find(conn: Transaction, which: str) -> Schedule:
    """A schedule by its number, or by the name of the product it crawls. Raises UnknownSchedule."""
    by_number = which.isascii() and which.isdigit() and len(which) < 10
    found = listed(conn, _s.id == int(which) if by_number else products.c.name == which)
    if not found:
        raise UnknownSchedule(f"there is no schedule {which!r}: `reviewloop schedule list` has their numbers")
    return found[0]


def add(
    conn: Transaction, now: datetime, kind: ScheduleKind, rule: Recurrence, options: Mapping[str, Any]
) -> Schedule:
    """Add a schedule of a report or an export, or of all products."""
    row = _values(rule, rule.after(now)) | {"what": kind, "options": dict(options)}
    number = conn.execute(insert(schedules).values(**row).returning(_s.id)).scalar_one()
    return find(conn, str(number))


def change(conn: Transaction, where: ColumnElement[bool], rule: Recurrence, next_at: datetime) -> int:
    """Give schedules another rule; a paused one stays so. Returns how many."""
    values = _values(rule, case((_s.paused, None), else_=literal(next_at, UtcDateTime())))
    return conn.execute(update(schedules).where(where).values(**values, tries=0, problem=None)).rowcount


def recrawl(conn: Transaction, product_id: int, rule: Recurrence | None, next_at: datetime) -> None:
    """Set when a product is crawled again; None: no more."""
    of_product = _s.product_id == product_id
    if rule is None:
        conn.execute(delete(schedules).where(of_product))
    elif not change(conn, of_product, rule, next_at):
        row = {
            "what": ScheduleKind.RECRAWL,
            "product_id": product_id,
            "options": {},
            **_values(rule, next_at),
        }
        conn.execute(insert(schedules).values(**row))


def begun_anew(conn: Transaction, now: datetime, product_id: int) -> None:
    """A product's round was begun by a person: its interval counts from now on."""
    for one in listed(conn, _s.product_id == product_id):
        if one.next_at is not None and not one.rule.cron:
            conn.execute(update(schedules).where(_s.id == one.id).values(next_at=one.rule.after(now)))


def remove(conn: Transaction, schedule_id: int) -> None:
    """Remove a schedule."""
    conn.execute(delete(schedules).where(_s.id == schedule_id))


def pause(conn: Transaction, schedule_id: int) -> None:
    """Let a schedule rest until it is resumed."""
    conn.execute(update(schedules).where(_s.id == schedule_id).values(paused=True, next_at=None))


def resume(conn: Transaction, now: datetime, schedule: Schedule) -> None:
    """Let a paused schedule go on; what fell into the pause is not caught up."""
    paused = update(schedules).where(_s.id == schedule.id, _s.paused)
    conn.execute(paused.values(paused=False, next_at=schedule.rule.after(now), tries=0, problem=None))


def run(conn: Transaction, now: datetime, schedule: Schedule) -> int:
    """Run a schedule now: begins its rounds and returns how many; a report or an export becomes due."""
    if schedule.kind != ScheduleKind.RECRAWL:
        conn.execute(update(schedules).where(_s.id == schedule.id).values(next_at=now, tries=0))
        return 0
    return _begin(conn, now, listed(conn, _s.id == schedule.id))


def recrawl_due(conn: Transaction, now: datetime) -> int:
    """Begin a new round of every product whose time has come; returns how many."""
    return _begin(conn, now, listed(conn, (_s.next_at <= now) & (_s.what == ScheduleKind.RECRAWL)))


def _begin(conn: Transaction, now: datetime, due: Sequence[Schedule]) -> int:
    """Begin the rounds of these schedules, of those that nobody else has changed or begun meanwhile."""
    of_products, all_others = [], False
    for one in due:
        as_seen = update(schedules).where(_s.id == one.id, _s.next_at.is_not_distinct_from(one.next_at))
        next_at = None if one.paused else one.rule.after(now)
        if conn.execute(as_seen.values(next_at=next_at, last_at=later_of(_s.last_at, now))).rowcount == 1:
            of_products.append(one.id)
            all_others = all_others or one.product is None
    if not of_products:
        return 0
    own = select(_s.product_id).where(_s.product_id.is_not(None))
    theirs = products.c.id.in_(own.where(_s.id.in_(of_products)))
    wanted = or_(products.c.sites.is_(None), cast(products.c.sites, Text) != "[]")
    which = or_(theirs, wanted & products.c.id.not_in(own)) if all_others else theirs
    v = virtual_tasks.c
    last = select(v.product_id, func.max(v.round).label("round")).group_by(v.product_id).subquery()
    rounds = (
        select(v.product_id, v.keywords, v.aliases, v.round + 1, later_of(v.created_at, now))
        .join(last, (last.c.product_id == v.product_id) & (last.c.round == v.round))
        .join(products, products.c.id == v.product_id)
        .where(which)
        .order_by(v.product_id)
    )
    names = ["product_id", "keywords", "aliases", "round", "created_at"]
    return conn.execute(insert(virtual_tasks).from_select(names, rounds)).rowcount


def claim_due(conn: Transaction, now: datetime, only: int | None = None) -> Schedule | None:
    """Take the next report or export that is due, to make and hand over; None: there is none, or others have it.

    Args:
        only: this one alone.
    """
    free = or_(_s.taken_until.is_(None), _s.taken_until <= now)
    due = (_s.next_at <= now) & (_s.what != ScheduleKind.RECRAWL) & free
    for one in listed(conn, due if only is None else due & (_s.id == only)):
        taken = {"taken_until": now + HELD, "last_at": later_of(_s.last_at, now)}
        if conn.execute(update(schedules).where(_s.id == one.id, due).values(taken)).rowcount == 1:
            (held,) = listed(conn, _s.id == one.id)
            return held
    return None


def handed_over(conn: Transaction, now: datetime, taken: Schedule, problem: str = "") -> None:
    """Note that a run of a schedule has ended; where it failed, it is tried again soon, `MOST_TRIES` times in all.

    Changes that a person has made to it meanwhile stay.

    Args:
        problem: why it failed; empty: it did not.
    """
    tries = taken.tries + 1
    again = bool(problem) and tries < MOST_TRIES
    next_at = now + _FIRST_DELAY * 4 ** (tries - 1) if again else taken.rule.after(now)
    by_rule = case((_s.paused, None), else_=literal(next_at, UtcDateTime()))
    as_taken = _s.next_at == taken.next_at
    conn.execute(
        update(schedules)
        .where(_s.id == taken.id, _s.taken_until == taken.taken_until)
        .values(
            taken_until=None,
            tries=tries if again else 0,
            problem=problem[:_PROBLEM] or None,
            next_at=case((as_taken, literal(next_at, UtcDateTime()) if again else by_rule), else_=_s.next_at),
        )
    )


def _rule(row: Row[Any]) -> Recurrence:
    if row.cron is not None:
        return Recurrence(row.cron, row.zone)
    return Recurrence(every=timedelta(seconds=row.every_s))


def _values(rule: Recurrence, next_at: datetime | ColumnElement[Any]) -> dict[str, Any]:
    """A rule as columns."""
    return {
        "cron": rule.cron or None,
        "zone": rule.zone if rule.cron else None,
        "every_s": None if rule.cron else rule.every.total_seconds(),
        "next_at": next_at,
    }
