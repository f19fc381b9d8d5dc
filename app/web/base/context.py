"""Objects that all pages of the dashboard share, and the context of one request."""

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
from app.web.base.rendering import render_page
from app.web.base.under_path import inner_path
from splitter.catalog.model import Catalog
from splitter.catalog.names import Group
from tasks.fetching.hosts import HostCatalog
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

T = TypeVar("T")
_MOST_KEPT = 100
_WITH_PERIOD = ("/", "/products", "/reviews")
"""Pages whose links include the period of the present page."""
_PLACES = frozenset({"days", "from", "to", "after", "before", "skip", "said", "lang"})
"""URL parameters that a link to another period drops: places in a list, and the period itself."""


class Held:
    """Stores a few values by random keys in memory, from one request to the next: notices, uploads, drafts."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, object] = OrderedDict()

    def put(self, value: object) -> str:
        """Store a value, and return its key."""
        key = secrets.token_urlsafe(9)
        self._kept[key] = value
        while len(self._kept) > _MOST_KEPT:
            self._kept.popitem(last=False)
        return key

    def get(self, key: str) -> Any:
        """Return the value of a key; `None` if it is no longer stored."""
        return self._kept.get(key)


@dataclass(slots=True)
class WebContext:
    """Objects that all pages share: settings, store, catalog, access and caches."""

    settings: Settings
    store: Store
    catalog: Catalog
    hosts: HostCatalog
    access: Access
    cached: Cached = field(default_factory=Cached)
    held: Held = field(default_factory=Held)
    uploads: Uploads = field(default_factory=Uploads)

    @property
    def groups(self) -> dict[str, Group | None]:
        """The group of each site of the catalog; `None` for sites without a group."""
        return {name: site.group for name, site in self.catalog.sites.items()}

    def read(self, key: Any, read: Callable[[Transaction], T]) -> T:
        """Return the result of a query. It may be cached for a short time (`Cached`)."""

        def load() -> T:
            with self.store.read() as tx:
                return read(tx)

        return self.cached.get(key, load)

    def now(self) -> datetime:
        """Return the time of the database's clock."""
        with self.store.read() as tx:
            return tx.now


@dataclass(frozen=True, slots=True)
class Notice:
    """A message about the result of an action. The next page shows it."""

    done: str = ""
    refused: tuple[str, ...] = ()


class PageRequest:
    """A request for a page, with the objects needed to answer it.

    Attributes:
        typed: values of a refused form by field.
        problem: message about a refused form; empty if no form was refused.
        lost_file: True if a refused form had a file, which the person must choose again.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.context = cast("WebContext", request.app.state.context)
        self.typed: dict[str, list[str]] = {}
        self.problem = ""
        self.lost_file = False

    def get_typed(self, field: str, otherwise: str = "") -> str:
        """Return the value that a person typed into a field of a refused form; `otherwise` if no form was refused."""
        return self.typed.get(field, [otherwise])[-1]

    @property
    def language(self) -> str:
        """Code of the page's language."""
        return language()

    @property
    def root(self) -> str:
        """Path under which a proxy serves the dashboard; empty for the root."""
        return str(self.request.scope.get("root_path", ""))

    @property
    def visitor(self) -> Visitor | None:
        """The visitor who sent the request; `None` if the visitor is not signed in."""
        return visitor_of(self.request.scope)

    @property
    def who(self) -> str:
        """Name of the visitor for the audit log."""
        return self.visitor.who if self.visitor is not None else "?"

    def html(self, template: str, *, status: int = 200, live_s: int = 0, **values: Any) -> HTMLResponse:
        """Render a template as the response.

        Args:
            live_s: seconds after which the page reloads its live parts; 0 for never.
        """
        query = self.request.query_params
        text = render_page(
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
        """Redirect to a page, which shows a message about the result of a change."""
        self.context.cached.clear()
        joined = "&" if "?" in path else "?"
        return RedirectResponse(
            f"{self.root}{path}{joined}said={self.context.held.put(notice)}", status_code=303
        )

    def _other_language(self) -> str:
        other = "en" if self.language == "zh" else "zh"
        return str(self.request.url.include_query_params(lang=other).query)


def page_of(request: Request) -> PageRequest:
    """Return the `PageRequest` that belongs to an HTTP request."""
    return PageRequest(request)


Here = Annotated[PageRequest, Depends(page_of)]
