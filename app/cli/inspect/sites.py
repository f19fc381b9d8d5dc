"""`reviewloop sites`: list them, sign in to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click
from rich.text import Text

from app.cli.command import App, command
from app.cli.inspect.site_check import check
from app.cli.inspect.site_try import try_
from app.cli.options import group_option, in_groups
from app.cli.render import Done, Part, table, text
from app.files.harmless import shown
from app.run.setting_values import sqlite_file
from app.views.fields import extend_row, format_moment
from app.views.words import translate
from splitter.catalog.model import Catalog
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules
from tasks.jobs.planning import Permission, addresses, permission
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.queues import SiteRow
from tasks.store.queue.hosts import load_robots

if TYPE_CHECKING:
    from tasks.store.sql.transaction import Transaction

_ROBOTS_OF_ANY_AGE = timedelta(days=36_500)
_SITE_FIELDS = "site title group kind engine per_address_per_s total_per_s robots tasks pages reviews manual"
_LEAST = "kind per_address_per_s total_per_s group manual tasks title"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView(SiteRow):
    """A site of the catalog, with the permission to crawl it and what was collected there.

    Attributes:
        robots: "permitted", "not permitted" or "unknown"; `robots_why` is the reason.
        robots_obeyed: whether its robots.txt is obeyed; `robots_decision` is the catalog's reason.
    """

    title: str
    group: str | None
    kind: str
    engine: str
    rules: str
    per_address_per_s: float
    total_per_s: float
    robots: str
    robots_why: str
    robots_obeyed: bool
    robots_decision: str


@dataclass(frozen=True, slots=True)
class SitesView:
    """Sites of a catalog."""

    catalog: str
    sites: Sequence[SiteView]


@click.group()
def sites() -> None:
    """List sites, check the catalog, try its rules.

    \b
    Examples:
      reviewloop sites list --group shop
      reviewloop sites check
      reviewloop sites try 12315.com saved-page.html
    """


sites.add_command(check)
sites.add_command(try_)


@command(sites, "list", sites=True)
@group_option
def list_(app: App, groups: tuple[str, ...]) -> SitesView:
    """List sites with their group, engine, limits, what robots.txt says, and what was collected there.

    A site is "not permitted" if the robots.txt of its own host or of its engine refuses; it then gets no
    task. "unknown" means that it was not requested yet (a runner does that when it makes tasks), or that
    it does not answer.

    \b
    Example:
      reviewloop sites list --sites paper-2014 --json
    """
    catalog = app.settings.catalog()
    rules: dict[str, RobotsRules] = {}
    rows: dict[str, SiteRow] = {}
    path = sqlite_file(app.settings.database_url)
    if path is None or path.is_file():
        with app.store.read() as tx:
            rules, rows = _load_robots(tx, catalog), queue_queries.count_by_site(tx)
    views = []
    for name in in_groups(catalog, groups):
        allowed = permission(catalog, name, rules, ROBOTS_TOKEN)
        views.append(_view_site(catalog, allowed, rows.get(name, SiteRow(name))))
    return SitesView(catalog.name, views)


def _load_robots(tx: Transaction, catalog: Catalog) -> dict[str, RobotsRules]:
    """Return the robots.txt that was fetched last for each address that has one."""
    urls = {url for site in catalog.sites for url in addresses(catalog, site)}
    hosts = {urlsplit(url).netloc.lower() for url in urls}
    stored = load_robots(tx, hosts, tx.now - _ROBOTS_OF_ANY_AGE)
    found = {url: stored.get(urlsplit(url).netloc.lower()) for url in urls}
    return {url: RobotsRules.parse(one.text, one.status) for url, one in found.items() if one is not None}


def _view_site(catalog: Catalog, allowed: Permission, row: SiteRow) -> SiteView:
    site, limits = catalog.sites[row.site], HostCatalog(catalog).limits(row.site)
    return extend_row(
        SiteView,
        row,
        title=site.title,
        group=site.group,
        kind=str(catalog.kind_of(row.site)),
        engine=site.engine,
        rules=site.rules,
        per_address_per_s=limits.per_address_per_s,
        total_per_s=limits.total_per_s,
        robots=allowed.state,
        robots_why=str(allowed.because),
        robots_obeyed=site.robots is None or site.robots.obey,
        robots_decision=site.robots.reason if site.robots else "",
    )


@text.register
def _(view: SitesView) -> Iterator[Part]:
    title = translate("Sites of the catalog {catalog}: {n}", catalog=view.catalog, n=len(view.sites))
    yield table(view.sites, _SITE_FIELDS, title=title, least=_LEAST)
    for row in view.sites:
        if row.robots == "not permitted":
            refusal = translate("{site} is not permitted: {why}", site=row.site, why=row.robots_why)
            yield Text(refusal, style="red")
        if not row.robots_obeyed:
            decision = translate(
                "robots.txt of {site} is not obeyed: {why}", site=row.site, why=row.robots_decision
            )
            yield Text(shown(decision), style="yellow")


@command(sites, "sign-in", db=False, sites=True, lab=True)
@click.argument("site")
def sign_in(app: App, site: str) -> Done:
    """Sign in to SITE (or an engine) now, and show until when the session is valid.

    A run signs in by itself; this command tries it. Name and password come from the environment:
    REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_USER and _PASSWORD for bbs.example.com (a dot is _, a dash __),
    _CLIENT_ID and _CLIENT_SECRET for OAuth 2. REVIEWLOOP_SECRET_KEY encrypts what is stored.

    \b
    Example:
      reviewloop sites sign-in bbs.example.com
    """
    from app.run.wiring import sign_ins as open_sign_ins  # brings requests and cryptography

    until = open_sign_ins(app.settings, app.settings.catalog()).sign_in(site)
    file = app.settings.sign_in_file
    document = {"site": site, "until": until.isoformat(timespec="seconds"), "kept_in": str(file)}
    message = translate(
        "Signed in to {site} until {until}; stored in {file}",
        site=site,
        until=format_moment(until),
        file=file,
    )
    return Done(document, message)
