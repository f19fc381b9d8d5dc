"""The command `reviewloop failed`: show subtasks that wait for a person. `failed_changes` has the actions on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from app.cli.command import App, command
from app.cli.options import FILE, database_hint
from app.cli.output import short
from app.cli.people.failed_changes import abandon, assign, edit, retry
from app.cli.render import Done, Part, table, text
from app.files.harmless import shown
from app.views.durations import seconds
from app.views.failed import (
    ATTEMPT_FIELDS,
    TARGET_FIELDS,
    CauseView,
    SubtaskView,
    WaitingView,
    describe_response,
    get_subtask_view,
    group_by_cause,
)
from app.views.words import describe, plural, translate
from tasks.store.queries.subtask import AttemptRow
from tasks.store.queue import manual

_SUBTASKS_SHOWN = 8
_WAITING_FIELDS = "subtask_id product attempts nodes recalls"


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


@command(failed, "list")
def list_(app: App) -> WaitingView:
    """List subtasks that wait for a person, grouped by cause, with suggestions.

    \b
    Example:
      reviewloop failed list --json
    """
    with app.store.read() as tx:
        return group_by_cause(manual.list_manual(tx))


@text.register
def _(view: WaitingView) -> Iterator[Part]:
    return list_waiting_parts(view, database_hint())


def list_waiting_parts(view: WaitingView, hint: str) -> Iterator[Part]:
    """Yield lines about the subtasks that wait for a person, with the commands that act on them.

    Args:
        hint: the option `--db` to add to these commands; may be empty.
    """
    if not view.total:
        yield Text(translate("Nothing waits for a person."), style="green")
        return
    yield Text(
        plural("{n} subtask waits for a person:", "{n} subtasks wait for a person:", view.total),
        style="bold yellow",
    )
    for cause in view.groups:
        yield from _list_cause_parts(cause)
    first = view.groups[0].subtasks[0].subtask_id
    more = translate("More: reviewloop failed show {subtask}", subtask=first)
    yield Text(more + hint, style="dim")


def _list_cause_parts(cause: CauseView) -> Iterator[Part]:
    title = translate(
        "{reason} at {site}: {n}", reason=translate(cause.reason), site=cause.site, n=cause.count
    )
    more = cause.count - _SUBTASKS_SHOWN
    caption = translate("... and {n} more", n=more) if more > 0 else ""
    yield table(
        cause.subtasks[:_SUBTASKS_SHOWN], _WAITING_FIELDS, title=title, caption=caption, least="recalls"
    )
    yield translate("Suggested: {suggestion}", suggestion=translate(cause.suggestion))


@command(failed, "show", sites=True, lab=True)
@click.argument("subtask", type=int)
@click.option(
    "--refetch",
    is_flag=True,
    help="Request the last URL again from here (by a browser if the site's rules say so), and show the response.",
)
def show(app: App, subtask: int, refetch: bool) -> SubtaskView:
    """Show every attempt of SUBTASK: node, times, reason, counters, errors, last response, and what to do.

    \b
    Example:
      reviewloop failed show 40 --refetch
    """
    with app.store.read() as tx:
        view = get_subtask_view(tx, subtask)
    if refetch:
        from app.sites.rendered_answer import refetch_page  # slow to import, with what reads pages

        again = refetch_page(view.get_last_url(), view.subtask["site"], app.settings)
        view = replace(view, refetch=again)
    return view


@text.register
def _(view: SubtaskView) -> Iterator[Part]:
    row = view.subtask
    title = translate(
        "Subtask {n}: {product} on {site}, chunk {chunk}",
        n=row["id"],
        product=shown(row["product"]),
        site=row["site"],
        chunk=row["chunk"],
    )
    yield Text(title, style="bold")
    yield translate(
        "{state}, round {round}, recalls: {recalls}, last reason: {reason}",
        state=translate(row["state"]),
        round=row["round"],
        recalls=row["recalls"],
        reason=translate(row["reason"] or "-"),
    )
    yield table(view.attempts, ATTEMPT_FIELDS, least="wait_s active_s requests tried offered round")
    last = None
    for attempt in view.attempts:
        if attempt.last_response and attempt.last_response != last:
            last = attempt.last_response
            yield from _list_response_parts(attempt, last)
    targets = [one for one in view.targets if one.state != "stored"]
    if targets:
        yield table(targets, TARGET_FIELDS, least="tries reason")
    if view.refetch is not None:
        yield from _list_answer_parts(view.refetch)
    if view.why is not None:
        yield translate("Why it waits: {why}", why=view.why)
        suggestion = translate(view.suggestion or "")
        yield Text(translate("Suggested: {suggestion}", suggestion=suggestion), style="yellow")


def _list_response_parts(attempt: AttemptRow, last: Mapping[str, Any]) -> Iterator[Part]:
    status = translate("status {status}", status=last["status"]) if "status" in last else ""
    error = translate(str(last["error"]))
    title = translate(
        "Last response of attempt {n}: {error}", n=attempt.no, error=f"{status} {error}".strip()
    )
    yield Text(title, style="bold")
    yield f"  {shown(last['url'])}"
    yield f"  {shown(describe_response(last))}"
    if last.get("head"):
        yield Text(f"  {shown(short(last['head'], 300))}", style="dim")


def _list_answer_parts(answer: Mapping[str, Any]) -> Iterator[Part]:
    yield Text(translate("Asked again"), style="bold")
    if "error" in answer:
        yield Text(f"  {shown(describe(answer['error']))}", style="red")
        return
    yield f"  {shown(answer['url'])}"
    facts = translate(
        "status {status}, {bytes:,} bytes, {encoding}, {length}",
        status=answer["status"],
        bytes=answer["bytes"],
        encoding=answer["encoding"],
        length=seconds(answer["seconds"]),
    )
    yield f"  {facts}"
    yield Text(f"  {shown(short(answer['head'], 600))}", style="dim")


@command(failed, "report")
@click.option("-o", "--output", "target", type=FILE, default=Path("failed.html"), show_default=True)
def report_(app: App, target: Path) -> Done:
    """Write the manual-intervention report: by cause, every attempt, the last response, and what to do.

    The name of the file gives its format: .html, .md, .csv or .xlsx.

    \b
    Examples:
      reviewloop failed report -o failed.html
      reviewloop failed report -o failed.xlsx
    """
    from app.files.exporting import format_of, whole_file
    from app.reports.failed_report import FORMATS, write_failed_report  # brings Jinja2

    kind = format_of(str(target), FORMATS)
    with app.store.read() as tx, whole_file(target) as out:
        n = write_failed_report(tx, kind, out)
    message = plural("{n} subtask, written to {file}", "{n} subtasks, written to {file}", n, file=target)
    return Done({"file": target, "format": kind, "subtasks": n}, message)
