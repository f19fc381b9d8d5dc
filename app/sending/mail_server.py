"""The mail server that alerts and scheduled reports are sent through."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from splitter.errors import InputError

_SMTP = (
    "write smtps://USER:PASSWORD@HOST:465, or smtp://USER:PASSWORD@HOST:587 with STARTTLS; a relay without TLS: "
    "smtp://HOST:25?tls=off (@, /, ? and # in a password as %40, %2F, %3F, %23)"
)
_MAIL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}")


class Security(StrEnum):
    """How a connection to a mail server is secured."""

    TLS = "tls"
    STARTTLS = "starttls"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """A mail server.

    Attributes:
        user: empty: it asks for none.
        sender: address that mail comes from.
    """

    host: str
    port: int
    security: Security
    user: str
    password: str = field(repr=False)
    sender: str


def smtp_server(url: str, sender: str) -> SmtpServer:
    """Read the address of a mail server.

    Args:
        sender: empty: the user of the address.

    Raises:
        InputError: it is none. The message does not repeat it: it may hold a password.
    """
    try:
        parsed = urlsplit(url)
        host, port = parsed.hostname, parsed.port
    except ValueError:  # its message holds what stands where the port should be
        raise InputError(_SMTP) from None
    if not host or parsed.path not in ("", "/") or parsed.fragment or parsed.query not in ("", "tls=off"):
        raise InputError(_SMTP)
    if parsed.scheme not in ("smtp", "smtps") or (parsed.scheme == "smtps" and parsed.query):
        raise InputError(_SMTP)
    user, password = unquote(parsed.username or ""), unquote(parsed.password or "")
    if bool(user) != bool(password):
        raise InputError(f"user and password are a pair: {_SMTP}")
    if parsed.query and password and host not in ("localhost", "127.0.0.1", "::1"):
        raise InputError("a password is not sent without TLS: leave ?tls=off away")
    own = sender or user
    if "@" not in own:
        raise InputError("say who mail comes from: REVIEWLOOP_MAIL_FROM=REPORTS@EXAMPLE.CN")
    secured = Security.TLS if parsed.scheme == "smtps" else Security.STARTTLS
    return SmtpServer(
        host=host,
        port=port or (465 if secured is Security.TLS else 587),
        security=Security.OFF if parsed.query else secured,
        user=user,
        password=password,
        sender=mail_address(own),
    )


def mail_address(text: str) -> str:
    """Check a mail address. Raises InputError."""
    if not _MAIL.fullmatch(text):
        raise InputError(f"{text!r} is no mail address: write PERSON@EXAMPLE.CN")
    return text
