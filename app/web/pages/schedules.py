"""The page of schedules, with forms to run, pause and resume them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Form
from starlette.responses import Response

from app.actions import schedule_actions
from app.actions.schedule_actions import ScheduleAction, name_of, rule_text, state_of
from app.views.words import translate
from app.web.base.context import Here, Notice, WebContext
from app.web.base.query import MOST_ID
from tasks.store.queue import schedules
from tasks.store.queue.schedules import MOST_TRIES, Schedule
from tasks.store.sql.transaction import Transaction

router = APIRouter()


def read_schedules(context: WebContext) -> tuple[list[Schedule], datetime]:
    """Return all schedules, and the current time of the database's clock."""

    def read(tx: Transaction) -> tuple[list[Schedule], datetime]:
        return schedules.list_schedules(tx), tx.now

    return context.read("schedules", read)


@router.get("/schedules")
def show_list(page: Here) -> Response:
    """Show all schedules."""
    rows, now = read_schedules(page.context)
    shown = [(row, rule_text(row.rule), state_of(row, now), name_of(row)) for row in rows]
    return page.html("schedules.html", live_s=5, rows=shown, most_tries=MOST_TRIES)


@router.post("/schedules")
def act(
    page: Here,
    number: Annotated[int, Form(ge=1, le=MOST_ID)],
    action: Annotated[Literal["run", "pause", "resume"], Form()],
) -> Response:
    """Run, pause or resume a schedule."""
    (row,) = schedule_actions.act(page.context.store, [str(number)], ScheduleAction(action), page.who)
    said = {
        "run": translate("{name} runs now.", name=name_of(row)),
        "pause": translate("{name} is paused.", name=name_of(row)),
        "resume": translate("{name} is resumed.", name=name_of(row)),
    }
    return page.redirect_with("/schedules", Notice(said[action]))
