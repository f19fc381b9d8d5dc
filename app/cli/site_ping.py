"""`reviewloop sites ping`: how soon sites answer this machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from app.cli.options import db_option, json_option, lab_option, settings_of, sites_option
from app.cli.output import print_json, printed, shown, table_of
from app.wiring import opened_store
from splitter.errors import InputError

if TYPE_CHECKING:
    from app.pinging import Pinged


@click.command("ping")
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
