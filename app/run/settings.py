"""Reads the settings from the environment and from the file `.env` of the current folder. No other module does.

Every variable begins with REVIEWLOOP_. A command's options override it, it overrides the defaults of `setting_fields`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.signin.credentials import PREFIX as LOGIN_PREFIX

if TYPE_CHECKING:
    from app.run.setting_fields import Settings

PREFIX = "REVIEWLOOP_"
_FILE = Path(".env")
_PROXY = (
    "write http://HOST:PORT, https://HOST:PORT or socks5h://HOST:PORT, with USER:PASSWORD@ before HOST if it asks "
    "(@, /, ? and # in a password as %40, %2F, %3F, %23)"
)


def load_settings(environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """Return the settings of REVIEWLOOP_* variables, overridden by a command's options. None: the option is not given.

    Raises:
        InputError: a value can't be read; the message names the variable.
    """
    from pydantic import ValidationError

    from app.run.setting_fields import Settings, may_be_in_file

    given = _environment() if environment is None else environment
    values: dict[str, Any] = {}
    for name, field in Settings.model_fields.items():
        variable = f"{PREFIX}{name.upper()}"
        text = given.get(variable, "").strip()
        if not text and may_be_in_file(field):
            text = _text_in_file(f"{variable}_FILE", given.get(f"{variable}_FILE", "").strip())
        if text:
            values[name] = text
    values |= {name: value for name, value in options.items() if value is not None}
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        shown = f"={values[name]!r}" if Settings.model_fields[name].repr else ""
        reason = first.get("ctx", {}).get("error") or first["msg"]
        raise InputError(f"{PREFIX}{name.upper()}{shown}: {reason}") from None


def logging_wanted() -> tuple[str, str]:
    """Return `log_level` and `log_format` of the environment, unchecked: `load_settings` refuses wrong ones."""
    given = _environment()
    return given.get(f"{PREFIX}LOG_LEVEL", ""), given.get(f"{PREFIX}LOG_FORMAT", "")


def misspelt(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the REVIEWLOOP_ variables that nothing reads, each with the one that was probably meant, if any."""
    given = _environment() if environment is None else environment
    named = [name.removeprefix(PREFIX) for name in sorted(given) if name.startswith(PREFIX)]
    if not named:
        return {}
    from app.run.setting_fields import Settings, may_be_in_file

    known = {name.upper() for name in Settings.model_fields}
    known |= {
        f"{name.upper()}_FILE" for name, field in Settings.model_fields.items() if may_be_in_file(field)
    }
    wrong = [name for name in named if name not in known and not name.startswith(("LOGIN_", "TEST_"))]
    near = {name: next(iter(get_close_matches(name, known, 1)), "") for name in wrong}
    return {f"{PREFIX}{name}": f"{PREFIX}{meant}" if meant else "" for name, meant in near.items()}


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the environment of a child process with these settings: this one's, with its REVIEWLOOP_* replaced."""
    from app.run.setting_fields import as_text

    environment = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    values = {f"{PREFIX}{name.upper()}": as_text(value) for name, value in settings}
    return environment | logins() | {name: text for name, text in values.items() if text}


def cache_folder() -> Path | None:
    """Return the user's folder for what can be made again (XDG base directories), or None if the user has no home."""
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        base = given if given.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return base / "reviewloop"


def logins() -> dict[str, str]:
    """Return names, passwords and clients of sites, by variable (see tasks.signin.credentials)."""
    return {name: text for name, text in _environment().items() if name.startswith(LOGIN_PREFIX)}


def variables(text: str, origin: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of NAME=VALUE lines whose names begin with a prefix.

    A value may stand in quotes. Blank lines and lines that begin with # are skipped.

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


def _environment() -> dict[str, str]:
    """Return the REVIEWLOOP_ variables: those of the process override those of the folder's `.env`."""
    own = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}
    try:
        text = _FILE.read_text("utf-8-sig")
    except FileNotFoundError:
        return own
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{_FILE} can't be read: {error}") from None
    return dict(variables(text, str(_FILE), PREFIX)) | own


def _text_in_file(variable: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{variable}={path!r} can't be read: {error}") from None


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite database; None for another database, or one in memory."""
    path = url.removeprefix("sqlite:///")
    return Path(path) if path != url and path not in ("", ":memory:") else None


def database(text: str) -> str:
    """Return the URL of a database, given as a URL or as a SQLite file. The folder of a cluster stays as it is."""
    plain = not any(mark in text for mark in ":@?") and not Path(text).is_dir()
    return f"sqlite:///{text}" if plain else text


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


def read_kinds(text: str) -> frozenset[Kind]:
    """Read what a node may crawl: `meta`, `microblog`, or both separated by a comma. Raises ValueError."""
    try:
        return frozenset(Kind(word.strip()) for word in text.split(","))
    except ValueError:
        raise ValueError(f"write {','.join(Kind)}, or one of them") from None


def read_proxy(text: str) -> str:
    """Read the address of a proxy. socks5 becomes socks5h: every proxy resolves names itself.

    Raises:
        ValueError: it is none. The message does not repeat it, because it may hold a password.
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
