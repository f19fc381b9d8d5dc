"""Pages of subtasks that wait for a person, with actions on them, and the page of the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.actions import manual_actions
from app.actions.manual_actions import Action
from app.views.failed import ATTEMPT_FIELDS, TARGET_FIELDS, describe_response, get_subtask_view
from app.views.words import describe, translate
from app.web.base.context import Here, Notice
from app.web.base.forms import shown_on
from app.web.base.query import MOST_ID, Cursor, Text, check_site
from splitter.errors import InputError
from tasks.domain.failures import SUGGESTIONS, FailureReason
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queries.subtask import AttemptRow
from tasks.store.queue import manual, nodes, notices
from tasks.store.sql.transaction import Transaction

router = APIRouter()

MOST_AT_ONCE = 1000
MOST_QUOTA = 1_000_000
_ROWS = 50
_TARGETS = 100
_EVENTS = 60
SubtaskId = Annotated[int, InPath(ge=1, le=MOST_ID)]


@router.get("/failed")
def show_failed(
    page: Here, reason: FailureReason | Literal[""] = "", site: Text = "", after: Cursor = 0
) -> Response:
    """Show the reasons why subtasks wait, and the subtasks of one reason or of all."""
    context = page.context
    causes = context.read("causes", lambda tx: manual.list_causes(tx))
    names = context.read("node names", lambda tx: [row.name for row in nodes.list_nodes(tx)])
    with context.store.read() as tx:
        check_site(tx, context.catalog, site)
        rows = manual.list_manual(
            tx,
            after=after,
            most=_ROWS + 1,
            reason=reason or None,
            site=site or None,
        )
    return page.html(
        "failed.html",
        causes=[(one, SUGGESTIONS.get(one.reason, "")) for one in causes],
        total=sum(one.count for one in causes),
        rows=rows[:_ROWS],
        more=rows[_ROWS - 1].subtask_id if len(rows) > _ROWS else 0,
        reason=reason,
        site=site,
        nodes=names,
    )


@router.get("/failed/{subtask}")
def story(page: Here, subtask: SubtaskId) -> Response:
    """Show the history of a subtask: its attempts with their last responses, and its events."""
    with page.context.store.read() as tx:
        view = get_subtask_view(tx, subtask)
        events = subtask_queries.list_events(tx, subtask)
        names = [one.name for one in nodes.list_nodes(tx)]
    row, attempts = view.subtask, view.attempts
    targets = [one for one in view.targets if one.state != "stored"]
    return page.html(
        "subtask.html",
        row=row,
        why=view.why,
        suggestion=view.suggestion,
        attempts=attempts,
        attempt_fields=ATTEMPT_FIELDS,
        responses=_responses(attempts),
        describe_response=describe_response,
        targets=targets[:_TARGETS],
        target_fields=TARGET_FIELDS,
        targets_left_out=max(0, len(targets) - _TARGETS),
        events=events[-_EVENTS:],
        pages_to_do=sum(one.kind == "result" and one.state in ("todo", "given_up") for one in targets),
        quota=row["assigned_quota"] or (attempts[-1].quota if attempts else ""),
        nodes=names,
    )


def _responses(attempts: Sequence[AttemptRow]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return (number of the attempt, its last response), leaving out responses equal to an earlier one."""
    found: list[tuple[int, Mapping[str, Any]]] = []
    for one in attempts:
        last = one.last_response
        if last and (not found or found[-1][1] != last):
            found.append((one.no, last))
    return found


def action_of(name: str, node: str, why: str) -> Action:
    """Return the action that a form or a request to the API names. Raises InputError."""
    if name == "retry":
        return manual_actions.retry()
    if name == "assign":
        if not node:
            raise InputError("name the node that it is given to")
        return manual_actions.assign(node)
    if name == "abandon":
        return manual_actions.abandon(why.strip() or "abandoned by a person")
    raise InputError("there is no action {name!r}: retry, assign or abandon", name=name[:40])


@router.post("/failed")
@shown_on(show_failed)
def act(
    page: Here,
    action: Annotated[str, Form()],
    subtask: Annotated[list[int], Form()] = [],  # noqa: B006
    cause: Annotated[str, Form()] = "",
    node: Annotated[str, Form()] = "",
    why: Annotated[str, Form(max_length=500)] = "",
    back: Annotated[str, Form()] = "/failed",
) -> Response:
    """Act on the chosen subtasks, or on all subtasks of a cause."""
    wanted = action_of(action, node, why)
    ids = [one for one in subtask if 0 < one <= MOST_ID]
    if cause:
        reason, _, site = cause.partition("|")
        with page.context.store.read() as tx:
            ids = _list_ids(tx, reason, site)
    if not ids:
        return page.redirect_with("/failed", Notice(refused=(translate("Nothing was chosen."),)))
    left_out = len(ids) - MOST_AT_ONCE
    outcome = manual_actions.act_on_each(page.context.store, ids[:MOST_AT_ONCE], wanted, page.who)
    return page.redirect_with(_back(back), _notice(action, outcome, left_out))


@router.post("/failed/{subtask}/edit")
@shown_on(story)
async def edit(page: Here, subtask: SubtaskId) -> Response:
    """Try a subtask again with fewer result pages or another quota."""
    form = await page.request.form()
    given = {name: str(text).strip() for name, text in form.items()}

    def act() -> manual_actions.Outcome:
        action = manual_actions.edit(_number(given.get("pages", "")), _number(given.get("quota", "")))
        return manual_actions.act_on_each(page.context.store, [subtask], action, page.who)

    return page.redirect_with(f"/failed/{subtask}", _notice("edit", await run_in_threadpool(act), 0))


def _number(text: str) -> int | None:
    """Return the whole number typed into a field; `None` for an empty field. Raises InputError."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:10]) <= MOST_QUOTA):
        raise InputError("{text!r} is no whole number from 1 to {most:,}", text=text[:20], most=MOST_QUOTA)
    return int(text)


def _list_ids(tx: Transaction, reason: str, site: str) -> list[int]:
    return manual.list_ids(tx, reason=reason, site=site)


_SAID = {
    "retry": "Tried again: {n} subtasks.",
    "edit": "Changed and tried again: {n} subtasks.",
    "assign": "Given to the node: {n} subtasks.",
    "abandon": "Abandoned: {n} subtasks.",
}


def _notice(action: str, outcome: manual_actions.Outcome, left_out: int) -> Notice:
    done = translate(_SAID[action], n=len(outcome.done)) if outcome.done else ""
    if left_out > 0:
        done += " " + translate("{n} are left: repeat the action.", n=left_out)
    return Notice(done, tuple(describe(one.why) for one in outcome.refused[:20]))


def _back(path: str) -> str:
    tail = path.removeprefix("/failed/")
    return path if tail != path and tail.isascii() and tail.isdigit() else "/failed"


@router.get("/audit")
def audit_log(page: Here, before: Cursor = 0) -> Response:
    """Show the audit log."""
    with page.context.store.read() as tx:
        rows = notices.list_audit_rows(tx, before=before or None, most=_ROWS + 1)
    return page.html("audit.html", rows=rows[:_ROWS], more=rows[_ROWS - 1].id if len(rows) > _ROWS else 0)
