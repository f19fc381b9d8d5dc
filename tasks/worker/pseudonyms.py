"""Pseudonyms of authors: two reviews of one author are still seen as such, but not the author's name.

A pseudonym is HMAC-SHA256(key, site, 0, name), 60 bits of it in base 32. Names can't be tried out without the key, and
the same name is another one on another site. Two of a million authors of a site share one with a chance of about
10^12 / 2^61, that is 4e-7.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
from base64 import b32encode
from pathlib import Path
from unicodedata import normalize

from splitter.errors import InputError, WrongValue, system_reason

from tasks.reading.copies.authors import is_nobody

PREFIX = "author-"
NOBODY_PREFIX = "anonymous-"
"""Prefix of the pseudonym of a name that identifies no person. `is_nobody` is true of name and pseudonym."""
SHORTEST_KEY = 16

_CHARS = 12
_PSEUDONYM = re.compile(rf"(?:{PREFIX}|{NOBODY_PREFIX})[a-z2-7]{{{_CHARS}}}")


class Pseudonyms:
    """Gives authors pseudonyms.

    Args:
        key: at least `SHORTEST_KEY` characters; whoever has it can try names out.

    Raises:
        WrongValue: the key is too short.
    """

    def __init__(self, key: str) -> None:
        if len(key) < SHORTEST_KEY:
            raise WrongValue(
                "a key of {n} characters is too short: {least} or more are needed",
                n=len(key),
                least=SHORTEST_KEY,
            )
        self._key = key.encode()

    def pseudonym(self, site: str, author: str) -> str:
        """Return the pseudonym of an author on a site; an empty name and a pseudonym stay as they are."""
        name = " ".join(normalize("NFKC", author).split())
        if not name or _PSEUDONYM.fullmatch(name):
            return name
        digest = hmac.digest(self._key, f"{site}\0{name}".encode("utf-8", "surrogatepass"), "sha256")
        prefix = NOBODY_PREFIX if is_nobody(name) else PREFIX
        return prefix + b32encode(digest).decode("ascii")[:_CHARS].lower()


def load_key(path: Path) -> str:
    """Return the key in a file that only its owner may read. If it is missing, it is made once for all processes.

    Raises:
        InputError: it can't be read or made.
    """
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
            "a key made at random can't be kept in {path}: {reason}; name another REVIEWLOOP_KEYS_FOLDER",
            path=path,
            reason=system_reason(error),
        ) from error
