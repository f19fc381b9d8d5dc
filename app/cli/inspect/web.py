"""`reviewloop web`: the dashboard, its API and its metrics, on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from app.cli.options import ReadBy, db_option, json_option, settings_of, sites_option, store_there
from app.cli.output import answer, print_json, say
from app.run.setting_values import read_root_path

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from tasks.store.sql.database import Store


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8787, show_default=True, help="0: any free one."
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to serve; any other than 127.0.0.1 needs tokens.",
)
@click.option(
    "--make-token",
    type=click.Choice(["viewer", "operator"]),
    help="Make a token, say what to store of it, and end.",
)
@click.option(
    "--root-path",
    type=ReadBy("path", read_root_path),
    metavar="PATH",
    help="Path below which a proxy shows the dashboard, as /reviews. Default: REVIEWLOOP_WEB_ROOT_PATH.",
)
@db_option
@sites_option
@json_option
def web(
    port: int,
    host: str,
    make_token: str | None,
    root_path: str | None,
    db: str | None,
    sites: str | None,
    as_json: bool,
) -> None:
    """Serve the dashboard: queues, nodes, failed tasks, reviews, with an API and metrics.

    On 127.0.0.1, everyone on this machine may look and act. Any other address asks for the token of a viewer
    or an operator; if none are set, both are made at the first start. /api offers the same to programs,
    /metrics is for Prometheus. Ctrl-C ends it. See docs/dashboard.md; behind a proxy: docs/proxy.md.

    \b
    Examples:
      reviewloop web
      reviewloop web --port 9000 --db sqlite:///reviews.db
      reviewloop web --root-path /reviews
      reviewloop web --make-token operator
    """
    if make_token is not None:
        _make_token(make_token, as_json)
        return
    settings = settings_of(db, sites)
    if root_path is not None:
        settings = settings.with_(web_root_path=root_path)
    from app.web.address import address_of, listening
    from app.web.server import find_root_path, make_server, with_tokens

    settings, token = with_tokens(settings, host)
    with store_there(settings) as store, listening(host, port) as sock:
        store.patient = False
        server = make_server(settings, store, sock, ahead=True)
        address = f"{address_of(sock).rstrip('/')}{find_root_path(settings)}/"
        if as_json:
            print_json({"address": address})
        else:
            say_dashboard(address, token)
        try:
            server.run(sockets=[sock])
        except KeyboardInterrupt:
            say("The dashboard has ended.")


def say_dashboard(address: str, token: str) -> None:
    """Say where the dashboard is, and the token to sign in with if it was made by this machine."""
    say(f"Dashboard: {address}  (Ctrl-C ends it)")
    if token:
        say(f"Sign in with this token: {token}")


@contextmanager
def running_dashboard(settings: Settings, store: Store, host: str) -> Iterator[str]:
    """Serve the dashboard in a thread and yield its address; on loopback at any port if the usual one is taken."""
    from app.web.address import DEFAULT_PORT, is_loopback, listening, listening_near
    from app.web.server import serving, with_tokens

    settings, token = with_tokens(settings, host)
    bound = listening_near(DEFAULT_PORT) if is_loopback(host) else listening(host, DEFAULT_PORT)
    with bound as sock, serving(settings, store, sock) as address:
        say_dashboard(address, token)
        yield address


def _make_token(role: str, as_json: bool) -> None:
    from app.web.base.access import new_token, token_hash

    token = new_token()
    variable, kept = f"REVIEWLOOP_WEB_{role.upper()}", token_hash(token)
    said = (
        f"Token of {role}s, shown only now:\n  {token}\n"
        f"Keep only its hash, in the environment or in .env:\n  {variable}={kept}"
    )
    answer({"role": role, "token": token, "variable": variable, "value": kept}, said, as_json)
