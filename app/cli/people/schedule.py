"""`reviewloop schedule`: what comes again by the clock."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from app.actions import schedule_actions
from app.actions.products import period
from app.actions.schedule_actions import (
    FORMATS_OF,
    ScheduleAction,
    document,
    name_of,
    rule_of,
    rule_text,
    state_of,
)
from app.cli.options import (
    ReadBy,
    db_option,
    json_option,
    left_by_up,
    person,
    settings_of,
    store_there,
)
from app.cli.output import answer, clock, print_json, printed, say, table, table_of
from app.run.setting_values import sqlite_file
from app.views.durations import seconds
from tasks.jobs.schedule import SWEEPS
from tasks.store.queue import schedules
from tasks.store.queue.schedules import Schedule, ScheduleKind

_NEAR = timedelta(days=180)

_when = (
    click.option("--every", type=ReadBy("period", period), metavar="7d|12h|30m", help="Interval."),
    click.option(
        "--cron", metavar="'M H D M W'", help="Minute, hour, day of month, month, weekday (0-7, mon-sun)."
    ),
    click.option(
        "--zone",
        default="UTC",
        show_default=True,
        metavar="NAME",
        help="Time zone of --cron: Asia/Shanghai ...",
    ),
)


def _with_rule(command: Any) -> Any:
    for option in reversed(_when):
        command = option(command)
    return command


@click.group()
def schedule() -> None:
    """Do things regularly: crawl products again, send reports, write exports.

    A runner (`run`, `up`) does it when it is due. If a run was missed because no runner was there, it is made
    up for once. See docs/schedules.md

    \b
    Examples:
      reviewloop schedule set 特仑苏 --every 7d
      reviewloop schedule set 光明高钙牛奶 --cron "30 3 * * 1-5" --zone Asia/Shanghai
      reviewloop schedule add report --cron "0 8 * * 1" --to mailto:boss@example.cn
      reviewloop schedule list
    """


@schedule.command("list")
@db_option
@json_option
def list_(db: str | None, as_json: bool) -> None:
    """List schedules with rule, next run, last run and state, and the periodic sweeps.

    Times are UTC. State: on, paused, due, under way, failed (with the reason below).

    \b
    Example:
      reviewloop schedule list --json
    """
    settings = settings_of(db)
    path = sqlite_file(settings.database_url)
    rows: list[Schedule] = []
    now = datetime.now(UTC)
    if path is None or path.is_file() or left_by_up(settings):
        with store_there(settings) as store, store.read() as tx:
            rows, now = schedules.list_schedules(tx), tx.now
    if as_json:
        sweeps = [{"name": one.name, "every_s": one.every_s, "does": one.does} for one in SWEEPS]
        print_json({"schedules": [document(row, now) for row in rows], "sweeps": sweeps})
        return
    out = printed()
    if rows:
        out.print(
            table_of(
                rows,
                {
                    "no": lambda row: row.id,
                    "what": name_of,
                    "rule": lambda row: rule_text(row.rule),
                    "next (UTC)": lambda row: _short(row.next_at, now),
                    "last (UTC)": lambda row: _short(row.last_at, now),
                    "state": lambda row: state_of(row, now),
                },
            )
        )
        for row in rows:
            if row.problem:
                out.print(f"  {row.id}: {row.problem}", style="yellow")
    else:
        out.print("  There is no schedule yet: reviewloop schedule set PRODUCT --every 7d", style="dim")
    out.print(table(("sweep", "every", "does"), ((s.name, seconds(s.every_s), s.does) for s in SWEEPS)))


def _short(moment: datetime | None, now: datetime) -> str | None:
    """A moment in UTC, to the minute; without the year where that is clear."""
    if moment is None:
        return None
    return f"{moment.astimezone(UTC):{'%m-%d %H:%M' if abs(moment - now) < _NEAR else '%Y-%m-%d'}}"


@schedule.command("set")
@click.argument("which", metavar="PRODUCT|NUMBER...", nargs=-1, required=True)
@_with_rule
@db_option
@json_option
def set_(
    which: tuple[str, ...],
    every: timedelta | None,
    cron: str | None,
    zone: str,
    db: str | None,
    as_json: bool,
) -> None:
    """Crawl products again regularly, or give schedules another rule by their numbers.

    --every counts from now. A cron expression has five fields as in crontab: if both day of the month and
    weekday are given, either is enough. If a name is unknown, nothing is changed.

    \b
    Examples:
      reviewloop schedule set 特仑苏 光明高钙牛奶 --every 7d
      reviewloop schedule set 3 --cron "0 8 1 * *" --zone Asia/Shanghai
    """
    rule = rule_of(cron, zone, every, datetime.now(UTC))
    with store_there(settings_of(db)) as store:
        _print_schedules(schedule_actions.set_rule(store, which, rule, person()), as_json)


@schedule.command("add")
@click.argument("what", type=click.Choice([str(one) for one in ScheduleKind]))
@_with_rule
@click.option("--to", metavar="WHERE", help="Receiver: mailto:PERSON[,...], https://WEBHOOK or file:FOLDER.")
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted({form for forms in FORMATS_OF.values() for form in forms})),
    help="Format of a failed-report: html, md, csv, xlsx; of an export: as `export reviews`. Default: html, csv.",
)
@click.option("--product", "products", metavar="NAME", multiple=True, help="Only this product. Repeatable.")
@click.option("--private", is_flag=True, help="Allow a webhook on a private address.")
@db_option
@json_option
def add(
    what: str,
    every: timedelta | None,
    cron: str | None,
    zone: str,
    to: str | None,
    form: str | None,
    products: tuple[str, ...],
    private: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Add a report, a failed-report or an export that is made and sent regularly, or a recrawl of all products.

    A file of at most 20 MB can be mailed (REVIEWLOOP_SMTP_URL) or posted as a form (fields what, text, file);
    a file of any size can be written to a folder of the machine where the scheduler runs. A failure is
    retried 5 times at growing intervals. A recrawl covers all products without a schedule of their own.

    \b
    Examples:
      reviewloop schedule add report --cron "0 8 * * 1" --zone Asia/Shanghai --to mailto:boss@example.cn
      reviewloop schedule add export --every 1d --format xlsx --product 特仑苏 --to file:exports
      reviewloop schedule add failed-report --every 12h --to https://hooks.example.cn/reviewloop
      reviewloop schedule add recrawl --every 30d
    """
    rule = rule_of(cron, zone, every, datetime.now(UTC))
    given = {"to": to, "format": form, "products": products, "private": private}
    settings = settings_of(db)
    with store_there(settings) as store:
        made = schedule_actions.add(store, ScheduleKind(what), rule, given, person())
    _print_schedules([made], as_json)
    if str(made.options.get("to", "")).startswith("mailto:") and not settings.smtp_url:
        say("No mail server is set here: the runner needs REVIEWLOOP_SMTP_URL (docs/schedules.md).", "yellow")


_WHICH = click.argument("which", metavar="PRODUCT|NUMBER...", nargs=-1, required=True)


@schedule.command()
@_WHICH
@db_option
@json_option
def run(which: tuple[str, ...], db: str | None, as_json: bool) -> None:
    """Run schedules now, also paused ones; this command itself makes and sends reports and exports.

    With an interval, the next run counts from now; a cron rule keeps its hours. Exit status 1 if one failed.

    \b
    Example:
      reviewloop schedule run 特仑苏 3
    """
    from app.reports.scheduled_files import deliver_due
    from app.run.sweep_wiring import delivery_tools

    settings = settings_of(db)
    with store_there(settings) as store:
        begun = schedule_actions.act(store, which, ScheduleAction.RUN, person())
        made = {
            row.id: deliver_due(delivery_tools(settings), store, store.write, only=row.id)
            for row in begun
            if row.kind != ScheduleKind.RECRAWL
        }
        with store.read() as tx:
            now = tx.now
            done = [schedules.find(tx, str(row.id)) for row in begun]
    problems = {number: problem for number, of in made.items() for _, problem in of if problem}
    if as_json:
        print_json({"schedules": [document(row, now) for row in done]})
    for row in done:
        if as_json or row.id in problems:
            continue  # a problem was told by the log
        if row.kind == ScheduleKind.RECRAWL:
            say(f"{name_of(row)}: a new round is begun; a runner crawls it")
        else:
            say(f"{row.id}: {name_of(row)}: {'done' if made[row.id] else 'another runner has it under way'}")
    if problems:
        sys.exit(1)


def _acting(action: ScheduleAction, about: str, example: str) -> None:
    """Add the command that does this to schedules."""

    @schedule.command(str(action), help=f"{about}\n\n\b\nExample:\n  reviewloop schedule {action} {example}")
    @_WHICH
    @db_option
    @json_option
    def command(which: tuple[str, ...], db: str | None, as_json: bool) -> None:
        _act(which, action, db, as_json)


_acting(ScheduleAction.PAUSE, "Pause schedules until they are resumed.", "特仑苏")
_acting(
    ScheduleAction.RESUME,
    "Resume paused schedules from now; what fell into the pause is not made up for.",
    "特仑苏",
)
_acting(ScheduleAction.REMOVE, "Remove schedules; products and what was collected stay.", "3")


def _act(which: Sequence[str], action: ScheduleAction, db: str | None, as_json: bool) -> None:
    with store_there(settings_of(db)) as store:
        done = schedule_actions.act(store, which, action, person())
    if action == ScheduleAction.REMOVE:
        answer(
            {"removed": [row.id for row in done]},
            "\n".join(f"{row.id}: {name_of(row)}: removed" for row in done),
            as_json,
        )
    else:
        _print_schedules(done, as_json)


def _print_schedules(rows: Sequence[Schedule], as_json: bool) -> None:
    """Print schedules with their next time."""
    now = datetime.now(UTC)
    lines = [
        f"{row.id}: {name_of(row)}: {rule_text(row.rule)}, "
        + (f"next at {clock(row.next_at)} UTC" if row.next_at is not None else "paused")
        for row in rows
    ]
    answer({"schedules": [document(row, now) for row in rows]}, "\n".join(lines), as_json)
