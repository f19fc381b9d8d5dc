"""Authors' pseudonyms of a process: the key from the environment, or from a file, made when it is first needed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from app.config import Settings
from splitter.errors import InputError
from tasks.worker.pseudonyms import SHORTEST_KEY, Pseudonyms


def pseudonyms(settings: Settings) -> Pseudonyms | None:
    """What gives authors their pseudonyms; None where names are kept as they are.

    Raises:
        InputError: the key is too short, or its file can't be read or made.
    """
    if not settings.pseudonymise:
        return None
    if settings.pseudonym_key:
        key, told = settings.pseudonym_key, "REVIEWLOOP_PSEUDONYM_KEY"
    else:
        key, told = _kept(Path(settings.pseudonym_key_file)), settings.pseudonym_key_file
    try:
        return Pseudonyms(key)
    except ValueError as error:
        raise InputError(f"{told}: {error}; write at least {SHORTEST_KEY} characters") from None


def _kept(path: Path) -> str:
    """The key in a file, which only its owner may read; a new one where there is none, also if others begin it now."""
    try:
        if not path.exists():
            draft = path.with_name(f".{path.name}.{os.getpid()}.new")
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
            try:
                os.link(draft, path)  # whole, and never over another one's
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        return path.read_text("utf-8").strip()
    except OSError as error:
        raise InputError(
            f"the key of pseudonyms can't be kept in {path}: {error.strerror}; set REVIEWLOOP_PSEUDONYM_KEY"
        ) from error
