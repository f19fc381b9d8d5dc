"""Parse the address of the mail server that sends alerts and scheduled reports."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum

from splitter.errors import InputError
from tasks.domain.given_address import AddressKind, read_address

_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}")


class Security(StrEnum):
    """Ways to secure the connection to a mail server."""

    TLS = "tls"
    STARTTLS = "starttls"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """The address of a mail server, and how to log in.

    Attributes:
        user: user name; empty if the server needs no login.
        sender: address in the From header.
    """

    host: str
    port: int
    security: Security
    user: str
    password: str = field(repr=False)
    sender: str


def smtp_server(url: str, sender: str) -> SmtpServer:
    """Parse the URL of a mail server.

    Args:
        sender: address in the From header; if empty, the user in `url` is used.

    Raises:
        InputError: the URL is wrong. The message does not quote it, as it may contain a password.
    """
    address = read_address(AddressKind.MAIL_SERVER, url)
    if address.scheme == "smtps" and address.query:
        raise InputError("smtps:// is always secured: remove ?tls=off, or write smtp://HOST:25?tls=off")
    user = address.user
    password = address.password
    if bool(user) != bool(password):
        raise InputError("user and password go together: write smtps://USER:PASSWORD@HOST:465")
    if address.query and password and address.host not in ("localhost", "127.0.0.1", "::1"):
        raise InputError("a password is not sent without TLS: remove ?tls=off")
    own = sender or user
    if "@" not in own:
        raise InputError("name the sender of mail: REVIEWLOOP_MAIL_FROM=REPORTS@EXAMPLE.CN")
    secured = Security.TLS if address.scheme == "smtps" else Security.STARTTLS
    return SmtpServer(
        host=address.host,
        port=address.port or (465 if secured is Security.TLS else 587),
        security=Security.OFF if address.query else secured,
        user=user,
        password=password,
        sender=mail_address(own),
    )


def mail_address(text: str) -> str:
    """Return a mail address unchanged. Raises InputError if the text is not a mail address."""
    if not _MAIL.fullmatch(text):
        raise InputError("{text!r} is no mail address: write PERSON@EXAMPLE.CN", text=text)
    return text
