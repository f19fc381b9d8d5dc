"""`reviewloop sites check`: is the catalog right, who answers, do the rules still fit."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from app.cli.options import json_option, lab_option, settings_of, sites_option, warn_without_contact
from app.cli.output import print_json, printed, short, table_of
from app.files.harmless import shown
from app.run.version import ROOT
from app.run.wiring import utc_now
from app.sites.site_questions import questions
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.fetching.robots import ROBOTS_TOKEN

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from app.sites.saved_pages import PageCheck
    from app.sites.site_check import SiteAnswer

PAGES = ROOT.parent / "shared" / "data" / "pages"
"""The default folder of saved pages: beside the project."""

_REQUEST_S = 10.0
_STYLES = {"fits": "green", "answers": "green", "does not fit": "bold red", "rules find nothing": "bold red"}


@click.command()
@click.option("--offline", is_flag=True, help="Send no request; run the rules on saved pages.")
@click.option(
    "--pages",
    "folder",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Saved pages for --offline. Default: ../shared/data/pages beside the project, if it is there.",
)
@click.option(
    "--page",
    "yours",
    multiple=True,
    metavar="NAME=FILE",
    help="A page that you saved, read by the rules of that engine or site (with --offline). Repeatable.",
)
@click.option("--query", default="牛奶", show_default=True, help="Words to search each engine for.")
@click.option(
    "--within",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop sending requests after this time.",
)
@lab_option
@sites_option
@json_option
def check(
    offline: bool,
    folder: Path | None,
    yours: tuple[str, ...],
    query: str,
    within: float,
    lab: tuple[str, int] | None,
    sites: str | None,
    as_json: bool,
) -> None:
    """Check a catalog: whether it is correct, who answers today, and whether its rules still fit.

    First the file itself is checked: every problem is shown with file, line and key, and the exit status is
    2; settings that may lose pages are questioned. Then each engine's search and each site's front page
    are requested once, robots.txt first. --offline sends no request and runs the rules on saved pages
    instead. Exit status 1 if rules find nothing in a page that has something, or if nothing could be
    reached.

    \b
    Examples:
      reviewloop sites check
      reviewloop sites check --offline
      reviewloop sites check --offline --page tieba.baidu.com=thread.html
      reviewloop sites check --sites my-sites.yaml --lab 127.0.0.1:8400
    """
    settings = settings_of(None, sites, lab=lab)
    catalog = settings.catalog()
    if (folder is not None or yours) and not offline:
        raise InputError("--pages and --page need --offline; add it")
    no_browser = _browser_lacks(settings, catalog)
    if offline:
        ended_well = _offline(catalog, folder, yours, as_json, no_browser)
    else:
        ended_well = _online(settings, catalog, query, within, as_json, no_browser)
    if not ended_well:
        sys.exit(1)


def _browser_lacks(settings: Settings, catalog: Catalog) -> str:
    """Obstacle to reading pages made by script, where the catalog has such pages; empty where nothing is missing."""
    from app.run.preflight import browser_missing

    sites = sum(map(catalog.renders, catalog.sites))
    lacks = browser_missing(settings) if sites else None
    return "" if lacks is None else f"{lacks.why} ({sites} sites; {lacks.mend})"


def _counts(catalog: Catalog) -> dict[str, Any]:
    return {
        "catalog": catalog.name,
        "sites": len(catalog.sites),
        "by_kind": dict(Counter(str(catalog.kind_of(site)) for site in catalog.sites)),
        "by_group": dict(Counter(str(site.group) for site in catalog.sites.values() if site.group)),
        "engines": len(catalog.engines),
        "rules": len(catalog.rules),
        "questions": [asdict(one) for one in questions(catalog)],
    }


def _print_counts(out: Console, catalog: Catalog, no_browser: str) -> None:
    counts = _counts(catalog)
    by_group = ", ".join(
        f"{n} {name}" for name, n in sorted((counts["by_group"] or counts["by_kind"]).items())
    )
    out.print(
        f"{catalog.name} is right: {counts['sites']} sites ({by_group}), {counts['engines']} engines, "
        f"{counts['rules']} sets of page rules"
    )
    for one in counts["questions"]:
        out.print(shown(f"{one['key']}: {one['text']}"), style="yellow")
    if no_browser:
        out.print(shown(no_browser), style="yellow")


# --- saved pages ---------------------------------------------------------------------------------------------------


def _offline(
    catalog: Catalog, folder: Path | None, yours: Sequence[str], as_json: bool, no_browser: str
) -> bool:
    from app.sites.saved_pages import check_saved, saved_pages, your_page

    if folder is not None and not folder.is_dir():
        raise InputError(f"--pages {folder}: no such folder")
    if folder is None and PAGES.is_dir():
        folder = PAGES
    pages = [*saved_pages(folder), *(your_page(catalog, text) for text in yours)]
    checked = check_saved(catalog, pages, utc_now())
    if as_json:
        print_json(
            {
                **_counts(catalog),
                "no_browser": no_browser,
                "folder": folder,
                "pages": [asdict(one) for one in checked],
            }
        )
    else:
        _print_saved(printed(), catalog, folder, checked, no_browser)
    return all(one.verdict != "does not fit" for one in checked)


def _print_saved(
    out: Console, catalog: Catalog, folder: Path | None, checked: Sequence[PageCheck], no_browser: str
) -> None:
    _print_counts(out, catalog, no_browser)
    read = [one for one in checked if one.file]
    out.print(
        table_of(
            read,
            {
                "read by": lambda one: ", ".join(filter(None, (one.name, one.site))),
                "page": lambda one: short(one.file, 48),
                "from": lambda one: one.source,
                "is": lambda one: one.should,
                "expected": lambda one: one.expected,
                "taken": lambda one: one.took,
                "right": lambda one: one.right,
                "count": lambda one: one.found,
                "verdict": lambda one: Text(one.verdict, style=_STYLES.get(one.verdict, "")),
            },
            f"Rules against {len(read)} saved pages",
            least=("count", "right", "from", "expected", "taken"),
        )
    )
    for one in read:
        if one.verdict == "does not fit":
            out.print(shown(f"{one.file}: {one.why[:300]}"), style="red")
    for kind in ("engine", "rules"):
        if names := [one.name for one in checked if not one.file and one.kind == kind]:
            out.print(f"no saved page: {kind} {', '.join(names)}")
    real = f"real pages from {folder}" if folder else "no folder of real pages (name one with --pages)"
    fits = sum(one.verdict == "fits" for one in read)
    out.print(f"{fits} of {len(read)} fit; {real}")


# --- who answers ---------------------------------------------------------------------------------------------------


def _online(
    settings: Settings, catalog: Catalog, query: str, within_s: float, as_json: bool, no_browser: str
) -> bool:
    from app.sites.http_session import ask
    from app.sites.site_check import SiteCheck, offline
    from splitter.keywords import product_query
    from tasks.fetching.hosts import HostCatalog

    warn_without_contact(settings)
    crawl = settings.crawl()
    crawl = replace(crawl, request_timeout_s=min(crawl.request_timeout_s, _REQUEST_S))
    end_s = time.monotonic() + within_s
    check = SiteCheck(
        catalog,
        partial(ask, settings=crawl, trusts=HostCatalog(catalog).is_private),
        product_query(query).keywords,
        agent=ROBOTS_TOKEN,
        left_s=lambda: end_s - time.monotonic(),
        pause=time.sleep,
        no_browser=no_browser,
    )
    seen = check.run()
    alone = offline(seen)
    if as_json:
        told = {"no_browser": no_browser, "reached": not alone, "seen": [asdict(one) for one in seen]}
        print_json({**_counts(catalog), **told})
    else:
        _print_seen(printed(), catalog, seen, alone, no_browser)
    return not alone and not any(one.verdict == "rules find nothing" for one in seen)


def _print_seen(
    out: Console, catalog: Catalog, seen: Sequence[SiteAnswer], alone: bool, no_browser: str
) -> None:
    _print_counts(out, catalog, no_browser)
    if alone:
        out.print(
            f"Nobody could be reached: not one of {len(seen)} addresses, {seen[0].http} at the first. That is about "
            "this machine's way to the internet, not about the sites; --offline checks the rules without it.",
            style="bold red",
        )
        return
    engines = [one for one in seen if one.kind == "engine"]
    out.print(
        table_of(
            engines,
            {
                "engine": lambda one: one.name,
                "HTTP": lambda one: one.http,
                "robots": lambda one: one.robots,
                "rules": lambda one: one.rules,
                "verdict": _verdict,
                "why>": lambda one: one.why[:160] or None,
            },
            f"{len(engines)} engines",
        )
    )
    of_engine = {one.name: one for one in engines}
    out.print(
        table_of(
            [one for one in seen if one.kind == "site"],
            {
                "site": lambda one: one.name,
                "group": lambda one: catalog.sites[one.name].group,
                "engine": lambda one: catalog.sites[one.name].engine,
                "engine's verdict": lambda one: _verdict(of_engine[catalog.sites[one.name].engine]),
                "HTTP": lambda one: one.http,
                "robots": lambda one: one.robots,
                "verdict": _verdict,
                "why>": lambda one: one.why[:120] or None,
            },
            f"{len(catalog.sites)} sites",
        )
    )
    counted = Counter("moved" if one.verdict.startswith("moved") else one.verdict for one in seen)
    out.print(", ".join(f"{n} {verdict}" for verdict, n in counted.most_common()))


def _verdict(one: SiteAnswer) -> Text:
    return Text(one.verdict, style=_STYLES.get(one.verdict, "yellow"))
