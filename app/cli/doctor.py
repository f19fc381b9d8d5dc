"""`reviewloop doctor`: what is missing on this machine, and what mends it."""

from __future__ import annotations

import sys

import click

from app.cli.options import db_option, json_option, lab_option, settings_of, sites_option
from app.cli.output import labelled, print_json, printed, say
from app.files.harmless import shown
from app.run.doctor import CheckState, examine
from app.run.wiring import utc_now

_STYLES = {CheckState.OK: "green", CheckState.WARNING: "yellow", CheckState.FAILED: "red"}
_STATE = 8
"""Columns of a state, with the blank behind it."""


@click.command()
@lab_option
@sites_option
@db_option
@json_option
def doctor(lab: tuple[str, int] | None, sites: str | None, db: str | None, as_json: bool) -> None:
    """Check network, SearXNG, sites, database, Redis, clock, disk and settings.

    Names what mends each. It asks name servers, the SearXNG, the database and Redis, and no site. Exit status 1
    where something has to be mended before a crawl.

    \b
    Example:
      reviewloop doctor
    """
    say("Looking (at most 15 s).", "dim")
    checks = []
    out = printed()
    for check in examine(settings_of(db, sites, lab=lab), utc_now):
        checks.append(check)
        if not as_json:
            said = shown(f"{check.what}: {check.said}")
            labelled(out, check.state, said, style=_STYLES[check.state], width=_STATE)
            if check.mend:
                labelled(
                    out, f"{'':{_STATE}}->", shown(check.mend), style="dim", rest="dim", width=_STATE + 3
                )
    if as_json:
        print_json({"checks": checks})
    if any(check.state is CheckState.FAILED for check in checks):
        sys.exit(1)
