"""Handle forms with a wrong value: show their page again with the typed values and a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from fastapi import Request
from starlette.datastructures import FormData
from starlette.responses import Response

from app.views.words import translate
from app.web.base.context import PageRequest
from splitter.catalog.wrong_values import explain_found_value, explain_wrong_value
from splitter.errors import Message

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

_PAGES: dict[Callable[..., Any], Callable[..., Response]] = {}
"""Functions that show the page of a form, by the function that takes the form."""

_FIELDS = {
    "name": "Name",
    "names": "Names, one per line",
    "keywords": "Keywords",
    "aliases": "Other names",
    "excluded": "Excluded words",
    "because": "Why",
    "theme": "Theme",
    "priority": "Priority",
    "pages": "Pages",
    "recrawl": "Crawl again every",
    "category": "Category",
    "sure": "“I am sure”",
    "node": "Node",
    "why": "Why",
    "token": "Token",
    "action": "Action",
    "voice": "Voice",
    "from": "From day",
    "to": "To day",
    "doubt": "To look at",
    "group": "Sites",
    "measure": "Measure",
    "reason": "Reason",
    "to_category": "Category",
    "to_priority": "Priority",
    "to_sites": "Sites",
    "quota": "Quota",
    "number": "Number",
}
"""Labels of form fields on pages, by name."""
_LONGEST = 40


def shown_on(show: Callable[..., Response]) -> Callable[[Endpoint], Endpoint]:
    """Return a decorator for the function that handles a form. If a value of the form is wrong, `show` answers instead.

    `show` gets the page request and the parameters of the path.
    """

    def remember(endpoint: Endpoint) -> Endpoint:
        _PAGES[endpoint] = show
        return endpoint

    return remember


def find_page(request: Request) -> Callable[..., Response] | None:
    """Return the function that shows the page of the form that a request sent; `None` if the form has no page."""
    return _PAGES.get(getattr(request.scope.get("route"), "endpoint", None) or find_page)


def keep_typed(page: PageRequest, form: FormData, problem: str) -> None:
    """Put the typed values of a refused form and the message about it into a page request."""
    for name, value in form.multi_items():
        if isinstance(value, str):
            page.typed.setdefault(name, []).append(value.replace("\r\n", "\n"))
        elif value.filename:
            page.lost_file = True
    page.problem = problem


def describe_errors(errors: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence about the errors that pydantic found, one error per field, in the reader's language."""
    first = {str(error["loc"][1]): error for error in reversed(errors)}
    return " ".join(_describe(field, error) for field, error in first.items())


def _describe(field: str, error: Mapping[str, Any]) -> str:
    label = translate(_FIELDS.get(field, field))
    if error["type"] == "missing":
        return translate("{field} is missing.", field=label)
    return translate("{field}: {problem}.", field=label, problem=explain_error(error))


def explain_error(error: Mapping[str, Any]) -> Message:
    """Return what is wrong with a value of a request, and the beginning of the value."""
    given = error.get("input")
    if isinstance(given, str):
        given = given[:_LONGEST]
    detail = cast("ErrorDetails", {**error, "input": given})
    return explain_wrong_value(detail) if error["type"] == "missing" else explain_found_value(detail)
