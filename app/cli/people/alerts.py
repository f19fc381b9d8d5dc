"""The command `reviewloop alerts`: list rules and current alerts, and send a test message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.text import Text

from app.cli.command import App, command
from app.cli.render import Part, table, text
from app.views.theme_names import name_alert
from app.views.words import join_words, translate

if TYPE_CHECKING:
    from app.sending.alert_sending import Delivery
    from tasks.store.queue.notices import AlertRow

_WATCHED = {
    "completion": ("{n:g}%", "completion rate of a site in the last hour, of what it was before"),
    "silent": ("{n:g} min", "no sign of life of a node"),
    "manual": ("{n:g}", "subtasks wait for a person"),
    "idle": ("{n:g} min", "no page stored, though work waits"),
    "refusing": ("{n:g} times", "an engine refuses a node, or does not answer it"),
    "rising": ("{n:g}", "complaints in 4 weeks about a theme that rises"),
}


@dataclass(frozen=True, slots=True)
class AlertsView:
    """The rules and receivers of alerts, and the current alerts.

    Attributes:
        rules: the threshold of each rule.
        not_reached: alerts whose message did not reach a receiver.
        now: current alerts; `None` if there is no store.
    """

    rules: Mapping[str, float]
    receivers: Sequence[str]
    on: Sequence[AlertRow]
    not_reached: Sequence[AlertRow]
    now: datetime | None


@dataclass(frozen=True, slots=True)
class SentView:
    """The receivers of a test message, each with the reason if it was not delivered."""

    receivers: Sequence[Delivery]


@click.group()
def alerts() -> None:
    """Show what is watched and the present alerts; send a test message.

    Rules and receivers are settings: REVIEWLOOP_ALERTS, REVIEWLOOP_ALERT_TO (docs/alerts.md).

    \b
    Examples:
      reviewloop alerts list
      REVIEWLOOP_ALERT_TO='json://127.0.0.1:9000/hook log' reviewloop alerts test
    """


@command(alerts, "list")
def list_(app: App) -> AlertsView:
    """List the rules, the receivers, and the present alerts with their beginning.

    \b
    Example:
      reviewloop alerts list --json
    """
    from app.sending.alert_sending import LOG, place_of
    from tasks.store.queue.notices import list_alerts

    rows, now = [], None
    if app.has_store():
        with app.store.read() as tx:
            rows, now = list_alerts(tx), tx.now
    return AlertsView(
        rules=dict(app.settings.alerts.items()),
        receivers=[place_of(one) for one in app.settings.alert_to.split() or (LOG,)],
        on=[row for row in rows if row.firing],
        not_reached=[row for row in rows if row.trouble],
        now=now,
    )


@text.register
def _(view: AlertsView) -> Iterator[Part]:
    rules = [
        {
            "rule": name,
            "threshold": translate(_WATCHED[name][0], n=n),
            "about": translate(_WATCHED[name][1]),
        }
        for name, n in view.rules.items()
    ]
    yield table(rules, "rule threshold about>")
    yield translate("Receivers: {receivers}", receivers=join_words(view.receivers))
    if any(one.startswith(("mailto://", "mailtos://")) for one in view.receivers):
        note = translate(
            "mailtos:// has a mail server of its own. mailto:PERSON@EXAMPLE.CN goes by REVIEWLOOP_SMTP_URL, as "
            "scheduled reports do."
        )
        yield Text(note, style="dim")
    for row in map(name_alert, view.not_reached):
        problem = translate(
            "Not delivered: {rule} {subject}: {why}", rule=row.rule, subject=row.subject, why=row.trouble
        )
        yield Text(problem, style="yellow")
    if view.on:
        yield table(
            [name_alert(row) for row in view.on],
            "rule subject since told_at because>",
            title=translate("On now"),
            now=view.now,
        )
    else:
        yield Text(translate("No alert is on."), style="green")


@command(alerts, "test", db=False)
def test(app: App) -> SentView:
    """Send a test message to each receiver, and report which receivers accepted it.

    Exit status 1 if a receiver did not accept it.

    \b
    Example:
      reviewloop alerts test
    """
    from app.sending.alert_sending import Receivers

    found = Receivers(app.settings.alert_to.split(), app.settings.mail_server()).send(
        translate("reviewloop: test"), translate("A test message: alerts of reviewloop arrive here.")
    )
    if any(one.why for one in found):
        app.exit_status = 1
    return SentView(found)


@text.register
def _(view: SentView) -> Iterator[Part]:
    for one in view.receivers:
        yield translate("{receiver}: {result}", receiver=one.to, result=one.why or translate("delivered"))
