"""`reviewloop sites sign-in`: sign in to a site now, or forget it."""

from __future__ import annotations

import click

from app.cli.options import json_option, lab_option, settings_of, sites_option
from app.cli.output import print_json, printed


@click.command("sign-in")
@click.argument("site")
@click.option("--forget", is_flag=True, help="Forget what is kept of SITE instead.")
@lab_option
@sites_option
@json_option
def sign_in(site: str, forget: bool, lab: tuple[str, int] | None, sites: str | None, as_json: bool) -> None:
    """Sign in to SITE (or an engine) now, and tell until when it holds.

    A run signs in by itself; this tries it out. Name and password come from the environment:
    REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_USER and _PASSWORD for bbs.example.com (a dot is _, a dash __), _CLIENT_ID and
    _CLIENT_SECRET for OAuth 2. REVIEWLOOP_SECRET_KEY encrypts what is kept.

    \b
    Examples:
      reviewloop sites sign-in bbs.example.com
      reviewloop sites sign-in bbs.example.com --forget
    """
    from app.wiring import sign_ins as open_sign_ins  # brings requests and cryptography
    from app.wiring import utc_now

    settings = settings_of(None, sites, lab=lab)
    catalog = settings.catalog()
    sign_ins = open_sign_ins(settings, catalog, address=settings.address, clock=utc_now)
    if forget:
        forgotten = sign_ins.forget(site)
        if as_json:
            print_json({"site": site, "forgotten": forgotten})
        else:
            printed().print(f"{site}: {'forgotten' if forgotten else 'there was nothing to forget'}")
        return
    until = sign_ins.sign_in(site)
    if as_json:
        print_json(
            {"site": site, "until": until.isoformat(timespec="seconds"), "kept_in": settings.sign_in_file}
        )
    else:
        printed().print(
            f"signed in to {site} until {until:%Y-%m-%d %H:%M:%S} UTC; kept in {settings.sign_in_file}",
            soft_wrap=True,
        )
