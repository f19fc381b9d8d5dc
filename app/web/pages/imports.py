"""Pages of imports: what each import added, what would be removed if it were undone, and a form to undo it."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Form
from fastapi import Path as InPath
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.actions import import_actions
from app.actions.import_actions import ImportUndo
from app.views.words import describe, translate
from app.web.base.context import Here, Notice, PageRequest
from app.web.base.forms import shown_on
from app.web.base.query import MOST_ID, Cursor
from splitter.errors import InputError
from tasks.store.content import numbered_imports
from tasks.store.content.numbered_imports import NumberedImport

router = APIRouter()

_ROWS = 50
_SHOWN = 200
ImportNumber = Annotated[int, InPath(ge=1, le=MOST_ID)]


@router.get("/imports")
def list_imports(page: Here, before: Cursor = 0) -> Response:
    """Show a part of the imports, the newest first."""
    with page.context.store.read() as tx:
        rows = numbered_imports.list_imports(tx, before=before or None, most=_ROWS + 1)
    return page.html("imports.html", rows=rows[:_ROWS], more=rows[_ROWS - 1].id if len(rows) > _ROWS else 0)


def import_of(page: PageRequest, number: int) -> NumberedImport:
    """Return an import. Raises HTTPException(404) if the number is unknown."""
    with page.context.store.read() as tx:
        try:
            return numbered_imports.find(tx, number)
        except InputError as error:
            raise HTTPException(404, describe(error)) from None


@router.get("/imports/{number}")
def show_import(page: Here, number: ImportNumber) -> Response:
    """Show an import, and what would be removed if it were undone. Nothing is changed."""
    found = import_of(page, number)
    undo = import_actions.preview(page.context.store, number) if found.undone_at is None else None
    return page.html("import.html", row=found, undo=undo, most=_SHOWN)


@router.post("/imports/{number}/undo")
@shown_on(show_import)
def undo(page: Here, number: ImportNumber, sure: Annotated[Literal["yes"], Form()]) -> Response:  # noqa: ARG001
    """Remove the rows that an import added, after the person has confirmed it."""
    done = import_actions.undo(page.context.store, number, page.who)
    return page.redirect_with(f"/imports/{number}", Notice(_undo_message(done)))


def _undo_message(done: ImportUndo) -> str:
    return translate(
        "Removed: {products} products and {reviews} reviews; {stay} products and {kept} reviews stay.",
        products=done.products_removed,
        reviews=done.reviews_removed,
        stay=len(done.stays),
        kept=done.reviews_stay,
    )
