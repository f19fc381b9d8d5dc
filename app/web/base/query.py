"""Types of the filters and numbers in URLs of pages and the API, and checks of the filters' names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from app.insight.periods import ALL, USUAL, PeriodChoice, read_period
from app.views.moments import local_time
from app.views.words import describe
from app.web.base.context import Here, PageRequest
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.store.content import products
from tasks.store.queries import queues
from tasks.store.queries.themes import has_reviews_since, number_of_day
from tasks.store.sql.transaction import Transaction

MOST_ID = 2**53 - 1
"""Greatest whole number that all JSON readers represent exactly."""
_OF_EVERY_PAGE = ("lang", "said")
Text = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
Cursor = Annotated[int, Query(ge=0, le=MOST_ID)]
"""Number of the last row on the previous page."""


def check_filters(request: Request) -> None:
    """Raise InputError if the query string has a filter that the requested page does not know."""
    route = request.scope.get("route")
    if request.method not in ("GET", "HEAD") or not isinstance(route, APIRoute):
        return
    known = _list_filters(route.dependant)
    for name in request.query_params:
        if name not in known and name not in _OF_EVERY_PAGE:
            if not known:
                raise InputError("There is no filter {name!r} here: this page has none.", name=name[:40])
            raise InputError(
                "There is no filter {name!r} here; there are {names}.", name=name[:40], names=tuple(known)
            )


def _list_filters(dependant: Dependant) -> list[str]:
    """Return the names of the query parameters of a route's function and its dependencies."""
    names: list[str] = []
    for field in dependant.query_params:
        model = field.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            names += [one.alias or name for name, one in model.model_fields.items()]
        else:
            names.append(field.alias)
    for below in dependant.dependencies:
        names += _list_filters(below)
    return names


_DAYS = r"^(|all|[1-9][0-9]{0,3}|[12][0-9]{4}|3[0-5][0-9]{3}|36[0-4][0-9]{2}|36500)$"
"""Values that `read_period` accepts, as a pattern in the API's description."""


def _make_reader(usual: str) -> Callable[..., PeriodChoice]:
    def read(
        days: Annotated[str, Query(max_length=20, json_schema_extra={"pattern": _DAYS})] = "",
        first: Annotated[date | Literal[""], Query(alias="from")] = "",
        last: Annotated[date | Literal[""], Query(alias="to")] = "",
    ) -> PeriodChoice:
        return read_period(days, first or None, last or None, usual)

    return read


RecentPeriod = Annotated[PeriodChoice, Depends(_make_reader(USUAL))]
"""The period in a URL: `days`, or `from` and `to`; by default the recent days."""


def _choose_shown(page: Here, period: RecentPeriod) -> PeriodChoice:
    return period if period.is_given else page.context.read("usual period", _find_usual)


def _find_usual(tx: Transaction) -> PeriodChoice:
    """Return the recent days, or all days if no review was written in them: old pages, a demo."""
    recent = read_period(None, None, None)
    since = recent.find(local_time(tx.now).date()).since
    if since is not None and not has_reviews_since(tx, number_of_day(since)):
        return replace(recent, days=ALL)
    return recent


ShownPeriod = Annotated[PeriodChoice, Depends(_choose_shown)]
"""The period in the URL of a page; by default the recent days, or all days if no review is that new."""
AnyPeriod = Annotated[PeriodChoice, Depends(_make_reader(ALL))]
"""The period in a URL; by default all days."""


def check_site(tx: Transaction, catalog: Catalog, name: str) -> None:
    """Raise InputError if a site is not in the catalog and has no stored pages."""
    if name and name not in catalog.sites and not queues.has_site(tx, name):
        raise InputError.unknown("there is no site {name!r}", name, catalog.sites, "/sites")


def find_product(page: PageRequest, text: str) -> int:
    """Return the number of a product given by number or name. Raises InputError if it is unknown."""
    with page.context.store.read() as tx:
        if text.isascii() and text.isdecimal() and products.has_number(tx, min(int(text[:16]), MOST_ID)):
            return int(text)
        return products.find(tx, text).id


@contextmanager
def not_found() -> Iterator[None]:
    """Answer the request with 404 if the block raises an error about something unknown."""
    try:
        yield
    except InputError as error:
        raise HTTPException(404, describe(error)) from None


def product_in_path(page: Here, product: str) -> int:
    """Return the number of the product that the path names. Answers the request with 404 if it is unknown."""
    with not_found():
        return find_product(page, product)


ProductId = Annotated[int, Depends(product_in_path)]
"""The product in a path: `{product}` is its number or its name."""
