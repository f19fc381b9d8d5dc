"""The encrypted file in which sign-ins are kept until they end.

One line of format, one of salt, then a Fernet token over JSON: name -> what was granted. The key is derived from
the secret by scrypt. Several processes may share the file: whoever changes it holds its lock and replaces it whole.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from secrets import token_bytes

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from tasks.signin.errors import KeepUnreadable
from tasks.signin.granted import Granted

_FORMAT = b"reviewloop sign-ins 1"
_SALT_BYTES = 16
_MODE = 0o600
# RFC 7914, 2: 16 MiB and some 50 ms, once a process.
_COST = {"n": 2**14, "r": 8, "p": 1}


class Keep:
    """Reads and changes the file; its methods block and may be called from any thread.

    Args:
        path: of the file; its lock files stand beside it.
        secret: what the key is derived from.
    """

    def __init__(self, path: Path, secret: str) -> None:
        self._path = path
        self._fernet = lru_cache(maxsize=4)(lambda salt: _fernet(secret, salt))

    def load(self, name: str) -> Granted | None:
        """What a site granted; None where it is not kept. Raises KeepUnreadable."""
        return self._read()[1].get(name)

    def save(self, name: str, granted: Granted) -> None:
        """Keep what a site granted, in place of what it granted before. Raises KeepUnreadable, OSError."""
        self._change(lambda kept: kept.update({name: granted}))

    def forget(self, name: str, only: Granted | None = None) -> bool:
        """Forget a site's sign-in; True where there was one.

        Args:
            only: forget nothing where it is another one (another process has signed in anew).
        """
        gone: list[Granted] = []

        def drop(kept: dict[str, Granted]) -> None:
            if name in kept and only in (None, kept[name]):
                gone.append(kept.pop(name))

        self._change(drop)
        return bool(gone)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Whoever signs in to a site, in whichever process, does it alone."""
        with _locked(self._path.with_name(f"{self._path.name}.{name}.lock")):
            yield

    def _change(self, change: Callable[[dict[str, Granted]], None]) -> None:
        with _locked(self._path.with_name(f"{self._path.name}.lock")):
            salt, kept = self._read()
            change(kept)
            self._write(salt, kept)

    def _read(self) -> tuple[bytes, dict[str, Granted]]:
        try:
            head, salt, token = self._path.read_bytes().split(b"\n", 2)
        except FileNotFoundError:
            return token_bytes(_SALT_BYTES), {}
        except ValueError:
            head, salt, token = b"", b"", b""
        if head != _FORMAT:
            raise KeepUnreadable(f"{self._path} is no file of sign-ins; name another one, or move it away")
        try:
            raw_salt = base64.b64decode(salt)
            kept = json.loads(self._fernet(raw_salt).decrypt(token))
            return raw_salt, {name: Granted.from_json(data) for name, data in kept.items()}
        except (InvalidToken, ValueError, KeyError, TypeError):
            raise KeepUnreadable(
                f"{self._path} was written with another REVIEWLOOP_SECRET_KEY, or is damaged; it is left as it is: "
                "set the key it was written with, or move it away and sign in anew"
            ) from None

    def _write(self, salt: bytes, kept: dict[str, Granted]) -> None:
        text = json.dumps({name: granted.to_json() for name, granted in kept.items()})
        token = self._fernet(salt).encrypt(text.encode())
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}.part")
        try:
            with suppress(FileNotFoundError):
                part.unlink()
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "wb") as file:
                file.write(b"\n".join((_FORMAT, base64.b64encode(salt), token)))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Holds a lock file; the lock ends with its process, whatever becomes of it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, _MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _fernet(secret: str, salt: bytes) -> Fernet:
    key = Scrypt(salt=salt, length=32, **_COST).derive(secret.encode("utf-8", "surrogateescape"))
    return Fernet(base64.urlsafe_b64encode(key))
