"""Context of the dashboard's pages, and of one request: language, visitor, page."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, TypeVar, cast

from fastapi import Depends, Request
from starlette.responses import HTMLResponse, RedirectResponse

from app.importing.uploads import Uploads
from app.run.setting_fields import Settings
from app.views.words import LANGUAGES, language
from app.web.base.access import Access, Visitor
from app.web.base.cached import Cached
from app.web.base.guard import LANGUAGE_COOKIE, visitor_of
from app.web.base.rendering import rendered
from app.web.base.under_path import inner_path
from splitter.catalog.model import Catalog
from tasks.fetching.hosts import HostCatalog
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

T = TypeVar("T")
_MOST_KEPT = 100
_WITH_PERIOD = ("/products", "/reviews")
"""Pages whose links carry the period of the page before."""
_PLACES = frozenset({"days", "from", "to", "after", "before", "skip", "said", "lang"})
"""Values of an address that say where a list goes on, or that a link to another period sets anew."""


class Held:
    """A few things kept in memory between two requests, by a random key: what was said, what was uploaded."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, object] = OrderedDict()

    def put(self, value: object) -> str:
        """Keep something; returns its key."""
        key = secrets.token_urlsafe(9)
        self._kept[key] = value
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return key

    def get(self, key: str) -> Any:
        """What is kept under a key; None: nothing any more."""
        return self._kept.get(key)


@dataclass(slots=True)
class Context:
    """The context that all pages share."""

    settings: Settings
    store: Store
    catalog: Catalog
    hosts: HostCatalog
    access: Access
    cached: Cached = field(default_factory=Cached)
    held: Held = field(default_factory=Held)
    uploads: Uploads = field(default_factory=Uploads)

    def read(self, key: Any, read: Callable[[Transaction], T]) -> T:
        """The answer to a query at this moment, or a moment ago (`Cached`)."""

        def made() -> T:
            with self.store.read() as tx:
                return read(tx)

        return self.cached.get(key, made)

    def now(self) -> datetime:
        """The database's clock."""
        with self.store.read() as tx:
            return tx.now


@dataclass(frozen=True, slots=True)
class Notice:
    """The outcome of an action, said on the next page."""

    done: str = ""
    refused: tuple[str, ...] = ()


class Page:
    """One request for a page, and what is needed to answer it.

    Attributes:
        typed: values of a refused form, by field.
        problem: message about the form; empty if it was accepted.
        lost_file: the form had a file, which has to be chosen again.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.context = cast("Context", request.app.state.context)
        self.typed: dict[str, list[str]] = {}
        self.problem = ""
        self.lost_file = False

    def get_typed(self, field: str, otherwise: str = "") -> str:
        """Return the value of a field of the refused form; `otherwise` if there was none."""
        return self.typed.get(field, [otherwise])[-1]

    @property
    def language(self) -> str:
        """The code of the reader's language."""
        return language()

    @property
    def root(self) -> str:
        """The path below which the dashboard is shown; empty at the root of its server."""
        return str(self.request.scope.get("root_path", ""))

    @property
    def visitor(self) -> Visitor | None:
        """The visitor."""
        return visitor_of(self.request.scope)

    @property
    def who(self) -> str:
        """The visitor's name for the audit log."""
        return self.visitor.who if self.visitor is not None else "?"

    def html(self, template: str, *, status: int = 200, live_s: int = 0, **values: Any) -> HTMLResponse:
        """A page.

        Args:
            live_s: seconds after which the page brings its live parts up to date; 0: never.
        """
        query = self.request.query_params
        text = rendered(
            template,
            self.language,
            page=self,
            visitor=self.visitor,
            signed_in=bool(self.context.access.tokens),
            path=inner_path(self.request.scope),
            root=self.root,
            other_language=self._other_language(),
            with_period=_WITH_PERIOD,
            kept=[(name, value) for name, value in query.multi_items() if name not in _PLACES],
            carried=values["period"].carried if "period" in values else "",
            live_s=live_s,
            problem=self.problem,
            lost_file=self.lost_file,
            typed=self.get_typed,
            ticked=lambda name, value: str(value) in self.typed.get(name, ()),
            notice=self.context.held.get(query.get("said", "")) if query.get("said") else None,
            **values,
        )
        answer = HTMLResponse(text, status)
        if query.get("lang", "") in LANGUAGES:
            answer.set_cookie(
                LANGUAGE_COOKIE,
                query["lang"],
                max_age=31_536_000,
                path=self.root or "/",
                httponly=True,
                samesite="strict",
            )
        return answer

    def redirect_with(self, path: str, notice: Notice) -> RedirectResponse:
        """After a change: to a page that says what became of it."""
        self.context.cached.clear()
        joined = "&" if "?" in path else "?"
        return RedirectResponse(
            f"{self.root}{path}{joined}said={self.context.held.put(notice)}", status_code=303
        )

    def _other_language(self) -> str:
        other = "en" if self.language == "zh" else "zh"
        return str(self.request.url.include_query_params(lang=other).query)


def page_of(request: Request) -> Page:
    """The request as the pages want it."""
    return Page(request)


Here = Annotated[Page, Depends(page_of)]
