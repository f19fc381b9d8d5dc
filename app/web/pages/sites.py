"""Pages of sites: limits, results of the newest attempts, robots.txt, and a form that tests rules on a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.views.sites import SITE_FIELDS, SiteView, get_sites_view
from app.views.words import describe, translate
from app.web.base.context import Here, WebContext
from app.web.base.forms import shown_on
from app.web.base.query import Text
from app.web.pages.matrix import read_pairs, words
from app.web.pages.node_ratings import list_verdicts
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.domain.address import sendable
from tasks.domain.failures import FetchError
from tasks.domain.given_address import AddressKind, read_address
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules
from tasks.store.queries import pairs
from tasks.store.queries import queues as queue_queries
from tasks.store.queue import hosts
from tasks.store.sql.transaction import Transaction

_MOST_URL = 2000
"""Maximum number of characters in a typed address."""

router = APIRouter()

_SITES_A_PAGE = 60
_ROBOTS_SHOWN = 20_000
_MOST_TEXT = 2_000_000
_TRYING = Lock()
"""Lock for reading one page at a time, as a hostile page may take long."""


def read_sites(context: WebContext) -> Sequence[SiteView]:
    """Return all sites of the catalog, and sites that are no longer in it but have attempts, ordered by name."""
    return context.read("sites", lambda tx: get_sites_view(tx, context.catalog)).sites


@router.get("/sites")
def show_list(page: Here, q: Text = "", after: Text = "") -> Response:
    """Show a part of the sites."""
    rows = [one for one in read_sites(page.context) if q.lower() in one.site and one.site > after]
    return page.html(
        "sites.html",
        rows=rows[:_SITES_A_PAGE],
        fields=SITE_FIELDS,
        more=rows[_SITES_A_PAGE - 1].site if len(rows) > _SITES_A_PAGE else "",
        q=q,
        after=after,
        newest=pairs.NEWEST_ATTEMPTS,
    )


@router.get("/sites/{name}")
def site(page: Here, name: str, url: str = "") -> Response:
    """Show one site. If `url` is given, it is filled into the form that tests rules."""
    row = next((one for one in read_sites(page.context) if one.site == name), None)
    if row is None:
        raise HTTPException(404, translate("There is no site {name}.", name=name))
    asked = dict.fromkeys(page.context.hosts.site_hosts(name)) if row.engine else {name: None}

    def read(tx: Transaction) -> Any:
        waiting = queue_queries.count_site_states(tx, name)
        robots = hosts.load_robots(tx, asked, datetime(1970, 1, 1, tzinfo=UTC))
        return waiting, queue_queries.count_confident_pages(tx, name), robots

    waiting, (pages, doubtful), robots = page.context.read(("site", name), read)
    return page.html(
        "site.html",
        row=row,
        hosts=[
            (host, page.context.hosts.limits(host) if row.engine else None, robots.get(host))
            for host in asked
        ],
        waiting=waiting,
        pages=pages,
        doubtful=doubtful,
        said=words(list_verdicts(read_pairs(page.context, name).pairs)),
        entry=page.context.catalog.sites.get(name),
        most=_ROBOTS_SHOWN,
        rules=sorted(page.context.catalog.rules),
        url=url[:_MOST_URL],
    )


@router.post("/sites/{name}/try")
@shown_on(site)
def try_rules(
    page: Here,
    name: str,
    url: Annotated[str, Form(max_length=_MOST_URL)] = "",
    text: Annotated[str, Form(max_length=_MOST_TEXT)] = "",
    rules: Annotated[str, Form(max_length=200)] = "",
    read_as: Annotated[Literal["", "page", "result"], Form()] = "",
    product: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Show what rules read from a page that was pasted, or is fetched once. Nothing is stored."""
    # These load the page readers, which only this page needs.
    from app.sites.http_session import AskFailed
    from app.sites.rule_trial import fetch_trial, make_trial

    context = page.context
    if name not in context.catalog.sites:
        raise HTTPException(404, translate("There is no site {name}.", name=name))
    catalog = _replace_rules(context.catalog, name, rules)
    if not _TRYING.acquire(blocking=False):
        raise HTTPException(429, translate("Another page is being tested: wait a moment."))
    try:
        if text.strip():
            trial = make_trial(catalog, name, text.encode("utf-8", "replace"), read_as or None)
        else:
            _check_address(context, name, url.strip())
            trial = fetch_trial(context.settings, catalog, name, url.strip(), read_as or None)
        view = trial.read(catalog, context.now(), product.strip() or None)
    except AskFailed as error:
        raise HTTPException(502, describe(error)) from None
    finally:
        _TRYING.release()
    return page.html("try.html", view=view)


def _replace_rules(catalog: Catalog, name: str, rules: str) -> Catalog:
    """Return the catalog with the page rules named `rules` for a site. Empty `rules` change nothing.

    Raises InputError.
    """
    if not rules:
        return catalog
    if rules not in catalog.rules:
        raise InputError("there are no rules {rules!r} in {name}", rules=rules[:60], name=catalog.name)
    changed = catalog.sites[name].model_copy(update={"rules": rules})
    return catalog.model_copy(update={"sites": {**catalog.sites, name: changed}})


def _check_address(context: WebContext, name: str, url: str) -> None:
    """Check the address of a page that will be fetched to test the rules of the site `name`.

    Raises:
        InputError: the address is missing or wrong, its host belongs neither to the site nor to its engine, or the
            stored robots.txt of the host refuses it.
    """
    if not url:
        raise InputError("Paste a page, or give an address.")
    read_address(AddressKind.PAGE, url)
    try:
        host = context.hosts.name(sendable(url))
    except FetchError as error:
        raise InputError("{error}", error=error.message) from None
    own = context.hosts.site_hosts(name)
    if host not in own:
        raise InputError("{host} is not {name}, nor its engine.", host=host, name=name)
    if context.hosts.obeys_robots(url):
        with context.store.read() as tx:
            kept = hosts.load_robots(tx, own, datetime(1970, 1, 1, tzinfo=UTC)).get(host)
        if kept is not None and not RobotsRules.parse(kept.text, kept.status).allows(url, ROBOTS_TOKEN):
            raise InputError("The robots.txt of {host} refuses it.", host=host)
