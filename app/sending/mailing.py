"""Send mail over SMTP, with or without a file."""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Sequence
from contextlib import closing, suppress
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from threading import Event

from app.files.harmless import one_line
from app.sending.mail_server import Security, SmtpServer
from app.sending.parcel import DeliveryFailed, Letter, Parcel
from app.views.words import describe, translate
from splitter.errors import system_reason

_ANSWER_S = 30.0


class Mailing:
    """Sends one mail over a connection of its own.

    Args:
        tls: how the server's certificate is checked; `None` for the system's default.
    """

    def __init__(self, server: SmtpServer, tls: ssl.SSLContext | None = None) -> None:
        self._server = server
        self._tls = tls
        self._client: smtplib.SMTP | None = None
        self._broken_off = Event()

    def send(self, what: Parcel | Letter, people: Sequence[str]) -> None:
        """Send a file or a letter to people. Raises DeliveryFailed, whose message does not contain the password."""
        try:
            with closing(self._connect()) as client:
                refused = client.send_message(_message(what, self._server.sender, people))
                with suppress(smtplib.SMTPException):
                    client.quit()
            if refused:
                raise smtplib.SMTPRecipientsRefused(refused)
        except smtplib.SMTPRecipientsRefused as error:
            said = "; ".join(f"{one}: {_answer(*why)}" for one, why in error.recipients.items())
            raise self._make_error(said) from None
        except smtplib.SMTPAuthenticationError as error:  # the answer may quote the password
            login = translate("it refuses user and password ({code})", code=error.smtp_code)
            raise self._make_error(login) from None
        except smtplib.SMTPResponseException as error:
            raise self._make_error(_answer(error.smtp_code, error.smtp_error)) from None
        except (smtplib.SMTPException, OSError, ValueError) as error:
            why = describe(system_reason(error)) if isinstance(error, OSError) else str(error)
            raise self._make_error(why or type(error).__name__) from None

    def break_off(self) -> None:
        """Close the connection, so that sending fails. Another thread may call this."""
        self._broken_off.set()
        if self._client is not None and self._client.sock is not None:
            with suppress(OSError):
                self._client.sock.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> smtplib.SMTP:
        """Connect to the server, with the security and login that the settings name.

        Raises SMTPException or OSError.
        """
        server, place = self._server, (self._server.host, self._server.port)
        tls = self._tls or ssl.create_default_context()
        if server.security is Security.TLS:
            self._client = smtplib.SMTP_SSL(*place, timeout=_ANSWER_S, context=tls)
        else:
            self._client = smtplib.SMTP(*place, timeout=_ANSWER_S)
        try:
            if self._broken_off.is_set():
                raise TimeoutError(translate("it answers too late"))
            if server.security is Security.STARTTLS:
                self._client.starttls(context=tls)
            if server.user:
                self._client.login(server.user, server.password)
        except BaseException:
            self._client.close()
            raise
        return self._client

    def _make_error(self, said: str) -> DeliveryFailed:
        password = self._server.password
        if password:
            said = said.replace(password, "***")
        return DeliveryFailed(
            "mail server {host}:{port}: {said}",
            host=self._server.host,
            port=self._server.port,
            said=one_line(said),
        )


def _answer(code: int, text: bytes | str) -> str:
    return f"{code} {text.decode(errors='replace') if isinstance(text, bytes) else text}"


def _message(what: Parcel | Letter, sender: str, people: Sequence[str]) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = sender, ", ".join(people), what.subject
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain=sender.rpartition("@")[2])
    message.set_content(what.text)
    if isinstance(what, Parcel):
        main, _, sub = what.media_type.partition(";")[0].partition("/")
        message.add_attachment(what.path.read_bytes(), maintype=main, subtype=sub, filename=what.path.name)
    return message
