"""`reviewloop failed`: what waits for a person, and what the person can do about it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from app.actions import manual_actions
from app.cli.names import check_site
from app.cli.options import (
    FILE,
    db_option,
    json_option,
    lab_option,
    person,
    settings_of,
    sites_option,
    store_there,
)
from app.cli.output import (
    Cell,
    answer,
    clock,
    messages,
    print_json,
    printed,
    say,
    short,
    table,
    table_of,
)
from app.cli.tables import print_manual
from app.durations import seconds
from app.files.harmless import shown
from app.reports.summary import by_cause
from splitter.errors import InputError
from tasks.domain.errors import UnknownSubtask
from tasks.domain.failures import FailureReason
from tasks.store import manual, reports
from tasks.store.database import Store

_TOLD = ("product", "site", "state", "reason")

dry_run_option = click.option("--dry-run", is_flag=True, help="Only list what it would be done to.")


@click.group()
def failed() -> None:
    """See what waits for a person, and act on it.

    \b
    Examples:
      reviewloop failed list
      reviewloop failed show 40 --refetch
      reviewloop failed retry --site 12315.com
      reviewloop failed assign 40 node2
      reviewloop failed abandon 40 --why "the site is gone"
    """


@failed.command("list")
@db_option
@json_option
def list_(db: str | None, as_json: bool) -> None:
    """List what waits for a person, grouped by cause, with what is suggested.

    \b
    Example:
      reviewloop failed list --json
    """
    with store_there(settings_of(db)) as store, store.read() as conn:
        rows = manual.listed(conn)
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
    with store_there(settings) as store, store.read() as conn:
        row = reports.subtask(conn, subtask)
        if row is None:
            raise UnknownSubtask(f"there is no subtask {subtask}")
        attempts = reports.attempts_of(conn, subtask)
        targets = reports.targets_of(conn, subtask)
        waiting = [r for r in manual.listed(conn) if r.subtask_id == subtask]
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
    with store_there(settings_of(db)) as store, store.read() as conn, whole_file(target) as out:
        n = write_failed_report(conn, kind, out)
    answer({"file": target, "format": kind, "subtasks": n}, f"{n} subtasks, written to {target}", as_json)


def _last_url(attempts: Sequence[Mapping[str, Any]], targets: Sequence[Mapping[str, Any]]) -> str:
    """The last address an attempt reported; else the first target that is still to do."""
    for attempt in reversed(attempts):
        if (attempt["last_response"] or {}).get("url"):
            return str(attempt["last_response"]["url"])
    return str(next((t["url"] for t in targets if t["state"] == "todo"), targets[0]["url"]))


def _print_attempts(out: Console, attempts: Sequence[Mapping[str, Any]]) -> None:
    def lasted(a: Mapping[str, Any]) -> str | None:
        begin, end = a["started_at"] or a["allocated_at"], a["ended_at"]
        return seconds((end - begin).total_seconds()) if end else "runs"

    columns: dict[str, Callable[[Mapping[str, Any]], Cell]] = {
        **{name: itemgetter(name) for name in ("no", "round", "node")},
        "given (UTC)": lambda a: clock(a["allocated_at"]),
        "lasted": lasted,
        "ended": lambda a: a["reason"] or a["outcome"],
        **{name: itemgetter(name) for name in ("offered", "tried", "collected", "requests")},
        "active": lambda a: seconds(a["active_s"]),
        "waited": lambda a: seconds(a["wait_s"]),
        "errors": lambda a: ", ".join(f"{n} × {name}" for name, n in a["errors"].items()) or None,
    }
    out.print(
        table_of(attempts, columns, least=("waited", "active", "requests", "tried", "offered", "round"))
    )
    printed_last = None
    for attempt in attempts:
        last = attempt["last_response"]
        if not last or last == printed_last:
            continue
        printed_last = last
        status = f" status {last['status']}" if "status" in last else ""
        out.print(f"Last response of attempt {attempt['no']}:{status} {last['error']}", style="bold")
        out.print(f"  {shown(last['url'])}\n  {shown(last['detail'])}")
        if last.get("head"):
            out.print(f"  {shown(short(last['head'], 300))}", style="dim")


def _print_targets(out: Console, targets: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (t["kind"], t["state"], t["tries"], t["reason"], shown(t["url"]))
        for t in targets
        if t["state"] != "stored"
    ]
    if rows:
        out.print(table(("target", "state", "tries", "reason", "url>"), rows, least=("tries", "reason")))


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


@failed.command()
@click.argument("subtasks", type=int, nargs=-1)
@click.option("--all", "every", is_flag=True, help="All that wait.")
@click.option("--reason", type=click.Choice([str(r) for r in FailureReason]), help="All with this cause.")
@click.option("--site", metavar="NAME", help="All of this site.")
@dry_run_option
@db_option
@json_option
def retry(
    subtasks: tuple[int, ...],
    every: bool,
    reason: str | None,
    site: str | None,
    dry_run: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Try subtasks again: a new round, without recalls, without nodes to avoid, every target untried.

    \b
    Examples:
      reviewloop failed retry 40 41
      reviewloop failed retry --reason bad_rule
      reviewloop failed retry --site 12315.com
      reviewloop failed retry --all --dry-run
    """
    wide = every or reason is not None or site is not None
    if wide == bool(subtasks):
        raise InputError("name subtasks, or choose them by --all, --reason, --site; not both")
    settings = settings_of(db)
    with store_there(settings) as store:
        with store.read() as conn:
            check_site(conn, settings, site)
            ids = manual.chosen(conn, reason=reason, site=site) if wide else list(subtasks)
        if dry_run:
            _tell(store, ids, "would be tried again", as_json)
        else:
            _each(store, ids, manual_actions.retry(), "tried again", as_json)


@failed.command()
@click.argument("subtask", type=int)
@click.argument("node")
@db_option
@json_option
def assign(subtask: int, node: str, db: str | None, as_json: bool) -> None:
    """Try SUBTASK again, on NODE and no other.

    \b
    Example:
      reviewloop failed assign 40 node2
    """
    with store_there(settings_of(db)) as store:
        _each(store, [subtask], manual_actions.assign(node), f"given to {node}", as_json)


@failed.command()
@click.argument("subtasks", type=int, nargs=-1, required=True)
@click.option("--why", default="abandoned by a person", metavar="TEXT", help="Kept in the event log.")
@dry_run_option
@db_option
@json_option
def abandon(subtasks: tuple[int, ...], why: str, dry_run: bool, db: str | None, as_json: bool) -> None:
    """Give subtasks up for good (CANCELLED); also those that don't wait for a person but aren't DONE.

    \b
    Example:
      reviewloop failed abandon 40 --why "the site is gone"
    """
    with store_there(settings_of(db)) as store:
        if dry_run:
            _tell(store, subtasks, "would be abandoned", as_json)
        else:
            _each(store, subtasks, manual_actions.abandon(why), "abandoned", as_json)


def _tell(store: Store, ids: Sequence[int], what: str, as_json: bool) -> None:
    """The subtasks that an action would be done to, with nothing done."""
    with store.read() as conn:
        rows = [(number, reports.subtask(conn, number)) for number in dict.fromkeys(ids)]
    there = [{"subtask": number, **{name: row[name] for name in _TOLD}} for number, row in rows if row]
    unknown = [number for number, row in rows if row is None]
    for number in unknown:
        say(f"refused: there is no subtask {number}", "red")
    if as_json:
        print_json({"dry_run": True, "would": there, "unknown": unknown})
    elif there:
        names = ("subtask", *_TOLD)
        cells = ([shown(str(one[name] if one[name] is not None else "-")) for name in names] for one in there)
        printed().print(table(names, cells, f"{len(there)} {what}; nothing was done"))
    elif not unknown:
        messages.print("nothing waits for a person there")
    if unknown:
        sys.exit(2)


def _each(store: Store, ids: Sequence[int], action: manual_actions.Action, what: str, as_json: bool) -> None:
    """Act on each subtask; those it cannot be done to are listed with the reason, the others go on."""
    outcome = manual_actions.act_on_each(store, ids, action, person())
    refused = [{"subtask": number, "why": why} for number, why in outcome.refused]
    for one in refused:
        say(f"refused: {one['why']}", "red")
    if as_json:
        print_json({"done": outcome.done, "refused": refused})
    elif outcome.done:
        printed().print(f"{what}: {', '.join(map(str, outcome.done))}")
    elif not refused:
        messages.print("nothing waits for a person there")
    if refused:
        sys.exit(2)
