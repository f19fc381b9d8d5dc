"""Actions of a person on schedules, by command or in the dashboard; noted in the audit log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from app.actions.product_actions import period_text
from app.files.exporting import FORMATS, check_format
from app.insight.periods import read_period
from app.sending.delivery import checked_destination, shown_destination
from app.views.words import language
from splitter.errors import InputError
from tasks.domain.recurrence import Recurrence, cron_rule
from tasks.store.content import products
from tasks.store.queries.reviews import check_products
from tasks.store.queue import notices, schedules
from tasks.store.queue.schedules import Schedule, ScheduleKind
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

FORMATS_OF: Mapping[ScheduleKind, tuple[str, ...]] = {
    ScheduleKind.REPORT: ("html",),
    ScheduleKind.FAILED_REPORT: ("html", "md", "csv", "xlsx"),
    ScheduleKind.EXPORT: FORMATS,
}
"""The file formats of each kind, the usual one first."""


class ScheduleAction(StrEnum):
    """Actions on schedules that are there."""

    RUN = "run"
    PAUSE = "pause"
    RESUME = "resume"
    REMOVE = "remove"


_ACTS: Mapping[ScheduleAction, Callable[[Transaction, Schedule], object]] = {
    ScheduleAction.RUN: schedules.run,
    ScheduleAction.PAUSE: schedules.pause,
    ScheduleAction.RESUME: schedules.resume,
    ScheduleAction.REMOVE: schedules.remove,
}


def rule_of(cron: str | None, zone: str, every: timedelta | None, now: datetime) -> Recurrence:
    """The rule that a person gave in either way. Raises InputError where it is none, or both are given."""
    if (cron is None) == (every is None):
        raise InputError("say when: either --every 7d or --cron '0 8 * * 1' (Monday at 8:00)")
    return Recurrence(every=every) if every is not None else cron_rule(cron or "", zone, now)


def add(store: Store, kind: ScheduleKind, rule: Recurrence, options: Mapping[str, Any], who: str) -> Schedule:
    """Add a schedule of a report, an export, or all products.

    Args:
        options: as given: `to`, `format`, `products`, `private`, `days`.

    Raises:
        InputError: one of them is wrong.
    """
    given = {name: value for name, value in options.items() if value}
    if kind == ScheduleKind.RECRAWL:
        if given:
            raise InputError("a recrawl has no {given}: it goes for all products", given=", ".join(given))
    else:
        given["to"] = checked_destination(given.get("to", ""), bool(given.get("private")))
        form = given.setdefault("format", FORMATS_OF[kind][0])
        given["lang"] = language()
        if form not in FORMATS_OF[kind]:
            raise InputError(
                "a {kind} can't be written as {form}: there is {formats}",
                kind=kind,
                form=form,
                formats=", ".join(FORMATS_OF[kind]),
            )
        check_format(form)
        if kind == ScheduleKind.REPORT:
            read_period(given.get("days"), None, None)
        elif "days" in given:
            raise InputError("only a report has a number of days; an export has all of them")
        if kind == ScheduleKind.FAILED_REPORT and given.get("products"):
            raise InputError("a failed-report goes for all products")
    with store.begin() as tx:
        check_products(tx, given.get("products", ()))
        made = schedules.add(tx, kind, rule, given)
        _record(tx, "add schedule", made, who, {"rule": rule_text(rule)})
    return made


def set_rule(store: Store, names: Sequence[str], rule: Recurrence, who: str) -> list[Schedule]:
    """Crawl products again by a rule; all of them or, if one is unknown, none.

    Raises:
        InputError: there is no product of a name, or one is crawled at no site.
    """
    with store.begin() as tx:
        for one in names:
            product = products.find(tx, one)
            if not product.is_crawled:
                raise InputError(
                    "{name} is no longer collected, or came by an import: add it again", name=one
                )
            schedules.recrawl(tx, product.id, rule, rule.after(tx.now))
        done = [row for row in schedules.list_schedules(tx) if row.product in names]
        for row in done:
            _record(tx, "set schedule", row, who, {"rule": rule_text(rule)})
    return done


def act(store: Store, which: Sequence[str], action: ScheduleAction, who: str) -> list[Schedule]:
    """Run, pause, resume or remove schedules, by number or product; all of them or, where one is unknown, none.

    To run begins a product's round at once; a report or an export becomes due, and its runner makes it.

    Returns:
        Their state now, or before.

    Raises:
        InputError: there is none of a number or name.
    """
    with store.begin() as tx:
        done = [schedules.find(tx, one) for one in dict.fromkeys(which)]
        for row in done:
            _ACTS[action](tx, row)
            _record(tx, f"{action} schedule", row, who, {})
        return done if action == ScheduleAction.REMOVE else [schedules.find(tx, str(row.id)) for row in done]


def _record(tx: Transaction, action: str, row: Schedule, who: str, detail: Mapping[str, Any]) -> None:
    notices.record_action(tx, who, action, f"{row.id}: {name_of(row)}", **detail)


def name_of(row: Schedule) -> str:
    """The subject of a schedule, without what is secret in a webhook's address."""
    if row.kind == ScheduleKind.RECRAWL:
        return row.product or "all products"
    of = row.options.get("products", ())
    return f"{row.kind} to {shown_destination(row.options['to'])}" + (f" ({', '.join(of)})" if of else "")


def rule_text(rule: Recurrence) -> str:
    """Return a rule for people. A cron expression has its zone, as clock times may be shown in another."""
    if not rule.cron:
        return period_text(rule.every.total_seconds())
    return f"{rule.cron} {rule.zone}"


def state_of(row: Schedule, now: datetime) -> str:
    """How a schedule stands, in a word or two."""
    if row.taken_until is not None and row.taken_until > now:
        return "under way"
    if row.tries:
        return f"failed {row.tries} of {schedules.MOST_TRIES}"
    if row.next_at is not None and row.next_at <= now:
        return "due"
    if row.paused:
        return "paused"
    return "failed" if row.problem else "on"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule as people see it.

    Attributes:
        every_s, cron, zone: the rule, either an interval or a cron expression in a time zone.
        rule: the same as one text.
        format, products: of a report or an export.
        problem: why the last run failed.
    """

    number: int
    what: str
    product: str | None
    name: str
    every_s: float | None
    cron: str | None
    zone: str | None
    rule: str
    next_at: datetime | None
    last_at: datetime | None
    state: str
    problem: str | None
    format: str | None
    products: Sequence[str]


def view_schedule(row: Schedule, now: datetime) -> ScheduleView:
    """Return a schedule as people see it."""
    rule = row.rule
    return ScheduleView(
        number=row.id,
        what=str(row.kind),
        product=row.product,
        name=name_of(row),
        every_s=None if rule.cron else rule.every.total_seconds(),
        cron=rule.cron or None,
        zone=rule.zone if rule.cron else None,
        rule=rule_text(rule),
        next_at=row.next_at,
        last_at=row.last_at,
        state=state_of(row, now),
        problem=row.problem,
        format=row.options.get("format"),
        products=row.options.get("products", ()),
    )
