"""Pages to sign in and out."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse, Response

from app.views.words import translate
from app.web.base.access import TooManyWrongTokens
from app.web.base.context import Here

router = APIRouter()


@router.get("/sign-in")
def form(page: Here, next: str = "/") -> Response:
    """Show the form to sign in. If no sign-in is needed, redirect to the first page."""
    if page.visitor is not None:
        return RedirectResponse(page.root + _inside(next), 303)
    return page.html("sign_in.html", next=_inside(next), why="")


@router.post("/sign-in")
async def sign_in(
    page: Here,
    token: Annotated[str, Form(max_length=200)],
    name: Annotated[str, Form(max_length=60)] = "",
    next: Annotated[str, Form(max_length=2000)] = "/",
) -> Response:
    """Sign in and begin a session."""
    request = page.request
    address = request.client.host if request.client else "?"
    again = partial(page.html, "sign_in.html", next=_inside(next))
    try:
        session = await page.context.access.sign_in(token, name, address)
    except TooManyWrongTokens:
        return again(status=429, why=translate("Too many wrong tokens: wait a moment."))
    if session is None:
        return again(status=401, why=translate("This token is not valid."))
    request.session.update(session)
    return RedirectResponse(page.root + _inside(next), 303)


@router.post("/sign-out")
def sign_out(page: Here) -> Response:
    """End the session."""
    page.request.session.clear()
    return RedirectResponse(f"{page.root}/sign-in", 303)


def _inside(path: str) -> str:
    """Return a path if it belongs to this server, else the path of the first page."""
    plain = path.isascii() and path.isprintable() and "\\" not in path
    return path if plain and path.startswith("/") and not path.startswith("//") else "/"
