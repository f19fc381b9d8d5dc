"""``reviewloop lab``: serve the local web."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.options import sites_option
from app.config import from_environment

if TYPE_CHECKING:
    from app.lab.server import Lab


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8400, show_default=True, help="0: any that is free."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="An address in 127.0.0.0/8.")
@click.option(
    "--profile",
    default="calm",
    show_default=True,
    metavar="NAME|FILE",
    help="How badly it behaves: calm, day, default, demo, harsh, login, or a profile file.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of its pages and faults.")
@click.option(
    "--log",
    "log_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write one JSON line for every request to this file.",
)
@sites_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document when it is ready.")
def lab(
    port: int, host: str, profile: str, seed: int, log_path: Path | None, sites: str | None, as_json: bool
) -> None:
    """Serve a local web of simulated sites until Ctrl-C.

    Every site and engine of the catalog is there, distinguished by the Host header; each source address is
    treated as another client. Example, with the commands of another terminal:

    \b
        reviewloop lab --port 8400 --profile default
        reviewloop run --until-done --lab 127.0.0.1:8400 特仑苏
        curl -H 'Host: www.baidu.com' -G http://127.0.0.1:8400/s --data-urlencode 'wd=光明 牛奶 site:12315.com'
        curl http://127.0.0.1:8400/__log
    """
    # Slow to import (aiohttp), and of no use to any other command.
    from app.lab.running import serve

    catalog = from_environment(sites=sites).catalog()

    def ready(running: Lab) -> None:
        if as_json:
            document = {
                "host": running.host,
                "port": running.port,
                "profile": running.profile.name,
                "seed": running.seed,
            }
            # click.echo flushes: whoever started the lab waits for this line.
            click.echo(json.dumps(document, ensure_ascii=False))
            return
        address = f"{running.host}:{running.port}"
        click.echo(
            f"The lab (profile {running.profile.name}, seed {running.seed}) serves {len(catalog.sites)} "
            f"sites at http://{address}/\nUse it with:  reviewloop run --lab {address}\nCtrl-C ends it.",
            err=True,
        )

    serve(catalog, profile, host, port, log_path, seed, ready)
