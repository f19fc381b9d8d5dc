"""The command `reviewloop sites check`: check the catalog, which sites answer, and whether the rules still fit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text

from app.cli.command import App, command
from app.cli.options import warn_without_contact
from app.cli.render import Part, table, text
from app.files.harmless import shown
from app.sites.site_questions import Question, questions
from app.views.fields import format_counts
from app.views.words import name_text, plural, translate
from splitter.catalog.model import Catalog
from splitter.errors import Message
from tasks.fetching.robots import ROBOTS_TOKEN

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from app.sites.site_check import SiteAnswer

_REQUEST_S = 10.0
_WITHIN_S = 120.0
"""Seconds after which no request begins."""
_QUERY = "牛奶"
"""Keyword of the search at each engine."""
_ENGINE_FIELDS = "name http robots rules verdict why>"
_SITE_FIELDS = "name http robots verdict why>"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckView:
    """The results of checking a catalog with its engines and sites.

    Attributes:
        rules: number of page rules.
        no_browser: the reason why pages made by scripts can't be read; empty if they can, or if the catalog has none.
        reached: True if at least one server responded.
    """

    catalog: str
    sites: int
    by_kind: Mapping[str, int]
    by_group: Mapping[str, int]
    engines: int
    rules: int
    questions: Sequence[Question]
    no_browser: str
    reached: bool
    seen: Sequence[SiteAnswer]


@command(None, "check", db=False, sites=True, lab=True)
def check(app: App) -> CheckView:
    """Check a catalog: whether it is correct, who answers today, and whether its rules still fit.

    First the file itself is checked: every problem is shown with file, line and key, and the exit status is
    2; for settings that may lose pages, questions are shown. Then each engine's search and each site's front page
    are requested once, robots.txt first. Exit status 1 if rules find nothing in a page that has something,
    or if nothing could be reached.

    \b
    Examples:
      reviewloop sites check
      reviewloop sites check --sites my-sites.yaml --lab 127.0.0.1:8400
    """
    catalog = app.settings.catalog()
    no_browser = _describe_lack(app.settings, catalog)
    warn_without_contact(app.settings)
    seen, reached = _ask_all(app.settings, catalog, no_browser)
    if not reached or any(one.verdict == "rules find nothing" for one in seen):
        app.exit_status = 1
    return CheckView(
        catalog=catalog.name,
        sites=len(catalog.sites),
        by_kind=Counter(str(catalog.kind_of(site)) for site in catalog.sites),
        by_group=Counter(str(site.group) for site in catalog.sites.values() if site.group),
        engines=len(catalog.engines),
        rules=len(catalog.rules),
        questions=questions(catalog),
        no_browser=no_browser,
        reached=reached,
        seen=seen,
    )


def _describe_lack(settings: Settings, catalog: Catalog) -> str:
    """Return why this machine can't read pages made by scripts.

    It is empty if the machine can read them, or if no site of the catalog has such pages.
    """
    from app.run.preflight import browser_missing

    sites = sum(map(catalog.renders, catalog.sites))
    lacks = browser_missing(settings) if sites else None
    if lacks is None:
        return ""
    return plural(
        "{why} ({n} site; {mend})", "{why} ({n} sites; {mend})", sites, why=lacks.why, mend=lacks.mend
    )


def _ask_all(settings: Settings, catalog: Catalog, no_browser: str) -> tuple[list[SiteAnswer], bool]:
    """Request every engine and site once. Return the results, and True if at least one server responded."""
    from app.sites.http_session import ask
    from app.sites.site_check import SiteCheck, offline
    from splitter.keywords import product_query
    from tasks.fetching.hosts import HostCatalog

    crawl = settings.crawl()
    crawl = replace(crawl, request_timeout_s=min(crawl.request_timeout_s, _REQUEST_S))
    end_s = time.monotonic() + _WITHIN_S
    site_check = SiteCheck(
        catalog,
        partial(ask, settings=crawl, trusts=HostCatalog(catalog).is_private),
        product_query(_QUERY).keywords,
        agent=ROBOTS_TOKEN,
        left_s=lambda: end_s - time.monotonic(),
        pause=time.sleep,
        no_browser=no_browser,
    )
    seen = site_check.run()
    return seen, not offline(seen)


@text.register
def _(view: CheckView) -> Iterator[Part]:
    yield translate(
        "{catalog} is right: {sites} sites ({counts}), {engines} engines, {rules} sets of page rules",
        catalog=view.catalog,
        sites=view.sites,
        counts=format_counts(dict(sorted((view.by_group or view.by_kind).items()))),
        engines=view.engines,
        rules=view.rules,
    )
    for one in view.questions:
        yield Text(shown(name_text(one.key, one.text)), style="yellow")
    if view.no_browser:
        yield Text(shown(view.no_browser), style="yellow")
    if not view.reached:
        failure = translate(
            "Nobody could be reached: none of {n} addresses, {http} at the first. The cause is this machine's way to "
            "the internet, not the sites.",
            n=len(view.seen),
            http=translate(view.seen[0].http),
        )
        yield Text(failure, style="bold red")
        return
    engines = [one for one in view.seen if one.kind == "engine"]
    sites = [one for one in view.seen if one.kind == "site"]
    yield table(engines, _ENGINE_FIELDS, title=translate("Engines: {n}", n=len(engines)), least="rules")
    yield table(sites, _SITE_FIELDS, title=translate("Sites: {n}", n=len(sites)))
    verdicts = Counter("moved" if isinstance(one.verdict, Message) else one.verdict for one in view.seen)
    yield format_counts(dict(verdicts.most_common()))
