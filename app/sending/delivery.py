"""Deliver a report or an export: to a folder, to a webhook, or by mail."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from app.sending.mail_server import SmtpServer, mail_address
from app.sending.parcel import DeliveryFailed, Parcel
from app.views.words import describe, translate
from splitter.errors import InputError, Message
from tasks.domain.given_address import AddressKind, read_address

MOST_BYTES = 20_000_000
"""Maximum number of bytes of a file that is mailed or posted."""
SEND_S = 60.0
"""Maximum time for sending a file, in seconds."""
_POLL_S = 0.2
_ANSWER_BYTES = 100_000
_ANSWER_SHOWN = 200
_WAYS = Message("mailto:PERSON@EXAMPLE.CN[,...], https://WEBHOOK or file:FOLDER")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Settings to send mail and to post to webhooks.

    Attributes:
        smtp: the mail server; `None` if none is set.
        user_agent: User-Agent header of requests to webhooks.
    """

    smtp: SmtpServer | None
    user_agent: str


def parse_destination(to: str, private: bool) -> str:
    """Return a destination in the form to store: a folder as absolute path, others unchanged.

    Raises:
        InputError: the text is not a destination, or a webhook is at a private address and `private` is False.
    """
    scheme, _, rest = to.strip().partition(":")
    if scheme == "file" and rest:
        return f"file:{Path(rest.removeprefix('//')).expanduser().absolute()}"
    if scheme == "mailto" and rest:
        people = [one.strip() for one in rest.split(",")]
        return f"mailto:{','.join(map(mail_address, people))}"
    if scheme not in ("http", "https"):
        raise InputError("--to is nowhere to send to; write {ways}", ways=_WAYS)
    try:
        read_address(AddressKind.WEBHOOK, to)
    except InputError as error:
        raise InputError("--to: {error}", error=error) from None
    if not private:
        from tasks.domain.address import authority_of, sendable
        from tasks.domain.failures import FetchError
        from tasks.fetching.guard import check_authority

        try:
            check_authority(authority_of(sendable(to.strip())), allow_loopback=False)
        except FetchError as error:
            raise InputError(
                "--to {to}: {error}; if it is meant, add --private", to=shown_destination(to), error=error
            ) from None
    return to.strip()


def shown_destination(to: str) -> str:
    """Return a destination in a form that may be shown. Of a webhook's address, only the host is not secret."""
    if not to.startswith(("http:", "https:")):
        return to
    try:
        host = read_address(AddressKind.WEBHOOK, to).host
    except InputError:
        host = "?"
    return f"{to.partition(':')[0]}://{host}/..."


def folder_of(to: str) -> Path | None:
    """Return the folder that a destination names; `None` if it is a webhook or mail."""
    return Path(to.removeprefix("file:")) if to.startswith("file:") else None


def send(
    parcel: Parcel,
    to: str,
    sender: Sender,
    *,
    private: bool = False,
    within_s: float = SEND_S,
    goes_on: Callable[[], bool] = lambda: True,
) -> None:
    """Send a file by mail or to a webhook.

    Args:
        private: True if the webhook may be at a private address.
        within_s: seconds after which sending is interrupted.
        goes_on: called several times a second; sending is interrupted when it returns False.

    Raises:
        DeliveryFailed: the file did not arrive. The message contains no password and no webhook's address.
    """
    if (size := parcel.path.stat().st_size) > MOST_BYTES:
        raise DeliveryFailed(
            "its file has {size:.0f} MB, and {most:.0f} MB can be sent: write it to a folder (--to "
            "file:FOLDER), or choose fewer products",
            size=size / 1e6,
            most=MOST_BYTES / 1e6,
        )
    if to.startswith("mailto:"):
        if sender.smtp is None:
            raise DeliveryFailed("no mail server is set: REVIEWLOOP_SMTP_URL (docs/schedules.md)")
        from app.sending.mailing import Mailing

        mailing = Mailing(sender.smtp)
        people = to.removeprefix("mailto:").split(",")
        _run_bounded(lambda: mailing.send(parcel, people), mailing.break_off, within_s, goes_on)
    else:
        _run_bounded(lambda: _post(parcel, to, sender, private, within_s), lambda: None, within_s, goes_on)


def _run_bounded(
    work: Callable[[], None],
    break_off: Callable[[], None],
    within_s: float,
    goes_on: Callable[[], bool],
) -> None:
    """Run `work` in a thread, and raise its error. If it has to be interrupted, call `break_off` and leave the thread.

    Args:
        work: may take `within_s` seconds.
        goes_on: called several times a second; the work is interrupted when it returns False.

    Raises:
        DeliveryFailed: the work was interrupted.
    """
    failed: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            failed.append(error)

    thread = Thread(target=copy_context().run, args=(run,), name="delivery", daemon=True)
    thread.start()
    left = max(1, round(within_s / _POLL_S))
    while thread.is_alive() and left and goes_on():
        thread.join(_POLL_S)
        left -= 1
    if thread.is_alive():
        break_off()
        if left:
            raise DeliveryFailed("interrupted: the run ended")
        raise DeliveryFailed("it was not done within {s:g} s", s=within_s)
    for error in failed:
        raise error


def _post(parcel: Parcel, to: str, sender: Sender, private: bool, within_s: float) -> None:
    """Post the file to a webhook as a form with fields what, text and file. Raises DeliveryFailed."""
    import requests

    from tasks.domain.failures import FetchError
    from tasks.fetching.guard import SessionSettings
    from tasks.fetching.guarded_session import GuardedAdapter, cause_of, guard_session

    way = SessionSettings(
        user_agent=sender.user_agent,
        timeout_s=within_s,
        body_bytes=_ANSWER_BYTES,
        trusts=lambda _url: private,
    )
    try:
        with closing(GuardedAdapter(way)) as adapter, parcel.path.open("rb") as file:
            answer = guard_session(requests.Session(), adapter, sender.user_agent).post(
                to,
                data={"what": parcel.kind, "text": parcel.text},
                files={"file": (parcel.path.name, file, parcel.media_type)},
                allow_redirects=False,
            )
    except FetchError as error:
        raise DeliveryFailed(
            "{to}: {cause}", to=shown_destination(to), cause=_hide_address(to, describe(error))
        ) from None
    except (requests.RequestException, OSError) as error:
        raise DeliveryFailed(
            "{to}: {cause}", to=shown_destination(to), cause=_hide_address(to, translate(cause_of(error)))
        ) from None
    if not answer.ok or answer.is_redirect:
        said = " ".join(answer.content.decode(errors="replace").split())[:_ANSWER_SHOWN]
        raise DeliveryFailed(
            "{to} answers {status}: {text}",
            to=shown_destination(to),
            status=answer.status_code,
            text=_hide_address(to, said) or Message("nothing"),
        )


def _hide_address(to: str, said: str) -> str:
    """Replace a webhook's address, its path and its query in a message by "...", because they may be secret."""
    parsed = urlsplit(to)
    for part in (to, parsed.path, parsed.query):
        said = said.replace(part, "...") if len(part) > 1 else said
    return said
