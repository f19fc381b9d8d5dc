"""`reviewloop sites`: list them, measure how soon they answer, sign in to them."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from rich.text import Text

from app.cli.inspect.site_check import check
from app.cli.inspect.site_try import try_
from app.cli.options import (
    check_known,
    db_option,
    group_option,
    in_groups,
    json_option,
    lab_option,
    settings_of,
    sites_option,
    store_there,
    store_to_fill,
)
from app.cli.output import answer, clock, print_json, printed, table, table_of
from app.files.harmless import shown
from app.run.setting_values import sqlite_file
from splitter.catalog.model import Catalog
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules
from tasks.jobs.planning import Permission, addresses, permission
from tasks.store.queries import queues as queue_queries
from tasks.store.queries.queues import SiteRow
from tasks.store.queue.hosts import load_robots

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from app.sites.pinging import Ping

_ROBOTS_OF_ANY_AGE = timedelta(days=36_500)


@click.group()
def sites() -> None:
    """List sites, check the catalog, try its rules.

    \b
    Examples:
      reviewloop sites list --group shop
      reviewloop sites check --offline
      reviewloop sites try 12315.com saved-page.html
    """


sites.add_command(check)
sites.add_command(try_)


@sites.command("list")
@group_option
@db_option
@sites_option
@json_option
def list_(groups: tuple[str, ...], db: str | None, sites: str | None, as_json: bool) -> None:
    """List sites with their group, engine, limits, what robots.txt says, and what was collected there.

    A site is "not permitted" if the robots.txt of its own host or of its engine refuses; it then gets no
    task. "unknown" means that it was not requested yet (a runner does that when it makes tasks), or that
    it does not answer.

    \b
    Example:
      reviewloop sites list --sites paper-2014 --json
    """
    settings = settings_of(db, sites)
    catalog = settings.catalog()
    permissions, had = _stored(settings, catalog)
    names = in_groups(catalog, groups)
    rows = [_site(catalog, name, permissions[name], had.get(name, SiteRow(name))) for name in names]
    if as_json:
        print_json({"catalog": catalog.name, "sites": rows})
        return
    styles = {"permitted": "green", "not permitted": "red", "unknown": "dim"}
    out = printed()
    out.print(
        table_of(
            rows,
            {
                "site": itemgetter("site"),
                "title": lambda row: row["title"] or None,
                **{name: itemgetter(name) for name in ("group", "kind", "engine")},
                "per address": lambda row: f"{row['per_address_per_s']:g}/s",
                "in all": lambda row: f"{row['total_per_s']:g}/s",
                "robots": lambda row: Text(row["robots"], style=styles[row["robots"]]),
                **{name: itemgetter(name) for name in ("tasks", "pages", "reviews", "manual")},
            },
            f"{len(rows)} sites of the catalog {catalog.name}",
            least=("kind", "per address", "in all", "group", "manual", "tasks", "title"),
        )
    )
    for row in rows:
        if row["robots"] == "not permitted":
            out.print(f"{row['site']}: not permitted: {row['robots_why']}", style="red")
        if not row["robots_obeyed"]:
            decision = f"{row['site']}: robots.txt is not obeyed: {row['robots_decision']}"
            out.print(shown(decision), style="yellow")


def _stored(settings: Settings, catalog: Catalog) -> tuple[dict[str, Permission], dict[str, SiteRow]]:
    """Permissions by the robots.txt that was fetched last, and what each site has brought."""
    rules: dict[str, RobotsRules] = {}
    had: dict[str, SiteRow] = {}
    urls = {url for site in catalog.sites for url in addresses(catalog, site)}
    path = sqlite_file(settings.database_url)
    if path is None or path.is_file():
        with store_there(settings) as store, store.read() as tx:
            hosts = {urlsplit(url).netloc.lower() for url in urls}
            kept = load_robots(tx, hosts, tx.now - _ROBOTS_OF_ANY_AGE)
            had = queue_queries.count_by_site(tx)
        for url in urls:
            robots = kept.get(urlsplit(url).netloc.lower())
            if robots is not None:
                rules[url] = RobotsRules.parse(robots.text, robots.status)
    return {site: permission(catalog, site, rules, ROBOTS_TOKEN) for site in catalog.sites}, had


def _site(catalog: Catalog, name: str, allowed: Permission, had: SiteRow) -> dict[str, Any]:
    site, limits = catalog.sites[name], HostCatalog(catalog).limits(name)
    return {
        "site": name,
        "title": site.title,
        "group": site.group,
        "kind": str(catalog.kind_of(name)),
        "engine": site.engine,
        "rules": site.rules,
        "per_address_per_s": limits.per_address_per_s,
        "total_per_s": limits.total_per_s,
        "robots": allowed.state,
        "robots_why": str(allowed.because),
        "robots_obeyed": site.robots is None or site.robots.obey,
        "robots_decision": site.robots.reason if site.robots else "",
        **asdict(had),
    }


@sites.command("ping")
@click.argument("names", metavar="SITE...", nargs=-1, required=True)
@lab_option
@db_option
@sites_option
@json_option
def ping_(
    names: tuple[str, ...],
    lab: tuple[str, int] | None,
    db: str | None,
    sites: str | None,
    as_json: bool,
) -> None:
    """Measure how fast SITEs answer this machine: a few requests each, noise removed.

    The time is that from a request to the first byte of its answer, over an open connection, within
    robots.txt and the catalog's limits. A crawl measures the same by itself: see `control pairs`. Exit
    status 1 if a site could not be measured.

    \b
    Example:
      reviewloop sites ping 12315.com cca.org.cn
    """
    from app.sites.pinging import ping

    settings = settings_of(db, sites, lab=lab)
    catalog = settings.catalog()
    check_known(catalog, names)
    with store_to_fill(settings) as store:
        pings = ping(settings, catalog, store, list(dict.fromkeys(names)))
    if as_json:
        print_json({"sites": [{"site": site, **asdict(one)} for site, one in pings.items()]})
    else:
        rows = ((site, *_ping_cells(one)) for site, one in pings.items())
        printed().print(table(("site", "answers in", "measured", "why not"), rows))
    if any(one.rtt_ms is None for one in pings.values()):
        sys.exit(1)


def _ping_cells(one: Ping) -> tuple[str | None, ...]:
    rtt = None if one.rtt_ms is None else f"{one.rtt_ms:.1f} ms"
    return rtt, " ".join(f"{ms:.0f}" for ms in one.measured_ms) or None, one.why or None


@sites.command("sign-in")
@click.argument("site")
@click.option("--forget", is_flag=True, help="Delete what is stored for SITE instead.")
@lab_option
@sites_option
@json_option
def sign_in(site: str, forget: bool, lab: tuple[str, int] | None, sites: str | None, as_json: bool) -> None:
    """Sign in to SITE (or an engine) now, and show until when the session is valid.

    A run signs in by itself; this command tries it. Name and password come from the environment:
    REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_USER and _PASSWORD for bbs.example.com (a dot is _, a dash __),
    _CLIENT_ID and _CLIENT_SECRET for OAuth 2. REVIEWLOOP_SECRET_KEY encrypts what is stored.

    \b
    Examples:
      reviewloop sites sign-in bbs.example.com
      reviewloop sites sign-in bbs.example.com --forget
    """
    from app.run.wiring import sign_ins as open_sign_ins  # brings requests and cryptography

    settings = settings_of(None, sites, lab=lab)
    catalog = settings.catalog()
    sign_ins = open_sign_ins(settings, catalog)
    if forget:
        forgotten = sign_ins.forget(site)
        said = f"{site}: {'forgotten' if forgotten else 'there was nothing to forget'}"
        answer({"site": site, "forgotten": forgotten}, said, as_json)
        return
    until, file = sign_ins.sign_in(site), settings.sign_in_file
    document = {"site": site, "until": until.isoformat(timespec="seconds"), "kept_in": str(file)}
    answer(document, f"signed in to {site} until {clock(until)}; kept in {file}", as_json)
