"""`reviewloop doctor`: check this machine, and print remedies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.cli.command import App, command
from app.cli.output import say
from app.cli.render import Fact, Part, text
from app.files.harmless import shown
from app.run.doctor import Check, CheckState, examine
from app.run.wiring import utc_now
from app.views.moments import local_time
from app.views.words import describe, name_text, translate
from splitter.errors import Message

_STYLES = {CheckState.OK: "green", CheckState.WARNING: "yellow", CheckState.FAILED: "red"}
_STATE = 8
"""Width of the column with the state, including the blank after it."""
_CLOCK = "set this machine's clock (timedatectl set-ntp true)"
_SEARXNG = "{url} answers; its engines: {engines}"
_RENDERED = "{rendered} of {sites} sites"
_MAIL = "{server.host}:{server.port} ({server.security}"
TEXTS = {
    "all_sites": ("{asked} of {sites} sites can be asked", ""),
    "browser": (f"{{program}}, for pages made by script ({_RENDERED})", ""),
    "browsers": (
        f"{{rendering}} of {{nodes}} live nodes have one, for pages made by script ({_RENDERED})",
        "",
    ),
    "clock": ("{now:%Y-%m-%d %H:%M %z}", ""),
    "clock_skew": ("it is {skew_s:.0f} s off the database's", _CLOCK),
    "disk": ("{gb:.1f} GB free in {folder}", ""),
    "full_disk": ("{gb:.1f} GB free in {folder}", "make room, or name another --db"),
    "lab": ("{host}:{port} answers", ""),
    "mail": (f"{_MAIL}, user {{server.user}}), from {{server.sender}}", ""),
    "mail_without_user": (f"{_MAIL}), from {{server.sender}}", ""),
    "misspelt": ("{name} is no setting", "write {meant}"),
    "names_known": ("host names are looked up", ""),
    "new_database": ("{path} is not there yet: a run begins it", ""),
    "newest_schema": ("answers, schema {revision}", ""),
    "own_themes": ("{file} is right", ""),
    "usual_themes": ("no file {file} here: those of the project are used", ""),
    "no_browser": (f"{_RENDERED} can't be asked: {{why}}", "{mend}"),
    "no_contact": ("sites can't reach you", "set REVIEWLOOP_CONTACT to your address or page (docs/legal.md)"),
    "no_database": ("{error}", ""),
    "no_folder": ("there is no folder {folder}", "mkdir {folder}"),
    "no_lab": ("{error}", "reviewloop lab --port {port}"),
    "no_redis": ("{error}", ""),
    "obstacle": ("{why}", "{mend}"),
    "old_schema": (
        "its schema is {revision}, this version's is {newest}",
        "reviewloop run or up migrates it",
    ),
    "past_clock": ("it stands at {now:%Y-%m-%d}", _CLOCK),
    "read_only": (
        "{path} is not writable for this user",
        "work in a folder of your own, or name another database with --db",
    ),
    "redis": ("answers", ""),
    "searxng": (_SEARXNG, ""),
    "settings_known": ("every REVIEWLOOP_ variable is known", ""),
    "silent_engines": (
        f"{_SEARXNG}; not answered by {{silent}}",
        "wait until these engines answer it again, or switch others on in its settings.yml",
    ),
    "site_obstacle": ("{site}: {why}", "{mend}"),
    "some_sites": (
        "{asked} of {sites} sites can be asked",
        "reviewloop run --plan NAME tells which not, and why",
    ),
    "unknown_setting": ("{name} is no setting", "docs/settings.md lists the settings"),
    "wrong_file": ("{error}", ""),
    "wrong_mail": ("{error}", "see docs/schedules.md"),
    "wrong_schema": ("{error}", "see docs/backup.md"),
}
"""Sentences by reason of a check: the finding and the remedy."""


@dataclass(frozen=True, slots=True)
class CheckedView:
    """The result of a check in sentences: its subject and state, the finding, and the remedy."""

    what: str
    state: CheckState
    said: Message
    mend: Message


@dataclass(frozen=True, slots=True)
class DoctorView:
    """The results of all checks. They are yielded one by one, because some checks take seconds."""

    checks: Iterator[CheckedView]


@command(None, "doctor", sites=True, lab=True)
def doctor(app: App) -> DoctorView:
    """Check settings, themes, network, SearXNG, sites, database, Redis, clock and disk.

    It names what would fix each problem. It asks name servers, SearXNG, the database and Redis, but no site.
    Exit status 1 if something has to be fixed before a crawl.

    \b
    Example:
      reviewloop doctor
    """
    say(translate("Checking (at most 15 s)."), "dim")
    return DoctorView(_check(app))


def _check(app: App) -> Iterator[CheckedView]:
    for check in examine(app.settings, utc_now):
        if check.state is CheckState.FAILED:
            app.exit_status = 1
        yield view_check(check)


def view_check(check: Check) -> CheckedView:
    """Return the result of a check in sentences."""
    words = {name: _make_word(value) for name, value in check.parameters.items()}
    found, mend = TEXTS[check.reason]
    return CheckedView(check.what, check.state, Message(found, **words), Message(mend, **words))


@text.register
def _(view: DoctorView) -> Iterator[Part]:
    for check in view.checks:
        found = shown(name_text(translate(check.what), check.said))
        yield Fact(translate(check.state), found, style=_STYLES[check.state], width=_STATE)
        if str(check.mend):
            yield Fact(
                f"{'':{_STATE}}->", shown(describe(check.mend)), style="dim", rest="dim", width=_STATE + 3
            )


def _make_word(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return value or Message("none of category general")
    if isinstance(value, Mapping):
        return tuple(Message("{name} ({why})", name=name, why=Message(why)) for name, why in value.items())
    return local_time(value) if isinstance(value, datetime) else value
