"""Send alerts to receivers: by apprise (DingTalk, WeCom, Feishu, Slack, webhooks), by mail, or to the log.

`mailto:PERSON` uses the mail server of the settings, as scheduled reports do. apprise's `mailtos://` contains a server.
Addresses of receivers are secret. Messages and logs show only their scheme, and the host if it is not secret.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from datetime import datetime
from threading import Thread, get_ident
from typing import Any
from urllib.parse import unquote

from app.files.harmless import one_line
from app.sending.mail_server import SmtpServer
from app.sending.parcel import DeliveryFailed, Letter
from app.views.durations import seconds
from app.views.theme_names import name_alert
from app.views.words import describe, name_text, plural, switch_language, translate
from splitter.errors import InputError
from tasks.domain.given_address import AddressKind, read_address, shows_host
from tasks.jobs.alerting import SendOutcome
from tasks.store.queue.notices import AlertRow

log = logging.getLogger("reviewloop.alerts")

LOG = "log"
GoOn = Callable[[], bool]
Write = Callable[[], tuple[str, str]]
BOUND_S = 20.0
"""Seconds to wait for the receivers of a message. A receiver that is still busy then gets no further message."""

_LINES = 20
_LOOK_S = 0.1
_SHORTEST_SECRET = 4


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of sending a message to one receiver.

    Attributes:
        to: the receiver, without the secret part of its address.
        why: the reason why the message did not arrive; empty if it arrived.
    """

    to: str
    why: str = ""


def place_of(address: str) -> str:
    """Return the part of a receiver's address that may be shown: the scheme, and the host if it is not secret."""
    if address == LOG:
        return LOG
    if people := _people(address):
        return f"mailto:{','.join(sorted({'***@' + one.rpartition('@')[2] for one in people}))}"
    scheme = address.partition("://")[0]
    if not shows_host(scheme):
        return f"{scheme}://"
    try:
        return f"{scheme}://{read_address(AddressKind.RECEIVER, address).host}"
    except InputError:
        return f"{scheme}://"


class Receivers:
    """The receivers of alerts.

    Args:
        addresses: addresses of apprise, `mailto:PERSON[,PERSON]`, or `log`. If there are none, messages go to the log.
        mail: mail server for `mailto:`; `None` if there is none.
        language: language code of messages. The log is always English.
        clock: monotonic clock, in seconds.

    Raises:
        InputError: apprise does not know an address, or there is a `mailto:` but no mail server.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        mail: SmtpServer | None = None,
        language: str = "en",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._language = language
        self._clock = clock
        self._busy: dict[int, Thread] = {}
        self._receivers = [_receiver(n, one, mail) for n, one in enumerate(addresses or (LOG,), 1)]

    def tell(self, rows: Sequence[AlertRow], now: datetime, go_on: GoOn = lambda: True) -> SendOutcome:
        """Send one message about these alerts. When `go_on` returns False, sending ends."""

        def write() -> tuple[str, str]:
            named = [name_alert(row) for row in rows]
            return _title(named), _body(named, now)

        found = self._deliver(write, go_on)
        trouble = "; ".join(f"{one.to}: {one.why}" for one in found if one.why)
        if trouble:
            log.warning("an alert did not reach %s", trouble)
        return SendOutcome(any(not one.why for one in found), trouble)

    def send(
        self, title: str, body: str, go_on: GoOn = lambda: True, bound_s: float = BOUND_S
    ) -> list[Delivery]:
        """Send a message to all receivers in parallel.

        Return when all have got it, at the latest after `bound_s` seconds.
        """
        return self._deliver(lambda: (title, body), go_on, bound_s)

    def _deliver(self, write: Write, go_on: GoOn, bound_s: float = BOUND_S) -> list[Delivery]:
        """Send a message to all receivers, each in its language. It takes at most `bound_s` seconds.

        Args:
            write: returns title and body in the current language.
            go_on: called several times a second. When it returns False, sending ends, and pending receivers count as
                failed.
        """
        found: dict[int, Delivery] = {}
        for n, receiver in enumerate(self._receivers):
            if n in self._busy and self._busy[n].is_alive():
                found[n] = Delivery(receiver.place, translate("it still has not taken the last message"))
                continue

            with switch_language("en" if receiver.place == LOG else self._language):
                title, body = write()

            def one(n: int = n, receiver: _Receiver = receiver, title: str = title, body: str = body) -> None:
                found[n] = Delivery(receiver.place, receiver.send(title, body))

            # A thread begins without the language.
            self._busy[n] = Thread(target=copy_context().run, args=(one,), name=f"alert-{n}", daemon=True)
            self._busy[n].start()
        end_s = self._clock() + bound_s
        for n, thread in self._busy.items():
            while n not in found and thread.is_alive() and go_on() and self._clock() < end_s:
                thread.join(_LOOK_S)
        late = translate("it did not take the message in time")
        return [found.get(n) or Delivery(one.place, late) for n, one in enumerate(self._receivers)]


@dataclass(frozen=True, slots=True)
class _Receiver:
    place: str
    send: Callable[[str, str], str]


def _people(address: str) -> Sequence[str]:
    """Return the mail addresses in a `mailto:`; empty for any other address."""
    people = address.removeprefix("mailto:")
    return [] if people == address or people.startswith("//") else people.split(",")


def _receiver(number: int, address: str, mail: SmtpServer | None) -> _Receiver:
    if address == LOG:
        return _Receiver(LOG, _to_log)
    if people := _people(address):
        if mail is None:
            raise InputError(
                "REVIEWLOOP_ALERT_TO: receiver {number} ({address}) needs the mail server: REVIEWLOOP_SMTP_URL "
                "(docs/alerts.md)",
                number=number,
                address=place_of(address),
            )
        return _Receiver(place_of(address), lambda title, body: _send_mail(mail, people, title, body))
    import apprise  # half a second

    # apprise logs addresses, so its log is not passed on. `_Heard` reads the reason of a failure from it.
    own = logging.getLogger("apprise")
    own.propagate = False
    own.addHandler(logging.NullHandler())
    own.setLevel(logging.WARNING)
    service = apprise.Apprise.instantiate(address, suppress_exceptions=True)
    if service is None:
        raise InputError(
            "REVIEWLOOP_ALERT_TO: receiver {number} is no address that apprise knows: docs/alerts.md has "
            "one of each kind",
            number=number,
        )
    return _Receiver(place_of(address), lambda title, body: _send_by_apprise(service, address, title, body))


def _to_log(title: str, body: str) -> str:
    named = title.removeprefix("reviewloop: ").replace(": ", " ", 1)
    said = f"reviewloop: {body}" if body.startswith(named) else f"{title}: {body}"  # one alert names itself
    log.warning("%s", one_line(said))
    return ""


def _send_mail(server: SmtpServer, people: Sequence[str], title: str, body: str) -> str:
    """Send a message by mail. Return the reason of a failure without the password; empty if the mail was sent."""
    from app.sending.mailing import Mailing

    try:
        Mailing(server).send(Letter(subject=title, text=body), people)
    except DeliveryFailed as error:
        return describe(error)
    return ""


class _Heard(logging.Handler):
    """Log handler that collects what apprise logs in this thread."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = get_ident()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Store the message of a log record if it was logged in the thread that made this handler."""
        if record.thread == self._thread:
            self.lines.append(record.getMessage())


def _send_by_apprise(service: Any, address: str, title: str, body: str) -> str:
    """Send a message by apprise. Return the reason of a failure without secrets; empty if the message was sent."""
    heard = _Heard()
    own = logging.getLogger("apprise")
    own.addHandler(heard)
    try:
        taken = service.notify(body=body, title=title)
    except Exception as error:  # an error within a plugin must not end the sweep
        return hide_secrets(f"{type(error).__name__}: {error}", address)
    finally:
        own.removeHandler(heard)
    if taken:
        return ""
    why = translate("it refused the message")
    return hide_secrets(name_text(why, heard.lines[0]) if heard.lines else why, address)


def hide_secrets(text: str, address: str) -> str:
    """Return a text on one line, at most 300 characters, with the secret words of a receiver's address replaced."""
    host = place_of(address).partition("://")[2]
    secret = address.partition("://")[2]
    words = {*_words(secret), *_words(unquote(secret))}
    for word in sorted(words - {host}, key=len, reverse=True):
        text = text.replace(word, "***")
    return one_line(text)[:300]


def _words(text: str) -> Iterable[str]:
    cleaned = "".join(char if char not in "/:@?&=#" else " " for char in text)
    return [word for word in cleaned.split() if len(word) >= _SHORTEST_SECRET]


def _title(rows: Sequence[AlertRow]) -> str:
    if len(rows) == 1:
        (row,) = rows
        if row.firing:
            return translate("reviewloop: ALERT: {name}", name=_name_alert(row))
        return translate("reviewloop: over: {name}", name=_name_alert(row))
    on = sum(row.firing for row in rows)
    over = len(rows) - on
    if not over:
        return plural("reviewloop: {n} alert", "reviewloop: {n} alerts", on)
    if not on:
        return translate("reviewloop: {n} over", n=over)
    return plural("reviewloop: {n} alert, {over} over", "reviewloop: {n} alerts, {over} over", on, over=over)


def _name_alert(row: AlertRow) -> str:
    return one_line(f"{translate(row.rule)} {row.subject}".strip())


def _body(rows: Sequence[AlertRow], now: datetime) -> str:
    lines = [_format_line(row, now) for row in rows[:_LINES]]
    left_out = len(rows) - _LINES
    if left_out > 0:
        lines.append(translate("and {n} more: reviewloop alerts list", n=left_out))
    return "\n".join(lines)


def _format_line(row: AlertRow, now: datetime) -> str:
    name, text = _name_alert(row), one_line(describe(row.because))
    if row.firing:
        return translate("ALERT {name}: {text}", name=name, text=text)
    length = seconds((now - row.since).total_seconds())
    return translate("over {name}, after {length}: {text}", name=name, length=length, text=text)
