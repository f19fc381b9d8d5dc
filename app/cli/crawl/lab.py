"""``reviewloop lab``: serve the local web."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import click

from app.cli.command import App, command
from app.cli.options import FILE
from app.cli.render import AsideView, Part, text
from app.views.words import translate


@dataclass(frozen=True, slots=True)
class LabView(AsideView):
    """The address of a running lab, with the number of its sites."""

    host: str
    port: int
    profile: str
    seed: int
    sites: int


@command(None, "lab", db=False, sites=True)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="0: any free one."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="An address in 127.0.0.0/8.")
@click.option(
    "--profile",
    default="calm",
    show_default=True,
    metavar="NAME|FILE",
    help="How badly it behaves: calm, day, default, demo, harsh, login, or a profile file.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of its pages and faults.")
@click.option("--log", "log_path", type=FILE, help="Write one JSON line for every request to this file.")
def lab(app: App, port: int, host: str, profile: str, seed: int, log_path: Path | None) -> Iterator[LabView]:
    """Serve a local web of simulated sites until Ctrl-C.

    It has every site and engine of the catalog and distinguishes them by the Host header; it treats each
    source address as another client. Example; the later commands go into another terminal:

    \b
        reviewloop lab --port 8400 --profile default
        reviewloop run --until-done --lab 127.0.0.1:8400 特仑苏
        curl -H 'Host: www.baidu.com' -G http://127.0.0.1:8400/s --data-urlencode 'wd=光明 牛奶 site:12315.com'
        curl http://127.0.0.1:8400/__log
    """
    # Slow to import (aiohttp), and only needed by this command.
    from app.lab.running import running_lab

    catalog = app.settings.catalog()
    with running_lab(catalog, profile, seed=seed, log_path=log_path, host=host, port=port) as running:
        stop = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        yield LabView(host, running.port, running.profile.name, seed, len(catalog.sites))
        stop.wait()


@text.register
def _(view: LabView) -> Iterator[Part]:
    address = f"{view.host}:{view.port}"
    yield translate(
        "The lab (profile {profile}, seed {seed}) serves {sites} sites at http://{address}/",
        profile=view.profile,
        seed=view.seed,
        sites=view.sites,
        address=address,
    )
    yield translate("Use it with: {command}", command=f"reviewloop run --lab {address}")
    yield translate("Ctrl-C ends it.")
