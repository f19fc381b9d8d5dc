"""Filters and numbers in the addresses of pages and of the API: their types, and errors about others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from typing import Annotated, Literal

from fastapi import Depends, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from app.insight.periods import ALL, USUAL, PeriodChoice, read_period
from app.views.words import describe
from app.web.base.context import Here, Page
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.store.content import products
from tasks.store.queries import reviews
from tasks.store.sql.transaction import Transaction

MOST_ID = 2**53 - 1
"""The greatest whole number that JSON keeps everywhere."""
_OF_EVERY_PAGE = ("lang", "said")
Text = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
Cursor = Annotated[int, Query(ge=0, le=MOST_ID)]
"""The last row of the page before."""


def check_filters(request: Request) -> None:
    """Refuse a request that has a filter which its page does not know. Raises InputError."""
    route = request.scope.get("route")
    if request.method not in ("GET", "HEAD") or not isinstance(route, APIRoute):
        return
    known = _list_filters(route.dependant)
    for name in request.query_params:
        if name not in known and name not in _OF_EVERY_PAGE:
            if not known:
                raise InputError("There is no filter {name!r} here: this page has none.", name=name[:40])
            names = ", ".join(known)
            raise InputError(
                "There is no filter {name!r} here; there are {names}.", name=name[:40], names=names
            )


def _list_filters(dependant: Dependant) -> list[str]:
    """Return the names of the query of a function and of those that it depends on."""
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
"""What `read_period` takes, for readers of the API's description; its own error says it in words."""


def _make_reader(usual: str) -> Callable[..., PeriodChoice]:
    def read(
        days: Annotated[str, Query(max_length=20, json_schema_extra={"pattern": _DAYS})] = "",
        first: Annotated[date | Literal[""], Query(alias="from")] = "",
        last: Annotated[date | Literal[""], Query(alias="to")] = "",
    ) -> PeriodChoice:
        return read_period(days, first or None, last or None, usual)

    return read


RecentPeriod = Annotated[PeriodChoice, Depends(_make_reader(USUAL))]
"""The period in an address: `days`, or `from` and `to`; without these, the usual one."""
AnyPeriod = Annotated[PeriodChoice, Depends(_make_reader(ALL))]
"""The period in an address; without one, all days."""


def check_site(tx: Transaction, catalog: Catalog, name: str) -> None:
    """Refuse the name of a site that is neither in the catalog nor has pages. Raises InputError."""
    if name and name not in catalog.sites and not reviews.has_site(tx, name):
        raise InputError.unknown("there is no site {name!r}", name, catalog.sites, "/sites")


def find_product(page: Page, text: str) -> int:
    """Return the number of a product that is given by its number or its name. Raises InputError if there is none."""
    with page.context.store.read() as tx:
        if text.isascii() and text.isdecimal() and products.has_number(tx, min(int(text[:16]), MOST_ID)):
            return int(text)
        return products.find(tx, text).id


@contextmanager
def not_found() -> Iterator[None]:
    """End the request with 404 if the block finds that something is unknown."""
    try:
        yield
    except InputError as error:
        raise HTTPException(404, describe(error)) from None


def product_in_path(page: Here, product: str) -> int:
    """Return the number of the product in the path. Ends the request with 404 if there is none."""
    with not_found():
        return find_product(page, product)


ProductId = Annotated[int, Depends(product_in_path)]
"""A product in a path: `{product}` is its number or its name."""
