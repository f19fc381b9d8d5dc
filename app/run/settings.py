"""Read the settings from the environment and from the file `.env` of the current folder. No other module reads them.

The name of every variable begins with REVIEWLOOP_. Options of a command override variables, and variables override
the defaults of `setting_fields`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.run.setting_values import PREFIX
from splitter.errors import InputError, Message, system_reason
from tasks.signin.credentials import PREFIX as LOGIN_PREFIX

if TYPE_CHECKING:
    from app.run.setting_fields import Settings

_FILE = Path(".env")


def load_settings(environment: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """Return the settings from REVIEWLOOP_* variables. A command's options that are not `None` override them.

    Raises:
        InputError: a value can't be read; the message names the variable.
    """
    from pydantic import ValidationError

    from app.run.setting_fields import Settings, may_be_in_file
    from splitter.catalog.wrong_values import explain_wrong_value

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
        variable = f"{PREFIX}{name.upper()}"
        if Settings.model_fields[name].repr:
            variable += f"={values[name]!r}"
        raise InputError(
            "{variable}: {problem}", variable=variable, problem=explain_wrong_value(first)
        ) from None


def logging_wanted() -> tuple[str, str]:
    """Return `log_level` and `log_format` of the environment.

    They are not checked: `load_settings` refuses wrong ones.
    """
    given = _environment()
    return given.get(f"{PREFIX}LOG_LEVEL", ""), given.get(f"{PREFIX}LOG_FORMAT", "")


def language_wanted() -> str:
    """Return the language that the environment asks for: by REVIEWLOOP_LANG, else by LC_ALL, else by LANG.

    REVIEWLOOP_LANG is returned unchecked. A locale without translations, such as `C`, gives `en`.
    """
    from app.views.words import find_language

    return _read_language() or find_language(os.environ.get("LC_ALL") or os.environ.get("LANG") or "") or "en"


def language_set() -> str | None:
    """Return the language that REVIEWLOOP_LANG names; `None` if it is not set or the language has no translations."""
    from app.views.words import find_language

    return find_language(_read_language())


def _read_language() -> str:
    """Return REVIEWLOOP_LANG, or an empty text if it is not set.

    Wrong lines of `.env` are skipped here, because the error about them will be written in this language.
    """
    name = f"{PREFIX}LANG"
    if name in os.environ:
        return os.environ[name]
    found = ""
    with suppress(InputError):
        for line in _read_file().splitlines():
            with suppress(InputError):
                found = dict(variables(line, str(_FILE), name)).get(name, found)
    return found


def tell_gettext(code: str) -> None:
    """Set the language of libraries that use gettext, such as click."""
    os.environ["LANGUAGE"] = code


def misspelt(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the unknown REVIEWLOOP_ variables, each with the name that was probably meant; empty if none is close."""
    given = _environment() if environment is None else environment
    named = [name.removeprefix(PREFIX) for name in sorted(given) if name.startswith(PREFIX)]
    if not named:
        return {}
    from app.run.setting_fields import Settings, may_be_in_file

    known = {name.upper() for name in Settings.model_fields}
    known |= {
        f"{name.upper()}_FILE" for name, field in Settings.model_fields.items() if may_be_in_file(field)
    }
    wrong = [
        name
        for name in named
        if name not in known and name != "LANG" and not name.startswith(("LOGIN_", "TEST_"))
    ]
    near = {name: next(iter(get_close_matches(name, known, 1)), "") for name in wrong}
    return {f"{PREFIX}{name}": f"{PREFIX}{meant}" if meant else "" for name, meant in near.items()}


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the environment for a child process: that of this process, with REVIEWLOOP_* replaced by the settings."""
    from app.run.setting_fields import as_text

    environment = {name: text for name, text in os.environ.items() if not name.startswith(PREFIX)}
    values = {f"{PREFIX}{name.upper()}": as_text(value) for name, value in settings}
    return environment | logins() | {name: text for name, text in values.items() if text}


def logins() -> dict[str, str]:
    """Return names, passwords and client ids for sites, by variable (see `tasks.signin.credentials`)."""
    return {name: text for name, text in _environment().items() if name.startswith(LOGIN_PREFIX)}


def variables(text: str, origin: str, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each NAME=VALUE line whose name begins with a prefix.

    A value may be in quotes. Blank lines and lines that begin with # are skipped.

    Raises:
        InputError: a line has another form; the message names file and line.
    """
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip().removeprefix("export ").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise InputError(
                "{origin}:{n}: the line has no equals sign; write NAME=VALUE",
                origin=origin,
                n=number,
            )
        value = value.strip()
        if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if name.strip().startswith(prefix):
            yield name.strip(), value


def _environment() -> dict[str, str]:
    """Return the REVIEWLOOP_ variables: those of the process override those of the folder's `.env`."""
    own = {name: text for name, text in os.environ.items() if name.startswith(PREFIX)}
    return dict(variables(_read_file(), str(_FILE), PREFIX)) | own


def _read_file() -> str:
    """Return the text of the folder's `.env`; empty if there is none. Raises InputError."""
    try:
        return _FILE.read_text("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("{file} can't be read: {reason}", file=_FILE, reason=_read_reason(error)) from None


def _text_in_file(variable: str, path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip() if path else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            "{variable}={path!r} can't be read: {reason}",
            variable=variable,
            path=path,
            reason=_read_reason(error),
        ) from None


def _read_reason(error: OSError | UnicodeDecodeError) -> Message:
    return system_reason(error) if isinstance(error, OSError) else Message("it is not UTF-8")


def use_environment(environment: Mapping[str, str]) -> None:
    """Replace the environment variables of this process, which was forked from another program."""
    os.environ.clear()
    os.environ.update(environment)
