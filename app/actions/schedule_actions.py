"""Actions of people on schedules, recorded in the audit log. Used by commands, dashboard and API."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from app.actions.product_actions import period_text
from app.files.exporting import FORMATS, check_format
from app.insight.periods import read_period
from app.sending.delivery import parse_destination, shown_destination
from app.views.words import language
from splitter.errors import InputError, Message
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
"""File formats by kind of schedule, the default first."""


class ScheduleAction(StrEnum):
    """Actions that people can take on a schedule."""

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
    """Return the rule given by a cron expression or an interval. Raises InputError if it is wrong or both are given.

    Args:
        zone: time zone of the cron expression.
    """
    if (cron is None) == (every is None):
        raise InputError("say when: either --every 7d or --cron '0 8 * * 1' (Monday at 8:00)")
    return Recurrence(every=every) if every is not None else cron_rule(cron or "", zone, now)


def add(store: Store, kind: ScheduleKind, rule: Recurrence, options: Mapping[str, Any], who: str) -> Schedule:
    """Add a schedule for a report, an export, or crawling all products again.

    Args:
        options: values of `to`, `format`, `products`, `private` and `days`, as the person gave them.

    Raises:
        InputError: an option is wrong.
    """
    given = {name: value for name, value in options.items() if value}
    if kind == ScheduleKind.RECRAWL:
        if given:
            raise InputError("a recrawl has no {given}: it goes for all products", given=", ".join(given))
    else:
        given["to"] = parse_destination(given.get("to", ""), bool(given.get("private")))
        form = given.setdefault("format", FORMATS_OF[kind][0])
        given["lang"] = language()
        if form not in FORMATS_OF[kind]:
            raise InputError(
                "a {kind} can't be written as {form}; possible: {formats}",
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
    """Set when products are crawled again.

    Raises:
        InputError: a name is unknown, or no site is crawled for a product. Nothing is changed.
    """
    with store.begin() as tx:
        for one in names:
            product = products.find(tx, one)
            if not product.is_crawled:
                raise InputError(
                    "{name} is no longer collected, or came by an import: add it again", name=one
                )
            schedules.recrawl(tx, product.id, rule, rule.next_time(tx.now))
        done = [row for row in schedules.list_schedules(tx) if row.product in names]
        for row in done:
            _record(tx, "set schedule", row, who, {"rule": rule_text(rule)})
    return done


def act(store: Store, which: Sequence[str], action: ScheduleAction, who: str) -> list[Schedule]:
    """Run, pause, resume or remove schedules, given by number or product.

    `run` begins the next crawl of a product at once. It only makes a report or export due: the running scheduler makes
    the file.

    Returns:
        The schedules after the change. Removed schedules are returned as they were.

    Raises:
        InputError: a number or name is unknown. Nothing is changed.
    """
    with store.begin() as tx:
        done = [schedules.find(tx, one) for one in dict.fromkeys(which)]
        for row in done:
            _ACTS[action](tx, row)
            _record(tx, f"{action} schedule", row, who, {})
        return done if action == ScheduleAction.REMOVE else [schedules.find(tx, str(row.id)) for row in done]


def _record(tx: Transaction, action: str, row: Schedule, who: str, detail: Mapping[str, Any]) -> None:
    notices.record_action(tx, who, action, f"{row.id}: {name_of(row)}", **detail)


def name_of(row: Schedule) -> Message:
    """Return a short name of a schedule for people: the product, or the kind and destination of the file.

    Secret parts of a webhook's address are left out.
    """
    if row.kind == ScheduleKind.RECRAWL:
        return Message("{product}", product=row.product) if row.product else Message("all products")
    kind = Message(row.kind.replace("-", " "))
    name = Message("{kind} to {place}", kind=kind, place=shown_destination(row.options["to"]))
    of = row.options.get("products", ())
    return Message("{name} ({why})", name=name, why=of) if of else name


def rule_text(rule: Recurrence) -> str:
    """Return a rule as text for people. A cron expression is followed by its time zone."""
    if not rule.cron:
        return period_text(rule.every.total_seconds())
    return f"{rule.cron} {rule.zone}"


def state_of(row: Schedule, now: datetime) -> str:
    """Return the state of a schedule in a few words: on, paused, due, under way, failed 2 of 5."""
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
        every_s, cron, zone: the rule: either an interval in seconds, or a cron expression with its time zone.
        rule: the rule as text.
        format, products: file format and products of a report or an export.
        problem: the reason why the last run failed; empty if it did not fail.
    """

    number: int
    what: str
    product: str | None
    name: Message
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
