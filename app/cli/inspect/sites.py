"""`reviewloop sites`: list sites and sign in to them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import click
from rich.text import Text

from app.cli.command import App, command
from app.cli.inspect.site_check import check
from app.cli.inspect.site_try import try_
from app.cli.options import group_option, list_in_groups
from app.cli.render import Done, Part, table, text
from app.files.harmless import shown
from app.views.fields import format_moment
from app.views.sites import SITE_FIELDS, SitesView, get_sites_view
from app.views.words import translate

_LEAST = "outcomes reasons kind per_address_per_s total_per_s group manual tasks title"


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
    """List sites with their group, engine, limits, robots.txt, and counts of stored pages and reviews.

    A site is "not permitted" if the robots.txt of its own host or of its engine refuses; it then gets no
    task. "unknown" means that it was not requested yet (a runner does that when it makes tasks), or that
    it does not answer.

    \b
    Example:
      reviewloop sites list --sites paper-2014 --json
    """
    catalog = app.settings.catalog()
    chosen = list_in_groups(catalog, groups)
    if app.has_store():
        with app.store.read() as tx:
            view = get_sites_view(tx, catalog)
    else:
        view = get_sites_view(None, catalog)
    return replace(
        view, sites=[row for row in view.sites if row.site in chosen or not (row.engine or groups)]
    )


@text.register
def _(view: SitesView) -> Iterator[Part]:
    title = translate("Sites of the catalog {catalog}: {n}", catalog=view.catalog, n=len(view.sites))
    yield table(view.sites, SITE_FIELDS, title=title, least=_LEAST)
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
