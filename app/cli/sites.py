"""`reviewloop sites`: the catalog, what robots.txt says of it, and what its sites have brought."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import click
from rich.text import Text

from app.cli.options import (
    db_option,
    group_option,
    in_groups,
    json_option,
    settings_of,
    sites_option,
    sqlite_file,
    store_there,
)
from app.cli.output import print_json, printed, shown, table_of
from app.cli.signin import sign_in
from app.cli.site_check import check
from app.cli.site_ping import ping_
from app.cli.site_try import try_
from app.config import Settings
from splitter.catalog.model import Catalog
from tasks.fetching.hosts import HostBook
from tasks.fetching.robots import RobotsRules
from tasks.jobs.planning import Permission, addresses, permission
from tasks.store import reports
from tasks.store.database import read_now
from tasks.store.hosts import load_robots
from tasks.store.reports import SiteRow

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
sites.add_command(sign_in)
sites.add_command(try_)
sites.add_command(ping_)


@sites.command("list")
@group_option
@db_option
@sites_option
@json_option
def list_(group: tuple[str, ...], db: str | None, sites: str | None, as_json: bool) -> None:
    """List sites with their group, engine, limits, what robots.txt says, and what they have brought.

    A site is "not permitted" where robots.txt of its own host or of its engine's refuses; it then gets no task.
    "unknown": not asked yet (a runner asks when it makes tasks), or nobody answers.

    \b
    Example:
      reviewloop sites list --sites paper-2014 --json
    """
    settings = settings_of(db, sites)
    catalog = settings.catalog()
    permissions, had = _stored(settings, catalog)
    names = in_groups(catalog, group)
    rows = [_site(catalog, name, permissions[name], had.get(name, SiteRow())) for name in names]
    if as_json:
        print_json({"catalog": catalog.name, "sites": rows})
        return
    styles = {"permitted": "green", "not permitted": "red", "unknown": "dim"}
    out = printed()
    out.print(
        table_of(
            rows,
            {
                "site": lambda row: row["site"],
                "title": lambda row: row["title"] or None,
                "group": lambda row: row["group"],
                "kind": lambda row: row["kind"],
                "engine": lambda row: row["engine"],
                "per address": lambda row: f"{row['per_address_per_s']:g}/s",
                "in all": lambda row: f"{row['total_per_s']:g}/s",
                "robots": lambda row: Text(row["robots"], style=styles[row["robots"]]),
                "tasks": lambda row: row["tasks"],
                "pages": lambda row: row["pages"],
                "reviews": lambda row: row["reviews"],
                "manual": lambda row: row["manual"],
            },
            f"{len(rows)} sites of the catalog {catalog.name}",
        )
    )
    for row in rows:
        if row["robots"] == "not permitted":
            out.print(f"{row['site']}: not permitted: {row['robots_why']}", style="red", soft_wrap=True)
        if not row["robots_obeyed"]:
            told = f"{row['site']}: robots.txt is not obeyed: {row['robots_decision']}"
            out.print(shown(told), style="yellow", soft_wrap=True)


def _stored(settings: Settings, catalog: Catalog) -> tuple[dict[str, Permission], dict[str, SiteRow]]:
    """Permissions by what robots.txt said when it was asked last, and what each site has had."""
    rules: dict[str, RobotsRules] = {}
    had: dict[str, SiteRow] = {}
    urls = {url for site in catalog.sites for url in addresses(catalog, site)}
    path = sqlite_file(settings.database_url)
    if path is None or path.is_file():
        with store_there(settings) as store, store.read() as conn:
            hosts = {urlsplit(url).netloc.lower() for url in urls}
            kept = load_robots(conn, hosts, read_now(conn) - _ROBOTS_OF_ANY_AGE)
            had = reports.by_site(conn)
        for url in urls:
            robots = kept.get(urlsplit(url).netloc.lower())
            if robots is not None:
                rules[url] = RobotsRules.parse(robots.text, robots.status)
    agent = settings.crawl().robots_token
    return {site: permission(catalog, site, rules, agent) for site in catalog.sites}, had


def _site(catalog: Catalog, name: str, allowed: Permission, had: SiteRow) -> dict[str, Any]:
    site, limits = catalog.sites[name], HostBook(catalog).limits(name)
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
        "robots_why": allowed.why,
        "robots_obeyed": site.robots is None or site.robots.obey,
        "robots_decision": site.robots.reason if site.robots else "",
        **asdict(had),
    }
