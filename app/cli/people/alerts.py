"""`reviewloop alerts`: what is watched, what is on now, and whether its receivers take a message."""

from __future__ import annotations

import sys

import click

from app.cli.options import db_option, json_option, left_by_up, settings_of, store_there
from app.cli.output import ago, clock, print_json, printed, table
from app.run.setting_values import sqlite_file

_WATCHED = {
    "completion": ("%", "completion rate of a site in the last hour, of what it was before"),
    "silent": (" min", "no sign of life of a node"),
    "manual": ("", "subtasks wait for a person"),
    "idle": (" min", "no page stored, though work waits"),
    "refusing": (" times", "an engine refuses a node, or does not answer it"),
}


@click.group(invoke_without_command=True)
@click.pass_context
def alerts(ctx: click.Context) -> None:
    """Show what is watched and the present alerts; send a test message.

    Rules and receivers are settings: REVIEWLOOP_ALERTS, REVIEWLOOP_ALERT_TO (docs/alerts.md).

    \b
    Examples:
      reviewloop alerts
      REVIEWLOOP_ALERT_TO='json://127.0.0.1:9000/hook log' reviewloop alerts test
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_)


@alerts.command("list")
@db_option
@json_option
def list_(db: str | None = None, as_json: bool = False) -> None:
    """List the rules, the receivers, and the present alerts with their beginning.

    \b
    Example:
      reviewloop alerts list --json
    """
    from app.sending.alert_sending import LOG, place_of
    from tasks.store.queue.notices import list_alerts

    settings = settings_of(db)
    path = sqlite_file(settings.database_url)
    rules = dict(settings.alerts.items())
    places = [place_of(one) for one in settings.alert_to.split() or (LOG,)]
    rows, now = [], None
    if path is None or path.is_file() or left_by_up(settings):
        with store_there(settings) as store, store.read() as tx:
            rows, now = list_alerts(tx), tx.now
    on = [row for row in rows if row.firing]
    if as_json:
        print_json({"rules": rules, "receivers": places, "on": on, "now": now})
        return
    out = printed()
    watched = ((name, f"{value:g}{_WATCHED[name][0]}", _WATCHED[name][1]) for name, value in rules.items())
    out.print(table(("rule", "from", "tells of>"), watched))
    out.print(f"Told: {', '.join(places)}")
    if any(one.startswith(("mailto://", "mailtos://")) for one in places):
        out.print(
            "mailtos:// has a mail server of its own. mailto:PERSON@EXAMPLE.CN goes by REVIEWLOOP_SMTP_URL, as "
            "scheduled reports do.",
            style="dim",
        )
    for row in rows:
        if row.trouble:
            out.print(f"Not reached with {row.rule} {row.subject}: {row.trouble}", style="yellow")
    if on and now is not None:
        told = ((r.rule, r.subject, ago(r.since, now), clock(r.told_at), r.text) for r in on)
        out.print(table(("on", "what", "since", "told at (UTC)", "says>"), told))
    else:
        out.print("Nothing is on.", style="green")


@alerts.command("test")
@json_option
def test(as_json: bool) -> None:
    """Send a test message to each receiver, and say which of them accepted it.

    Exit status 1 if one of them did not.

    \b
    Example:
      reviewloop alerts test
    """
    from app.sending.alert_sending import Receivers

    settings = settings_of()
    found = Receivers(settings.alert_to.split(), settings.mail_server()).send(
        "reviewloop: test", "A test message: alerts of reviewloop arrive here."
    )
    if as_json:
        print_json({"receivers": found})
    else:
        printed().print(table(("receiver", "result>"), ((one.to, one.why or "ok") for one in found)))
    if any(one.why for one in found):
        sys.exit(1)
