"""`reviewloop sites`: the catalog, what robots.txt says of it, and whether its rules still fit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.text import Text

from app.cli.options import (
    db_option,
    group_option,
    in_groups,
    json_option,
    lab_option,
    settings_of,
    sites_option,
    sqlite_file,
    store_there,
)
from app.cli.output import print_json, printed, seconds, short, shown, table, table_of
from app.cli.signin import sign_in
from app.cli.site_check import check
from app.config import Settings
from app.wiring import opened_store, utc_now
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.crawl.hosts import HostBook
from tasks.crawl.model import Hit, Review
from tasks.crawl.robots import RobotsRules
from tasks.jobs.planning import Permission, addresses, permission
from tasks.store import reports
from tasks.store.database import read_now
from tasks.store.hosts import load_robots
from tasks.store.reports import SiteRow

if TYPE_CHECKING:
    from app.pinging import Pinged

_RECORDS_SHOWN = 3
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


@sites.command("try")
@click.argument("site")
@click.argument("source", metavar="URL|FILE")
@click.option(
    "--product",
    metavar="NAME",
    help="Say of every record whether it would be stored as a review of this product, or why not.",
)
@click.option(
    "--as",
    "read_as",
    type=click.Choice(("page", "result")),
    help="By the site's page rules or its engine's result rules. Default: by the URL, for a file page.",
)
@lab_option
@sites_option
@json_option
def try_(
    site: str,
    source: str,
    product: str | None,
    read_as: str | None,
    lab: tuple[str, int] | None,
    sites: str | None,
    as_json: bool,
) -> None:
    """Show what the rules of SITE take from a page, asked once from its URL or read from a file.

    Tells apart what the crawl tells apart: records, a proven empty answer, a refusal, a page the rules don't fit.
    For every rule it shows how often it matches and its first values; for a site without record rules, which
    strategy found the main text. Where a rule finds nothing, an outline of the page shows what rules could be
    written by. Exit status 1 for a refusal or a page that doesn't fit.

    \b
    Examples:
      reviewloop sites try cca.org.cn http://www.cca.org.cn/tsdh/detail/1.html
      reviewloop sites try 12315.com saved.html
      reviewloop sites try 12315.com results.html --as result
      reviewloop sites try 12315.com saved.html --product 光明高钙牛奶
    """
    from app.trial import is_result_page, try_rules

    settings = settings_of(None, sites, lab=lab)
    catalog = settings.catalog()
    if site not in catalog.sites:
        raise InputError(f"there is no site {site!r} in {catalog.name}: see `reviewloop sites list`")
    body, headers, url, got = _source(settings, catalog, site, source, read_as)
    result = read_as == "result" or (read_as is None and is_result_page(catalog, site, url))
    status = got.get("status", 200)
    trial = try_rules(
        catalog, site, body, headers, url, result=result, now=utc_now(), status=status, product=product
    )
    if as_json:
        shown_of = {
            **asdict(trial),
            "records": [_fields(one) for one in trial.records[:_RECORDS_SHOWN]],
            "count": len(trial.records),
        }
        print_json({"site": site, **got, **shown_of})
    else:
        _print_trial(printed(), site, got, trial)
    if trial.verdict in ("blocked", "broken"):
        sys.exit(1)


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
    """Measure how soon SITEs answer this machine: a handful of requests each, noise removed.

    What counts is the time from a request to the first byte of its answer, over a connection that stands. Keeps to
    robots.txt and to the catalog's limits. Crawling measures the same by itself: see `control pairs`. Exit status 1
    where a site could not be measured.

    \b
    Example:
      reviewloop sites ping 12315.com cca.org.cn
    """
    from app.pinging import ping

    settings = settings_of(db, sites, lab=lab)
    catalog = settings.catalog()
    for name in names:
        if name not in catalog.sites:
            raise InputError(f"there is no site {name!r} in {catalog.name}: see `reviewloop sites list`")
    with opened_store(settings) as store:
        told = ping(settings, catalog, store, list(dict.fromkeys(names)))
    if as_json:
        print_json({"sites": [asdict(one) for one in told]})
    else:
        columns: dict[str, Callable[[Pinged], Any]] = {
            "site": lambda one: one.site,
            "answers in": lambda one: None if one.rtt_ms is None else f"{one.rtt_ms:.1f} ms",
            "measured": lambda one: " ".join(f"{ms:.0f}" for ms in one.measured_ms) or None,
            "why not": lambda one: shown(one.why) or None,
        }
        printed().print(table_of(told, columns))
    if any(one.rtt_ms is None for one in told):
        sys.exit(1)


def _source(
    settings: Settings, catalog: Catalog, site: str, source: str, read_as: str | None
) -> tuple[bytes, dict[str, str], str, dict[str, Any]]:
    """Body, headers, URL, and what to tell of where they come from."""
    from app.asking import ask
    from app.trial import is_result_page

    if "://" in source:
        headers = catalog.engine_of(site).headers if is_result_page(catalog, site, source) else None
        answer = ask(source, settings.crawl(), headers=headers, trusts=HostBook(catalog).may_be_private)
        got = {
            "url": answer.url,
            "status": answer.status,
            "bytes": len(answer.body),
            "seconds": answer.elapsed_s,
        }
        return answer.body, dict(answer.headers), answer.url, got
    try:
        body = Path(source).read_bytes()
    except OSError as error:
        raise InputError(
            f"{source}: {error.strerror}; give a URL that begins with http://, or a file"
        ) from error
    url = catalog.engine_of(site).url if read_as == "result" else f"http://{site}/"
    return body, {}, url, {"file": source, "bytes": len(body)}


def _print_trial(out: Console, site: str, got: dict[str, Any], trial: Any) -> None:
    source = got.get("url") or got.get("file")
    came = f"status {got['status']}, {seconds(got['seconds'])}, " if "status" in got else ""
    out.print(Text(f"{shown(str(source))}", style="bold"), soft_wrap=True)
    encoding = f"{trial.encoding} ({trial.encoding_why})" if trial.encoding else "no text"
    out.print(
        shown(f"{came}{got['bytes']:,} bytes, {encoding}, read as a {trial.read_as} of {site}"),
        soft_wrap=True,
    )
    style = {"records": "bold green", "empty": "yellow"}.get(trial.verdict, "bold red")
    told = f"{len(trial.records)} records" if trial.records else f"{trial.verdict}: {trial.why}"
    out.print(shown(told), style=style, soft_wrap=True)
    if trial.read_as == "result" and trial.records:
        found = "not said" if trial.found is None else f"{trial.found:,}"
        out.print(f"found: {found}; next page: {'yes' if trial.more else 'no'}")
    if trial.title:
        out.print(f"page title: {shown(trial.title)}", soft_wrap=True)
    if trial.rules:
        rules = ((r.name, r.rule, r.matches, short(" | ".join(r.values), 90)) for r in trial.rules)
        out.print(table(("field", "rule", "matches", "first values>"), rules))
    if trial.candidates:
        asked = ((one.strategy, len(one.text), short(one.text, 60)) for one in trial.candidates)
        out.print(
            f"main text by {trial.strategy or 'no strategy'}: {shown(trial.strategy_why)}", soft_wrap=True
        )
        out.print(table(("strategy", "characters", "begins with>"), asked))
    if (told_of := trial.judgement) is not None:
        lacks = f"; the page lacks {', '.join(told_of.missing)}" if told_of.missing else ""
        refused = ", ".join(f"{n} {reason}" for reason, n in told_of.refused.items()) or "nothing"
        out.print(
            f"of {shown(told_of.product)} ({' & '.join(told_of.keywords)}) it is: {told_of.verdict}{lacks}; "
            f"refused: {refused}",
            soft_wrap=True,
        )
    for number, record in enumerate(trial.records[:_RECORDS_SHOWN], 1):
        out.print(f"record {number}", style="bold")
        for name, value in _fields(record).items():
            if value not in (None, ""):
                out.print(f"  {name}: {shown(short(str(value), 120))}", soft_wrap=True)
    if trial.outline:
        out.print("What the page looks like", style="bold")
        for line in trial.outline:
            out.print(f"  {shown(line)}", soft_wrap=True)


def _fields(record: Hit | Review) -> dict[str, Any]:
    return record._asdict() if isinstance(record, Review) else asdict(record)
