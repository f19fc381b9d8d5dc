"""Reads the values of settings from text: each function takes a text and gives a value, or says what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from app.sending.mail_server import mail_address, smtp_server
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.scheduling.alerting import USUAL_RULES, AlertRules
from tasks.scheduling.strategy_names import STRATEGIES

_PROXY = (
    "write http://HOST:PORT, https://HOST:PORT or socks5h://HOST:PORT, with USER:PASSWORD@ before HOST if it asks "
    "(@, /, ? and # in a password as %40, %2F, %3F, %23)"
)


def in_file(variable: str, path: str) -> str:
    """The text of a file that a variable names; empty where it names none. Raises InputError."""
    try:
        return Path(path).read_text("utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{variable}={path!r} can't be read: {error}") from None


def variables(text: str, origin: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Names and values of a file of NAME=VALUE lines: those whose names begin with a prefix.

    A value may stand in quotes; blank lines and lines that begin with # are passed over.

    Raises:
        InputError: a line is neither; the message names file and line.
    """
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().removeprefix("export ").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise InputError(f"{origin}:{number}: {stripped[:40]!r} is no setting; write NAME=VALUE")
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if name.strip().startswith(prefix):
            yield name.strip(), value


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite database; None for another database, or one in memory."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path != url and path not in ("", ":memory:") else None


def database(text: str) -> str:
    """The URL of a database, from a URL or the name of a SQLite file; the folder of a cluster stays as it is."""
    plain = not any(mark in text for mark in ":@?") and not Path(text).is_dir()
    return f"sqlite:///{text}" if plain else text


def one_of(*words: str) -> Callable[[str], str]:
    """A reader of one of these words."""

    def read(text: str) -> str:
        if text not in words:
            raise InputError(f"write {' or '.join(words)}")
        return text

    return read


def token_hash(text: str) -> str:
    """Read the hash of a token, as `reviewloop web --make-token` prints it. Raises InputError."""
    if not re.fullmatch(r"sha256:[0-9a-f]{64}", text):
        raise InputError("this is no hash of a token: make one with `reviewloop web --make-token operator`")
    return text


def lab_address(text: str) -> tuple[str, int]:
    """Read HOST:PORT of a lab; only loopback is allowed. Raises InputError."""
    host, _, port = text.rpartition(":")
    try:
        loopback = ip_address(host) in ip_network("127.0.0.0/8")
        number = int(port)
    except ValueError:
        raise InputError(f"lab {text!r}: write HOST:PORT, for example 127.0.0.1:8400") from None
    if not loopback or not 0 < number < 65536:
        raise InputError(f"lab {text!r}: a lab is on loopback (127.0.0.0/8) and a port from 1 to 65535")
    return host, number


def web_address(text: str) -> str:
    """Check an address that is all but a path. Raises ValueError."""
    parsed = urlsplit(text)
    if parsed.scheme not in ("http", "https") or not parsed.hostname or parsed.query or parsed.fragment:
        raise ValueError("write http://HOST:PORT")
    return text


def kinds(text: str) -> frozenset[Kind]:
    """Read what a node may crawl: `meta`, `microblog`, or both with a comma between. Raises ValueError."""
    try:
        return frozenset(Kind(word.strip()) for word in text.split(","))
    except ValueError:
        raise ValueError(f"write {','.join(Kind)}, or one of them") from None


def proxy(text: str) -> str:
    """Read the address of a proxy; one that names socks5 looks names up itself, as all do (socks5h).

    Raises:
        ValueError: it is none. The message does not repeat it: it may hold a password.
    """
    try:
        parsed = urlsplit(text.strip())
        whole = parsed.hostname and parsed.port
    except ValueError:  # its message holds what stands where the port should be
        whole = None
    if not whole or parsed.path not in ("", "/") or parsed.query or parsed.fragment:
        raise ValueError(_PROXY) from None
    scheme = "socks5h" if parsed.scheme == "socks5" else parsed.scheme
    if scheme not in ("http", "https", "socks5h"):
        raise ValueError(_PROXY)
    return f"{scheme}://{parsed.netloc}"


def smtp(text: str) -> str:
    """Check the address of a mail server, and leave it as it is. Raises InputError."""
    smtp_server(text, "anybody@example.cn")
    return text


def strategy(text: str) -> str:
    """Check the name of an allocation strategy. Raises ValueError."""
    if text not in STRATEGIES:
        raise ValueError(f"there is {', '.join(STRATEGIES)}")
    return text


def alert_rules(text: str) -> AlertRules:
    """Read rules with their thresholds, a comma between; `off`: none. Raises ValueError."""
    right = f"write {USUAL_RULES}, some of them, or off"
    given: dict[str, float] = {}
    for word in () if text == "off" else text.split(","):
        name, _, threshold = word.strip().partition(":")
        if name not in dict(USUAL_RULES.items()):
            raise ValueError(f"there is no rule {name!r}: {right}")
        try:
            given[name] = above_zero(threshold) if threshold else dict(USUAL_RULES.items())[name]
        except ValueError:
            raise ValueError(f"{name}:{threshold}: the threshold is a number above 0: {right}") from None
    return AlertRules(**given)


def receivers(text: str) -> str:
    """Check the form of alerts' receivers, separated by blanks. Raises ValueError, whose message repeats none."""
    for number, word in enumerate(text.split(), 1):
        if word.startswith("mailto:") and not word.startswith("mailto://"):
            for person in word.removeprefix("mailto:").split(","):
                mail_address(person)
        elif word != "log" and "://" not in word:
            raise ValueError(f"receiver {number} is neither an address (docs/alerts.md) nor `log`")
    return " ".join(text.split())


def switch(text: str) -> bool:
    """Read `on` or `off`. Raises ValueError."""
    if text.lower() in ("1", "on", "true", "yes"):
        return True
    if text.lower() in ("0", "off", "false", "no"):
        return False
    raise ValueError("write on or off")


def above_zero(text: str) -> float:
    """Read a number above 0. Raises ValueError."""
    value = float(text)
    if value <= 0:
        raise ValueError("must be above 0")
    return value


def days(text: str) -> float:
    """Read a number of days, 0 or more. Raises ValueError."""
    value = float(text)
    if not 0 <= value < 100_000:
        raise ValueError("must be a number of days, 0 (for ever) or more")
    return value


def at_least(least: int) -> Callable[[str], int]:
    """A reader of whole numbers of at least so much; it raises ValueError."""

    def read(text: str) -> int:
        if int(text) < least:
            raise ValueError(f"must be at least {least}")
        return int(text)

    return read


def written(value: object) -> str:
    """A setting's value as text, as the variable has it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ":".join(str(part) for part in value)
    if isinstance(value, frozenset):
        return ",".join(sorted(value))
    return str(value)
