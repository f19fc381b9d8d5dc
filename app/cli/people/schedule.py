"""`reviewloop schedule`: recurring crawls, reports and exports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click
from rich.text import Text

from app.actions import schedule_actions
from app.actions.products import period
from app.actions.schedule_actions import FORMATS_OF, ScheduleAction, ScheduleView, rule_of, view_schedule
from app.cli.command import App, command
from app.cli.options import ReadBy
from app.cli.output import say
from app.cli.render import Done, Part, table, text
from app.views.fields import format_moment
from app.views.words import join_words, name_text, translate
from tasks.jobs.schedule import SWEEPS
from tasks.store.queue import schedules
from tasks.store.queue.schedules import Schedule, ScheduleKind

_SCHEDULE_FIELDS = "number name rule next_at last_at state"

_when = (
    click.option("--every", type=ReadBy("period", period), metavar="7d|12h|30m", help="Interval."),
    click.option(
        "--cron", metavar="'M H D M W'", help="Minute, hour, day of month, month, weekday (0-7, mon-sun)."
    ),
)


def _add_rule_options(command: Any) -> Any:
    for option in reversed(_when):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class SweepView:
    """A periodic job of the scheduler."""

    name: str
    every_s: float
    does: str


@dataclass(frozen=True, slots=True)
class SchedulesView:
    """All schedules, and the scheduler's periodic jobs."""

    schedules: Sequence[ScheduleView]
    sweeps: Sequence[SweepView]


@click.group()
def schedule() -> None:
    """Do things regularly: crawl products again, send reports, write exports.

    A runner (`run`, `up`) does it when it is due. If a run was missed because no runner was there, it is made
    up for once. See docs/schedules.md

    \b
    Examples:
      reviewloop schedule set 特仑苏 --every 7d
      reviewloop schedule set 光明高钙牛奶 --cron "30 3 * * 1-5"
      reviewloop schedule add report --cron "0 8 * * 1" --to mailto:boss@example.cn
      reviewloop schedule list
    """


@command(schedule, "list")
def list_(app: App) -> SchedulesView:
    """List schedules with rule, next run, last run and state, and the periodic sweeps.

    State: on, paused, due, under way, failed (with the reason below).

    \b
    Example:
      reviewloop schedule list --json
    """
    rows: list[ScheduleView] = []
    if app.has_store():
        with app.store.read() as tx:
            rows = [view_schedule(row, tx.now) for row in schedules.list_schedules(tx)]
    return SchedulesView(rows, [SweepView(one.name, one.every_s, one.does) for one in SWEEPS])


@text.register
def _(view: SchedulesView) -> Iterator[Part]:
    if view.schedules:
        yield table(view.schedules, _SCHEDULE_FIELDS, least="last_at")
        for row in view.schedules:
            if row.problem:
                yield Text(name_text(row.number, row.problem), style="yellow")
    else:
        yield Text(
            translate("There is no schedule yet: reviewloop schedule set PRODUCT --every 7d"), style="dim"
        )
    yield table(view.sweeps, "name every_s does>")


@command(schedule, "set")
@click.argument("names", metavar="PRODUCT...", nargs=-1, required=True)
@_add_rule_options
def set_(
    app: App,
    names: tuple[str, ...],
    every: timedelta | None,
    cron: str | None,
) -> Done:
    """Crawl products again regularly. To change another schedule, remove it and add it again.

    --every counts from now. A cron expression has five fields as in crontab: if both day of the month and
    weekday are given, either is enough. If a name is unknown, nothing is changed.

    \b
    Examples:
      reviewloop schedule set 特仑苏 光明高钙牛奶 --every 7d
      reviewloop schedule set 特仑苏 --cron "0 8 1 * *"
    """
    rule = rule_of(cron, app.settings.timezone, every, datetime.now(UTC))
    return _view_changed(schedule_actions.set_rule(app.store, names, rule, app.who))


@command(schedule, "add")
@click.argument("what", type=click.Choice([str(one) for one in ScheduleKind]))
@_add_rule_options
@click.option("--to", metavar="WHERE", help="Receiver: mailto:PERSON[,...], https://WEBHOOK or file:FOLDER.")
@click.option(
    "--format",
    "form",
    type=click.Choice(sorted({form for forms in FORMATS_OF.values() for form in forms})),
    help="Format of a failed-report: html, md, csv, xlsx; of an export: as `export reviews`. Default: html, csv.",
)
@click.option("--product", "products", metavar="NAME", multiple=True, help="Only this product. Repeatable.")
@click.option("--days", metavar="N|all", help="Period of a report: the last N days, or all. Default: 90.")
@click.option("--private", is_flag=True, help="Allow a webhook on a private address.")
def add(
    app: App,
    what: str,
    every: timedelta | None,
    cron: str | None,
    form: str | None,
    **given: Any,
) -> Done:
    """Add a report, a failed-report or an export that is made and sent regularly, or a recrawl of all products.

    A file of at most 20 MB can be mailed (REVIEWLOOP_SMTP_URL) or posted as a form (fields what, text, file);
    a file of any size can be written to a folder of the machine where the scheduler runs. A failure is
    retried 5 times at growing intervals. A recrawl covers all products without a schedule of their own.

    \b
    Examples:
      reviewloop schedule add report --cron "0 8 * * 1" --days 7 --to mailto:boss@example.cn
      reviewloop schedule add export --every 1d --format xlsx --product 特仑苏 --to file:exports
      reviewloop schedule add failed-report --every 12h --to https://hooks.example.cn/reviewloop
      reviewloop schedule add recrawl --every 30d
    """
    rule = rule_of(cron, app.settings.timezone, every, datetime.now(UTC))
    options = {**given, "format": form}
    made = schedule_actions.add(app.store, ScheduleKind(what), rule, options, app.who)
    if str(made.options.get("to", "")).startswith("mailto:") and not app.settings.smtp_url:
        note = translate(
            "No mail server is set here: the runner needs REVIEWLOOP_SMTP_URL (docs/schedules.md)."
        )
        say(note, "yellow")
    return _view_changed([made])


_WHICH = click.argument("which", metavar="PRODUCT|NUMBER...", nargs=-1, required=True)


@command(schedule, "run")
@_WHICH
def run(app: App, which: tuple[str, ...]) -> Done:
    """Run schedules now, also paused ones; this command itself makes and sends reports and exports.

    With an interval, the next run counts from now; a cron rule keeps its hours. Exit status 1 if one failed.

    \b
    Example:
      reviewloop schedule run 特仑苏 3
    """
    from app.reports.scheduled_files import deliver_due
    from app.run.sweep_wiring import delivery_tools

    begun = schedule_actions.act(app.store, which, ScheduleAction.RUN, app.who)
    made = {
        row.id: deliver_due(delivery_tools(app.settings), app.store, app.store.write, only=row.id)
        for row in begun
        if row.kind != ScheduleKind.RECRAWL
    }
    with app.store.read() as tx:
        done = [view_schedule(schedules.find(tx, str(row.id)), tx.now) for row in begun]
    if any(problem for files in made.values() for _, problem in files):
        app.exit_status = 1
    return Done({"schedules": done}, "\n".join(_describe_run(row, made.get(row.number)) for row in done))


def _describe_run(row: ScheduleView, made: Sequence[tuple[object, str]] | None) -> str:
    """Return the sentence about a run of a schedule.

    Args:
        made: the files of the run, each with the problem of its delivery, if any; `None` for a recrawl.
    """
    if made is None:
        return translate("{name}: a new round began; a runner crawls it.", name=row.name)
    if made:
        ((_, problem),) = made
        if problem:
            return translate("{number}: {name}: failed: {why}", number=row.number, name=row.name, why=problem)
        return translate("{number}: {name}: done.", number=row.number, name=row.name)
    return translate("{number}: {name}: another runner makes it.", number=row.number, name=row.name)


@command(schedule, "pause")
@_WHICH
def pause(app: App, which: tuple[str, ...]) -> Done:
    """Pause schedules until they are resumed.

    \b
    Example:
      reviewloop schedule pause 特仑苏
    """
    return _view_changed(schedule_actions.act(app.store, which, ScheduleAction.PAUSE, app.who))


@command(schedule, "resume")
@_WHICH
def resume(app: App, which: tuple[str, ...]) -> Done:
    """Resume paused schedules from now on. Runs missed during the pause are not made up for.

    \b
    Example:
      reviewloop schedule resume 特仑苏
    """
    return _view_changed(schedule_actions.act(app.store, which, ScheduleAction.RESUME, app.who))


@command(schedule, "remove")
@_WHICH
def remove(app: App, which: tuple[str, ...]) -> Done:
    """Remove schedules. Products, pages and reviews stay.

    \b
    Example:
      reviewloop schedule remove 3
    """
    done = schedule_actions.act(app.store, which, ScheduleAction.REMOVE, app.who)
    names = join_words(str(row.id) for row in done)
    return Done({"removed": [row.id for row in done]}, translate("Removed: {names}.", names=names))


def _view_changed(rows: Sequence[Schedule]) -> Done:
    now = datetime.now(UTC)
    views = [view_schedule(row, now) for row in rows]
    return Done({"schedules": views}, "\n".join(map(_describe_schedule, views)))


def _describe_schedule(row: ScheduleView) -> str:
    if row.next_at is None:
        return translate("{number}: {name}: {rule}, paused.", number=row.number, name=row.name, rule=row.rule)
    return translate(
        "{number}: {name}: {rule}, next at {time}.",
        number=row.number,
        name=row.name,
        rule=row.rule,
        time=format_moment(row.next_at),
    )
