"""`reviewloop failed`: what waits for a person; what the person can do about it is in `failed_changes`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from app.cli.options import (
    FILE,
    db_option,
    json_option,
    lab_option,
    settings_of,
    sites_option,
    store_there,
)
from app.cli.output import (
    Cell,
    answer,
    clock,
    print_json,
    printed,
    short,
    table,
    table_of,
)
from app.cli.people.failed_changes import abandon, assign, edit, retry
from app.cli.tables import print_manual
from app.files.harmless import shown
from app.reports.summary import by_cause
from app.views.durations import seconds
from tasks.domain.errors import UnknownSubtask
from tasks.domain.states import State
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queries.subtask import AttemptRow, TargetRow
from tasks.store.queue import manual


@click.group()
def failed() -> None:
    """See what waits for a person, and act on it.

    \b
    Examples:
      reviewloop failed list
      reviewloop failed show 40 --refetch
      reviewloop failed retry --site 12315.com
      reviewloop failed assign 40 node2
      reviewloop failed edit 40 --quota 5
      reviewloop failed abandon 40 --why "the site is gone"
    """


for _command in (retry, assign, edit, abandon):
    failed.add_command(_command)


@failed.command("list")
@db_option
@json_option
def list_(db: str | None, as_json: bool) -> None:
    """List what waits for a person, grouped by cause, with what is suggested.

    \b
    Example:
      reviewloop failed list --json
    """
    with store_there(settings_of(db)) as store, store.read() as tx:
        rows = manual.list_manual(tx)
    if not as_json:
        print_manual(printed(), rows, f" --db {db}" if db else "")
        return
    groups = [
        {"reason": reason, "site": site, "count": len(of), "suggestion": of[0].suggestion, "subtasks": of}
        for reason, site, of in by_cause(rows)
    ]
    print_json({"groups": groups, "total": len(rows)})


@failed.command()
@click.argument("subtask", type=int)
@click.option(
    "--refetch",
    is_flag=True,
    help="Ask the last URL again, from here (by a browser where the site's rules say so), and show what comes.",
)
@lab_option
@db_option
@sites_option
@json_option
def show(
    subtask: int, refetch: bool, lab: tuple[str, int] | None, db: str | None, sites: str | None, as_json: bool
) -> None:
    """Show every attempt of SUBTASK: node, times, reason, counters, errors, last response; and what is suggested.

    \b
    Example:
      reviewloop failed show 40 --refetch
    """
    settings = settings_of(db, sites, lab=lab)
    with store_there(settings) as store, store.read() as tx:
        row = subtask_queries.get_subtask(tx, subtask)
        if row is None:
            raise UnknownSubtask(f"there is no subtask {subtask}")
        attempts = subtask_queries.list_attempts(tx, subtask)
        targets = subtask_queries.list_targets(tx, subtask)
        waiting = manual.list_manual(tx, after=subtask - 1, most=1) if row["state"] == State.MANUAL else []
    again = None
    if refetch:
        from app.sites.rendered_answer import asked_again  # slow to import, with what reads pages

        again = asked_again(_last_url(attempts, targets), row["site"], settings)
    suggestion = waiting[0].suggestion if waiting else None
    if as_json:
        document = {"subtask": row, "why": waiting[0].why if waiting else None, "suggestion": suggestion}
        print_json(document | {"attempts": attempts, "targets": targets, "refetch": again})
        return
    out = printed()
    out.print(
        f"Subtask {subtask}  {shown(row['product'])} on {row['site']}, chunk {row['chunk']}", style="bold"
    )
    out.print(
        f"{row['state']}, round {row['round']}, {row['recalls']} recalls, last reason: {row['reason'] or '-'}"
    )
    _print_attempts(out, attempts)
    _print_targets(out, targets)
    if again is not None:
        _print_again(out, again)
    if waiting:
        out.print(f"Why here:  {waiting[0].why}")
        out.print(f"Suggested: {suggestion}", style="yellow")


@failed.command("report")
@click.option(
    "--format", "form", type=click.Choice(["html", "md", "csv", "xlsx"]), help="Default: by the name."
)
@click.option("-o", "--output", "target", type=FILE, default=Path("failed.html"), show_default=True)
@db_option
@json_option
def report_(form: str | None, target: Path, db: str | None, as_json: bool) -> None:
    """Write the manual-intervention report: by cause, every attempt, the last response, what is suggested.

    \b
    Examples:
      reviewloop failed report -o failed.html
      reviewloop failed report -o failed.xlsx
    """
    from app.files.exporting import format_of, whole_file
    from app.reports.failed_report import FORMATS, write_failed_report  # brings Jinja2

    kind = form or format_of(str(target), FORMATS)
    with store_there(settings_of(db)) as store, store.read() as tx, whole_file(target) as out:
        n = write_failed_report(tx, kind, out)
    answer({"file": target, "format": kind, "subtasks": n}, f"{n} subtasks, written to {target}", as_json)


def _last_url(attempts: Sequence[AttemptRow], targets: Sequence[TargetRow]) -> str:
    """The last address an attempt reported; else the first target that is still to do."""
    for attempt in reversed(attempts):
        if attempt.last_response and attempt.last_response.get("url"):
            return str(attempt.last_response["url"])
    return str(next((t.url for t in targets if t.state == "todo"), targets[0].url))


def _print_attempts(out: Console, attempts: Sequence[AttemptRow]) -> None:
    def lasted(a: AttemptRow) -> str | None:
        begin, end = a.started_at or a.allocated_at, a.ended_at
        return seconds((end - begin).total_seconds()) if end else "runs"

    columns: dict[str, Callable[[AttemptRow], Cell]] = {
        **{name: attrgetter(name) for name in ("no", "round", "node")},
        "given (UTC)": lambda a: clock(a.allocated_at),
        "lasted": lasted,
        "ended": lambda a: a.reason or a.outcome,
        **{name: attrgetter(name) for name in ("offered", "tried", "collected", "requests")},
        "active": lambda a: seconds(a.active_s),
        "waited": lambda a: seconds(a.wait_s),
        "errors": lambda a: ", ".join(f"{n} × {name}" for name, n in a.errors.items()) or None,
    }
    out.print(
        table_of(attempts, columns, least=("waited", "active", "requests", "tried", "offered", "round"))
    )
    printed_last = None
    for attempt in attempts:
        last = attempt.last_response
        if not last or last == printed_last:
            continue
        printed_last = last
        status = f" status {last['status']}" if "status" in last else ""
        out.print(f"Last response of attempt {attempt.no}:{status} {last['error']}", style="bold")
        out.print(f"  {shown(last['url'])}\n  {shown(last['detail'])}")
        if last.get("head"):
            out.print(f"  {shown(short(last['head'], 300))}", style="dim")


def _print_targets(out: Console, targets: Sequence[TargetRow]) -> None:
    rows = [(t.id, t.kind, t.state, t.tries, t.reason, shown(t.url)) for t in targets if t.state != "stored"]
    if rows:
        out.print(
            table(("target", "kind", "state", "tries", "reason", "url>"), rows, least=("tries", "reason"))
        )


def _print_again(out: Console, again: Mapping[str, Any]) -> None:
    out.print("Asked again", style="bold")
    if "error" in again:
        out.print(f"  {shown(again['error'])}", style="red")
        return
    out.print(
        f"  {shown(again['url'])}\n  status {again['status']}, {again['bytes']:,} bytes, {again['encoding']}, "
        f"{seconds(again['seconds'])}"
    )
    out.print(f"  {shown(short(again['head'], 600))}", style="dim")
