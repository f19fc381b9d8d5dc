"""`reviewloop web`: serve the dashboard, its API and its metrics on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from app.cli.command import App, command
from app.cli.options import ReadBy
from app.cli.output import messages, say
from app.cli.render import AsideView, Part, print_parts, text
from app.run.setting_values import read_root_path
from app.views.words import translate

if TYPE_CHECKING:
    from app.run.setting_fields import Settings
    from tasks.store.sql.database import Store


@dataclass(frozen=True, slots=True)
class DashboardView(AsideView):
    """The address of a running dashboard."""

    address: str


@dataclass(frozen=True, slots=True)
class TokenView:
    """A new token, its hash, and the variable that must be set to the hash."""

    role: str
    token: str
    variable: str
    value: str


@command(None, "web", sites=True)
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
def web(
    app: App, port: int, host: str, make_token: str | None, root_path: str | None
) -> Iterator[DashboardView | TokenView]:
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
        yield _make_token(make_token)
        return
    settings = app.settings
    if root_path is not None:
        settings = settings.replace(web_root_path=root_path)
    from app.web.address import address_of, listening
    from app.web.server import add_tokens, find_root_path, make_server

    settings, token = add_tokens(settings, host)
    app.store.patient = False
    with listening(host, port) as sock:
        server = make_server(settings, app.store, sock, ahead=True)
        yield DashboardView(f"{address_of(sock).rstrip('/')}{find_root_path(settings)}/")
        _say_token(token)
        try:
            server.run(sockets=[sock])
        except KeyboardInterrupt:
            say(translate("The dashboard has ended."))


@text.register
def _(view: DashboardView) -> Iterator[Part]:
    yield translate("Dashboard: {address} (Ctrl-C ends it)", address=view.address)


@text.register
def _(view: TokenView) -> Iterator[Part]:
    yield translate("A token with the role {role}, shown only now:", role=view.role)
    yield f"  {view.token}"
    yield translate("Store only its hash, in the environment or in .env:")
    yield f"  {view.variable}={view.value}"


def say_dashboard(address: str) -> None:
    """Print the address of the dashboard that a run serves."""
    print_parts(messages, text(DashboardView(address)))


def _say_token(token: str) -> None:
    if token:
        say(translate("Sign in with this token: {token}", token=token))


@contextmanager
def running_dashboard(settings: Settings, store: Store, host: str) -> Iterator[str]:
    """Serve the dashboard in a thread during the block, and yield its address.

    On a loopback address, another port is used if the default one is taken.
    """
    from app.web.address import DEFAULT_PORT, is_loopback, listening, listening_near
    from app.web.server import add_tokens, serving

    settings, token = add_tokens(settings, host)
    bound = listening_near(DEFAULT_PORT) if is_loopback(host) else listening(host, DEFAULT_PORT)
    with bound as sock, serving(settings, store, sock) as address:
        say_dashboard(address)
        _say_token(token)
        yield address


def _make_token(role: str) -> TokenView:
    from app.web.base.access import new_token, token_hash

    token = new_token()
    return TokenView(role, token, f"REVIEWLOOP_WEB_{role.upper()}", token_hash(token))
