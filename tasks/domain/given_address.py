"""Judges every address that a person gives: database, Redis, proxy, mail server, webhook, search engine, page, lab.

Most of these addresses hold a password. So an error names the part that is wrong and a right form, and repeats no
part of the address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Address, IPv6Address
from typing import NoReturn
from urllib.parse import unquote

from splitter.errors import InputError, Message, ReviewloopError

_MOST_CHARS = 8000
_MOST_NAME_CHARS = 253
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,63}")
_POSTGRES = re.compile(r"postgresql(?:\+[a-z0-9]+)?")
_NUMBER = re.compile(r"/?[0-9]{0,4}")
_ESCAPES = Message("(@, /, ? and # in a password as %40, %2F, %3F, %23)")


class AddressKind(StrEnum):
    """The use of an address."""

    DATABASE = "database"
    REDIS = "Redis"
    PROXY = "proxy"
    MAIL_SERVER = "mail server"
    RECEIVER = "receiver of alerts"
    WEBHOOK = "webhook"
    SEARCH_ENGINE = "search engine"
    PAGE = "page"
    LAB = "lab"


@dataclass(frozen=True, slots=True)
class GivenAddress:
    """The parts of an address.

    Attributes:
        user, password: decoded; empty if there is none.
        host: an IPv6 address without its brackets; empty if the kind needs none and there is none.
        netloc: user, password, host and port as they were given.
        path: from its slash on.
        query: without its question mark.
    """

    scheme: str
    user: str
    password: str = field(repr=False)
    host: str
    port: int | None
    netloc: str = field(repr=False)
    path: str = field(repr=False)
    query: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class _AddressForm:
    """The form of a kind of addresses.

    Attributes:
        right: advice that ends every error.
        has_login: it may hold a user and a password.
        path: pattern of the part behind the host.
        is_query: returns True for a query that may stand there.
    """

    schemes: tuple[str, ...]
    right: Message
    has_login: bool = False
    needs_port: bool = False
    path: re.Pattern[str] = re.compile(r"/?")
    is_query: Callable[[str], bool] = lambda query: not query


def _is_any(_query: str) -> bool:
    return True


_ANY_PATH = re.compile(r".*", re.DOTALL)
_PAGE = Message("write http://HOST/PATH or https://HOST/PATH")
_FORMS: Mapping[AddressKind, _AddressForm] = {
    AddressKind.DATABASE: _AddressForm(
        (),
        Message(
            "write sqlite:///FILE or postgresql://USER:PASSWORD@HOST:5432/NAME (an @ in the password as %40)"
        ),
    ),
    AddressKind.REDIS: _AddressForm(
        ("redis", "rediss", "sentinel"),
        Message(
            "write redis://:PASSWORD@HOST:6379/0, rediss://... or "
            "sentinel://:PASSWORD@HOST:26379;sentinel://HOST:26379 {escapes}",
            escapes=_ESCAPES,
        ),
        has_login=True,
        path=_NUMBER,
        is_query=_is_any,
    ),
    AddressKind.PROXY: _AddressForm(
        ("http", "https", "socks5", "socks5h"),
        Message(
            "write http://HOST:PORT, https://HOST:PORT or socks5h://HOST:PORT, with USER:PASSWORD@ before HOST if it "
            "asks {escapes}",
            escapes=_ESCAPES,
        ),
        has_login=True,
        needs_port=True,
    ),
    AddressKind.MAIL_SERVER: _AddressForm(
        ("smtp", "smtps"),
        Message(
            "write smtps://USER:PASSWORD@HOST:465, or smtp://USER:PASSWORD@HOST:587 with STARTTLS; a relay without "
            "TLS: smtp://HOST:25?tls=off {escapes}",
            escapes=_ESCAPES,
        ),
        has_login=True,
        is_query=lambda query: query in ("", "tls=off"),
    ),
    AddressKind.RECEIVER: _AddressForm(
        ("http", "https", "json", "jsons", "xml", "xmls", "form", "forms", "mailto", "mailtos", "syslog"),
        Message("docs/alerts.md has one of each kind {escapes}", escapes=_ESCAPES),
        has_login=True,
        path=_ANY_PATH,
        is_query=_is_any,
    ),
    AddressKind.WEBHOOK: _AddressForm(("http", "https"), _PAGE, path=_ANY_PATH, is_query=_is_any),
    AddressKind.SEARCH_ENGINE: _AddressForm(
        ("http", "https"), Message("write http://HOST:PORT"), path=_ANY_PATH
    ),
    AddressKind.PAGE: _AddressForm(("http", "https"), _PAGE, path=_ANY_PATH, is_query=_is_any),
    AddressKind.LAB: _AddressForm(
        (), Message("write HOST:PORT, for example 127.0.0.1:8400"), needs_port=True
    ),
}


class _Wrong(ReviewloopError):
    """The part that is wrong, without any of its characters."""


def read_address(kind: AddressKind, text: str) -> GivenAddress:
    """Read an address.

    Raises:
        InputError: it is not of this kind. The message names the wrong part and a right form. It repeats
            nothing of the address.
    """
    try:
        return _read(kind, text.strip())
    except _Wrong as wrong:
        raise InputError("{wrong}: {right}", wrong=wrong, right=_FORMS[kind].right) from None


def read_redis(text: str) -> list[GivenAddress]:
    """Read the address of a Redis: one server, or the sentinels of one, separated by semicolons. Raises InputError."""
    parts = text.split(";") if text.strip().startswith("sentinel:") else [text]
    return [read_address(AddressKind.REDIS, part) for part in parts]


def shown_address(text: str) -> str:
    """Return an address that could not be read, without anything that may be a user or a password."""
    _, at, place = text.rpartition("@")
    return f"***@{place}" if at else text


def shows_host(scheme: str) -> bool:
    """Return True if the first part of a receiver with this scheme is a host. In the others it is a token."""
    return scheme in _FORMS[AddressKind.RECEIVER].schemes


def _read(kind: AddressKind, text: str) -> GivenAddress:
    if not text:
        raise _Wrong("the address is empty")
    if len(text) > _MOST_CHARS:
        raise _Wrong("the address has more than {n} characters", n=_MOST_CHARS)
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise _Wrong("the address holds a character that can't be seen")
    if kind is AddressKind.DATABASE:
        return _read_database(text)
    if any(char.isspace() for char in text):
        raise _Wrong("the address holds a blank")
    form = _FORMS[kind]
    scheme = ""
    rest = text
    if form.schemes:
        scheme, rest = _cut_scheme(text, form)
    elif "://" in text:
        raise _Wrong("the address has a scheme")
    return _read_rest(scheme, rest, form)


def _cut_scheme(text: str, form: _AddressForm) -> tuple[str, str]:
    scheme, mark, rest = text.partition("://")
    if not mark:
        raise _Wrong("the address has no scheme")
    if scheme.lower() not in form.schemes:
        raise _Wrong("the scheme is none of {schemes}", schemes=", ".join(form.schemes))
    return scheme.lower(), rest


def _read_rest(scheme: str, rest: str, form: _AddressForm) -> GivenAddress:
    """Read the part behind a scheme."""
    end = next((place for place, char in enumerate(rest) if char in "/?#"), len(rest))
    netloc = rest[:end]
    beyond = rest[end:]
    login, at, place = netloc.rpartition("@")
    if not form.has_login and at:
        raise _Wrong("the address holds a user or a password")
    if form.has_login and "@" in beyond and not at:
        raise _Wrong("a /, ? or # stands before the @")
    if "@" in login:
        raise _Wrong("the address holds several @")
    host, port = _read_place(place)
    if not host:
        raise _Wrong("the address has no host")
    if form.needs_port and port is None:
        raise _Wrong("the address has no port")
    beyond, fragment, _ = beyond.partition("#")
    path, _, query = beyond.partition("?")
    if fragment and form.path is not _ANY_PATH:
        raise _Wrong("the address holds a #")
    if not form.path.fullmatch(path):
        raise _Wrong("the path behind the host is wrong")
    if not form.is_query(query):
        raise _Wrong("the part behind the ? is wrong")
    user, _, password = login.partition(":")
    return GivenAddress(
        scheme=scheme,
        user=unquote(user),
        password=unquote(password),
        host=host,
        port=port,
        netloc=netloc,
        path=path,
        query=query,
    )


def _read_place(place: str) -> tuple[str, int | None]:
    """Return host and port of HOST, HOST:PORT or [IPv6]:PORT. The host may be empty."""
    if place.startswith("["):
        host, bracket, behind = place[1:].partition("]")
        if not bracket or (behind and not behind.startswith(":")):
            raise _Wrong("the IPv6 address is not closed by a ]")
        try:
            IPv6Address(host.partition("%")[0])
        except ValueError:
            raise _Wrong("the host in [] is no IPv6 address") from None
        return host, _read_port(behind[1:])
    host, colon, port = place.partition(":")
    if colon and not host:
        raise _Wrong("the address has no host")
    if ":" in port:
        raise _Wrong("the host or port holds a colon (an IPv6 address stands in [])")
    number = _read_port(port)
    _check_host(host)
    return host, number


def _read_port(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536):
        raise _Wrong("the port is no number from 1 to 65535")
    return int(text)


def _check_host(host: str) -> None:
    if not host:
        return
    if len(host) > _MOST_NAME_CHARS:
        _refuse_host()
    ascii_host = host if host.isascii() else _punycode(host)
    labels = ascii_host.removesuffix(".").split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        _refuse_host()
    if labels[-1].isdigit():
        try:
            IPv4Address(ascii_host)
        except ValueError:
            _refuse_host()


def _punycode(host: str) -> str:
    from yarl import URL  # settings are read without it, as a rule

    try:
        return URL.build(scheme="http", host=host).raw_host or ""
    except ValueError:
        _refuse_host()


def _refuse_host() -> NoReturn:
    raise _Wrong("the host is no host name and no IP address")


def _read_database(text: str) -> GivenAddress:
    scheme, mark, rest = text.partition("://")
    if not mark:
        raise _Wrong("the address has no scheme")
    if scheme == "sqlite":
        if rest and not rest.startswith("/"):
            raise _Wrong("a SQLite database has no host, so three slashes stand before its file")
        return GivenAddress(scheme, "", "", "", None, "", rest, "")
    if not _POSTGRES.fullmatch(scheme):
        raise _Wrong("the scheme is none of sqlite, postgresql")
    # SQLAlchemy reads a password up to the first @, whatever stands in it.
    login, at, behind = rest.partition("@")
    if not at:
        login = ""
        behind = rest
    if "@" in behind.partition("?")[0]:
        raise _Wrong("the address holds several @")
    user, _, password = login.partition(":")
    if "/" in user or "?" in user:
        raise _Wrong("a / or ? stands in the user")
    end = next((place for place, char in enumerate(behind) if char in "/?"), len(behind))
    ports = []
    for place in behind[:end].split(","):
        ports.append(_read_place(place)[1])
    path, _, query = behind[end:].partition("?")
    host = behind[:end].partition(":")[0]
    return GivenAddress(
        scheme, unquote(user), unquote(password), host, ports[0], rest[: -len(behind)], path, query
    )
