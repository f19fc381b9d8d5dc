"""``reviewloop lab``: serve the local web."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from threading import Event

import click

from app.cli.options import FILE, sites_option
from app.cli.program import as_called
from app.run.settings import load_settings


@click.command()
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
@sites_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document when it is ready.")
def lab(
    port: int, host: str, profile: str, seed: int, log_path: Path | None, sites: str | None, as_json: bool
) -> None:
    """Serve a local web of simulated sites until Ctrl-C.

    It has every site and engine of the catalog and distinguishes them by the Host header; it treats each
    source address as another client. Example; the later commands go into another terminal:

    \b
        reviewloop lab --port 8400 --profile default
        reviewloop run --until-done --lab 127.0.0.1:8400 特仑苏
        curl -H 'Host: www.baidu.com' -G http://127.0.0.1:8400/s --data-urlencode 'wd=光明 牛奶 site:12315.com'
        curl http://127.0.0.1:8400/__log
    """
    # Slow to import (aiohttp), and of no use to any other command.
    from app.lab.running import running_lab

    catalog = load_settings(sites=sites).catalog()
    with running_lab(catalog, profile, seed=seed, log_path=log_path, host=host, port=port) as running:
        stop = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        name, address = running.profile.name, f"{host}:{running.port}"
        if as_json:
            # click.echo flushes: whoever started the lab waits for this line.
            document = {"host": host, "port": running.port, "profile": name, "seed": seed}
            click.echo(json.dumps(document, ensure_ascii=False))
        else:
            use = as_called(f"reviewloop run --lab {address}")
            click.echo(
                f"The lab (profile {name}, seed {seed}) serves {len(catalog.sites)} sites at http://{address}/\n"
                f"Use it with:  {use}\nCtrl-C ends it.",
                err=True,
            )
        stop.wait()
